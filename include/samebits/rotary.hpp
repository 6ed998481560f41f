// Tables of rotary position embeddings: cos and sin, correctly rounded.
#pragma once

#include <cstdint>
#include <span>

#include "samebits/backend.hpp"
#include "samebits/core/table.hpp"
#include "samebits/view.hpp"

namespace samebits {

/// Which angle a rotary table has cos and sin of.
enum class rotary_angle : std::uint8_t {
  exact,     ///< position times frequency, as real numbers
  binary32,  ///< position and frequency rounded to binary32, and their product rounded to binary32
};
template <>
inline constexpr auto table_of<rotary_angle> = enum_table<rotary_angle::binary32>({"exact",
                                                                                   "binary32"});

/// Options of rotary_table().
struct rotary_options {
  /// Column i has the frequency base^(-i / columns), a real number. At least 1 and finite. With
  /// d = 2 * columns this is base^(-2i / d). Not read if there are frequencies.
  double base = 10000;
  /// [columns]: the frequency of each column in radians per position, finite; empty: by `base`.
  std::span<const double> frequencies = {};
  rotary_angle angle = rotary_angle::exact;
};

/// Computes cos(position * frequency) and sin(position * frequency) for every position and column:
/// the exact cos and sin of the angle, rounded once to nearest even (contract §13).
///
/// The angle 0 gives cos 1 and sin +0. rotary_angle::binary32 gives sin of an angle -0 as -0, and
/// NaN if the product overflows.
///
/// @param positions  [rows], of any sign
/// @param cos  [rows, columns] in fp32, fp16 or bf16, host memory; written
/// @param sin  the shape and format of `cos`; written. Shares no memory with `cos`.
/// @param options  frequencies, and which angle is meant
/// @param where  threads; the backend of host memory does not matter
/// @throws invalid_argument, before anything is written, if:
///   - `angle` is none of the enumerators;
///   - there are not as many positions as rows, or as many frequencies as columns;
///   - `base` is below 1 or not finite, or a frequency is not finite, after rounding to binary32
///     too if the angle is binary32;
///   - the format is none of the three, or shapes or formats differ;
///   - elements share memory, or the data of a non-empty view is null;
///   - the backend's name is unknown or the views do not lie in its memory.
/// @throws unsupported for views of device memory.
/// @note Thread-safe. Allocates some bytes per column. An entry takes about 0.2 microseconds of one
///   thread.
///
///   std::vector<std::int64_t> positions(4096);
///   std::iota(positions.begin(), positions.end(), 0);
///   std::vector<samebits::bf16> cos(4096 * 64), sin(4096 * 64);
///   samebits::rotary_table(positions, samebits::view_of(cos.data(), 4096, 64),
///                          samebits::view_of(sin.data(), 4096, 64), {.base = 500000});
void rotary_table(std::span<const std::int64_t> positions, const matrix_view& cos,
                  const matrix_view& sin, const rotary_options& options = {},
                  const executor& where = {});

}  // namespace samebits
