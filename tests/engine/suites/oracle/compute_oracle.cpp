// Array arithmetic against the oracle: results and flags; and in blocks.
#include <utility>

#include "engine/cases/compute.hpp"
#include "engine/cases/operations.hpp"
#include "engine/suites/rapidcheck.hpp"
#include "oracle/philox.hpp"
#include "support/arithmetic_case.hpp"

namespace samebits::support {
namespace {

returned_values by_oracle(const array_arithmetic_case& c, const call_site& site) {
  const std::vector<matrix_view>& v = site.views;
  const matrix_view out = arithmetic_result_of(c, site);
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

/// Two blocks of rows, cut where the content says.
returned_values in_blocks(const array_arithmetic_case& c, const call_site& site) {
  const std::vector<matrix_view>& v = site.views;
  const matrix_view out = arithmetic_result_of(c, site);
  const std::uint64_t pitch = c.random.pitch.value_or(static_cast<std::uint64_t>(out.cols));
  const auto cut = static_cast<std::int64_t>(c.content % static_cast<std::uint64_t>(out.rows + 1));
  const std::string fastest = supported_backends().back();
  const executor where{fastest, 2};
  flags raised = flags::none;
  for (const auto& [row, rows] :
       {std::pair{std::int64_t{0}, cut}, std::pair{cut, out.rows - cut}}) {
    const auto block = [row = row, rows = rows](const matrix_view& of) {
      return block_of(of, row, rows, 0, of.cols);
    };
    compute_options options = options_of(c);
    options.random.offset += static_cast<std::uint64_t>(row) * pitch;
    options.random.pitch = pitch;
    const array_operands in = {block(v[0]), block(v[1]), block(v[2])};
    if (c.asked == flags_asked::none) {
      compute(c.op, in, block(out), options, where);
      continue;
    }
    flags_view of_each;
    if (c.asked == flags_asked::each) {
      const matrix_view each = block(v[at_each_flags]);
      of_each = {static_cast<flags*>(each.data), each.row_stride, each.col_stride};
    }
    raised = raised | compute_with_flags(c.op, in, block(out), options, of_each, where);
  }
  if (c.asked != flags_asked::none) {
    put_code(v[at_all_flags], 0, 0, static_cast<std::uint64_t>(raised));
  }
  return {};
}

TEST(ComputeOracle, ABlockAloneIsASliceOfTheWhole) {
  function_target<array_arithmetic_case> blocks("blocks", in_blocks);
  expect_as_reference(compute_operation({}), blocks, 500);
}

}  // namespace
}  // namespace samebits::support
