// Why a code or a scale of two quantizations of one element differs.
//
// A code and its scale determine the interval that contained the element: the cell of all numbers
// that round to the code. The cells of two quantizations of one number intersect. If they do not
// intersect, no difference of recipes explains the codes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "samebits/core/format.hpp"

namespace fpinspect {

/// Why a code or a scale differs.
enum class cause : std::uint8_t {
  scale_ulp,    ///< the scales are up to 4 ulp apart, which moved the element across a cell border
  tie,          ///< equal scales; the element was on a cell border and y was rounded differently
  policy,       ///< other scales, tiles or rounding, as the recipes say; the cells intersect
  nan,          ///< NaN or Inf among the elements, codes or scales
  saturation,   ///< one side clamped the element to its largest code
  unexplained,  ///< none of the above
};
inline constexpr std::size_t cause_count = 6;

std::string_view name(cause why);

/// The codes of a format as cells: intervals of numbers that round to each code.
class code_cells {
 public:
  /// @param format  e4m3 or e5m2
  /// @param stochastic  cells of stochastic rounding extend to both neighbours
  code_cells(samebits::format_id format, bool stochastic);

  [[nodiscard]] bool is_nan_or_inf(std::uint8_t code) const;

  struct interval {
    double low, high;
  };
  /// The cell of this code under a scale. `open`: the cell of the largest code has no upper bound.
  [[nodiscard]] interval of(std::uint8_t code, double scale, bool open) const;
  [[nodiscard]] bool is_largest(std::uint8_t code) const { return (code & 0x7F) == largest_; }

 private:
  std::array<double, 129> values_{};
  std::uint8_t largest_;
  bool stochastic_;
};

/// An element as one side stores it.
struct coded_element {
  std::uint8_t code;
  float scale;  ///< scale of the code's tile
};

/// Whether both codes can come from one number, or from x if x is known.
bool can_be_one(const code_cells& a, const coded_element& in_a, const code_cells& b,
                const coded_element& in_b, const std::optional<double>& x);

/// Why different codes differ. `same_rules`: the metadata of both files name one rule.
cause cause_of_codes(const code_cells& a, const coded_element& in_a, const code_cells& b,
                     const coded_element& in_b, const std::optional<double>& x, bool same_rules);

/// Why different scales of one tile differ.
/// @param explained  whether each of its elements can have one value on both sides
/// @param special  whether its codes or elements contain a NaN or Inf
cause cause_of_scales(float a, float b, bool explained, bool special, bool same_rules);

}  // namespace fpinspect
