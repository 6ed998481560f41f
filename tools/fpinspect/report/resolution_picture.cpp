// Significant bits that formats keep at each magnitude.
#include <algorithm>
#include <array>
#include <string_view>

#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/formats/describe.hpp"
#include "fpinspect/output/format_range.hpp"
#include "fpinspect/report/pictures.hpp"

namespace fpinspect {
namespace {

constexpr double area_left = 28;
constexpr double area_right = picture_width - 10;
constexpr double area_top = 24;
constexpr double area_bottom = 190;
constexpr int first_exponent = -40;
constexpr int end_exponent = 20;
constexpr int most_bits = 12;

double x_of(int exponent) {
  const double share = static_cast<double>(exponent - first_exponent) /
                       static_cast<double>(end_exponent - first_exponent);
  return area_left + share * (area_right - area_left);
}
double y_of(double bits) { return area_bottom - bits / most_bits * (area_bottom - area_top); }

/// Significant bits of the values in [2^exponent, 2^(exponent + 1)).
int bits_at(const format_range& range, int mantissa_bits, int exponent) {
  switch (range.binade(exponent)) {
    case band::normal: return mantissa_bits + 1;
    case band::subnormal: return exponent - range.minimum + 1;
    default: return 0;
  }
}

std::string steps_of(samebits::format_id format) {
  const format_range range(format);
  const int mantissa = samebits::spec_of(format).mantissa_bits;
  std::string data;
  int before = -1;
  for (int e = first_exponent; e < end_exponent; ++e) {
    const int bits = bits_at(range, mantissa, e);
    if (data.empty()) data = cat("M", coordinate(x_of(e)), " ", coordinate(y_of(bits)));
    if (bits != before) data += cat("V", coordinate(y_of(bits)));
    data += cat("H", coordinate(x_of(e + 1)));
    before = bits;
  }
  return data;
}

/// The magnitudes of the file as columns behind the curves.
std::string backdrop(const std::map<int, std::uint64_t>& counts) {
  std::uint64_t most = 0;
  for (const auto& [exponent, count] : counts) most = std::max(most, count);
  std::string data;
  for (const auto& [exponent, count] : counts) {
    if (exponent < first_exponent || exponent >= end_exponent) continue;
    const double share = static_cast<double>(count) / static_cast<double>(most);
    data += cat("M", coordinate(x_of(exponent)), " ", coordinate(area_bottom), "V",
                coordinate(y_of(share * most_bits)), "H", coordinate(x_of(exponent + 1)), "V",
                coordinate(area_bottom), "z");
  }
  return data;
}

}  // namespace

svg_picture resolution_picture(const std::map<int, std::uint64_t>& counts) {
  using samebits::format_id;
  struct curve {
    format_id format;
    std::string_view css_class;
    int label_at;  ///< exponent
  };
  constexpr std::array curves = {
      curve{format_id::fp16, "c1", -13}, curve{format_id::bf16, "c2", -39},
      curve{format_id::e4m3, "c3", -5}, curve{format_id::e5m2, "c4", -14}};
  svg_picture picture(picture_width, 222, "Resolution of formats",
                      "Significant bits at each magnitude without a scale: bf16 8 everywhere; fp16 "
                      "11 from 2^-14 to 2^15, fewer below; e4m3 4 from 2^-6 to 2^8; e5m2 3 from "
                      "2^-14 to 2^15. Columns: the magnitudes of all values of the file.");
  for (int bits = 0; bits <= most_bits; bits += 4) {
    picture.line(bits == 0 ? "axis" : "grid", area_left, y_of(bits), area_right, y_of(bits));
    picture.text("end", area_left - 6, y_of(bits) + 4, cat(bits));
  }
  if (!counts.empty()) picture.path("faint", backdrop(counts));
  for (int e = first_exponent; e < end_exponent; e += 8) {
    picture.line("axis", x_of(e), area_bottom, x_of(e), area_bottom + 4);
    picture.text("middle", x_of(e), area_bottom + 16, power_text(e));
  }
  picture.text("start", 0, 12, "significant bits");
  for (const curve& one : curves) {
    picture.path(one.css_class, steps_of(one.format));
    const format_range range(one.format);
    const int bits = bits_at(range, samebits::spec_of(one.format).mantissa_bits, one.label_at);
    picture.text("strong", x_of(one.label_at), y_of(bits) - 5, samebits::name(one.format));
  }
  return picture;
}

}  // namespace fpinspect
