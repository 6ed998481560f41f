// 2^30 elements quantized on each CUDA backend, against the widest host backend, every byte. Every
// tile by every rule and rounding.
//
// SAMEBITS_QUANTIZE_ELEMENTS in the environment makes it another number of elements, in matrices of
// other sizes and, above 2^32, in more of them.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "device/device_test.hpp"
#include "engine/cases/quantize.hpp"
#include "engine/core/sweeps.hpp"

namespace samebits::support {
namespace {

constexpr tile_shape tiles[] = {{1, 128}, {128, 128}, {128, 1}, {1, 32}};
constexpr int random_bits_of[] = {0, 8, 16, 32};  // 0: nearest even
/// Cases of each tile by each rule and rounding once.
constexpr std::uint64_t round_of_cases =
    std::size(tiles) * one_level_scale_rules * std::size(random_bits_of);

/// Case n, of about `elements` elements.
quantize_case drawn_case(even_draw& draws, std::uint64_t n, std::int64_t elements) {
  std::mt19937_64 random(n + 90);
  const std::size_t tile = n % std::size(tiles);
  const std::size_t rule = n / std::size(tiles) % one_level_scale_rules;
  const std::size_t rounding_bits = n % round_of_cases / (std::size(tiles) * one_level_scale_rules);
  draws.begin();
  draws.fix("tile", tile, std::size(tiles));
  draws.fix("rule", rule, one_level_scale_rules);
  draws.fix("rounding", rounding_bits, std::size(random_bits_of));
  quantize_case c;
  c.from =
      even_one_of(draws, "source", std::array{format_id::bf16, format_id::fp16, format_id::fp32});
  c.to = even_one_of(draws, "target", std::array{format_id::e4m3, format_id::e5m2});
  c.kind = draws.draw("content", 2) != 0 ? matrix_content::any_bits : matrix_content::mixed;
  const std::int64_t cols = even_one_of(draws, "columns", std::array{4096, 2432, 4101, 1024});
  c.wanted.codes_transposed = c.wanted.scales_transposed = draws.draw("transposed", 2) != 0;
  c.wanted.statistics = draws.draw("statistics", 2) != 0;
  c.options.tile = tiles[tile];
  c.options.scale = static_cast<scale_rule>(rule);
  c.options.nonfinite = even_enumerator<nonfinite>(draws, "non-finite policy");
  c.options.overflow = even_enumerator<overflow>(draws, "overflow");
  c.options.eps = draws.draw("eps", 2) != 0 ? 1e-4f : 0.0f;
  const int k = random_bits_of[rounding_bits];
  if (k != 0) c.options.rounding = rounding::stochastic;
  c.options.random = {random(), random(), random() & ~std::uint64_t{15}, std::nullopt,
                      k == 0 ? 16 : k};
  c.plain = true;
  c.content = n;
  lay_out(c, std::max<std::int64_t>(128, (elements + cols - 1) / cols), cols,
          [] { return std::uint64_t{1}; });
  return c;
}

class QuantizeMany : public DeviceTest {};

TEST_P(QuantizeMany, EveryByteOf2To30Elements) {
  const char* const asked = std::getenv("SAMEBITS_QUANTIZE_ELEMENTS");
  const std::uint64_t wanted =
      asked != nullptr ? std::stoull(asked) : by_effort(std::uint64_t{1} << 30, 1 << 24);
  const std::uint64_t rounds = 1 + wanted / (std::uint64_t{1} << 32);
  const auto elements = static_cast<std::int64_t>(1 + wanted / (rounds * round_of_cases));
  std::vector<quantize_case> cases;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    even_draw draws;
    for (std::uint64_t n = 0; n < round_of_cases; ++n) {
      cases.push_back(drawn_case(draws, round * round_of_cases + n, elements));
    }
    EXPECT_EQ(draws.missing(), "");
  }
  expect_host_bits(listed_operation("quantize", quantizations(), std::move(cases), 16),
                   widest_host());
}

INSTANTIATE_TEST_SUITE_P(Backends, QuantizeMany, cuda_backends(), cuda_backend_name);

}  // namespace
}  // namespace samebits::support
