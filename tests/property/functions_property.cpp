// Functions of tensor lists, and rotary tables: laws between calls, on any executor and any number of
// threads.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "samebits/evaluate.hpp"
#include "samebits/rotary.hpp"
#include "support/array_generators.hpp"
#include "support/backends.hpp"
#include "support/function_cases.hpp"
#include "support/generators.hpp"
#include "support/property.hpp"
#include "support/strided_buffer.hpp"
#include "support/test_list.hpp"

namespace samebits {
namespace {

using namespace support;

executor any_executor() {
  return find_executor(*rc::gen::elementOf(supported_backends()), *rc::gen::inRange(1, 5));
}

TEST(FunctionProperties, AListHasTheResultsOfItsTensors) {
  const std::vector<function_case> cases = function_cases();
  expect_holds("a list is its tensors", 300, [&] {
    function_case c = *rc::gen::elementOf(cases);
    c.options.random.stream = *rc::gen::arbitrary<std::uint64_t>();
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const auto tensors = *rc::gen::inRange<std::size_t>(0, 9);
    const auto elements = *rc::gen::inRange<std::int64_t>(0, 3000);
    const auto shape = [&](const std::vector<format_id>& formats, list_content content) {
      return test_list({tensors, elements, formats, content, seed});
    };
    const test_list in = shape(c.formats, list_content::any_bits);
    const test_list grad = shape(c.formats, list_content::ordinary);
    const test_list out = shape(c.results, list_content::small);
    std::vector<std::byte> x = in.bytes(), g = grad.bytes();
    std::vector<std::byte> expected = out.bytes(), got = out.bytes();
    const tensor_list xs = in.listed(x.data()), gs = grad.listed(g.data());
    const tensor_list each = out.listed(expected.data());
    run_function(c, gs, xs, out.listed(got.data()), any_executor());
    function_case one = c;
    for (std::size_t i = 0; i < each.size(); ++i) {
      one.options.random.stream = c.options.random.stream + i;
      run_function<const_matrix_view, matrix_view>(one, gs[i].view, xs[i].view, each[i].view,
                                                   any_executor());
    }
    RC_ASSERT(got == expected);
    RC_ASSERT(x == in.bytes());
    RC_ASSERT(g == grad.bytes());
  });
}

struct rotary_case {
  std::vector<std::int64_t> positions;
  std::vector<double> frequencies;  ///< empty: by the base
  std::int64_t columns;
  format_id format;
  double base;
  rotary_angle angle;

  [[nodiscard]] rotary_options options() const {
    return {.base = base, .frequencies = frequencies, .angle = angle};
  }
};

double any_number() {
  const double x = std::bit_cast<double>(*rc::gen::arbitrary<std::uint64_t>());
  return std::isfinite(x) ? x : 1.0;
}

rotary_case any_rotary_case() {
  rotary_case c;
  for (int i = *rc::gen::inRange(0, 30); i > 0; --i) {
    const auto wide = *rc::gen::arbitrary<std::int64_t>();
    c.positions.push_back(*rc::gen::arbitrary<bool>() ? wide : wide % 100'000);
  }
  c.columns = *rc::gen::inRange(0, 9);
  c.angle = *rc::gen::element(rotary_angle::exact, rotary_angle::binary32);
  if (*rc::gen::arbitrary<bool>()) {
    for (std::int64_t i = 0; i < c.columns; ++i) {
      const double f = any_number();
      // Those beyond fp32 are refused for angles in binary32.
      c.frequencies.push_back(c.angle == rotary_angle::exact || std::abs(f) < 1e38 ? f : 0.5);
    }
  }
  c.format = *rc::gen::element(format_id::fp32, format_id::fp16, format_id::bf16);
  c.base = std::max(1.0, std::abs(any_number()));
  return c;
}

TEST(RotaryProperties, LayoutsAndExecutorsChangeNoBitAndSinIsOdd) {
  expect_holds("rotary tables", 500, [] {
    const rotary_case c = any_rotary_case();
    const auto rows = static_cast<std::int64_t>(c.positions.size());
    const word_source next = [] { return *rc::gen::arbitrary<std::uint64_t>(); };
    const array_layout layouts[] = {draw_layout(rows, c.columns, array_side::written, next),
                                    draw_layout(rows, c.columns, array_side::written, next)};
    strided_buffer cos(c.format, layouts[0]), sin(c.format, layouts[1]);
    rotary_table(c.positions, cos.view(), sin.view(), c.options(), any_executor());
    RC_ASSERT(cos.guards_are_intact());
    RC_ASSERT(sin.guards_are_intact());
    // The same table backward: every entry by itself in another place, by another executor.
    std::vector<std::int64_t> backward;
    for (const std::int64_t p : c.positions) backward.push_back(p == INT64_MIN ? p : -p);
    const array_layout dense{rows, c.columns, c.columns, 1, 0};
    strided_buffer back_cos(c.format, dense), back_sin(c.format, dense);
    rotary_table(backward, back_cos.view(), back_sin.view(), c.options(), any_executor());
    const std::uint64_t sign = std::uint64_t{1} << (spec_of(c.format).storage_bits - 1);
    const std::uint64_t nan = canonical_nan(c.format);
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t p = c.positions[static_cast<std::size_t>(row)];
      for (std::int64_t col = 0; col < c.columns; ++col) {
        const std::uint64_t value = sin.at(row, col);
        const bool odd = p != 0 && p != INT64_MIN && value != nan;
        RC_ASSERT(back_cos.at(row, col) == cos.at(row, col));
        // The angle 0 has sin +0 at either sign, unless it is a binary32 number.
        const bool zero = (value & ~sign) == 0 && c.angle == rotary_angle::exact;
        if (odd && !zero) RC_ASSERT(back_sin.at(row, col) == (value ^ sign));
      }
    }
  });
}

TEST(RotaryProperties, APartHasTheBitsOfTheWhole) {
  expect_holds("parts of rotary tables", 200, [] {
    rotary_case c = any_rotary_case();
    c.positions.push_back(*rc::gen::arbitrary<std::int64_t>());
    c.columns += 1;
    c.frequencies.clear();
    const auto rows = static_cast<std::int64_t>(c.positions.size());
    const array_layout dense{rows, c.columns, c.columns, 1, 0};
    strided_buffer cos(c.format, dense), sin(c.format, dense);
    rotary_table(c.positions, cos.view(), sin.view(), c.options(), any_executor());
    const auto row = *rc::gen::inRange<std::int64_t>(0, rows);
    const array_layout line{1, c.columns, c.columns, 1, 0};
    strided_buffer one_cos(c.format, line), one_sin(c.format, line);
    rotary_table({&c.positions[static_cast<std::size_t>(row)], 1}, one_cos.view(), one_sin.view(),
                 c.options(), any_executor());
    for (std::int64_t col = 0; col < c.columns; ++col) {
      RC_ASSERT(one_cos.at(0, col) == cos.at(row, col));
      RC_ASSERT(one_sin.at(0, col) == sin.at(row, col));
    }
  });
}

}  // namespace
}  // namespace samebits
