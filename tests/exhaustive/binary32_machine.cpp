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
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "samebits/arithmetic.hpp"

namespace samebits {
namespace {

constexpr std::uint32_t canonical = 0x7FFFFFFF;

struct operands32 {
  float a, b, c;
};

struct comparison_counts {
  std::uint64_t compared = 0;
  std::uint64_t differing = 0;
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

comparison_counts part(operation op, std::uint64_t number, unsigned thread, unsigned threads) {
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

std::optional<int> main_of(int argc, char** argv) {
  if (argc != 3 && argc != 4) return std::nullopt;
  const std::optional<operation> op = find_enumerator<operation>(argv[1]);
  const std::uint64_t number = std::strtoull(argv[2], nullptr, 10);
  const unsigned long threads = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 1;
  if (!op || number == 0 || threads == 0) return std::nullopt;
  if (*op != operation::add && *op != operation::mul && *op != operation::div &&
      *op != operation::fma && *op != operation::sqrt) {
    return std::nullopt;
  }
  std::vector<comparison_counts> parts(threads);
  std::vector<std::thread> running;
  for (unsigned i = 0; i < threads; ++i) {
    running.emplace_back(
        [&, i] { parts[i] = part(*op, number, i, static_cast<unsigned>(threads)); });
  }
  comparison_counts sum;
  for (unsigned i = 0; i < threads; ++i) {
    running[i].join();
    sum.compared += parts[i].compared;
    sum.differing += parts[i].differing;
  }
  std::printf("%s: %llu results, %llu differ\n", argv[1],
              static_cast<unsigned long long>(sum.compared),
              static_cast<unsigned long long>(sum.differing));
  return sum.differing == 0 ? 0 : 1;
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) {
  const auto status = samebits::main_of(argc, argv);
  if (!status) {
    std::fprintf(stderr,
                 "usage: binary32_machine sqrt STRIDE [THREADS]\n"
                 "       binary32_machine add|mul|div|fma CASES [THREADS]\n");
  }
  return status.value_or(2);
}
