// Proves the functions of the rule `exact` on all 2^32 operands, with MPFR as the judge:
//
//   exact_functions_sweep FUNCTION|all [THREADS] [FIRST_BLOCK BLOCKS_STEP] [FILE]
//
// FILE becomes tests/unit/exact_functions_golden.inc: exact values by MPFR of the operands whose values
// lie nearest to ties and steps, of operands at the limits of formulas, and of pseudo-random ones.
//
// A tie is a number halfway between neighbours of a destination. A step is a number where
// stochastic rounding with 16 random bits changes its probability: 24 significant bits for bf16, 27
// for fp16. A result must lie on the same side of every tie as the exact value, and must reach the
// same steps. An operand is judged if its binary64 result lies within 2^-44 of a number of 25 bits,
// or of 27 bits between 2^-15 and 2^17; docs/decisions/0046-correct-rounding.md bounds the error of
// the result by 2^-44. Every 4099th operand is judged too, wherever its result lies.
//
// The relative error of every judged result must be at most 2^-44. Where results are held at a
// distance from a border, their error may be larger; the same page proves these results. Results
// must be finite inside a function's domain, infinite at its pole and NaN outside.
//
// Prints one line per function; exits 1 if a result is wrong or its error exceeds 2^-44.
#include <mpfr.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/simd/functions/exact/reals_avx2.hpp"
#include "exhaustive/sweep_program.hpp"
#include "numerics/functions/exact_function.hpp"
#include "support/exact_function_value.hpp"

namespace samebits {
namespace {

using namespace support;
using numerics::real::exact_function;
using numerics::real::exact_row;

constexpr std::uint64_t block_size = 1 << 16;
constexpr double max_deviation = 0x1p-44;

/// The enumerator of exact_function.
std::string text_of(const exact_row& row) {
  return std::string(name(row.of)) + (row.gradient ? "_gradient" : "");
}

/// y[i] = the binary64 result at operand first + i, for a block.
void compute_block(exact_function f, std::uint32_t first, std::uint64_t* y) {
  numerics::real::with_function(f, [&]<exact_function F>() {
    for (std::uint32_t i = 0; i < block_size; i += 4) {
      const std::uint32_t x[4] = {first + i, first + i + 1, first + i + 2, first + i + 3};
      avx2::reals::store_bits(y + i, numerics::real::value_at<F>(avx2::reals::load_binary32(x)));
    }
  });
}

struct tally {
  std::uint64_t judged = 0, wrong = 0, fine_judged = 0, fine_wrong = 0, examples = 0, sum = 0;
  double closest = 1;     // relative distance of an exact value from a border that it is not
  std::uint64_t far = 0;  // results with a relative error above max_deviation
  double deviation = 0;   // largest relative error of a judged result
  std::vector<std::pair<double, std::uint32_t>> hard;  // distance from a border, operand

  void keep_hardest(std::size_t more_than = 0) {
    constexpr std::size_t count = 40;
    if (hard.size() < more_than) return;
    std::sort(hard.begin(), hard.end());
    if (hard.size() > count) hard.resize(count);
  }
  tally& operator+=(const tally& other) {
    judged += other.judged;
    wrong += other.wrong;
    fine_judged += other.fine_judged;
    fine_wrong += other.fine_wrong;
    examples += other.examples;
    sum += other.sum;
    closest = std::min(closest, other.closest);
    far += other.far;
    deviation = std::max(deviation, other.deviation);
    hard.insert(hard.end(), other.hard.begin(), other.hard.end());
    keep_hardest();
    return *this;
  }
};

/// Whether results are held at a distance from a border that the error bound does not cover, or at
/// a number beyond all destinations.
bool is_held(exact_function f, double x) {
  const double size = std::fabs(x);
  if (f == exact_function::exp || f == exact_function::expm1) {
    if (x > 88.8) return true;
  }
  if (f == exact_function::exp || f == exact_function::sigmoid || f == exact_function::softplus) {
    if (x < -104) return true;
  }
  if (f == exact_function::exp2 && (x >= 128 || x < -150)) return true;
  if (f >= exact_function::silu && (x < -120)) return true;
  switch (f) {
    case exact_function::exp:
    case exact_function::exp2: return size < 0x1p-39;
    case exact_function::expm1: return size < 0x1p-38 || x < -24;
    case exact_function::log1p: return size < 0x1p-38;
    case exact_function::tanh: return size < 0x1p-19 || size > 9;
    case exact_function::erf: return size > 4.5;
    case exact_function::sigmoid: return size < 0x1p-27 || x > 24;
    case exact_function::silu: return size < 0x1p-38 || x > 22;
    case exact_function::gelu: return size < 0x1p-38 || x > 6.5;
    case exact_function::gelu_tanh: return size < 0x1p-38 || x > 5.5;
    case exact_function::softplus: return x > 22;
    case exact_function::silu_gradient: return size < 0x1p-27 || x > 24;
    case exact_function::gelu_gradient: return size < 0x1p-38 || x > 6.5;
    case exact_function::gelu_tanh_gradient: return size < 0x1p-38 || x > 5.5;
    default: return false;
  }
}

/// Log2 of the window around borders, in units of the result's last place; wider where a cube is
/// held at 2^-25 of the linear term.
int window_bits(exact_function f, double x) {
  const bool cube = f == exact_function::sigmoid || f == exact_function::silu_gradient;
  return cube && std::fabs(x) < 0x1p-11 ? 17 : 9;
}

bool is_near(std::uint64_t y, int unit_bits, int window) {
  const std::uint64_t half = std::uint64_t{1} << window;
  return ((y + half) & ((std::uint64_t{1} << unit_bits) - 1)) < 2 * half;
}
double border_near(std::uint64_t y, int unit_bits) {
  const std::uint64_t unit = std::uint64_t{1} << unit_bits;
  return std::bit_cast<double>((y + unit / 2) & ~(unit - 1));
}

/// Whether the result and the exact value lie beyond the borders of all destinations: above the
/// largest finite numbers, or below half the smallest.
bool is_beyond(double y, double f) {
  const double least = std::min(std::fabs(y), std::fabs(f));
  const double most = std::max(std::fabs(y), std::fabs(f));
  return std::signbit(y) == std::signbit(f) && (least >= 0x1p128 || (y != 0 && most < 0x1p-150));
}

/// Whether a number may be a tie of a destination: 25 bits for binary32, at most 12 bits for all
/// others; fewer bits for subnormal numbers.
bool is_tie(double border) {
  const auto bits = std::bit_cast<std::uint64_t>(border);
  const bool odd = ((bits >> 28) & 1) != 0;
  const bool short_number = (bits & ((std::uint64_t{1} << 41) - 1)) == 0;
  return odd || short_number || std::fabs(border) < 0x1p-125;
}

/// Whether a result is finite inside the function's domain, infinite at a pole and NaN outside.
bool has_expected_kind(exact_function f, double x, double y) {
  const auto by_pole = [&](double pole) {
    if (x > pole) return std::isfinite(y);
    return x == pole ? std::isinf(y) : std::isnan(y);
  };
  switch (f) {
    case exact_function::log:
    case exact_function::log2:
    case exact_function::rsqrt: return by_pole(0);
    case exact_function::log1p: return by_pole(-1);
    case exact_function::reciprocal: return x == 0 ? std::isinf(y) : std::isfinite(y);
    default: return std::isfinite(y);
  }
}

/// |y - f| / |f|; 0 if y and f are equal.
double relative_distance(double y, mpfr_srcptr f) {
  if (mpfr_cmp_d(f, y) == 0) return 0;
  mpfr_t d;
  mpfr_init2(d, 100);
  mpfr_set_d(d, y, MPFR_RNDN);
  mpfr_sub(d, d, f, MPFR_RNDN);
  mpfr_div(d, d, f, MPFR_RNDN);
  const double distance = std::fabs(mpfr_get_d(d, MPFR_RNDN));
  mpfr_clear(d);
  return distance;
}

std::mutex printing;

void judge(const exact_row& row, exact_value& exact, std::uint32_t u, std::uint64_t bits,
           tally& t) {
  const double x = std::bit_cast<float>(u);
  const double y = std::bit_cast<double>(bits);
  if (!std::isfinite(x)) return;
  const auto tell = [&](const std::string& what) {
    const std::lock_guard lock(printing);
    std::printf("  %s(%08x = %a) is %a%s\n", text_of(row).c_str(), u, x, y, what.c_str());
    std::fflush(stdout);
  };
  if (!has_expected_kind(row.value, x, y)) {
    if (++t.wrong < 8) tell("");
    return;
  }
  if (!std::isfinite(y)) return;
  const bool held = is_held(row.value, x);
  const int window = window_bits(row.value, x);
  const double size = std::fabs(y);
  const bool in_fine_range = size > 0x1p-15 && size < 0x1p17;
  const bool coarse = is_near(bits, 28, window);
  // gradients are rounded to binary32 alone
  const bool fine = !row.gradient && is_near(bits, 26, window) && in_fine_range;
  const bool sample = u % 4099 == 0;
  const bool example = held && sample && std::fabs(x) < 0x1p9;
  if (held ? !example : !coarse && !fine && !sample) return;
  const mpfr_srcptr f = exact(x);
  const double border = border_near(bits, 28);
  const double fine_border = border_near(bits, 26);
  const int side = mpfr_cmp_d(f, border);
  const bool beyond = is_beyond(y, mpfr_get_d(f, MPFR_RNDN));
  const bool wrong = is_tie(border) && side != (y > border) - (y < border) && !beyond;
  if (held && side == 0) return;  // 400 bits do not show the distance
  const bool reaches = size >= std::fabs(fine_border);
  // |f| >= |fine_border|, whose signs are equal
  const int fine_side = mpfr_cmp_d(f, fine_border);
  const bool truly = std::signbit(fine_border) ? fine_side <= 0 : fine_side >= 0;
  // below 2^-15 and above 2^17 the steps have 24 bits
  const bool step = in_fine_range || (std::bit_cast<std::uint64_t>(fine_border) & 0x1FFFFFFF) == 0;
  const bool fine_wrong = !row.gradient && step && reaches != truly && !beyond;
  t.judged += coarse;
  t.fine_judged += fine;
  t.examples += example;
  t.wrong += wrong;
  t.fine_wrong += fine_wrong;
  const double distance = relative_distance(border, f);
  if (distance > 0 && coarse && !held) {
    t.hard.emplace_back(distance, u);
    t.keep_hardest(80);
  }
  if (distance > 0 && !held) t.closest = std::min(t.closest, distance);
  const double deviation = held || window != 9 || beyond ? 0 : relative_distance(y, f);
  t.deviation = std::max(t.deviation, deviation);
  if (deviation > max_deviation && ++t.far < 8) {
    tell(", 2^" + std::to_string(std::log2(deviation)) + " from the exact value");
  }
  if ((wrong && t.wrong < 8) || (fine_wrong && t.fine_wrong < 12)) {
    tell(std::string(wrong ? ", a tie" : ", a step") + " is near: the exact value is 2^" +
         std::to_string(std::log2(distance)) + " from it");
  }
}

std::uint32_t binary32_bits(std::uint64_t y) {
  const double value = std::bit_cast<double>(y);
  return std::isnan(value) ? 0x7FFFFFFFu : std::bit_cast<std::uint32_t>(static_cast<float>(value));
}

tally sweep(const exact_row& row, std::uint64_t first_block, std::uint64_t step) {
  tally t;
  exact_value exact(row.value);
  std::vector<std::uint64_t> y(block_size);
  for (std::uint64_t block = first_block; block < 65536; block += step) {
    const auto first = static_cast<std::uint32_t>(block * block_size);
    compute_block(row.value, first, y.data());
    for (std::uint32_t i = 0; i < block_size; ++i) {
      t.sum += std::uint64_t{binary32_bits(y[i])} * (2 * (std::uint64_t{first} + i) + 1);
      const bool near = ((y[i] + (1u << 17)) & ((1u << 26) - 1)) < (1u << 18);
      const bool finite = (y[i] << 1) < (std::uint64_t{0x7FF} << 53);
      if (near || !finite || (first + i) % 4099 == 0) judge(row, exact, first + i, y[i], t);
    }
  }
  mpfr_free_cache();
  return t;
}

bool is_proved(const exact_row& row, const tally& t) {
  std::printf(
      "%-20s ties: %llu judged, %llu wrong, closest 2^%.1f; steps: %llu judged, %llu "
      "wrong; %llu examples; deviation 2^%.1f; sum %016llX\n",
      text_of(row).c_str(), static_cast<unsigned long long>(t.judged),
      static_cast<unsigned long long>(t.wrong), std::log2(t.closest),
      static_cast<unsigned long long>(t.fine_judged), static_cast<unsigned long long>(t.fine_wrong),
      static_cast<unsigned long long>(t.examples), std::log2(t.deviation),
      static_cast<unsigned long long>(t.sum));
  std::fflush(stdout);
  return t.wrong == 0 && t.fine_wrong == 0 && t.far == 0;
}

// ---- The file of exact values ----

/// The operand's binary32 bits and the exact value as (-1)^negative * sig * 2^exponent with 2^60 <= sig <
/// 2^61, rounded to odd.
void write(std::FILE* file, const exact_row& row, std::uint32_t u, exact_value& exact) {
  const double x = std::bit_cast<float>(u);
  if (!std::isfinite(x) || !has_expected_kind(row.value, x, 1)) return;
  mpfr_t y;
  mpfr_init2(y, 61);
  const int inexact = mpfr_set(y, exact(x), MPFR_RNDZ);
  // 400 bits do not show how far other values are from short numbers.
  using enum exact_function;
  const bool may_be_exact = row.value == exp2 || row.value == log2 || row.value == rsqrt ||
                            row.value == reciprocal || x == 0 || x == 1;
  const bool resolved = (inexact != 0 || may_be_exact) && mpfr_number_p(y) != 0 &&
                        mpfr_zero_p(y) == 0 && mpfr_get_exp(y) > -400 && mpfr_get_exp(y) < 400;
  if (resolved) {
    mpz_t z;
    mpz_init(z);
    const long exponent = mpfr_get_z_2exp(z, y);
    mpz_abs(z, z);
    const std::uint64_t sig = mpz_get_ui(z) | (inexact != 0 ? 1u : 0u);
    std::fprintf(file, "{exact_function::%s, 0x%08X, %s, 0x%016llX, %ld},\n", text_of(row).c_str(),
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

void write_values(std::FILE* file, const exact_row& row, const tally& t, std::uint64_t& state) {
  std::set<std::uint32_t> operands;
  for (const auto& [distance, u] : t.hard) operands.insert(u);
  add_limits(operands);
  for (int i = 0; i < 40; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto exponent = static_cast<std::uint32_t>(127 - 12 + (state >> 33) % 18);
    operands.insert((static_cast<std::uint32_t>(state >> 38) & 0x807FFFFFu) | exponent << 23 |
                    static_cast<std::uint32_t>(state >> 63) << 31);
  }
  exact_value exact(row.value);
  for (const std::uint32_t operand : operands) write(file, row, operand, exact);
}

std::optional<bool> agrees(const command_line& words) {
  const std::uint64_t threads = words.number(1, 1), step = words.number(3, 1);
  if (words.empty() || words.size() > 5 || threads == 0 || step == 0) return std::nullopt;
  std::FILE* const file = words.size() > 4 ? std::fopen(words[4].c_str(), "w") : nullptr;
  if (words.size() > 4 && file == nullptr) return std::nullopt;
  bool good = true, known = false;
  std::uint64_t state = 1;
  for (const exact_row& row : numerics::real::exact_rows) {
    if (words[0] != "all" && words[0] != text_of(row)) continue;
    known = true;
    tally t = sum_on_threads(threads, [&](std::uint64_t thread) {
      return sweep(row, words.number(2) + thread * step, step * threads);
    });
    t.keep_hardest();
    good = is_proved(row, t) && good;
    if (file != nullptr) write_values(file, row, t, state);
  }
  if (file != nullptr) std::fclose(file);
  return known ? std::optional(good) : std::nullopt;
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) {
  return samebits::support::run_program(
      argc, argv, "exact_functions_sweep FUNCTION|all [THREADS] [FIRST_BLOCK BLOCKS_STEP] [FILE]",
      samebits::agrees);
}
