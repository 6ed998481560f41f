// Every positive amax, or every N-th, through all scale rules of quantize(), against the oracle's
// integer division:
//
//   scale_exhaustive e4m3|e5m2 STRIDE [BACKEND]
//
// Each amax is a tile of one element, whose scale is compared. Prints one line per scale rule; the
// exit status is 1 if any differ and 2 for a bad command line.
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "oracle/scale.hpp"
#include "samebits/quantize.hpp"
#include "support/rules.hpp"

namespace samebits {
namespace {

constexpr std::uint64_t amax_end = 0x7F800000;

struct comparison_counts {
  std::uint64_t compared = 0;
  std::uint64_t differing = 0;
};

/// The scales of tiles that are one amax each.
void check(const std::vector<std::uint32_t>& amaxes, scale_rule rule, format_id to,
           const std::string& backend, comparison_counts& t) {
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
    const oracle::tile_scale expected = oracle::scale_exact(rule, exact_format, amaxes[i]);
    ++t.compared;
    if (scales[i] == expected.s) continue;
    if (t.differing++ == 0) {
      std::printf("%s %s amax %08X: scale %08X, expected %08X\n", std::string(name(to)).c_str(),
                  std::string(name(rule)).c_str(), amaxes[i], scales[i], expected.s);
    }
  }
}

std::uint64_t run(format_id to, std::uint64_t stride, const std::string& backend) {
  constexpr std::size_t at_once = 1 << 20;
  std::uint64_t differing = 0;
  for (int m = 0; m < enum_count<scale_rule>; ++m) {
    const auto rule = static_cast<scale_rule>(m);
    comparison_counts t;
    std::vector<std::uint32_t> amaxes;
    for (std::uint64_t a = 1; a < amax_end; a += stride) {
      amaxes.push_back(static_cast<std::uint32_t>(a));
      if (amaxes.size() < at_once && a + stride < amax_end) continue;
      check(amaxes, rule, to, backend, t);
      amaxes.clear();
    }
    std::printf("%s %s: compared %llu, differing %llu\n", std::string(name(to)).c_str(),
                std::string(name(rule)).c_str(), static_cast<unsigned long long>(t.compared),
                static_cast<unsigned long long>(t.differing));
    differing += t.differing;
  }
  return differing;
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) try {
  using namespace samebits;
  if (argc < 3 || argc > 4) {
    throw std::invalid_argument("usage: scale_exhaustive e4m3|e5m2 STRIDE [BACKEND]");
  }
  const auto to = find_format(argv[1]);
  const std::uint64_t stride = std::stoull(argv[2]);
  if (!to) throw std::invalid_argument(std::string(argv[1]) + ": is no format");
  if (stride == 0) throw std::invalid_argument("STRIDE is 0, expected a positive number");
  return run(*to, stride, argc == 4 ? argv[3] : "") == 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
