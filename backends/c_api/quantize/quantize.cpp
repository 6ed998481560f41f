// Quantization and dequantization through the C interface.
#include "samebits/quantize.hpp"

#include <cstddef>

#include "backends/c_api/arguments/arguments.hpp"
#include "backends/c_api/arguments/guarded.hpp"
#include "backends/c_api/arguments/options.hpp"
#include "backends/c_api/quantize/quantize_fields.hpp"
#include "samebits/c/quantize.h"

namespace samebits::c_api {

quantize_options options(const samebits_quantize_options* options) {
  const samebits_quantize_options o = read(options, "options");
  check_array(static_cast<const std::byte*>(o.workspace), o.workspace_bytes, "options.workspace");
  return {
      .tile = tile(o.tile),
      .rule = enumerator<scale_rule>(o.rule, "options.rule"),
      .eps = o.eps,
      .upper_bound = o.upper_bound,
      .on_nonfinite = enumerator<nonfinite>(o.nonfinite, "options.nonfinite"),
      .round = enumerator<rounding>(o.rounding, "options.rounding"),
      .on_overflow = enumerator<overflow>(o.overflow, "options.overflow"),
      .on_nan = enumerator<nan_policy>(o.nan_policy, "options.nan_policy"),
      .random = random(o.random),
      .on_scale_overflow = enumerator<scale_overflow>(o.scale_overflow, "options.scale_overflow"),
      .inverse_scales = optional_view(o.inverse_scales, "options.inverse_scales"),
      .skip_if_nonzero = o.skip_if_nonzero,
      .workspace = {static_cast<std::byte*>(o.workspace), o.workspace_bytes}};
}

quantize_outputs outputs(const samebits_quantize_outputs* outputs) {
  const samebits_quantize_outputs o = read(&required(outputs, "outputs"), "outputs");
  return {.codes = optional_view(o.codes, "outputs.codes"),
          .scales = optional_view(o.scales, "outputs.scales"),
          .codes_transposed = optional_view(o.codes_transposed, "outputs.codes_transposed"),
          .scales_transposed = optional_view(o.scales_transposed, "outputs.scales_transposed"),
          .statistics = reinterpret_cast<quantize_statistics*>(o.statistics)};
}

}  // namespace samebits::c_api

namespace api = samebits::c_api;

samebits_status samebits_scales_shape(int64_t rows, int64_t cols, const samebits_tile* tile,
                                      int64_t* scale_rows, int64_t* scale_cols) {
  return api::guarded([&] {
    const samebits::matrix_shape shape =
        samebits::scales_shape(rows, cols, api::tile(api::required(tile, "tile")));
    api::required(scale_rows, "scale_rows") = shape.rows;
    api::required(scale_cols, "scale_cols") = shape.cols;
  });
}

samebits_status samebits_quantize(const samebits_view* in, const samebits_quantize_outputs* outputs,
                                  const samebits_quantize_options* options,
                                  const samebits_executor* where) {
  return api::guarded([&] {
    samebits::quantize(api::view(in, "in"), api::outputs(outputs), api::options(options),
                       api::where(where));
  });
}

samebits_status samebits_quantize_workspace(const samebits_view* in,
                                            const samebits_quantize_outputs* outputs,
                                            const samebits_quantize_options* options, size_t* bytes,
                                            const samebits_executor* where) {
  return api::guarded([&] {
    api::required(bytes, "bytes") = samebits::quantize_workspace(
        api::view(in, "in"), api::outputs(outputs), api::options(options), api::where(where));
  });
}

samebits_status samebits_dequantize(const samebits_view* codes, const samebits_view* scales,
                                    const samebits_view* out, const samebits_tile* tile,
                                    const samebits_executor* where) {
  return api::guarded([&] {
    samebits::dequantize(api::view(codes, "codes"), api::view(scales, "scales"),
                         api::view(out, "out"), api::tile(api::required(tile, "tile")),
                         api::where(where));
  });
}
