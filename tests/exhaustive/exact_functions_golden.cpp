// Writes tests/unit/exact_functions_golden.inc: operands of the functions of rule `exact`, and
// their exact values by MPFR:
//
//   exact_functions_golden < HARD_OPERANDS > exact_functions_golden.inc
//
// HARD_OPERANDS are the lines of exact_functions_sweep's HARD_FILE. To each function are added
// operands at the limits of its formulas, and pseudo-random ones.
//
// A line holds the function, the operand's binary32 bits, and the exact value as (-1)^negative *
// sig * 2^exponent with 2^60 <= sig < 2^61, rounded to odd.
#include <mpfr.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <set>

#include "numerics/functions/exact_function.hpp"
#include "support/exact_function_value.hpp"

namespace {

using samebits::numerics::real::exact_function;

constexpr const char* names[] = {
    "exp",  "exp2",      "expm1",    "log",           "log2",          "log1p",
    "tanh", "erf",       "rsqrt",    "reciprocal",    "sigmoid",       "silu",
    "gelu", "gelu_tanh", "softplus", "silu_gradient", "gelu_gradient", "gelu_tanh_gradient"};

bool has_value(exact_function f, double x) {
  switch (f) {
    case exact_function::log:
    case exact_function::log2:
    case exact_function::rsqrt: return x > 0;
    case exact_function::log1p: return x > -1;
    case exact_function::reciprocal: return x != 0;
    default: return true;
  }
}

void write(exact_function f, std::uint32_t u, samebits::support::exact_value& exact) {
  const double x = std::bit_cast<float>(u);
  if (!std::isfinite(x) || !has_value(f, x)) return;
  mpfr_t y;
  mpfr_init2(y, 61);
  const int inexact = mpfr_set(y, exact(x), MPFR_RNDZ);
  // 400 bits do not show how far other values are from short numbers.
  const bool may_be_exact = f == exact_function::exp2 || f == exact_function::log2 ||
                            f == exact_function::rsqrt || f == exact_function::reciprocal ||
                            x == 0 || x == 1;
  const bool resolved = (inexact != 0 || may_be_exact) && mpfr_number_p(y) != 0 &&
                        mpfr_zero_p(y) == 0 && mpfr_get_exp(y) > -400 && mpfr_get_exp(y) < 400;
  if (resolved) {
    mpz_t z;
    mpz_init(z);
    const long exponent = mpfr_get_z_2exp(z, y);
    mpz_abs(z, z);
    const std::uint64_t sig = mpz_get_ui(z) | (inexact != 0 ? 1u : 0u);
    std::printf("{exact_function::%s, 0x%08X, %s, 0x%016llX, %ld},\n", names[static_cast<int>(f)],
                u, mpfr_sgn(y) < 0 ? "true" : "false", static_cast<unsigned long long>(sig),
                exponent);
    mpz_clear(z);
  }
  mpfr_clear(y);
}

/// Numbers where a formula of some function begins or ends, with their neighbours.
void add_limits(std::set<std::uint32_t>& operands) {
  for (const double limit :
       {0x1p-149,  0x1p-126, 0x1p-60, 0x1p-41,   0x1p-40,    0x1p-39,   0x1p-29,    0x1p-27,
        0x1p-26,   0x1p-25,  0x1p-24, 0x1p-23,   0x1p-20,    0x1p-14,   0x1p-13,    0x1p-12,
        0x1p-11,   0.0625,   0.34657, 0.414,     0.5,        0.6931472, 0.70710678, 0.7517916,
        0.7524615, 0.8791,   1.0,     1.2784645, 1.41421356, 1.5,       2.0,        3.0,
        4.0,       5.0,      6.0,     7.0,       8.0,        10.0,      12.0,       14.2,
        14.6,      24.0,     25.0,    27.0,      32.0,       64.0,      88.72284,   104.0,
        126.0,     127.5,    128.0,   149.0,     0x1p20,     0x1p29,    0x1p40,     0x1p127}) {
    const auto u = std::bit_cast<std::uint32_t>(static_cast<float>(limit));
    for (std::uint32_t v = u - 1; v != u + 2; ++v) {
      operands.insert(v);
      operands.insert(v | 0x80000000u);
    }
  }
}

}  // namespace

int main() {
  std::set<std::uint32_t> operands[samebits::numerics::real::exact_function_count];
  char name[64];
  unsigned u = 0;
  while (std::scanf("%63s %x", name, &u) == 2) {
    for (int f = 0; f < samebits::numerics::real::exact_function_count; ++f) {
      if (std::strcmp(names[f], name) == 0) operands[f].insert(u);
    }
  }
  std::uint64_t state = 1;
  for (int f = 0; f < samebits::numerics::real::exact_function_count; ++f) {
    add_limits(operands[f]);
    for (int i = 0; i < 40; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const auto exponent = static_cast<std::uint32_t>(127 - 12 + (state >> 33) % 18);
      operands[f].insert((static_cast<std::uint32_t>(state >> 38) & 0x807FFFFFu) | exponent << 23 |
                         static_cast<std::uint32_t>(state >> 63) << 31);
    }
    const auto function = static_cast<exact_function>(f);
    samebits::support::exact_value exact(function);
    for (const std::uint32_t operand : operands[f]) write(function, operand, exact);
  }
  return 0;
}
