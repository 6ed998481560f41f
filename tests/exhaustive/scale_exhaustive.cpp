// Every positive amax, or every N-th, through all scale rules: quantize() against the oracle's rules with
// the machine's binary32 quotients and products and, for some 20 000 amaxes, with rationals:
//
//   scale_exhaustive e4m3|e5m2 STRIDE [BACKEND]
//
// Each amax is a tile of one element, whose scale is compared. Prints one line per scale rule; the
// exit status is 1 if any differ and 2 for a bad command line.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "exhaustive/sweep_program.hpp"
#include "oracle/scale.hpp"
#include "samebits/quantize.hpp"
#include "support/rules.hpp"

namespace samebits {
namespace {

using namespace support;

constexpr std::uint64_t amax_end = 0x7F800000;

float value(std::uint32_t code) { return std::bit_cast<float>(code); }
std::uint32_t code(float x) { return std::bit_cast<std::uint32_t>(x); }

/// The machine's own binary32.
const oracle::binary32_steps by_hardware = {
    [](std::uint32_t a, std::uint32_t b) { return code(value(a) / value(b)); },
    [](std::uint32_t a, std::uint32_t b) { return code(value(a) * value(b)); }};

/// The scales of tiles that are one amax each; rationals, which take microseconds, for every `sample`-th.
void check(const std::vector<std::uint32_t>& amaxes, scale_rule rule, format_id to,
           const std::string& backend, std::uint64_t sample, comparison_counts& t) {
  const auto count = static_cast<std::int64_t>(amaxes.size());
  std::vector<std::uint32_t> scales(amaxes.size());
  std::vector<std::uint8_t> codes(amaxes.size());
  const void* data = amaxes.data();
  quantize(view_of_codes(format_id::fp32, data, count, 1),
           {.codes = view_of_codes(to, codes.data(), count, 1),
            .scales = view_of_codes(format_id::fp32, scales.data(), count, 1)},
           {.tile = {1, 16}, .scale = rule}, {backend, 0, nullptr});
  const oracle::format& exact_format = support::oracle_of(to);
  for (std::size_t i = 0; i < amaxes.size(); ++i) {
    const oracle::tile_scale expected =
        oracle::scale_of_amax(rule, exact_format, amaxes[i], 0x7F7FFFFF, by_hardware);
    const bool sure = t.compared % sample != 0 ||
                      oracle::scale_of_amax(rule, exact_format, amaxes[i]) == expected;
    ++t.compared;
    if (scales[i] == expected.s && sure) continue;
    if (t.differing++ == 0) {
      std::printf("%s %s amax %08X: scale %08X, expected %08X%s\n", std::string(name(to)).c_str(),
                  std::string(name(rule)).c_str(), amaxes[i], scales[i], expected.s,
                  sure ? "" : "; the machine's binary32 differs from rationals");
    }
  }
}

std::optional<bool> agrees(const command_line& words) {
  constexpr std::size_t at_once = 1 << 20;
  if (words.size() < 2 || words.size() > 3) return std::nullopt;
  const auto to = find_format(words[0]);
  const std::uint64_t stride = words.number(1);
  if (!to || stride == 0) return std::nullopt;
  const std::uint64_t sample = std::max<std::uint64_t>(1, amax_end / stride / 20000);
  bool good = true;
  for (int m = 0; m < one_level_scale_rules; ++m) {
    const auto rule = static_cast<scale_rule>(m);
    comparison_counts t;
    std::vector<std::uint32_t> amaxes;
    for (std::uint64_t a = 1; a < amax_end; a += stride) {
      amaxes.push_back(static_cast<std::uint32_t>(a));
      if (amaxes.size() < at_once && a + stride < amax_end) continue;
      check(amaxes, rule, *to, words.size() > 2 ? words[2] : "", sample, t);
      amaxes.clear();
    }
    good = all_agree(words[0] + ' ' + std::string(name(rule)), t) && good;
  }
  return good;
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) {
  return samebits::support::run_program(argc, argv, "scale_exhaustive e4m3|e5m2 STRIDE [BACKEND]",
                                        samebits::agrees);
}
