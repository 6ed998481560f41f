// Conversions of arrays against the oracle, and in blocks.
#include "engine/cases/convert.hpp"

#include <utility>

#include "engine/cases/operations.hpp"
#include "engine/suites/rapidcheck.hpp"
#include "oracle/convert.hpp"
#include "oracle/philox.hpp"
#include "support/rules.hpp"

namespace samebits::support {
namespace {

returned_values by_oracle(const array_case& c, const call_site& site) {
  const matrix_view &in = site.views[0], out = conversion_result(c, site);
  for_each_element(in, [&](std::int64_t row, std::int64_t col) {
    random_bits bits;
    if (c.rule.rounding == rounding::stochastic) {
      const std::uint64_t index = oracle::element_index(c.random, static_cast<std::uint64_t>(row),
                                                        static_cast<std::uint64_t>(col),
                                                        static_cast<std::uint64_t>(in.cols));
      bits = {oracle::random_word(c.random.seed, c.random.stream, index, c.random.bits),
              c.random.bits};
    }
    put_code(
        out, row, col,
        oracle::convert(oracle_of(c.from), oracle_of(c.to), code_at(in, row, col), c.rule, bits));
  });
  return {};
}

TEST(ConvertOracle, EveryElement) {
  expect_on_hosts(convert_operation({}), "the oracle", by_oracle, 1200);
}

/// Up to four blocks, cut where the content says.
returned_values in_blocks(const array_case& c, const call_site& site) {
  const matrix_view &in = site.views[0], out = conversion_result(c, site);
  const std::uint64_t pitch = c.random.pitch.value_or(static_cast<std::uint64_t>(in.cols));
  const auto halves = [](std::int64_t size, std::uint64_t where) {
    const auto cut = static_cast<std::int64_t>(where % static_cast<std::uint64_t>(size + 1));
    return std::array{std::pair{std::int64_t{0}, cut}, std::pair{cut, size - cut}};
  };
  for (const auto& [row, rows] : halves(in.rows, c.content)) {
    for (const auto& [col, cols] : halves(in.cols, c.content >> 20)) {
      convert_options options = options_of(c);
      options.random.offset +=
          static_cast<std::uint64_t>(row) * pitch + static_cast<std::uint64_t>(col);
      options.random.pitch = pitch;
      convert(block_of(in, row, rows, col, cols), block_of(out, row, rows, col, cols), options,
              {supported_backends()[c.content % supported_backends().size()], c.threads});
    }
  }
  return {};
}

TEST(ConvertOracle, ABlockAloneIsASliceOfTheWhole) {
  function_target<array_case> blocks("blocks", in_blocks);
  expect_as_reference(convert_operation({}), blocks, 2000);
}

}  // namespace
}  // namespace samebits::support
