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
#include "support/array_arithmetic_case.hpp"
#include "support/backends.hpp"
#include "support/property.hpp"

namespace samebits {
namespace {

using namespace support;

TEST(ComputeProperty, EveryElementIsTheOracles) {
  const rc::Gen<array_arithmetic_case> generator = array_arithmetic_cases();
  for (const std::string& backend : supported_backends()) {
    expect_holds("compute on " + backend, 400, [&] {
      const array_arithmetic_case c = *generator;
      require(conforms(c, computing_on(backend), expected_result, backend));
    });
  }
}

TEST(ComputeProperty, RandomBitsAreTheOraclesIndex) {
  // The index of an element as the oracle counts it, not as the library does.
  const rc::Gen<array_arithmetic_case> generator = array_arithmetic_cases();
  expect_holds("stochastic", 200, [&] {
    array_arithmetic_case c = *generator;
    c.rule.rounding = rounding::stochastic;
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
  const rc::Gen<array_arithmetic_case> generator = array_arithmetic_cases();
  expect_holds("shards", 300, [&] {
    array_arithmetic_case c = *generator;
    compute_memory whole(c);
    const compute_function run = computing_on(supported_backends().back());
    run(c.op, operands_of(whole), whole.out.view(), options_of(c), c.asked, flags_of(whole), 1);
    const auto cut = static_cast<std::int64_t>(
        *rc::gen::inRange<std::uint64_t>(0, static_cast<std::uint64_t>(c.out.rows) + 1));
    compute_memory parts(c);
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
      const array_operands in = operands_of(parts);
      flags_view each = flags_of(parts);
      each.data += row * each.row_stride;
      compute_options options = options_of(c);
      options.random.offset += static_cast<std::uint64_t>(row) * pitch;
      options.random.pitch = pitch;
      run(c.op, {block(in.a), block(in.b), block(in.c)}, block(parts.out.view()), options, c.asked,
          each, 2);
    }
    RC_ASSERT(parts.out.bytes() == whole.out.bytes());
    RC_ASSERT(parts.each.bytes() == whole.each.bytes());
  });
}

}  // namespace
}  // namespace samebits
