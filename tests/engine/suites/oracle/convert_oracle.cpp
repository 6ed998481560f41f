// Conversions of arrays against the oracle.
#include "engine/cases/convert.hpp"

#include "engine/cases/operations.hpp"
#include "engine/suites/rapidcheck.hpp"
#include "oracle/convert.hpp"
#include "oracle/philox.hpp"
#include "support/rules.hpp"

namespace samebits::support {
namespace {

returned_values by_oracle(const array_case& c, const call_site& site) {
  const matrix_view &in = site.views[0], &out = site.views[1];
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

}  // namespace
}  // namespace samebits::support
