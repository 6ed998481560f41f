// binary32 arithmetic in nearest even against the machine's own:
//
//   binary32_machine sqrt STRIDE [THREADS]               every STRIDE-th of the 2^32 codes
//   binary32_machine add|mul|div|fma CASES [THREADS]     random operands
//
// NaNs are compared as canonical ones; flags are not read, which costs hundreds of cycles. Prints
// one line; the exit status is 1 if any result differs and 2 for a bad command line. Must be
// compiled with -ffp-contract=off.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "exhaustive/sweep_program.hpp"
#include "samebits/arithmetic.hpp"

namespace samebits {
namespace {

using namespace support;

constexpr std::uint32_t canonical = 0x7FFFFFFF;

struct operands32 {
  float a, b, c;
};

float ours(operation op, const operands32& x) {
  switch (op) {
    case operation::add: return add<float>(x.a, x.b).value;
    case operation::mul: return mul<float>(x.a, x.b).value;
    case operation::div: return div<float>(x.a, x.b).value;
    case operation::fma: return fma<float>(x.a, x.b, x.c).value;
    default: return sqrt<float>(x.a).value;
  }
}

float machine(operation op, const operands32& x) {
  switch (op) {
    case operation::add: return x.a + x.b;
    case operation::mul: return x.a * x.b;
    case operation::div: return x.a / x.b;
    case operation::fma: return std::fma(x.a, x.b, x.c);
    default: return std::sqrt(x.a);
  }
}

template <operation Op>
void compare(const operands32& x, comparison_counts& t) {
  const auto got = std::bit_cast<std::uint32_t>(ours(Op, x));
  auto expected = std::bit_cast<std::uint32_t>(machine(Op, x));
  if ((expected & canonical) > 0x7F800000) expected = canonical;
  ++t.compared;
  if (got == expected) return;
  if (t.differing++ < 3) {
    std::printf("%s(%a, %a, %a): got 0x%08X, expected 0x%08X\n", std::string(name(Op)).c_str(),
                static_cast<double>(x.a), static_cast<double>(x.b), static_cast<double>(x.c), got,
                expected);
  }
}

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
std::uint64_t next_word(std::uint64_t& state) {
  std::uint64_t z = state += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// A pattern: uniform; with few ones or few zeros at the end of its mantissa; or with an exponent
/// within 32 of `near`.
std::uint32_t draw(std::uint64_t& state, std::uint32_t near) {
  const std::uint64_t w = next_word(state);
  auto code = static_cast<std::uint32_t>(w);
  const auto shape = static_cast<std::uint32_t>(w >> 32);
  const std::uint32_t low = (1u << (shape >> 3) % 23) - 1;
  if ((shape & 1) != 0) code = (shape & 2) != 0 ? code | low : code & ~low;
  if ((shape & 4) == 0) return code;
  const std::uint32_t exponent = ((near >> 23) + ((shape >> 8) & 63) - 32) & 0xFF;
  return (code & 0x807FFFFFu) | (exponent << 23);
}

template <operation Op>
comparison_counts random_cases(std::uint64_t cases, std::uint64_t seed) {
  comparison_counts t;
  std::uint64_t state = seed;
  for (std::uint64_t i = 0; i < cases; ++i) {
    const std::uint32_t a = draw(state, 0x3F800000);
    const std::uint32_t b = draw(state, Op == operation::add ? a : 0x3F800000);
    std::uint32_t c = draw(state, a);
    if (Op == operation::fma && (c & 3) == 0) {  // near the product, of the other sign
      const float product = std::bit_cast<float>(a) * std::bit_cast<float>(b);
      c = (std::bit_cast<std::uint32_t>(product) ^ 0x80000000u) + ((c >> 2) & 3) - 1;
    }
    compare<Op>({std::bit_cast<float>(a), std::bit_cast<float>(b), std::bit_cast<float>(c)}, t);
  }
  return t;
}

comparison_counts roots(std::uint64_t first, std::uint64_t stride) {
  comparison_counts t;
  for (std::uint64_t code = first; code < std::uint64_t{1} << 32; code += stride) {
    compare<operation::sqrt>({std::bit_cast<float>(static_cast<std::uint32_t>(code)), 0, 0}, t);
  }
  return t;
}

comparison_counts part(operation op, std::uint64_t number, std::uint64_t thread,
                       std::uint64_t threads) {
  const std::uint64_t share = number / threads + (thread < number % threads ? 1 : 0);
  const std::uint64_t seed = thread * 0x123456789ABCDEFu + 42;
  switch (op) {
    case operation::add: return random_cases<operation::add>(share, seed);
    case operation::mul: return random_cases<operation::mul>(share, seed);
    case operation::div: return random_cases<operation::div>(share, seed);
    case operation::fma: return random_cases<operation::fma>(share, seed);
    default: return roots(thread * number, threads * number);
  }
}

std::optional<bool> agrees(const command_line& words) {
  if (words.size() != 2 && words.size() != 3) return std::nullopt;
  const std::optional<operation> op = find_enumerator<operation>(words[0]);
  const std::uint64_t number = words.number(1), threads = words.number(2, 1);
  if (!op || number == 0 || threads == 0) return std::nullopt;
  if (*op != operation::add && *op != operation::mul && *op != operation::div &&
      *op != operation::fma && *op != operation::sqrt) {
    return std::nullopt;
  }
  return all_agree(words[0], sum_on_threads(threads, [&](std::uint64_t thread) {
                     return part(*op, number, thread, threads);
                   }));
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) {
  return samebits::support::run_program(argc, argv,
                                        "binary32_machine sqrt STRIDE [THREADS]\n"
                                        "       binary32_machine add|mul|div|fma CASES [THREADS]",
                                        samebits::agrees);
}
