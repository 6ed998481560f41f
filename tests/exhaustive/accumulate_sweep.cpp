// Instructions of tensor cores against the exact oracle: every unit, pairing, result and width, by
// families of operands that tell their parameters apart.
//
//   accumulate_sweep CASES [SEED]
//
// Prints one line; the exit status is 1 if any result differs and 2 for a bad command line.
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exhaustive/sweep_program.hpp"
#include "numerics/hardware/accumulate.hpp"
#include "oracle/tensor_core.hpp"
#include "tensor_cores/tensor_cases.hpp"

namespace samebits {
namespace {

using namespace support;

std::uint32_t by_library(const tensor_instruction& i, const tensor_case& x) {
  const auto rule = numerics::accumulate_rule_of(i.row, i.a, i.b, i.result, i.products);
  return backends::tensor_cores::result_of(rule, x);
}

std::uint64_t by_oracle(const tensor_instruction& i, const tensor_case& x) {
  const oracle::format& a = oracle::format_named(name(i.a));
  const oracle::format& b = oracle::format_named(name(i.b));
  const oracle::format& result = oracle::format_named(name(i.result));
  const auto facts = oracle::facts_of(name(i.row.unit), a, b, result, i.products);
  const auto count = static_cast<std::size_t>(i.products);
  return oracle::tensor_instruction(facts, a, std::span(x.a).first(count), b,
                                    std::span(x.b).first(count), result, x.c);
}

void show(const tensor_instruction& i, const tensor_case& x, std::uint64_t got,
          std::uint64_t expected) {
  std::printf("%s: got %llX, expected %llX\n  c %X", text_of(i).c_str(),
              static_cast<unsigned long long>(got), static_cast<unsigned long long>(expected), x.c);
  for (std::size_t k = 0; k < static_cast<std::size_t>(i.products); ++k) {
    std::printf("  %X*%X", x.a[k], x.b[k]);
  }
  std::printf("\n");
}

std::optional<bool> agrees(const command_line& words_given) {
  if (words_given.empty() || words_given.size() > 2) return std::nullopt;
  const std::uint64_t cases = words_given.number(0) / effort_divisor;
  if (cases == 0) return std::nullopt;
  word_stream words(words_given.number(1, 1));
  const std::vector<tensor_instruction> all = all_tensor_instructions();
  comparison_counts counts;
  for (; counts.compared < cases; ++counts.compared) {
    const tensor_instruction& i = all[counts.compared % all.size()];
    const int family = static_cast<int>(counts.compared / all.size() % tensor_family_count);
    const tensor_case x = draw_tensor_case(i, family, words);
    const std::uint64_t got = by_library(i, x);
    const std::uint64_t expected = by_oracle(i, x);
    if (got != expected && counts.differing++ < 3) show(i, x, got, expected);
  }
  return all_agree(std::to_string(all.size()) + " tensor core instructions, " +
                       std::to_string(tensor_family_count) + " families",
                   counts);
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) {
  return samebits::support::run_program(argc, argv, "accumulate_sweep CASES [SEED]",
                                        samebits::agrees);
}
