// Array arithmetic against the oracle: operations, mixed formats, rules, shapes, strides, threads.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "oracle/philox.hpp"
#include "samebits/array_arithmetic.hpp"
#include "support/backends.hpp"
#include "support/compute_case.hpp"
#include "support/property.hpp"

namespace samebits {
namespace {

using namespace support;

std::int64_t below(std::int64_t limit, const word_source& next) {
  return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(limit));
}

/// One format in half of the cases, since kernels serve those.
compute_case draw_case(const word_source& next) {
  compute_case c;
  c.op = operation_at(static_cast<int>(below(operation_count, next)));
  const auto any_format = [&] {
    return arithmetic_formats[static_cast<std::size_t>(below(5, next))];
  };
  c.to = any_format();
  for (format_id& f : c.from) f = c.to;
  if (below(2, next) == 0) c.from = {any_format(), any_format(), any_format()};
  const std::int64_t rows = below(8, next);
  const std::int64_t cols = below(90, next);
  for (array_layout& l : c.in) l = draw_layout(rows, cols, array_side::read, next);
  c.out = draw_layout(rows, cols, array_side::written, next);
  c.each = draw_layout(rows, cols, array_side::written, next);
  c.asked = below(2, next) == 0 ? flags_asked::each : flags_asked::none;
  if (below(2, next) == 0) c.rule.round = static_cast<rounding>(below(rounding_count, next));
  c.rule.on_overflow = static_cast<overflow>(below(overflow_count, next));
  c.rule.on_nan = static_cast<nan_policy>(below(nan_policy_count, next));
  c.random = {draw_number(next), draw_number(next), draw_number(next), std::nullopt,
              1 + static_cast<int>(below(32, next))};
  if (below(2, next) == 0) c.random.pitch = draw_number(next);
  c.threads = static_cast<int>(below(5, next));
  return c;
}

/// Fewer rows or columns; dense arrays.
std::vector<compute_case> simpler(const compute_case& c) {
  std::vector<compute_case> all;
  const auto resized = [&](std::int64_t rows, std::int64_t cols) {
    compute_case other = c;
    for (array_layout* l : {&other.in[0], &other.in[1], &other.in[2], &other.out, &other.each}) {
      l->rows = rows;
      l->cols = cols;
    }
    all.push_back(other);
  };
  if (c.out.rows > 1) resized(1, c.out.cols);
  if (c.out.cols > 1) resized(c.out.rows, 1);
  if (c.out.cols > 1) resized(c.out.rows, c.out.cols - 1);
  for (std::size_t i = 0; i < c.in.size(); ++i) {
    const array_layout dense{c.out.rows, c.out.cols, c.out.cols, 1, 0};
    if (c.in[i].row_stride == dense.row_stride && c.in[i].col_stride == 1) continue;
    compute_case other = c;
    other.in[i] = dense;
    all.push_back(other);
  }
  return all;
}

rc::Gen<compute_case> compute_cases() {
  return [](const rc::Random& random, int) {
    rc::Random state = random;
    compute_case value = draw_case([&state] { return state.next(); });
    return rc::shrinkable::shrinkRecur(std::move(value), [](const compute_case& from) {
      return rc::seq::fromContainer(simpler(from));
    });
  };
}

TEST(ComputeProperty, EveryElementIsTheOracles) {
  const rc::Gen<compute_case> generator = compute_cases();
  for (const std::string& backend : supported_backends()) {
    expect_holds("compute on " + backend, 400, [&] {
      const compute_case c = *generator;
      require(conforms(c, computing_on(backend), expected_result, backend));
    });
  }
}

TEST(ComputeProperty, RandomBitsAreTheOraclesIndex) {
  // The index of an element as the oracle counts it, not as the library does.
  const rc::Gen<compute_case> generator = compute_cases();
  expect_holds("stochastic", 200, [&] {
    compute_case c = *generator;
    c.rule.round = rounding::stochastic;
    c.asked = flags_asked::none;
    compute_memory m(c);
    computing_on(supported_backends().back())(c.op, operands_of(m), m.out.view(), options_of(c),
                                              c.asked, {}, c.threads);
    for (std::int64_t row = 0; row < c.out.rows; ++row) {
      for (std::int64_t col = 0; col < c.out.cols; ++col) {
        const std::uint64_t index = oracle::element_index(c.random, static_cast<std::uint64_t>(row),
                                                          static_cast<std::uint64_t>(col),
                                                          static_cast<std::uint64_t>(c.out.cols));
        const arithmetic_case e{
            .op = c.op,
            .x = m.at(c, row, col),
            .to = c.to,
            .rule = c.rule,
            .random = {oracle::random_word(c.random.seed, c.random.stream, index, c.random.bits),
                       c.random.bits}};
        RC_ASSERT(m.out.at(row, col) == expected_result(e).code);
      }
    }
  });
}

TEST(ComputeProperty, ABlockAloneIsASliceOfTheWhole) {
  const rc::Gen<compute_case> generator = compute_cases();
  expect_holds("shards", 300, [&] {
    compute_case c = *generator;
    compute_memory whole(c);
    const compute_function run = computing_on(supported_backends().back());
    run(c.op, operands_of(whole), whole.out.view(), options_of(c), c.asked, flags_of(whole), 1);
    const auto cut = static_cast<std::int64_t>(
        *rc::gen::inRange<std::uint64_t>(0, static_cast<std::uint64_t>(c.out.rows) + 1));
    compute_memory pieces(c);
    const std::uint64_t pitch = c.random.pitch.value_or(static_cast<std::uint64_t>(c.out.cols));
    for (const auto& [row, rows] :
         {std::pair{std::int64_t{0}, cut}, std::pair{cut, c.out.rows - cut}}) {
      if (rows == 0) continue;
      const auto block = [row = row, rows = rows](auto v) {
        using byte = std::conditional_t<std::is_same_v<decltype(v), matrix_view>, std::byte,
                                        const std::byte>;
        v.data = static_cast<byte*>(v.data) + row * v.row_stride * storage_bytes(v.format);
        v.rows = rows;
        return v;
      };
      const array_operands in = operands_of(pieces);
      flags_view each = flags_of(pieces);
      each.data += row * each.row_stride;
      compute_options options = options_of(c);
      options.random.offset += static_cast<std::uint64_t>(row) * pitch;
      options.random.pitch = pitch;
      run(c.op, {block(in.a), block(in.b), block(in.c)}, block(pieces.out.view()), options, c.asked,
          each, 2);
    }
    RC_ASSERT(pieces.out.bytes() == whole.out.bytes());
    RC_ASSERT(pieces.each.bytes() == whole.each.bytes());
  });
}

}  // namespace
}  // namespace samebits
