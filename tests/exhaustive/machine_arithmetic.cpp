// Arithmetic against the machine's:
//
//   machine_arithmetic fp32 sqrt STRIDE [THREADS]               every STRIDE-th of the 2^32 codes
//   machine_arithmetic fp32 add|mul|div|fma CASES [THREADS]     random operands
//   machine_arithmetic fp16 add|mul STRIDE [THREADS]            all pairs of codes
//   machine_arithmetic e4m3|e5m2 fma STRIDE [THREADS]           all triples; every STRIDE-th first operand
//
// binary32 is computed in nearest even by the machine. NaNs are compared as canonical ones; flags are
// not read, which costs hundreds of cycles. Of fp16 and 8-bit codes binary64 holds every sum, product
// and fused result: the machine computes it exactly, the oracle rounds it by every mode and, of
// 8-bit codes, overflow policy (fp16: ieee alone), and says which flags are raised. Prints one line; the exit status is 1 if any result differs
// and 2 for a bad command line. Must be compiled with -ffp-contract=off.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "exhaustive/sweep_program.hpp"
#include "oracle/convert.hpp"
#include "samebits/arithmetic.hpp"
#include "support/arithmetic_case.hpp"
#include "support/rules.hpp"

namespace samebits {
namespace {

using namespace support;

template <operation Op, class T>
result<T> ours(T a, T b, T c, const cast_rule& rule = {}) {
  if constexpr (Op == operation::add) return add<T>(a, b, rule);
  if constexpr (Op == operation::mul) return mul<T>(a, b, rule);
  if constexpr (Op == operation::div) return div<T>(a, b, rule);
  if constexpr (Op == operation::fma) return fma<T>(a, b, c, rule);
  if constexpr (Op == operation::sqrt) return sqrt<T>(a, rule);
}

template <operation Op, class Real>
Real machine(Real a, Real b, Real c) {
  if constexpr (Op == operation::add) return a + b;
  if constexpr (Op == operation::mul) return a * b;
  if constexpr (Op == operation::div) return a / b;
  if constexpr (Op == operation::fma) return std::fma(a, b, c);
  if constexpr (Op == operation::sqrt) return std::sqrt(a);
}

// ---- binary32 ----

template <operation Op>
void compare(std::uint32_t a, std::uint32_t b, std::uint32_t c, comparison_counts& t) {
  constexpr std::uint32_t canonical = 0x7FFFFFFF;
  const auto x = std::bit_cast<float>(a), y = std::bit_cast<float>(b), z = std::bit_cast<float>(c);
  const auto got = std::bit_cast<std::uint32_t>(ours<Op>(x, y, z).value);
  auto expected = std::bit_cast<std::uint32_t>(machine<Op>(x, y, z));
  if ((expected & canonical) > 0x7F800000) expected = canonical;
  ++t.compared;
  if (got == expected || t.differing++ >= 3) return;
  std::printf("%s of %08X, %08X, %08X: got %08X, expected %08X\n", std::string(name(Op)).c_str(), a,
              b, c, got, expected);
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
comparison_counts binary32(std::uint64_t number, std::uint64_t thread, std::uint64_t threads) {
  comparison_counts t;
  if (Op == operation::sqrt) {
    for (std::uint64_t code = thread * number; code >> 32 == 0; code += threads * number) {
      compare<Op>(static_cast<std::uint32_t>(code), 0, 0, t);
    }
    return t;
  }
  std::uint64_t state = thread * 0x123456789ABCDEFu + 42;
  for (std::uint64_t i = thread; i < number; i += threads) {
    const std::uint32_t a = draw(state, 0x3F800000);
    const std::uint32_t b = draw(state, Op == operation::add ? a : 0x3F800000);
    std::uint32_t c = draw(state, a);
    if (Op == operation::fma && (c & 3) == 0) {  // near the product, of the other sign
      const float product = std::bit_cast<float>(a) * std::bit_cast<float>(b);
      c = (std::bit_cast<std::uint32_t>(product) ^ 0x80000000u) + ((c >> 2) & 3) - 1;
    }
    compare<Op>(a, b, c, t);
  }
  return t;
}

// ---- Formats whose results binary64 holds ----

template <operation Op, class T>
class exact_sweep {
 public:
  exact_sweep() {
    for (const rounding mode : deterministic_modes) {
      rules_.push_back({mode});
      if (bits == 16) continue;
      for (const overflow policy : overflow_policies) {
        if (policy != overflow::ieee) rules_.push_back({mode, policy});
      }
    }
    std::map<std::tuple<oracle::value_kind, bool, bool, bool>, std::uint64_t> first;
    for (std::uint64_t code = 0; code >> bits == 0; ++code) {
      const oracle::exact_value x = oracle::decode(oracle_of(format), code);
      const auto key = std::tuple(x.kind, x.negative, x.numerator == 0,
                                  oracle::is_signaling(oracle_of(format), code));
      alike_.push_back(first.try_emplace(key, code).first->second);
      values_.push_back(std::bit_cast<double>(
          oracle::convert(oracle_of(format), oracle_of(format_id::fp64), code, {})));
    }
  }

  comparison_counts run(std::uint64_t stride, std::uint64_t thread, std::uint64_t threads) {
    comparison_counts t;
    for (std::uint64_t a = thread * stride; a >> bits == 0; a += threads * stride) {
      for (std::uint64_t b = 0; b >> bits == 0; ++b) {
        for (std::uint64_t c = 0; c >> (Op == operation::fma ? bits : 0) == 0; ++c) {
          compare({a, b, c}, t);
        }
      }
    }
    return t;
  }

 private:
  using codes = std::array<std::uint64_t, 3>;
  using results = std::vector<oracle::rounded_result>;  // by each rule
  static constexpr format_id format = format_of<T>::value;
  static constexpr int bits = spec_of(format).storage_bits;

  static arithmetic_case case_of(const codes& x, const cast_rule& rule) {
    return {.op = Op,
            .x = {{format, x[0]}, {format, x[1]}, {format, x[2]}},
            .to = format,
            .rule = rule,
            .where = "the template"};
  }

  /// x rounded to odd, two bits behind the format's last: every rule makes the same of it, and it
  /// is as tiny.
  static double rounded_to_odd(double x) {
    constexpr format_spec spec = spec_of(format);
    const double limit = std::ldexp(1.0, spec.bias + 4);  // far beyond the largest number
    if (std::fabs(x) > limit) return std::copysign(limit, x);
    const int unit = std::max(std::ilogb(x), -spec.bias) - spec.mantissa_bits - 2;
    const double scaled = std::ldexp(x, -unit), cut = std::trunc(scaled);
    if (cut == scaled) return x;
    return std::ldexp(std::fmod(cut, 2) != 0 ? cut : cut + std::copysign(1.0, x), unit);
  }

  const results& expected_of(const codes& x) {
    const double exact = machine<Op>(values_[x[0]], values_[x[1]], values_[x[2]]);
    const bool is_number = std::isfinite(exact) && exact != 0;
    if (is_number) {
      const auto key = std::bit_cast<std::uint64_t>(rounded_to_odd(exact));
      const auto [entry, fresh] = numbers_.try_emplace(key);
      if (fresh) {
        const oracle::exact_value value = oracle::decode(oracle_of(format_id::fp64), key);
        const oracle::placed_outcome placed(oracle_of(format), {value});
        for (const cast_rule& rule : rules_) entry->second.push_back(placed.by(rule));
      }
      return entry->second;
    }
    // Zeros, Inf and NaN follow from what kinds of numbers the operands are. An exact zero sum is
    // that of two zeros.
    codes alike{};
    for (std::size_t k = 0; k < 3; ++k) {
      alike[k] = exact == 0 ? x[k] >> (bits - 1) << (bits - 1) : alike_[x[k]];
    }
    const auto [entry, fresh] = others_.try_emplace(alike);
    if (fresh) {
      for (const cast_rule& rule : rules_) {
        entry->second.push_back(expected_result(case_of(alike, rule)));
      }
    }
    return entry->second;
  }

  void compare(const codes& x, comparison_counts& t) {
    const results& expected = expected_of(x);
    const auto value = [&](std::size_t k) {
      return T::from_bits(static_cast<typename T::storage>(x[k]));
    };
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      const result<T> got = ours<Op>(value(0), value(1), value(2), rules_[i]);
      ++t.compared;
      if (got.value.bits() == expected[i].code &&
          static_cast<unsigned>(got.raised) == expected[i].flags) {
        continue;
      }
      if (t.differing++ != 0) continue;
      const auto text =
          same_result(case_of(x, rules_[i]), {got.value.bits(), got.raised}, expected[i]);
      std::printf("%s\n", text.message());
    }
  }

  std::vector<cast_rule> rules_;
  std::vector<double> values_;        ///< of each code
  std::vector<std::uint64_t> alike_;  ///< of each code the first one of its kind and sign
  std::unordered_map<std::uint64_t, results> numbers_;
  std::map<codes, results> others_;
};

template <operation Op, class T>
comparison_counts exact(std::uint64_t stride, std::uint64_t thread, std::uint64_t threads) {
  return exact_sweep<Op, T>().run(stride * effort_divisor, thread, threads);
}

struct sweep_row {
  const char *format, *op;
  comparison_counts (*part)(std::uint64_t number, std::uint64_t thread, std::uint64_t threads);
};
constexpr sweep_row rows[] = {
    {"fp32", "sqrt", binary32<operation::sqrt>},  {"fp32", "add", binary32<operation::add>},
    {"fp32", "mul", binary32<operation::mul>},    {"fp32", "div", binary32<operation::div>},
    {"fp32", "fma", binary32<operation::fma>},    {"fp16", "add", exact<operation::add, fp16>},
    {"fp16", "mul", exact<operation::mul, fp16>}, {"e4m3", "fma", exact<operation::fma, e4m3>},
    {"e5m2", "fma", exact<operation::fma, e5m2>}};

std::optional<bool> agrees(const command_line& words) {
  if (words.size() != 3 && words.size() != 4) return std::nullopt;
  const std::uint64_t number = words.number(2), threads = words.number(3, 1);
  if (number == 0 || threads == 0) return std::nullopt;
  for (const sweep_row& row : rows) {
    if (words[0] != row.format || words[1] != row.op) continue;
    const auto counts = sum_on_threads(
        threads, [&](std::uint64_t thread) { return row.part(number, thread, threads); });
    return all_agree(words[0] + ' ' + words[1], counts);
  }
  return std::nullopt;
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) {
  return samebits::support::run_program(
      argc, argv, "machine_arithmetic FORMAT OPERATION STRIDE|CASES [THREADS]", samebits::agrees);
}
