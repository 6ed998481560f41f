// Inputs of the checks: implementation.
#include "backends/verify/inputs.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "numerics/bits/random.hpp"
#include "samebits/scalar.hpp"

namespace samebits::backends::verification {
namespace {

std::uint64_t sign_bit(format_id wide) {
  return std::uint64_t{1} << (spec_of(wide).storage_bits - 1);
}

std::uint64_t code_of(format_id format, double value, rounding round) {
  return convert_code(format_id::fp64, format, std::bit_cast<std::uint64_t>(value), {round}).code;
}

/// The value one spacing above. For max: as if its binade continued.
double value_above(format_id format, std::uint64_t code) {
  const std::uint64_t step = std::uint64_t{1} << spec_of(format).padding_bits;
  const double value = decode_double(format, code);
  if (code < max_finite(format)) return decode_double(format, code + step);
  return value + (value - decode_double(format, code - step));
}

/// A code of `from` near a random finite value of `to`: random sign, and random bits below the last
/// bit of `to` as far as `from` has them.
std::uint64_t code_in_range(format_id from, format_id to, std::uint64_t bits) {
  const std::uint64_t step_bits = static_cast<std::uint64_t>(spec_of(to).padding_bits);
  const std::uint64_t codes = (max_finite(to) >> step_bits) + 1;
  const std::uint64_t code = ((bits >> 1) % codes) << step_bits;
  std::uint64_t result =
      code_of(from, decode_double(to, code), (bits & 1) != 0 ? rounding::upward : rounding::to_odd);
  const int below = spec_of(from).mantissa_bits - spec_of(to).mantissa_bits;
  if (below > 0) {
    const std::uint64_t mask = (std::uint64_t{1} << below) - 1;
    result ^= ((bits >> 32) & mask) << spec_of(from).padding_bits;
  }
  return (bits & 1) != 0 ? result | sign_bit(from) : result;
}

}  // namespace

code_buffer::code_buffer(format_id format, std::uint64_t count)
    : format_(format),
      count_(count),
      width_(static_cast<std::size_t>(storage_bytes(format))),
      bytes_(static_cast<std::size_t>(count) * width_) {}

void code_buffer::set(std::uint64_t i, std::uint64_t code) {
  std::memcpy(bytes_.data() + i * width_, &code, width_);
}

std::uint64_t code_buffer::at(std::uint64_t i) const {
  std::uint64_t code = 0;
  std::memcpy(&code, bytes_.data() + i * width_, width_);
  return code;
}

std::uint64_t random_pattern(std::uint64_t sequence, std::uint64_t i) {
  constexpr std::uint64_t key = 0x5A3EB1757E571F1Du;
  const auto block = numerics::philox4x32_10(key, sequence, i);
  return std::uint64_t{block.word[1]} << 32 | block.word[0];
}

code_buffer all_codes(format_id format) {
  const std::uint64_t count = std::uint64_t{1} << spec_of(format).storage_bits;
  return codes_by(format, count, 1, [](std::uint64_t i) { return i; });
}

code_buffer fp32_sweep(std::uint64_t first, std::uint64_t stride, std::uint64_t count,
                       int threads) {
  return codes_by(format_id::fp32, count, threads,
                  [&](std::uint64_t i) { return first + i * stride; });
}

std::vector<std::uint64_t> threshold_codes(format_id from, format_id to, std::uint64_t limit) {
  constexpr std::uint64_t reach = 2;
  const std::uint64_t to_step = std::uint64_t{1} << spec_of(to).padding_bits;
  const std::uint64_t from_step = std::uint64_t{1} << spec_of(from).padding_bits;
  const std::uint64_t all = max_finite(to) / to_step + 1;
  const bool every = all <= limit;
  const std::uint64_t count = every ? all : limit / 32;
  std::vector<std::uint64_t> codes;
  const auto add_around = [&](double value) {
    if (!std::isfinite(value)) return;
    const std::uint64_t at = code_of(from, value, rounding::toward_zero);
    for (std::uint64_t below = std::min(reach, at / from_step), i = 0; i <= below + reach; ++i) {
      const std::uint64_t code = at - below * from_step + i * from_step;
      codes.push_back(code);
      codes.push_back(code | sign_bit(from));
    }
  };
  for (std::uint64_t i = 0; i < count; ++i) {
    // The two largest values are always sampled, because overflow begins there.
    const std::uint64_t number = every || i < 2 ? all - 1 - i : random_pattern(1, i) % all;
    const double value = decode_double(to, number * to_step);
    const double above = value_above(to, number * to_step);
    add_around(value);
    add_around(value + (above - value) / 2);
    if (number == all - 1) add_around(above);
  }
  return codes;
}

std::vector<std::uint64_t> special_codes(format_id from) {
  const int width = spec_of(from).storage_bits;
  const std::uint64_t sign = sign_bit(from);
  const std::uint64_t inf = max_finite(from) + (std::uint64_t{1} << spec_of(from).padding_bits);
  std::vector<std::uint64_t> codes = {0, sign};
  for (int i = 0; i < width; ++i) {
    const std::uint64_t bit = std::uint64_t{1} << i;
    for (const std::uint64_t code : {bit, ~bit, inf ^ bit, (inf - 1) ^ bit, inf, inf - 1}) {
      codes.push_back(code & (sign - 1));
      codes.push_back((code & (sign - 1)) | sign);
    }
  }
  return codes;
}

code_buffer random_codes(format_id from, std::span<const format_id> targets, std::uint64_t sequence,
                         std::uint64_t count, int threads) {
  return codes_by(from, count, threads, [&](std::uint64_t i) {
    const std::uint64_t bits = random_pattern(sequence, i);
    const format_id target = targets[static_cast<std::size_t>((i / 2) % targets.size())];
    return i % 2 == 0 ? bits : code_in_range(from, target, bits);
  });
}

code_buffer to_buffer(format_id format, std::span<const std::uint64_t> codes) {
  return codes_by(format, codes.size(), 1, [&](std::uint64_t i) { return codes[i]; });
}

}  // namespace samebits::backends::verification
