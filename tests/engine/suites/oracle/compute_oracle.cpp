// Array arithmetic against the oracle: results and flags.
#include "engine/cases/compute.hpp"
#include "engine/cases/operations.hpp"
#include "engine/suites/rapidcheck.hpp"
#include "oracle/philox.hpp"
#include "support/arithmetic_case.hpp"

namespace samebits::support {
namespace {

returned_values by_oracle(const array_arithmetic_case& c, const call_site& site) {
  const std::vector<matrix_view>& v = site.views;
  const matrix_view& out = v[at_result];
  unsigned all = 0;
  for_each_element(out, [&](std::int64_t row, std::int64_t col) {
    arithmetic_case e{.op = c.op, .to = c.to, .rule = c.rule};
    e.x = {{c.from[0], code_at(v[0], row, col)},
           {c.from[1], code_at(v[1], row, col)},
           {c.from[2], code_at(v[2], row, col)}};
    if (c.rule.rounding == rounding::stochastic) {
      const std::uint64_t index = oracle::element_index(c.random, static_cast<std::uint64_t>(row),
                                                        static_cast<std::uint64_t>(col),
                                                        static_cast<std::uint64_t>(out.cols));
      e.random = {oracle::random_word(c.random.seed, c.random.stream, index, c.random.bits),
                  c.random.bits};
    }
    const oracle::rounded_result expected = expected_result(e);
    put_code(out, row, col, expected.code);
    if (c.asked == flags_asked::each) put_code(v[at_each_flags], row, col, expected.flags);
    all |= expected.flags;
  });
  if (c.asked != flags_asked::none) put_code(v[at_all_flags], 0, 0, all);
  return {};
}

TEST(ComputeOracle, EveryElement) {
  expect_on_hosts(compute_operation({}), "the oracle", by_oracle, 500);
}

}  // namespace
}  // namespace samebits::support
