// Program: the scale rules in integers over all positive amaxes, or every N-th, beside the machine's
// binary32 and rationals.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <stdexcept>

#include "oracle/scale.hpp"

namespace samebits::oracle {
namespace {

constexpr std::uint64_t amax_end = 0x7F800000;

float value(std::uint32_t code) { return std::bit_cast<float>(code); }
std::uint32_t code(float x) { return std::bit_cast<std::uint32_t>(x); }

/// The machine's own binary32.
const binary32_steps by_hardware = {
    [](std::uint32_t a, std::uint32_t b) { return code(value(a) / value(b)); },
    [](std::uint32_t a, std::uint32_t b) { return code(value(a) * value(b)); }};

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
  comparison_counts t;
  std::uint64_t n = 0;
  for (std::uint64_t a = 1; a < amax_end; a += stride, ++n) {
    const auto amax = static_cast<std::uint32_t>(a);
    const tile_scale got = scale_exact(rule, to, amax);
    compare(rule, to, amax, scale_of_amax(rule, to, amax, 0x7F7FFFFF, by_hardware), got, t);
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
  for (int i = 0; i < one_level_scale_rules; ++i) {
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
