// Recorded results of tensor cores against the model.
//
//   tensor_core_golden FILE
//
// A line is a result: unit, formats of A, B and the result, products; c, d, then codes of A and B
// for each product, hexadecimal; fewer than all: the rest are zeros. Lines that begin with # are
// for people. Prints one line; the exit status is 1 if a result differs, 2 for a file that is none.
#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>

#include "numerics/accumulate.hpp"
#include "samebits/tensor_unit.hpp"

namespace samebits {
namespace {

constexpr int most_products = 32;

/// What the model makes of a line, and what was recorded.
struct replay {
  std::uint32_t got;
  std::uint32_t recorded;
};

std::optional<replay> replayed(const std::string& line) {
  std::istringstream in(line);
  std::string unit_name, a_name, b_name, result_name;
  int products = 0;
  std::uint32_t c = 0;
  std::uint32_t d = 0;
  in >> unit_name >> a_name >> b_name >> result_name >> products >> std::hex >> c >> d;
  const auto unit = find_tensor_unit(unit_name);
  const auto a = find_format(a_name);
  const auto b = find_format(b_name);
  const auto result = find_format(result_name);
  if (!in || !unit || !a || !b || !result || products < 1 || products > most_products) return {};
  const auto operands = tensor_operands_of(*a, *b);
  const auto row = operands ? find_tensor_row(*unit, *operands) : std::nullopt;
  if (!row) return {};
  const auto rule = numerics::accumulate_rule_of(*row, *a, *b, *result, products);
  std::array<numerics::tensor_operand, most_products> x{};
  std::array<numerics::tensor_operand, most_products> y{};
  int count = 0;
  std::uint32_t a_code = 0;
  std::uint32_t b_code = 0;
  for (; count < products && in >> a_code >> b_code; ++count) {
    const auto k = static_cast<std::size_t>(count);
    x[k] = numerics::tensor_operand_of(rule.a, rule.least_exponent_a, a_code);
    y[k] = numerics::tensor_operand_of(rule.b, rule.least_exponent_b, b_code);
  }
  return replay{numerics::accumulate(rule, x.data(), y.data(), count, c), d};
}

int run(const char* path) {
  std::ifstream file(path);
  if (!file) {
    std::fprintf(stderr, "tensor_core_golden: cannot read %s\n", path);
    return 2;
  }
  unsigned compared = 0;
  unsigned differing = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const auto r = replayed(line);
    if (!r) {
      std::fprintf(stderr, "tensor_core_golden: no result: %s\n", line.c_str());
      return 2;
    }
    ++compared;
    if (r->got != r->recorded && differing++ < 5) {
      std::printf("got %X, recorded %X: %s\n", r->got, r->recorded, line.c_str());
    }
  }
  std::printf("%s: %u results, %u differ\n", path, compared, differing);
  return differing == 0 && compared != 0 ? 0 : 1;
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: tensor_core_golden FILE\n");
    return 2;
  }
  return samebits::run(argv[1]);
}
