// Array conversion against the oracle and the scalar function: shapes, strides, threads, shards.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "oracle/philox.hpp"
#include "samebits/convert.hpp"
#include "samebits/scalar.hpp"
#include "support/array_generators.hpp"
#include "support/backends.hpp"
#include "support/conversion_case.hpp"
#include "support/property.hpp"
#include "support/rules.hpp"
#include "support/strided_buffer.hpp"

namespace samebits {
namespace {

using namespace support;

strided_buffer filled_input(const array_case& c) {
  strided_buffer in(c.from, c.in);
  const std::vector<std::uint64_t> content = content_of(c);
  for (std::size_t i = 0; i < content.size(); ++i) {
    in.store(static_cast<std::int64_t>(i), content[i]);
  }
  return in;
}

convert_options options_of(const array_case& c) {
  return {c.rule.rounding, c.rule.overflow, c.rule.nan, c.random};
}

/// One of the backends, by the case.
executor executor_of(const array_case& c) {
  static const std::vector<std::string> backends = supported_backends();
  return {backends[c.content % backends.size()], c.threads};
}

/// What happens to one element, as a scalar case.
conversion_case element_case(const array_case& c, std::uint64_t input, std::int64_t row,
                             std::int64_t col) {
  conversion_case e{c.from, c.to, input, c.rule};
  e.where = "convert on " + std::string(executor_of(c).backend) + ", element [" +
            std::to_string(row) + ", " + std::to_string(col) + "], " + std::to_string(c.threads) +
            " threads";
  if (c.rule.rounding == rounding::stochastic) {
    const std::uint64_t index = oracle::element_index(c.random, static_cast<std::uint64_t>(row),
                                                      static_cast<std::uint64_t>(col),
                                                      static_cast<std::uint64_t>(c.in.cols));
    e.origin = {{c.random.seed, c.random.stream, index}};
    e.random = {oracle::random_word(c.random.seed, c.random.stream, index, c.random.bits),
                c.random.bits};
  }
  return e;
}

TEST(ArrayProperty, EveryElementIsTheOracles) {
  const rc::Gen<array_case> generator = array_cases();
  expect_holds("convert", 3000, [&] {
    const array_case c = *generator;
    strided_buffer in = filled_input(c);
    const std::vector<std::byte> before = in.bytes();
    strided_buffer out(c.to, c.out);
    convert(in.view(), out.view(), options_of(c), executor_of(c));
    RC_ASSERT(in.bytes() == before);
    RC_ASSERT(out.guards_are_intact());
    for (std::int64_t row = 0; row < c.in.rows; ++row) {
      for (std::int64_t col = 0; col < c.in.cols; ++col) {
        const conversion_case e = element_case(c, in.at(row, col), row, col);
        const std::uint64_t got = out.at(row, col);
        require(same_code(e, got, expected_code(e)));
        require(same_code(e, got, convert_code(e.from, e.to, e.input, e.rule, e.random).code));
      }
    }
  });
}

TEST(ArrayProperty, ABlockAloneIsASliceOfTheWhole) {
  const rc::Gen<array_case> generator = array_cases();
  expect_holds("shards", 2000, [&] {
    const array_case c = *generator;
    strided_buffer in = filled_input(c);
    strided_buffer whole(c.to, c.out);
    convert(in.view(), whole.view(), options_of(c));

    const auto cut = [&](std::int64_t size) {
      return static_cast<std::int64_t>(
          *rc::gen::inRange<std::uint64_t>(0, static_cast<std::uint64_t>(size) + 1));
    };
    const std::int64_t row_cut = cut(c.in.rows);
    const std::int64_t col_cut = cut(c.in.cols);
    strided_buffer parts(c.to, c.out);
    const std::uint64_t pitch = c.random.pitch.value_or(static_cast<std::uint64_t>(c.in.cols));
    for (const auto& [row, rows] :
         {std::pair{std::int64_t{0}, row_cut}, std::pair{row_cut, c.in.rows - row_cut}}) {
      for (const auto& [col, cols] :
           {std::pair{std::int64_t{0}, col_cut}, std::pair{col_cut, c.in.cols - col_cut}}) {
        const auto block = [row = row, rows = rows, col = col, cols = cols](matrix_view v) {
          auto* first = static_cast<std::byte*>(v.data);
          if (rows != 0 && cols != 0) {
            first += (row * v.row_stride + col * v.col_stride) * storage_bytes(v.format);
          }
          v.data = first;
          v.rows = rows;
          v.cols = cols;
          return v;
        };
        convert_options options = options_of(c);
        options.random.offset +=
            static_cast<std::uint64_t>(row) * pitch + static_cast<std::uint64_t>(col);
        options.random.pitch = pitch;
        convert(block(in.view()), block(parts.view()), options, executor_of(c));
      }
    }
    RC_ASSERT(parts.bytes() == whole.bytes());
  });
}

TEST(ArrayProperty, InPlace) {
  const rc::Gen<array_case> generator = array_cases();
  expect_holds("the same memory in and out", 2000, [&] {
    array_case c = *generator;
    c.in = c.out;  // an input without repeated elements
    strided_buffer in = filled_input(c);
    strided_buffer apart(c.to, c.out);
    convert(in.view(), apart.view(), options_of(c));
    if (storage_bytes(c.from) != storage_bytes(c.to)) return;
    matrix_view target = in.view();
    target.format = c.to;
    convert(in.view(), target, options_of(c), executor_of(c));
    for (std::int64_t row = 0; row < c.in.rows; ++row) {
      for (std::int64_t col = 0; col < c.in.cols; ++col) {
        RC_ASSERT(in.at(row, col) == apart.at(row, col));
      }
    }
  });
}

TEST(ArrayProperty, ThreadsDoNotShow) {
  expect_holds("threads", 60, [] {
    array_case c = *array_cases();
    const std::int64_t cols = 1 + static_cast<std::int64_t>(c.content % 70000);
    c.in = {140000 / cols, cols, cols, 1, 0};
    c.out = c.in;
    // Filling 140000 elements with chosen codes would take longer than the rest: repeat some.
    array_case few = c;
    few.in = {1, 997, 997, 1, 0};
    const std::vector<std::uint64_t> content = content_of(few);
    strided_buffer in(c.from, c.in);
    for (std::int64_t i = 0; i < c.in.span(); ++i) {
      in.store(i, content[static_cast<std::size_t>(i) % content.size()]);
    }
    strided_buffer one(c.to, c.out);
    convert(in.view(), one.view(), options_of(c), {executor_of(c).backend, 1});
    for (const int threads : {0, 2, 3, 5, 8, 64}) {
      strided_buffer many(c.to, c.out);
      convert(in.view(), many.view(), options_of(c), {executor_of(c).backend, threads});
      RC_ASSERT(many.bytes() == one.bytes());
    }
  });
}

}  // namespace
}  // namespace samebits
