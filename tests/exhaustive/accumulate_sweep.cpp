// Instructions of tensor cores against the exact oracle: every unit, pairing, result and width, by
// families of operands that tell their parameters apart.
//
//   accumulate_sweep CASES [SEED]
//
// Prints one line; the exit status is 1 if any result differs and 2 for a bad command line.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <vector>

#include "numerics/hardware/accumulate.hpp"
#include "oracle/tensor_core.hpp"
#include "support/effort.hpp"
#include "tensor_cores/tensor_cases.hpp"

namespace samebits {
namespace {

using namespace support;

std::uint32_t by_library(const tensor_instruction& i, const tensor_case& x) {
  const auto rule = numerics::accumulate_rule_of(i.row, i.a, i.b, i.result, i.products);
  std::array<numerics::tensor_operand, max_products> a{};
  std::array<numerics::tensor_operand, max_products> b{};
  for (std::size_t k = 0; k < static_cast<std::size_t>(i.products); ++k) {
    a[k] = numerics::tensor_operand_of(rule.a, rule.subnormal_exponent_a, x.a[k]);
    b[k] = numerics::tensor_operand_of(rule.b, rule.subnormal_exponent_b, x.b[k]);
  }
  return numerics::accumulate(rule, a.data(), b.data(), i.products, x.c);
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

std::optional<int> main_of(int argc, char** argv) {
  if (argc != 2 && argc != 3) return std::nullopt;
  const std::uint64_t cases = std::strtoull(argv[1], nullptr, 10) / effort_divisor;
  if (cases == 0) return std::nullopt;
  word_stream words(argc == 3 ? std::strtoull(argv[2], nullptr, 10) : 1);
  const std::vector<tensor_instruction> all = all_tensor_instructions();
  std::uint64_t differing = 0;
  for (std::uint64_t n = 0; n < cases; ++n) {
    const tensor_instruction& i = all[n % all.size()];
    const auto family = static_cast<tensor_family>(n / all.size() % tensor_family_count);
    const tensor_case x = draw_tensor_case(i, family, words);
    const std::uint64_t got = by_library(i, x);
    const std::uint64_t expected = by_oracle(i, x);
    if (got != expected && differing++ < 3) show(i, x, got, expected);
  }
  std::printf("%zu tensor core instructions, %d families: %llu results, %llu differ\n", all.size(),
              tensor_family_count, static_cast<unsigned long long>(cases),
              static_cast<unsigned long long>(differing));
  return differing == 0 ? 0 : 1;
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) {
  const auto status = samebits::main_of(argc, argv);
  if (!status) std::fprintf(stderr, "usage: accumulate_sweep CASES [SEED]\n");
  return status.value_or(2);
}
