// Converts scales to and from the layouts of other libraries: checked, never rounded.
#include "samebits/scale_layout.hpp"

#include <cstring>
#include <string>

#include "backends/api/view_checks.hpp"
#include "backends/dispatch/element.hpp"
#include "backends/dispatch/refuse.hpp"
#include "numerics/arithmetic/binary32.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/quantize/scale.hpp"

namespace samebits {
namespace backends {
namespace {

/// Loads a scale as binary32 bits; one in e4m3 as its byte, which no layout changes.
std::uint32_t load_scale(const std::byte* at, format_id format) {
  if (format == format_id::e4m3) return std::to_integer<std::uint32_t>(*at);
  if (format == format_id::e8m0) {
    return numerics::decode<std::uint32_t>(spec_of(format), std::to_integer<std::uint32_t>(*at));
  }
  std::uint32_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}

bool is_packable(std::uint32_t scale) {
  if (numerics::binary32::magnitude(scale) > numerics::binary32::inf) return true;  // NaN: FF
  constexpr std::uint32_t minimum = numerics::binary32::min_normal >> 1;            // 2^-127
  return scale == minimum || (scale >= numerics::binary32::min_normal &&
                              scale < numerics::binary32::inf && (scale & 0x007FFFFFu) == 0);
}

void store_scale(std::byte* at, format_id format, std::uint32_t scale) {
  if (format == format_id::e4m3) {
    *at = static_cast<std::byte>(scale);
  } else if (format == format_id::e8m0) {
    *at =
        static_cast<std::byte>(is_packable(scale) ? numerics::e8m0_of(scale & 0x7FFFFFFFu) : 0xFFu);
  } else {
    std::memcpy(at, &scale, sizeof scale);
  }
}

/// The format of scales in a layout: e4m3 if that is the format of the view.
format_id format_in(scale_layout layout, const const_matrix_view& scales) {
  return scales.format == format_id::e4m3 ? format_id::e4m3 : layout_format(layout);
}

/// Calls f(row, column) for each scale of a view.
template <class Function>
void for_each_scale(const const_matrix_view& v, const Function& f) {
  for (std::int64_t row = 0; row < v.rows; ++row) {
    for (std::int64_t col = 0; col < v.cols; ++col) f(row, col);
  }
}

void check_scales(const const_matrix_view& scales, scale_layout layout,
                  std::span<const std::byte> memory, const char* memory_name,
                  const scale_layout_options& options) {
  check_value("layout", layout, "scale_layout");
  check_value("options.padding", options.padding, "scale_padding");
  check_value("options.unpackable", options.unpackable, "unpackable");
  check_view(scales, "scales");
  check_format(scales, "scales", std::array{format_id::fp32, format_id::e8m0, format_id::e4m3});
  refuse_if(scales.format == format_id::e4m3 &&
                (layout_format(layout) == format_id::fp32 || layout == scale_layout::packed_ue8m0),
            "layout: scales in e4m3 have no ", layout);
  check_host(scales, "scales");
  const std::int64_t needed = layout_bytes(layout, scales.rows, scales.cols);
  refuse_if(memory.size() != static_cast<std::size_t>(needed), memory_name, ": must have ", needed,
            " bytes for ", shape_of(scales), " as ", layout, ", got ", memory.size());
  check_apart({memory.data(), format_id::e8m0, 1, needed, needed}, memory_name, scales, "scales");
}

/// Checks every scale that is stored as a byte. load(row, col) returns binary32 bits.
template <class Load>
scale_layout_report look(const const_matrix_view& scales, bool packs, unpackable on_unpackable,
                         const Load& load) {
  scale_layout_report report;
  report.scales = static_cast<std::uint64_t>(scales.rows * scales.cols);
  if (!packs) return report;
  std::uint32_t first = 0;
  for_each_scale(scales, [&](std::int64_t row, std::int64_t col) {
    const std::uint32_t scale = load(row, col);
    if (is_packable(scale)) return;
    if (report.unpackable++ != 0) return;
    first = scale;
    report.first_row = row;
    report.first_col = col;
  });
  if (report.unpackable == 0 || on_unpackable == unpackable::count) return report;
  constexpr char digits[] = "0123456789ABCDEF";
  std::string bits;
  for (int shift = 28; shift >= 0; shift -= 4) bits += digits[first >> shift & 15u];
  refuse("scales: ", report.unpackable, " are no powers of two in 2^-127 .. 2^127, the first at ",
         matrix_shape{report.first_row, report.first_col}, ": ", bits);
}

void write_padding(const const_matrix_view& scales, scale_layout layout, std::span<std::byte> out,
                   scale_padding padding) {
  const matrix_shape padded = padded_shape(layout, scales.rows, scales.cols);
  const std::uint32_t value = padding == scale_padding::one ? numerics::binary32::one : 0u;
  const format_id format = format_in(layout, scales);
  const auto width = static_cast<std::size_t>(storage_bytes(format));
  const std::uint32_t code = numerics::scale_code(format, value);
  const auto write = [&](std::int64_t row, std::int64_t col) {
    const auto at = layout_offset(layout, scales.rows, scales.cols, row, col);
    std::memcpy(out.data() + at, &code, width);  // little-endian
  };
  for (std::int64_t row = 0; row < padded.rows; ++row) {
    for (std::int64_t col = row < scales.rows ? scales.cols : 0; col < padded.cols; ++col) {
      write(row, col);
    }
  }
}

}  // namespace
}  // namespace backends

scale_layout_report arrange_scales(const const_matrix_view& scales, scale_layout layout,
                                   std::span<std::byte> out, const scale_layout_options& options) {
  namespace b = backends;
  b::check_scales(scales, layout, out, "out", options);
  const format_id to = b::format_in(layout, scales);
  const auto load = [&](std::int64_t row, std::int64_t col) {
    return b::load_scale(b::element_at(scales, row, col), scales.format);
  };
  const bool packs = to == format_id::e8m0 && scales.format == format_id::fp32;
  const scale_layout_report report = b::look(scales, packs, options.unpackable, load);
  b::for_each_scale(scales, [&](std::int64_t row, std::int64_t col) {
    b::store_scale(out.data() + layout_offset(layout, scales.rows, scales.cols, row, col), to,
                   load(row, col));
  });
  b::write_padding(scales, layout, out, options.padding);
  return report;
}

scale_layout_report restore_scales(std::span<const std::byte> in, scale_layout layout,
                                   const matrix_view& scales, const scale_layout_options& options) {
  namespace b = backends;
  b::check_scales(scales, layout, in, "in", options);
  b::check_distinct(scales, "scales");
  const format_id from = b::format_in(layout, scales);
  const auto load = [&](std::int64_t row, std::int64_t col) {
    return b::load_scale(in.data() + layout_offset(layout, scales.rows, scales.cols, row, col),
                         from);
  };
  const bool packs = scales.format == format_id::e8m0 && from == format_id::fp32;
  const scale_layout_report report = b::look(scales, packs, options.unpackable, load);
  b::for_each_scale(scales, [&](std::int64_t row, std::int64_t col) {
    b::store_scale(b::element_at(scales, row, col), scales.format, load(row, col));
  });
  return report;
}

}  // namespace samebits
