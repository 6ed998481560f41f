// What formats lose of gradients at each power of two as loss scale, exactly, from counts by binade.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "samebits/cast_statistics.hpp"
#include "samebits/core/format.hpp"

namespace fpinspect {

// Loss scales are normal binary32 numbers. Loss scalers stop at 2^24 unless they are told otherwise.
inline constexpr int smallest_scale_log2 = -126;
inline constexpr int largest_scale_log2 = 127;
inline constexpr int usual_ceiling_log2 = 24;

/// Finite non-zero elements by e = floor(log2(|x|)).
using binades = std::map<int, samebits::binade_counts>;

/// Adds the counts of `more`.
void add(binades& sum, const binades& more);

/// What fp16 loses of the elements times 2^log2, rounded to nearest even.
struct scale_loss {
  int log2 = 0;
  std::uint64_t underflow = 0;  ///< becomes 0
  std::uint64_t overflow = 0;   ///< becomes infinite
};
scale_loss loss_at(const binades& elements, int log2);

/// A lower bound of the SQNR in dB that fp16 keeps of the elements times 2^log2, if none overflows.
/// It grows with the scale.
double sqnr_bound_at(const binades& elements, int log2);

/// The largest loss scale without overflow, which loses the fewest elements of all scales without
/// overflow; the smallest loss scale if all overflow. Nothing if there are no elements.
std::optional<int> best_scale_log2(const binades& elements);

/// The number of elements that times 2^log2 become 0 in the format, rounded to nearest even.
std::uint64_t underflow_at(const binades& elements, int log2, samebits::format_id to);

/// The largest loss scale at which the magnitude amax does not overflow in the format, rounded to
/// nearest even. Nothing if amax is 0 or overflows at every loss scale.
std::optional<int> best_scale_log2(double amax, samebits::format_id to);

}  // namespace fpinspect
