// Inputs of the checks: all codes, thresholds and random bit patterns, equal on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/threads/parts.hpp"
#include "samebits/core/format.hpp"

namespace samebits::backends::verification {

/// Codes in memory.
class code_buffer {
 public:
  code_buffer(format_id format, std::uint64_t count);

  void set(std::uint64_t i, std::uint64_t code);
  [[nodiscard]] std::uint64_t at(std::uint64_t i) const;
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] format_id format() const { return format_; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  format_id format_;
  std::uint64_t count_;
  std::size_t width_;
  std::vector<std::byte> bytes_;
};

/// The codes f(i), i < count, computed on threads.
template <class Function>
code_buffer codes_by(format_id format, std::uint64_t count, int threads, const Function& f) {
  code_buffer codes(format, count);
  for_each_part(static_cast<std::int64_t>(count), threads, [&](element_range range) {
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      const auto at = static_cast<std::uint64_t>(i);
      codes.set(at, f(at));
    }
  });
  return codes;
}

/// 64 random bits: number i of the given sequence. Philox4x32-10 with a fixed key.
std::uint64_t random_pattern(std::uint64_t sequence, std::uint64_t i);

/// All codes of a format of at most 16 bits, in order.
code_buffer all_codes(format_id format);

/// The fp32 codes first, first + stride, ... (`count` of them, modulo 2^32).
code_buffer fp32_sweep(std::uint64_t first, std::uint64_t stride, std::uint64_t count, int threads);

/// Codes of a wide format within two codes of the thresholds at which the result of rounding to
/// `to` changes. Thresholds are the values of `to`, the midpoints between neighbours, and one
/// spacing above max; both signs. If `to` has more than `limit` values of one sign, limit / 32
/// random ones are used.
std::vector<std::uint64_t> threshold_codes(format_id from, format_id to, std::uint64_t limit);

/// Zeros, infinities, NaN payloads and extreme values of a wide format: words with one bit set or
/// one bit clear, below, at and above Inf.
std::vector<std::uint64_t> special_codes(format_id from);

/// Random codes. Every second code has uniform random bits; the others lie in the range of one of
/// `targets`.
code_buffer random_codes(format_id from, std::span<const format_id> targets, std::uint64_t sequence,
                         std::uint64_t count, int threads);

code_buffer to_buffer(format_id format, std::span<const std::uint64_t> codes);

}  // namespace samebits::backends::verification
