// Why a code or a scale of two quantizations of one element differs.
//
// A code under its scale says in which interval its element lay: the cell of numbers that round to
// it. Two quantizations of one number have cells that meet; where they do not meet, no difference
// of recipes explains the codes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "samebits/core/format.hpp"

namespace fpinspect {

enum class cause : std::uint8_t {
  scale_ulp,    ///< the scales are up to 4 ulp apart, which moved the element across a border
  tie,          ///< the scale is the same; the element lay on a border, and y was rounded apart
  policy,       ///< other scales, tiles or rounding, as the recipes say; the cells meet
  nan,          ///< NaN or Inf among the elements, codes or scales
  saturation,   ///< one side cut the element off at its largest code
  unexplained,  ///< nothing of these
};
inline constexpr std::size_t cause_count = 6;

std::string_view name(cause why);

/// Codes of a format as the cells of what rounds to them.
class code_cells {
 public:
  /// e4m3 or e5m2; `stochastic` rounding has cells that reach to both neighbours.
  code_cells(samebits::format_id format, bool stochastic);

  [[nodiscard]] bool is_nan_or_inf(std::uint8_t code) const;

  struct interval {
    double low, high;
  };
  /// Of the elements of this code under a scale. `open`: the largest code holds everything beyond.
  [[nodiscard]] interval of(std::uint8_t code, double scale, bool open) const;
  [[nodiscard]] bool is_largest(std::uint8_t code) const { return (code & 0x7F) == largest_; }

 private:
  std::array<double, 129> values_{};
  std::uint8_t largest_;
  bool stochastic_;
};

/// One side's view of an element.
struct coded_element {
  std::uint8_t code;
  float scale;  ///< of the code's tile
};

/// Whether both codes can be of one number, or of x where it is known.
bool can_be_one(const code_cells& a, const coded_element& in_a, const code_cells& b,
                const coded_element& in_b, const std::optional<double>& x);

/// Why different codes differ. `same_rules`: both files say that they were made by one rule.
cause cause_of_codes(const code_cells& a, const coded_element& in_a, const code_cells& b,
                     const coded_element& in_b, const std::optional<double>& x, bool same_rules);

/// Why different scales of one tile differ: `explained` says whether all of its elements can be of
/// one number each, `special` whether there is a NaN or Inf among its codes or elements.
cause cause_of_scales(float a, float b, bool explained, bool special, bool same_rules);

}  // namespace fpinspect
