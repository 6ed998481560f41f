// SIMD array arithmetic of a call: walks over rows and borders, for any kernel.
// convert_kernel.hpp says what code may be used here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/dispatch/calls/array_arithmetic.hpp"
#include "backends/simd/arithmetic/arithmetic_kernel.hpp"
#include "backends/simd/lanes/access.hpp"
#include "backends/simd/lanes/rule.hpp"

namespace samebits::simd {

/// Walks over the memory of one call. Codes of operands and result have `width` bytes.
template <class Registers>
struct compute_walk {
  compute_kernel kernel;
  int operands;
  std::int64_t width;

  static constexpr std::int64_t unit = Registers::register_bytes;

  /// Computes `bytes` bytes of contiguous codes.
  void contiguous(arithmetic_span s, std::int64_t bytes, bool stream) const {
    s.bytes = bytes - bytes % unit;
    s.stream = stream;
    if (s.bytes > 0) kernel(s);
    advance(s, s.bytes);
    if (bytes > s.bytes) rest(s, bytes - s.bytes);
  }

  /// Computes less than one register, through copies of full registers. The other lanes compute with
  /// quiet NaNs, which raise no flags.
  void rest(arithmetic_span s, std::int64_t bytes) const {
    alignas(64) std::byte in_copy[backends::max_operands][static_cast<std::size_t>(unit)];
    alignas(64) std::byte out_copy[static_cast<std::size_t>(unit)];
    for (int i = 0; i < operands; ++i) {
      __builtin_memset(in_copy[i], 0xFF, static_cast<std::size_t>(unit));
      __builtin_memcpy(in_copy[i], s.in[i], static_cast<std::size_t>(bytes));
      s.in[i] = in_copy[i];
    }
    std::byte* const out = s.out;
    s.out = out_copy;
    s.bytes = unit;
    s.stream = false;
    kernel(s);
    __builtin_memcpy(out, out_copy, static_cast<std::size_t>(bytes));
  }

  /// Computes strided elements: chunk by chunk, through dense copies.
  void strided_row(const backends::arithmetic_segment& r) const {
    constexpr std::int64_t chunk_bytes = 4096;
    std::byte in_copy[backends::max_operands][chunk_bytes];
    std::byte out_copy[chunk_bytes];
    const std::int64_t chunk = chunk_bytes / width;
    for (std::int64_t at = 0; at < r.count; at += chunk) {
      const std::int64_t count = smaller(chunk, r.count - at);
      arithmetic_span s{};
      for (int i = 0; i < operands; ++i) {
        copy_codes<Registers>(in_copy[i], width, r.in[i] + at * r.in_step[i], r.in_step[i], width,
                              count);
        s.in[i] = in_copy[i];
      }
      s.out = out_copy;
      contiguous(s, count * width, false);
      copy_codes<Registers>(r.out + at * r.out_step, r.out_step, out_copy, width, width, count);
    }
  }

  void row(const backends::arithmetic_segment& r, bool large) const {
    bool dense = r.out_step == width;
    arithmetic_span s{};
    for (int i = 0; i < operands; ++i) {
      dense = dense && r.in_step[i] == width;
      s.in[i] = r.in[i];
    }
    if (!dense && r.count > 1) return strided_row(r);
    s.out = r.out;
    const std::int64_t bytes = r.count * width;
    const std::int64_t lead = large ? bytes_to_border(r.out, bytes) : 0;
    contiguous(s, lead, false);
    advance(s, lead);
    contiguous(s, bytes - lead, large && lead < bytes);
  }

 private:
  void advance(arithmetic_span& s, std::int64_t bytes) const {
    for (int i = 0; i < operands; ++i) s.in[i] += bytes;
    s.out += bytes;
  }

  /// Number of bytes before the first result on a register boundary; all bytes if there is none.
  [[nodiscard]] std::int64_t bytes_to_border(const std::byte* out, std::int64_t bytes) const {
    const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(out) %
                                                static_cast<std::uintptr_t>(unit));
    if (past % width != 0) return bytes;
    return smaller((unit - past) % unit, bytes);
  }
};

/// Computes a range of a call that supports() or supports_flags() accepts.
template <class Registers>
void compute(const backends::compute_call& call, backends::element_range range) {
  const std::int64_t width = spec_of(call.out.format).storage_bits / 8;
  const int operands = operand_count(call.op);
  const compute_walk<Registers> walk{kernel_of<Registers>(call), operands, width};
  const bool large = (operands + 1) * width * (range.end - range.begin) >= streaming::min_bytes;
  backends::for_each_arithmetic_segment(
      call, range, [&](const backends::arithmetic_segment& r) { walk.row(r, large); });
  if (large) Registers::stream_fence();
}

}  // namespace samebits::simd
