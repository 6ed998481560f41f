// Proves the functions of the rule `exact` on all 2^32 operands, with MPFR as the judge:
//
//   exact_functions_sweep FUNCTION|all [THREADS] [FIRST_BLOCK BLOCKS_STEP] [HARD_FILE]
//
// HARD_FILE receives the operands of each function whose values lie nearest to ties and steps: the
// input of exact_functions_golden, which writes tests/unit/exact_functions_golden.inc.
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
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/simd/functions/exact/reals_avx2.hpp"
#include "numerics/functions/exact_function.hpp"
#include "support/exact_function_value.hpp"

namespace samebits {
namespace {

using numerics::real::exact_function;

constexpr int block_size = 1 << 16;

struct named {
  exact_function f;
  const char* name;
  void (*values)(std::uint32_t first, std::uint64_t* y);
};

/// y[i] = the binary64 result at operand first + i, for a block.
template <exact_function F>
void values(std::uint32_t first, std::uint64_t* y) {
  for (std::uint32_t i = 0; i < block_size; i += 4) {
    const std::uint32_t x[4] = {first + i, first + i + 1, first + i + 2, first + i + 3};
    avx2::reals::store_bits(y + i, numerics::real::value_at<F>(avx2::reals::load_binary32(x)));
  }
}

#define SAMEBITS_SWEEP(F) \
  { exact_function::F, #F, values<exact_function::F> }
constexpr named functions[] = {SAMEBITS_SWEEP(exp),           SAMEBITS_SWEEP(exp2),
                               SAMEBITS_SWEEP(expm1),         SAMEBITS_SWEEP(log),
                               SAMEBITS_SWEEP(log2),          SAMEBITS_SWEEP(log1p),
                               SAMEBITS_SWEEP(tanh),          SAMEBITS_SWEEP(erf),
                               SAMEBITS_SWEEP(rsqrt),         SAMEBITS_SWEEP(reciprocal),
                               SAMEBITS_SWEEP(sigmoid),       SAMEBITS_SWEEP(silu),
                               SAMEBITS_SWEEP(gelu),          SAMEBITS_SWEEP(gelu_tanh),
                               SAMEBITS_SWEEP(softplus),      SAMEBITS_SWEEP(silu_gradient),
                               SAMEBITS_SWEEP(gelu_gradient), SAMEBITS_SWEEP(gelu_tanh_gradient)};
#undef SAMEBITS_SWEEP

constexpr double max_deviation = 0x1p-44;

struct tally {
  std::uint64_t judged = 0, wrong = 0, fine_judged = 0, fine_wrong = 0, examples = 0, sum = 0;
  double closest = 1;     // relative distance of an exact value from a border that it is not
  std::uint64_t far = 0;  // results with a relative error above max_deviation
  double deviation = 0;   // largest relative error of a judged result
  std::vector<std::pair<double, std::uint32_t>> hard;  // distance from a border, operand

  void add_hard(double distance, std::uint32_t u) {
    hard.emplace_back(distance, u);
    if (hard.size() >= 2 * hard_count) keep_hardest();
  }
  void keep_hardest() {
    std::sort(hard.begin(), hard.end());
    if (hard.size() > hard_count) hard.resize(hard_count);
  }
  static constexpr std::size_t hard_count = 40;
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

void judge(const named& n, support::exact_value& exact, std::uint32_t u, std::uint64_t bits,
           tally& t) {
  const double x = std::bit_cast<float>(u);
  const double y = std::bit_cast<double>(bits);
  if (!std::isfinite(x)) return;
  if (!has_expected_kind(n.f, x, y)) {
    if (++t.wrong < 8) {
      const std::lock_guard lock(printing);
      std::printf("  %s(%08x = %a) is %a\n", n.name, u, x, y);
    }
    return;
  }
  if (!std::isfinite(y)) return;
  const bool held = is_held(n.f, x);
  const int window = window_bits(n.f, x);
  const double size = std::fabs(y);
  const bool coarse = is_near(bits, 28, window);
  // gradients are rounded to binary32 alone
  const bool fine = n.f < exact_function::silu_gradient && is_near(bits, 26, window) &&
                    size > 0x1p-15 && size < 0x1p17;
  const bool sample = u % 4099 == 0;
  const bool example = held && sample && std::fabs(x) < 0x1p9;
  if (held ? !example : !coarse && !fine && !sample) return;
  const mpfr_srcptr f = exact(x);
  const double border = border_near(bits, 28);
  const double fine_border = border_near(bits, 26);
  const int side = mpfr_cmp_d(f, border);
  const bool strict = is_tie(border);
  const bool beyond = is_beyond(y, mpfr_get_d(f, MPFR_RNDN));
  const bool wrong = strict && side != (y > border) - (y < border) && !beyond;
  if (held && side == 0) return;  // 400 bits do not show the distance
  const bool reaches = std::fabs(y) >= std::fabs(fine_border);
  const bool truly = mpfr_cmpabs(f, [&] {
                       static thread_local mpfr_t b;
                       static thread_local bool ready = (mpfr_init2(b, 53), true);
                       (void)ready;
                       mpfr_set_d(b, fine_border, MPFR_RNDN);
                       return static_cast<mpfr_srcptr>(b);
                     }()) >= 0;
  // below 2^-15 and above 2^17 the steps have 24 bits
  const bool step = size > 0x1p-15 && size < 0x1p17
                        ? true
                        : (std::bit_cast<std::uint64_t>(fine_border) & 0x1FFFFFFF) == 0;
  const bool fine_wrong =
      n.f < exact_function::silu_gradient && step && reaches != truly && !beyond;
  t.judged += coarse;
  t.fine_judged += fine;
  t.examples += example;
  t.wrong += wrong;
  t.fine_wrong += fine_wrong;
  const double distance = relative_distance(border, f);
  if (distance > 0 && coarse && !held) t.add_hard(distance, u);
  if (distance > 0 && !held) t.closest = std::min(t.closest, distance);
  const double deviation = held || window != 9 || beyond ? 0 : relative_distance(y, f);
  t.deviation = std::max(t.deviation, deviation);
  if (deviation > max_deviation && ++t.far < 8) {
    const std::lock_guard lock(printing);
    std::printf("  %s(%08x = %a) is %a, 2^%.1f from the exact value\n", n.name, u, x, y,
                std::log2(deviation));
  }
  if ((wrong && t.wrong < 8) || (fine_wrong && t.fine_wrong < 12)) {
    const std::lock_guard lock(printing);
    std::printf("  %s(%08x = %a) is %a, border %a, %s; f - border is 2^%.1f of f\n", n.name, u, x,
                y, wrong ? border : fine_border, wrong ? "a tie" : "a step", std::log2(distance));
    std::fflush(stdout);
  }
}

std::uint32_t binary32_bits(std::uint64_t y) {
  const double value = std::bit_cast<double>(y);
  return std::isnan(value) ? 0x7FFFFFFFu : std::bit_cast<std::uint32_t>(static_cast<float>(value));
}

tally sweep(const named& n, unsigned first_block, unsigned step) {
  tally t;
  support::exact_value exact(n.f);
  std::vector<std::uint64_t> y(block_size);
  for (std::uint64_t block = first_block; block < 65536; block += step) {
    const auto first = static_cast<std::uint32_t>(block * block_size);
    n.values(first, y.data());
    for (std::uint32_t i = 0; i < block_size; ++i) {
      t.sum += std::uint64_t{binary32_bits(y[i])} * (2 * (std::uint64_t{first} + i) + 1);
      const bool near = ((y[i] + (1u << 17)) & ((1u << 26) - 1)) < (1u << 18);
      const bool finite = (y[i] << 1) < (std::uint64_t{0x7FF} << 53);
      if (near || !finite || (first + i) % 4099 == 0) judge(n, exact, first + i, y[i], t);
    }
  }
  mpfr_free_cache();
  return t;
}

bool run(const named& n, unsigned threads, unsigned first_block, unsigned step,
         const char* hard_file) {
  std::vector<tally> parts(threads);
  std::vector<std::thread> running;
  for (unsigned i = 0; i < threads; ++i) {
    running.emplace_back([&, i] { parts[i] = sweep(n, first_block + i * step, step * threads); });
  }
  tally t;
  for (unsigned i = 0; i < threads; ++i) {
    running[i].join();
    const tally& p = parts[i];
    t.judged += p.judged;
    t.wrong += p.wrong;
    t.fine_judged += p.fine_judged;
    t.fine_wrong += p.fine_wrong;
    t.examples += p.examples;
    t.sum += p.sum;
    t.hard.insert(t.hard.end(), p.hard.begin(), p.hard.end());
    t.closest = std::min(t.closest, p.closest);
    t.far += p.far;
    t.deviation = std::max(t.deviation, p.deviation);
  }
  std::printf(
      "%-20s ties: %llu judged, %llu wrong, closest 2^%.1f; steps: %llu judged, %llu "
      "wrong; %llu examples; deviation 2^%.1f; sum %016llX\n",
      n.name, static_cast<unsigned long long>(t.judged), static_cast<unsigned long long>(t.wrong),
      std::log2(t.closest), static_cast<unsigned long long>(t.fine_judged),
      static_cast<unsigned long long>(t.fine_wrong), static_cast<unsigned long long>(t.examples),
      std::log2(t.deviation), static_cast<unsigned long long>(t.sum));
  std::fflush(stdout);
  if (std::FILE* const file = hard_file == nullptr ? nullptr : std::fopen(hard_file, "a")) {
    t.keep_hardest();
    for (const auto& [distance, u] : t.hard) std::fprintf(file, "%s %08x\n", n.name, u);
    std::fclose(file);
  }
  return t.wrong == 0 && t.fine_wrong == 0 && t.far == 0;
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) {
  const std::string which = argc > 1 ? argv[1] : "all";
  const auto number = [&](int i, unsigned otherwise) {
    return argc > i ? static_cast<unsigned>(std::strtoul(argv[i], nullptr, 10)) : otherwise;
  };
  bool good = true;
  for (const auto& n : samebits::functions) {
    if (which == "all" || which == n.name) {
      good = samebits::run(n, std::max(1u, number(2, 1)), number(3, 0), std::max(1u, number(4, 1)),
                           argc > 5 ? argv[5] : nullptr) &&
             good;
    }
  }
  std::printf("%s\n", good ? "PASSED" : "FAILED");
  return good ? 0 : 1;
}
