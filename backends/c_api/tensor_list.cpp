// Tensor lists through the C interface.
#include "samebits/tensor_list.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "backends/c_api/arguments/arguments.hpp"
#include "backends/c_api/arguments/guarded.hpp"
#include "backends/c_api/arguments/handles.hpp"
#include "samebits/c/tensor_list.h"
#include "samebits/error.hpp"

namespace samebits::c_api {

const tensor_list& list_of(const samebits_tensor_list* list, const char* which) {
  return required(list, which).list;
}

samebits_unscale_report report_of(const unscale_report& report) {
  return {.elements = report.elements,
          .nonfinite = report.nonfinite,
          .overflowed = report.overflowed,
          .first_bad = report.first_bad,
          .amax_bits = report.amax_bits,
          .reserved = 0};
}

std::vector<list_tensor> list_tensors_of(const samebits_list_tensor* tensors, std::size_t count) {
  check_array(tensors, count, "tensors");
  std::vector<list_tensor> all;
  all.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string which = "tensors[" + std::to_string(i) + "]";
    all.push_back({.view = view(&tensors[i].view, which.c_str()),
                   .name = std::string(text(tensors[i].name)),
                   .group = tensors[i].group});
  }
  return all;
}

}  // namespace samebits::c_api

namespace api = samebits::c_api;
using api::list_of;

namespace {

/// Throws invalid_argument unless the caller's array of one result per tensor is null or has one
/// element per tensor of the list.
template <class T>
void check_results(const samebits::tensor_list& list, const T* results, size_t count) {
  api::check_array(results, count, "tensors");
  if (results == nullptr || count == list.size()) return;
  throw samebits::invalid_argument("tensor_count: must be the number of tensors, " +
                                   std::to_string(list.size()) + ", got " + std::to_string(count));
}

samebits_tensor_statistics statistics_of(const samebits::tensor_statistics& s) {
  return {.elements = s.elements,
          .nan = s.nan,
          .inf = s.inf,
          .zeros = s.zeros,
          .subnormals = s.subnormals,
          .amax_bits = s.amax_bits,
          .reserved = 0,
          .squares = s.squares,
          .norm = s.norm()};
}

}  // namespace

samebits_status samebits_tensor_list_create(const samebits_list_tensor* tensors, size_t count,
                                            samebits_tensor_list** list) {
  return api::guarded([&] {
    samebits_tensor_list*& out = api::required(list, "list");
    out = new samebits_tensor_list{samebits::tensor_list(api::list_tensors_of(tensors, count))};
  });
}

void samebits_tensor_list_destroy(samebits_tensor_list* list) { delete list; }

samebits_status samebits_tensor_list_size(const samebits_tensor_list* list, size_t* tensors,
                                          uint64_t* elements) {
  return api::guarded([&] {
    const samebits::tensor_list& all = list_of(list, "list");
    api::write(tensors, all.size());
    api::write(elements, all.elements());
  });
}

samebits_status samebits_tensor_list_inspect(const samebits_tensor_list* list, int32_t counts,
                                             samebits_inspect_report* report,
                                             samebits_tensor_statistics* tensors,
                                             size_t tensor_count, const samebits_executor* where) {
  return api::guarded([&] {
    const samebits::tensor_list& all = list_of(list, "list");
    samebits_inspect_report& out = api::required(report, "report");
    check_results(all, tensors, tensor_count);
    const samebits::inspect_report r = samebits::inspect(
        all, {.counts = api::enumerator<samebits::inspect_counts>(counts, "counts")},
        api::where(where));
    out.total = statistics_of(r.total);
    out.first_bad = r.first_bad;
    std::copy(r.exponents.begin(), r.exponents.end(), out.exponents);
    if (tensors != nullptr) {
      std::transform(r.tensors.begin(), r.tensors.end(), tensors, statistics_of);
    }
  });
}

samebits_status samebits_tensor_list_l2norm(const samebits_tensor_list* list, double* total,
                                            double* tensors, size_t tensor_count,
                                            const samebits_executor* where) {
  return api::guarded([&] {
    const samebits::tensor_list& all = list_of(list, "list");
    double& out = api::required(total, "total");
    check_results(all, tensors, tensor_count);
    const samebits::norm_report r = samebits::l2norm(all, api::where(where));
    out = r.total;
    if (tensors != nullptr) std::copy(r.tensors.begin(), r.tensors.end(), tensors);
  });
}

samebits_status samebits_tensor_list_unscale(const samebits_tensor_list* list, float inverse_scale,
                                             samebits_unscale_report* report,
                                             const samebits_executor* where) {
  return api::guarded([&] {
    api::write(report, api::report_of(samebits::unscale(list_of(list, "list"), inverse_scale,
                                                        api::where(where))));
  });
}

samebits_status samebits_tensor_list_scale(const samebits_tensor_list* list, float factor,
                                           const samebits_executor* where) {
  return api::guarded([&] { samebits::scale(list_of(list, "list"), factor, api::where(where)); });
}

samebits_status samebits_tensor_list_axpby(float a, const samebits_tensor_list* x, float b,
                                           const samebits_tensor_list* y,
                                           const samebits_tensor_list* out,
                                           const samebits_executor* where) {
  return api::guarded([&] {
    samebits::axpby(a, list_of(x, "x"), b, list_of(y, "y"), list_of(out, "out"), api::where(where));
  });
}

samebits_status samebits_tensor_list_cast(const samebits_tensor_list* from,
                                          const samebits_tensor_list* to,
                                          const samebits_convert_options* options,
                                          const samebits_executor* where) {
  return api::guarded([&] {
    samebits::cast(list_of(from, "from"), list_of(to, "to"), api::options(options),
                   api::where(where));
  });
}

samebits_status samebits_tensor_list_accumulate(const samebits_tensor_list* acc,
                                                const samebits_tensor_list* gradients,
                                                const float* scales,
                                                const samebits_executor* where) {
  return api::guarded([&] {
    samebits::accumulate(list_of(acc, "acc"), list_of(gradients, "gradients"), {.scales = scales},
                         api::where(where));
  });
}

samebits_status samebits_clip_factor(double norm, double max_norm, float* factor) {
  return api::guarded(
      [&] { api::required(factor, "factor") = samebits::clip_factor(norm, max_norm); });
}

samebits_status samebits_tensor_list_clip(const samebits_tensor_list* list, double max_norm,
                                          double* norm, float* factor,
                                          const samebits_executor* where) {
  return api::guarded([&] {
    const samebits::clip_report r =
        samebits::clip(list_of(list, "list"), max_norm, api::where(where));
    api::write(norm, r.norm);
    api::write(factor, r.factor);
  });
}
