// Matrix products through the C interface.
#include "samebits/matmul.hpp"

#include <algorithm>
#include <optional>

#include "backends/c_api/arguments/arguments.hpp"
#include "backends/c_api/arguments/guarded.hpp"
#include "backends/c_api/arguments/options.hpp"
#include "samebits/c/matmul.h"

namespace api = samebits::c_api;

namespace {

samebits::accumulator accumulator_of(const samebits_accumulator* accumulator) {
  const samebits_accumulator a = api::read(accumulator, "accumulator");
  return {.kind = api::enumerator<samebits::accumulator_kind>(a.kind, "accumulator.kind"),
          .order = api::enumerator<samebits::fp32_order>(a.order, "accumulator.order"),
          .unit = api::enumerator<samebits::tensor_unit>(a.unit, "accumulator.unit"),
          .promotion = a.promotion,
          .result = api::enumerator<samebits::format_id>(a.result, "accumulator.result"),
          .products = a.products};
}

std::optional<samebits::scale_order> order_of(int32_t order) {
  if (order == SAMEBITS_SCALE_ORDER_AS_CUBLASLT) return std::nullopt;
  return api::enumerator<samebits::scale_order>(order, "options.order");
}

samebits::operand_scales scales_of(const samebits_view* values, const samebits_tile& tile,
                                   const char* which) {
  return {.values = api::optional_view(values, which), .tile = api::tile(tile)};
}

samebits::matmul_options options_of(const samebits_matmul_options* options) {
  const samebits_matmul_options o = api::read(options, "options");
  return {.a_scales = scales_of(o.a_scales, o.a_tile, "options.a_scales"),
          .b_scales = scales_of(o.b_scales, o.b_tile, "options.b_scales"),
          .order = order_of(o.order),
          .c = api::optional_view(o.c, "options.c"),
          .c_enters = api::enumerator<samebits::addend>(o.c_enters, "options.c_enters")};
}

samebits_product_error error_of(const samebits::product_error& e) {
  samebits_product_error error = {.count = e.count,
                                  .nonfinite = e.nonfinite,
                                  .unequal = e.unequal,
                                  .mean = e.mean,
                                  .max = e.max,
                                  .signal = e.signal,
                                  .noise = e.noise,
                                  .rounding_noise = e.rounding_noise,
                                  .accumulation_noise = e.accumulation_noise,
                                  .octaves = {}};
  std::copy(e.octaves.begin(), e.octaves.end(), error.octaves);
  return error;
}

}  // namespace

samebits_status samebits_matmul(const samebits_view* a, const samebits_view* b,
                                const samebits_view* d, const samebits_accumulator* accumulator,
                                const samebits_matmul_options* options,
                                const samebits_executor* where) {
  return api::guarded([&] {
    samebits::matmul(api::view(a, "a"), api::view(b, "b"), api::view(d, "d"),
                     accumulator_of(accumulator), options_of(options), api::where(where));
  });
}

samebits_status samebits_evidence_of(const samebits_accumulator* accumulator, int32_t a, int32_t b,
                                     int32_t* evidence) {
  return api::guarded([&] {
    api::required(evidence, "evidence") = static_cast<int32_t>(samebits::evidence_of(
        accumulator_of(accumulator), api::enumerator<samebits::format_id>(a, "a"),
        api::enumerator<samebits::format_id>(b, "b")));
  });
}

samebits_status samebits_product_error_of(const samebits_view* results, const samebits_view* exact,
                                          samebits_product_error* error) {
  return api::guarded([&] {
    api::required(error, "error") =
        error_of(samebits::error_of(api::view(results, "results"), api::view(exact, "exact")));
  });
}

samebits_status samebits_predict(const samebits_view* a, const samebits_view* b,
                                 const samebits_view* d, const samebits_accumulator* accumulator,
                                 const samebits_matmul_options* options, int32_t* evidence,
                                 samebits_product_error* error, const samebits_executor* where) {
  return api::guarded([&] {
    const samebits::prediction p =
        samebits::predict(api::view(a, "a"), api::view(b, "b"), api::view(d, "d"),
                          accumulator_of(accumulator), options_of(options), api::where(where));
    api::write(evidence, static_cast<int32_t>(p.level));
    api::write(error, error_of(p.error));
  });
}
