// fma on all 2^24 triples of codes of an 8-bit format, or on every N-th first factor, by every
// deterministic mode and overflow policy; values and flags against the exact oracle:
//
//   fma_exhaustive e4m3|e5m2 STRIDE
//
// The exact result depends on the product and the third operand alone, so pairs of equal product
// (as a number with its sign, or as the same special) are rounded once. Prints one line; the exit
// status is 1 if any result differs and 2 for a bad command line.
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "exhaustive/sweep_program.hpp"
#include "samebits/arithmetic.hpp"
#include "support/arithmetic_case.hpp"
#include "support/rules.hpp"

namespace samebits {
namespace {

using namespace support;

std::vector<cast_rule> rules() {
  std::vector<cast_rule> all;
  for (const rounding mode : deterministic_modes) {
    for (const overflow policy : overflow_policies) all.push_back({mode, policy});
  }
  return all;
}

template <class Value>
class checker {
 public:
  explicit checker(const std::vector<cast_rule>& all) : memo_(Value::format, all) {}

  void check(std::uint64_t stride, comparison_counts& t) {
    for (std::uint64_t a = 0; a < 256; a += stride) {
      for (std::uint64_t b = 0; b < 256; ++b) check_pair(a, b, t);
    }
  }

 private:
  /// The expected results of one product with every third operand.
  using row = std::vector<const oracle::rounded_result*>;

  [[nodiscard]] arithmetic_case case_of(std::uint64_t a, std::uint64_t b, std::uint64_t c) const {
    return {.op = operation::fma,
            .x = {{Value::format, a}, {Value::format, b}, {Value::format, c}},
            .to = Value::format,
            .where = "fma<To>"};
  }

  const row& row_of(std::uint64_t a, std::uint64_t b) {
    arithmetic_case product = case_of(a, b, 0);
    product.op = operation::mul;
    const oracle::exact_outcome x = exact_result_of(product);
    const auto [entry, fresh] =
        rows_.try_emplace(std::pair{&products_.at(x), x.value.kind == oracle::value_kind::nan});
    if (fresh) {
      for (std::uint64_t c = 0; c < 256; ++c) {
        arithmetic_case fused = case_of(a, b, c);
        fused.rule.rounding = rounding::nearest_even;
        const auto& rounded = memo_.at(exact_result_of(fused));
        fused.rule.rounding = rounding::downward;
        const auto& rounded_downward = memo_.at(exact_result_of(fused));
        for (std::size_t i = 0; i < memo_.rules().size(); ++i) {
          const bool downward = memo_.rules()[i].rounding == rounding::downward;
          entry->second.push_back(downward ? &rounded_downward[i] : &rounded[i]);
        }
      }
    }
    return entry->second;
  }

  void check_pair(std::uint64_t a, std::uint64_t b, comparison_counts& t) {
    const row& expected = row_of(a, b);
    const std::size_t count = memo_.rules().size();
    const auto value = [](std::uint64_t code) {
      return Value::from_bits(static_cast<std::uint8_t>(code));
    };
    for (std::uint64_t c = 0; c < 256; ++c) {
      for (std::size_t i = 0; i < count; ++i) {
        const auto got = fma<Value>(value(a), value(b), value(c), memo_.rules()[i]);
        const oracle::rounded_result& wanted = *expected[c * count + i];
        ++t.compared;
        if (got.value.bits() == wanted.code && static_cast<unsigned>(got.raised) == wanted.flags) {
          continue;
        }
        if (t.differing++ == 0) {
          arithmetic_case failed = case_of(a, b, c);
          failed.rule = memo_.rules()[i];
          const auto text = same_result(failed, {got.value.bits(), got.raised}, wanted);
          std::printf("%s\n", text.message());
        }
      }
    }
  }

  outcome_memo memo_;
  outcome_memo products_{Value::format, {{}}};
  std::map<std::pair<const void*, bool>, row> rows_;
};

template <class Value>
comparison_counts run(std::uint64_t stride) {
  comparison_counts t;
  checker<Value>(rules()).check(stride, t);
  return t;
}

std::optional<bool> agrees(const command_line& words) {
  if (words.size() != 2) return std::nullopt;
  const std::uint64_t stride = words.number(1) * effort_divisor;
  if (stride == 0 || (words[0] != "e4m3" && words[0] != "e5m2")) return std::nullopt;
  return all_agree("fma in " + words[0],
                   words[0] == "e4m3" ? run<e4m3>(stride) : run<e5m2>(stride));
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) {
  return samebits::support::run_program(argc, argv, "fma_exhaustive e4m3|e5m2 STRIDE",
                                        samebits::agrees);
}
