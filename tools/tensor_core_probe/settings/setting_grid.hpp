// The grid of all settings of an instruction, with one axis per parameter.
#pragma once

#include <array>

#include "tensor_core_probe/check.hpp"
#include "tensor_core_probe/device.hpp"

namespace samebits::backends::tensor_cores {

/// The parameters of a setting.
enum class axis : std::uint8_t {
  floor,  ///< the first axis runs fastest
  group,
  alignment,
  fraction,
  round,
  cut,
  subnormals,
  order,
  place,
};
inline constexpr int axis_count = 9;

/// A parameter of a setting as an integer: enums by their number, no floor as no_floor.
struct axis_row {
  std::string_view name;     ///< "kept"
  std::string (*text)(int);  ///< of a value: "24", "toward_zero", "none"
  int (*value)(const tensor_setting&);
  void (*set)(tensor_setting&, int);
  bool is_number;  ///< consecutive values are written as a range
};
const axis_row& row_of(axis a);

/// All combinations of the values of all axes.
class setting_grid {
 public:
  explicit setting_grid(const shape& s);

  [[nodiscard]] const std::vector<int>& values(axis of) const {
    return values_[static_cast<std::size_t>(of)];
  }
  /// Setting number i; 0 <= i < size().
  [[nodiscard]] tensor_setting at(std::uint64_t i) const;
  [[nodiscard]] std::uint64_t size() const;
  /// False if another setting of the grid is the same rule, and that setting stands for both.
  [[nodiscard]] bool is_distinct(const tensor_setting& s) const;
  /// The number of parameters in which two settings differ, and the sum of the differences.
  [[nodiscard]] static std::array<int, 2> distance(const tensor_setting& x,
                                                   const tensor_setting& y);

 private:
  std::array<std::vector<int>, axis_count> values_;
  int products_;
};

}  // namespace samebits::backends::tensor_cores
