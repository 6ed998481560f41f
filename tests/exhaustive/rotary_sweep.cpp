// Compares cos and sin of rotary tables with MPFR, on random angles:
//
//   rotary_sweep CASES [SEED]
//
// Angles are positions times base^(-i / n), positions times binary64 numbers, and binary32 numbers.
// Every case is compared in fp32, fp16 and bf16, as the library computes it and with each number of
// words that decides. Constants and rounded frequencies are compared too. Exits 1 at the first
// difference.
#include <mpfr.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <random>

#include "exhaustive/sweep_program.hpp"
#include "numerics/bits/convert.hpp"
#include "numerics/functions/rotary.hpp"

namespace samebits {
namespace {

using namespace numerics::rotary;

constexpr mpfr_prec_t precision = 3000;  // bits of angles

struct real {
  real() { mpfr_init2(value, precision); }
  ~real() { mpfr_clear(value); }
  real(const real&) = delete;
  real& operator=(const real&) = delete;
  mpfr_t value;
};

/// The code of a format nearest to f(x), by MPFR's own rounding.
std::uint32_t judged(int (*f)(mpfr_t, const mpfr_t, mpfr_rnd_t), const real& x, format_id format) {
  const format_spec spec = spec_of(format);
  mpfr_t y;
  mpfr_init2(y, spec.mantissa_bits + 1);
  int inexact = f(y, x.value, MPFR_RNDN);
  const mpfr_exp_t before = mpfr_get_emin();
  mpfr_set_emin(2 - spec.bias - spec.mantissa_bits);  // MPFR's significands lie in [1/2, 1)
  inexact = mpfr_check_range(y, inexact, MPFR_RNDN);
  mpfr_subnormalize(y, inexact, MPFR_RNDN);
  mpfr_set_emin(before);
  const auto bits = std::bit_cast<std::uint32_t>(mpfr_get_flt(y, MPFR_RNDN));
  mpfr_clear(y);
  return static_cast<std::uint32_t>(
      numerics::convert_any(spec_of(format_id::fp32), spec, cast_rule{}, bits, {}).code);
}

int cosine(mpfr_t y, const mpfr_t x, mpfr_rnd_t mode) { return mpfr_cos(y, x, mode); }
int sine(mpfr_t y, const mpfr_t x, mpfr_rnd_t mode) { return mpfr_sin(y, x, mode); }
int identity(mpfr_t y, const mpfr_t x, mpfr_rnd_t mode) { return mpfr_set(y, x, mode); }

/// One angle: a position times a frequency.
struct angle_case {
  frequency f;
  std::uint64_t position;
  bool negative;
};

void value_of(const frequency& f, real& x) {
  if (f.n == 0) {
    mpfr_set_d(x.value, std::bit_cast<double>(f.bits & ~(std::uint64_t{1} << 63)), MPFR_RNDN);
    return;
  }
  real exponent;
  mpfr_set_si(exponent.value, -static_cast<long>(f.i), MPFR_RNDN);
  mpfr_div_ui(exponent.value, exponent.value, f.n, MPFR_RNDN);
  mpfr_set_d(x.value, std::bit_cast<double>(f.bits), MPFR_RNDN);
  mpfr_pow(x.value, x.value, exponent.value, MPFR_RNDN);
}

long compared = 0;

bool same(const char* what, const angle_case& c, format_id to,
          const std::optional<rotary_codes>& got, const rotary_codes& expected) {
  ++compared;
  if (got && got->cos == expected.cos && got->sin == expected.sin) return true;
  std::printf("%s into %s: bits %016lx i %u n %u position %lu: cos %x sin %x, expected %x %x\n",
              what, std::string(name(to)).c_str(), c.f.bits, c.f.i, c.f.n, c.position,
              got ? got->cos : 0, got ? got->sin : 0, expected.cos, expected.sin);
  return false;
}

template <int W>
bool same_with(const char* what, const angle_case& c, format_id to, const rotary_codes& expected) {
  const auto turns = turns_at(turns_of<W + guard_words>(c.f), c.position);
  const auto got = decided_codes<W>(turns, c.negative, to);
  return !got || same(what, c, to, got, expected);
}

bool is_right(const angle_case& c) {
  real x;
  value_of(c.f, x);
  mpfr_mul_ui(x.value, x.value, c.position, MPFR_RNDN);
  if (c.negative) mpfr_neg(x.value, x.value, MPFR_RNDN);
  const auto first = turns_of<few_words + guard_words>(c.f);
  for (const format_id to : {format_id::fp32, format_id::fp16, format_id::bf16}) {
    const rotary_codes expected{judged(cosine, x, to), judged(sine, x, to)};
    const auto got = codes_of_product(c.f, first, c.position, c.negative, to);
    if (!same("codes_of_product", c, to, got, expected)) return false;
    if (!same_with<few_words>("2 words", c, to, expected)) return false;
    if (!same_with<more_words>("8 words", c, to, expected)) return false;
    if (compared % 16 == 0 && !same_with<most_words>("32 words", c, to, expected)) return false;
    if (c.f.n != 0 || c.position != 1) continue;
    const std::uint64_t bits =
        (c.f.bits & ~(std::uint64_t{1} << 63)) | static_cast<std::uint64_t>(c.negative) << 63;
    if (!same("codes_of_angle", c, to, codes_of_angle(bits, to), expected)) return false;
  }
  if (c.f.n == 0) return true;
  value_of(c.f, x);
  const auto rounded = rounded_power(c.f);
  return same("rounded_power", c, format_id::fp32, rotary_codes{rounded.value_or(1), 0},
              {judged(identity, x, format_id::fp32), 0});
}

class case_source {
 public:
  explicit case_source(std::uint64_t seed) : next_(seed) {}

  angle_case draw() {
    angle_case c{};
    c.position = drawn_position();
    c.negative = next_() % 2 != 0;
    switch (next_() % 3) {
      case 0: c.f = drawn_power(); break;
      case 1: c.f = {next_() % 2 == 0 ? finite(next_()) : bits_of(near_one())}; break;
      default:
        c.f = {bits_of(std::bit_cast<float>(static_cast<std::uint32_t>(next_()) & 0xFF7FFFFFu))};
        c.position = 1;
        break;
    }
    if (c.f.bits << 1 == 0) c.f.bits = 1;
    return c;
  }

 private:
  static std::uint64_t bits_of(double x) { return std::bit_cast<std::uint64_t>(x); }
  static std::uint64_t finite(std::uint64_t bits) {
    return (bits >> 52 & 2047) == 2047 ? bits & ~(std::uint64_t{1} << 52) : bits;
  }
  double near_one() { return static_cast<double>(next_() >> 11) * 0x1p-52; }
  std::uint64_t drawn_position() {
    switch (next_() % 4) {
      case 0: return 1 + next_() % 16;
      case 1: return 1 + (next_() >> 1 >> next_() % 63);  // up to 2^63
      default: return 1 + next_() % 131072;
    }
  }
  frequency drawn_power() {
    constexpr std::uint32_t counts[] = {1, 2, 3, 5, 16, 20, 32, 64, 128, 100'000, 0xFFFFFFFF};
    const std::uint32_t n = counts[next_() % std::size(counts)];
    const auto i = static_cast<std::uint32_t>(next_() % n);
    constexpr double bases[] = {1, 1.5, 2, 100, 10'000, 500'000, 1e6, 0x1.fffffffffffffp+1023};
    std::uint64_t base = bits_of(bases[next_() % std::size(bases)]);
    if (next_() % 4 == 0) base = (next_() % (1023ull << 52)) + (1023ull << 52);
    return {base, i, n};
  }

  std::mt19937_64 next_;
};

template <std::size_t N>
bool is_constant(const std::uint32_t (&table)[N], const real& x, const char* what) {
  mpz_t words, expected;
  mpz_inits(words, expected, nullptr);
  mpz_import(words, N, 1, sizeof table[0], 0, 0, table);
  real moved;
  mpfr_mul_2ui(moved.value, x.value, 32 * N, MPFR_RNDN);
  mpfr_get_z(expected, moved.value, MPFR_RNDZ);
  const bool equal = mpz_cmp(words, expected) == 0;
  mpz_clears(words, expected, nullptr);
  if (!equal) std::printf("%s is wrong\n", what);
  return equal;
}

bool constants_are_right() {
  real pi, ln_2, x;
  mpfr_const_pi(pi.value, MPFR_RNDN);
  mpfr_const_log2(ln_2.value, MPFR_RNDN);
  mpfr_ui_div(x.value, 1, pi.value, MPFR_RNDN);
  mpfr_div_2ui(x.value, x.value, 1, MPFR_RNDN);
  bool right = is_constant(numerics::inverse_two_pi_table, x, "1 / (2 pi)");
  mpfr_div_2ui(x.value, pi.value, 2, MPFR_RNDN);
  right = is_constant(numerics::quarter_pi_table, x, "pi / 4") && right;
  right = is_constant(numerics::ln_2_table, ln_2, "ln 2") && right;
  mpfr_ui_div(x.value, 1, ln_2.value, MPFR_RNDN);
  mpfr_sub_ui(x.value, x.value, 1, MPFR_RNDN);
  return is_constant(numerics::log2_e_table, x, "1 / ln 2 - 1") && right;
}

std::optional<bool> agrees(const support::command_line& words) {
  if (words.empty() || words.size() > 2) return std::nullopt;
  if (!constants_are_right()) return false;
  case_source source(words.number(1, 1));
  for (std::uint64_t left = words.number(0); left > 0; --left) {
    if (!is_right(source.draw())) return false;
  }
  return support::all_agree("rotary tables", {static_cast<std::uint64_t>(compared), 0});
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) {
  return samebits::support::run_program(argc, argv, "rotary_sweep CASES [SEED]", samebits::agrees);
}
