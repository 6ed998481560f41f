// Scale layouts through the C interface.
#include "samebits/scale_layout.hpp"

#include <cstddef>
#include <span>
#include <string>

#include "backends/c_api/arguments/arguments.hpp"
#include "backends/c_api/arguments/guarded.hpp"
#include "backends/c_api/arguments/options.hpp"
#include "samebits/c/scale_layout.h"
#include "samebits/error.hpp"

namespace api = samebits::c_api;

namespace {

samebits::scale_layout layout_of(int32_t layout) {
  return api::enumerator<samebits::scale_layout>(layout, "layout");
}

samebits::scale_layout_options options_of(const samebits_scale_layout_options* options) {
  const samebits_scale_layout_options o = api::read(options, "options");
  return {
      .padding = api::enumerator<samebits::scale_padding>(o.padding, "options.padding"),
      .on_unpackable = api::enumerator<samebits::unpackable>(o.unpackable, "options.unpackable")};
}

samebits_scale_layout_report report_of(const samebits::scale_layout_report& r) {
  return {.scales = r.scales,
          .unpackable = r.unpackable,
          .first_row = r.first_row,
          .first_col = r.first_col};
}

}  // namespace

samebits_status samebits_layout_bytes(int32_t layout, int64_t rows, int64_t cols, int64_t* bytes,
                                      int32_t* format) {
  return api::guarded([&] {
    const samebits::scale_layout chosen = layout_of(layout);
    if (rows < 0 || cols < 0) {
      throw samebits::invalid_argument("rows, cols: sizes must be >= 0, got " +
                                       std::to_string(rows) + ", " + std::to_string(cols));
    }
    api::required(bytes, "bytes") = samebits::layout_bytes(chosen, rows, cols);
    api::write(format, static_cast<int32_t>(samebits::layout_format(chosen)));
  });
}

samebits_status samebits_arrange_scales(const samebits_view* scales, int32_t layout, void* out,
                                        size_t out_bytes,
                                        const samebits_scale_layout_options* options,
                                        samebits_scale_layout_report* report) {
  return api::guarded([&] {
    auto* bytes = static_cast<std::byte*>(out);
    api::check_array(bytes, out_bytes, "out");
    api::write(report, report_of(samebits::arrange_scales(
                           api::view(scales, "scales"), layout_of(layout),
                           std::span(bytes, out_bytes), options_of(options))));
  });
}

samebits_status samebits_restore_scales(const void* in, size_t in_bytes, int32_t layout,
                                        const samebits_view* scales,
                                        const samebits_scale_layout_options* options,
                                        samebits_scale_layout_report* report) {
  return api::guarded([&] {
    const auto* bytes = static_cast<const std::byte*>(in);
    api::check_array(bytes, in_bytes, "in");
    api::write(report, report_of(samebits::restore_scales(
                           std::span(bytes, in_bytes), layout_of(layout),
                           api::view(scales, "scales"), options_of(options))));
  });
}
