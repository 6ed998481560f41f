// Program: the integer scale rules over all positive amaxes, or every N-th, beside IEEE division.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>

#include "oracle/scale_exact.hpp"

namespace samebits::oracle {
namespace {

constexpr std::uint64_t amax_end = 0x7F800000;

float value(std::uint32_t code) { return std::bit_cast<float>(code); }
std::uint32_t code(float x) { return std::bit_cast<std::uint32_t>(x); }

/// The least or the largest power of two, by the machine's comparisons and products.
tile_scale mx_witness(scale_rule rule, float m, float a) {
  const double wide = static_cast<double>(a);
  const double emax = m == 448 ? 256 : 32768;
  const double half_last_place = m == 448 ? 1 - 0x1p-5 : 1 - 0x1p-4;      // below a power of two
  double s = std::max(0x1p-127, std::ldexp(1.0, std::ilogb(wide) - 20));  // far below
  if (rule == scale_rule::mx_rceil) {
    const double t = static_cast<double>(a / m);
    while (s < t) s *= 2;
  } else if (rule == scale_rule::mx_ceil) {
    while (s * emax < wide) s *= 2;
  } else {
    const double minimum = rule == scale_rule::mx_even ? half_last_place : 1;
    while (2 * s * emax * minimum <= wide) s *= 2;
  }
  return {code(static_cast<float>(s)), code(static_cast<float>(1 / s))};
}

/// The formulas of contract §7 in the machine's own binary32.
tile_scale witness(scale_rule rule, float m, float a) {
  const float minimum = 0x1p-126f;
  const float flt_max = value(0x7F7FFFFF);
  switch (rule) {
    case scale_rule::te: {
      const float big_s = std::min(m / a, flt_max);
      return {code(1 / big_s), code(big_s)};
    }
    case scale_rule::te_pow2: {
      const float big_s = value(code(std::min(m / a, flt_max)) & 0xFF800000u);
      return {code(1 / big_s), code(big_s)};
    }
    case scale_rule::dg_cuda: {
      const float s = std::max(a * (1 / m), minimum);
      return {code(s), code(1 / s)};
    }
    case scale_rule::dg_tile:
      return {code(std::max(a / m, minimum)), code(std::min(m / a, 0x1p126f))};
    case scale_rule::sgl_v2:
      return {code(std::max(a * (1 / m), minimum)), code(std::min(m / a, 0x1p126f))};
    case scale_rule::div: {
      const float s = std::max(a / m, minimum);
      return {code(s), code(s)};
    }
    case scale_rule::rcp: {
      const float s = std::max(a / m, minimum);
      return {code(s), code(1 / s)};
    }
    case scale_rule::pow2: {
      const std::uint32_t t = code(a / m);
      const std::uint32_t e = std::clamp((t >> 23) + ((t & 0x7FFFFF) != 0 ? 1 : 0), 1u, 254u);
      return {e << 23, e == 254 ? 0x00400000u : (254 - e) << 23};
    }
    case scale_rule::mx_floor:
    case scale_rule::mx_ceil:
    case scale_rule::mx_even:
    case scale_rule::mx_rceil: return mx_witness(rule, m, a);
  }
  throw std::invalid_argument("rule");
}

struct comparison_counts {
  std::uint64_t compared = 0;
  std::uint64_t differing = 0;
  std::uint64_t with_rationals = 0;
};

void compare(scale_rule rule, const format& to, std::uint32_t amax, const tile_scale& expected,
             const tile_scale& got, comparison_counts& t) {
  if (got == expected) return;
  if (t.differing++ == 0) {
    std::printf("%s rule %d amax %08X: got %08X %08X expected %08X %08X\n", to.name.data(),
                static_cast<int>(rule), amax, got.s, got.factor, expected.s, expected.factor);
  }
}

/// Rationals check one amax in about `sample`; they take microseconds, the integers nanoseconds.
comparison_counts sweep(scale_rule rule, const format& to, std::uint64_t stride,
                        std::uint64_t sample) {
  const float m = to.name == "e4m3" ? 448 : 57344;
  comparison_counts t;
  std::uint64_t n = 0;
  for (std::uint64_t a = 1; a < amax_end; a += stride, ++n) {
    const auto amax = static_cast<std::uint32_t>(a);
    const tile_scale got = scale_exact(rule, to, amax);
    compare(rule, to, amax, witness(rule, m, value(amax)), got, t);
    ++t.compared;
    if (n % sample != 0) continue;
    compare(rule, to, amax, scale_of_amax(rule, to, amax), got, t);
    ++t.with_rationals;
  }
  return t;
}

std::uint64_t run(const format& to, std::uint64_t stride) {
  std::uint64_t differing = 0;
  const std::uint64_t sample = std::max<std::uint64_t>(1, amax_end / stride / 20000);
  for (int i = 0; i < scale_rule_count; ++i) {
    const auto rule = static_cast<scale_rule>(i);
    const comparison_counts t = sweep(rule, to, stride, sample);
    std::printf("%s rule %d  compared %llu, with rationals %llu  differing %llu\n", to.name.data(),
                static_cast<int>(rule), static_cast<unsigned long long>(t.compared),
                static_cast<unsigned long long>(t.with_rationals),
                static_cast<unsigned long long>(t.differing));
    differing += t.differing;
  }
  return differing;
}

}  // namespace
}  // namespace samebits::oracle

int main(int argc, char** argv) try {
  using namespace samebits::oracle;
  if (argc != 3) throw std::invalid_argument("usage: scale_sweep e4m3|e5m2 STRIDE");
  const std::uint64_t stride = std::stoull(argv[2]);
  if (stride == 0) throw std::invalid_argument("STRIDE is 0, expected a positive number");
  return run(format_named(argv[1]), stride) == 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
