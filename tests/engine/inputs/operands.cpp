// Operands from a wanted result, which binary64's arithmetic solves for one of them.
#include "engine/inputs/operands.hpp"

#include <bit>

#include "engine/inputs/families.hpp"
#include "samebits/scalar.hpp"

namespace samebits::support {
namespace {

double value_of(const operand& x) {
  return std::bit_cast<double>(convert_code(x.format, format_id::fp64, x.code).code);
}

/// The code of `f` nearest to a number.
std::uint64_t nearest_code(format_id f, double x) {
  return convert_code(format_id::fp64, f, std::bit_cast<std::uint64_t>(x),
                      {rounding::nearest_even, overflow::saturate})
      .code;
}

/// A number of a grid half as wide as the destination's: on it, on a tie, or beside one.
double wanted_result(format_id to, const word_source& next) {
  constexpr code_family families[] = {code_family::edge, code_family::tie, code_family::near_tie,
                                      code_family::on_grid};
  return std::bit_cast<double>(draw_code(one_of(families, next), format_id::fp64, to, next));
}

std::uint64_t beside(format_id f, std::uint64_t code, const word_source& next) {
  const auto ulps = below(5, next) - 2;
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - spec_of(f).storage_bits);
  return (code + static_cast<std::uint64_t>(ulps)) & mask;
}

std::uint64_t negative(format_id f, std::uint64_t code) {
  return code ^ std::uint64_t{1} << (spec_of(f).storage_bits - 1);
}

}  // namespace

operands draw_operands(operation op, const operand_formats& from, format_id to,
                       const word_source& next) {
  std::array<operand, 3> x;
  for (std::size_t i = 0; i < 3; ++i) x[i] = {from[i], draw_any_code(from[i], to, next)};
  const std::uint64_t kind = next() % 4;
  if (kind == 0) {  // a near-copy in value, of either sign
    x[1].code = beside(from[1], nearest_code(from[1], value_of(x[0])), next);
    if (next() % 2 == 0) x[1].code = negative(from[1], x[1].code);
  } else if (kind == 1) {  // a wanted result; binary64's arithmetic is near enough to aim at it
    const double wanted = wanted_result(to, next), a = value_of(x[0]), b = value_of(x[1]);
    switch (op) {
      case operation::add: x[1].code = nearest_code(from[1], wanted - a); break;
      case operation::sub: x[1].code = nearest_code(from[1], a - wanted); break;
      case operation::mul: x[1].code = nearest_code(from[1], wanted / a); break;
      case operation::div: x[0].code = nearest_code(from[0], wanted * b); break;
      case operation::sqrt: x[0].code = nearest_code(from[0], wanted * wanted); break;
      case operation::fma: x[2].code = nearest_code(from[2], wanted - a * b); break;
      default: x[0].code = nearest_code(from[0], wanted); break;
    }
    if (next() % 4 == 0) x[op == operation::fma ? 2 : 0].code ^= 1;
  }
  return {x[0], x[1], x[2]};
}

}  // namespace samebits::support
