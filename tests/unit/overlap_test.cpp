// Whether strided views share memory: against sets of bytes, and where lists and array calls ask.
#include "backends/dispatch/overlap.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "samebits/convert.hpp"
#include "samebits/error.hpp"
#include "samebits/quantize_list.hpp"
#include "samebits/tensor_list.hpp"
#include "support/backends.hpp"
#include "support/property.hpp"
#include "support/refusal.hpp"

namespace samebits {
namespace {

using backends::sharing;

constexpr format_id format_of_bytes[] = {format_id::e4m3, format_id::fp16, format_id::fp32,
                                         format_id::fp64};

const_matrix_view view_at(std::int64_t address, format_id format, std::int64_t rows,
                          std::int64_t cols, std::int64_t row_stride, std::int64_t col_stride) {
  return {reinterpret_cast<const void*>(address), format, rows, cols, row_stride, col_stride};
}

/// The addresses of a view's bytes; `repeated`: some byte belongs to two elements.
std::set<std::int64_t> bytes_of(const const_matrix_view& v, bool& repeated) {
  std::set<std::int64_t> all;
  const auto begin = reinterpret_cast<std::intptr_t>(v.data);
  for (std::int64_t r = 0; r < v.rows; ++r) {
    for (std::int64_t c = 0; c < v.cols; ++c) {
      const std::int64_t at =
          begin + (r * v.row_stride + c * v.col_stride) * storage_bytes(v.format);
      for (int b = 0; b < storage_bytes(v.format); ++b) {
        if (!all.insert(at + b).second) repeated = true;
      }
    }
  }
  return all;
}

std::string text(const const_matrix_view& v) {
  return std::string(name(v.format)) + " at " +
         std::to_string(reinterpret_cast<std::intptr_t>(v.data)) + " [" + std::to_string(v.rows) +
         ", " + std::to_string(v.cols) + "] strides " + std::to_string(v.row_stride) + ", " +
         std::to_string(v.col_stride);
}

/// "" or what is wrong.
std::string wrong_about(const const_matrix_view& a, const const_matrix_view& b) {
  bool a_repeats = false;
  bool b_repeats = false;
  const std::set<std::int64_t> in_a = bytes_of(a, a_repeats);
  bool share = false;
  for (const std::int64_t byte : bytes_of(b, b_repeats)) share = share || in_a.count(byte) != 0;
  std::int64_t steps = backends::steps_of_a_pair;
  const sharing found = backends::sharing_of(a, b, steps);
  if (found != (share ? sharing::some : sharing::none)) {
    return "sharing of " + text(a) + " and " + text(b) + ": " +
           std::to_string(static_cast<int>(found));
  }
  if (backends::repeats_elements(a) != a_repeats) return "repeats_elements of " + text(a);
  return "";
}

rc::Gen<const_matrix_view> small_views() {
  using rc::gen::inRange;
  return rc::gen::map(rc::gen::tuple(inRange(0, 60), inRange(0, 4), inRange(0, 6), inRange(0, 6),
                                     inRange(0, 20), inRange(0, 20)),
                      [](const auto& t) {
                        const auto& [at, bytes, rows, cols, row_stride, col_stride] = t;
                        return view_at(1000 + at, format_of_bytes[bytes], rows, cols, row_stride,
                                       col_stride);
                      });
}

TEST(Overlap, OfSmallViewsIsThatOfTheirBytes) {
  support::expect_holds("overlap", 20000, [] {
    const const_matrix_view a = *small_views();
    const const_matrix_view b = *small_views();
    const std::string wrong = wrong_about(a, b);
    if (!wrong.empty()) RC_FAIL(wrong);
  });
}

/// Larger strides, so that two, three and four multiples are left: Euclid and the search.
TEST(Overlap, OfSparseViewsIsThatOfTheirBytes) {
  std::mt19937 random(3);
  const auto below = [&](int n) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(n));
  };
  int shared = 0;
  constexpr int cases = 20000;
  for (int i = 0; i < cases; ++i) {
    const auto draw = [&] {
      return view_at(1000 + below(900), format_of_bytes[below(4)], 1 + below(9), 1 + below(9),
                     below(90), below(90));
    };
    const const_matrix_view a = draw();
    const const_matrix_view b = draw();
    ASSERT_EQ(wrong_about(a, b), "");
    std::int64_t steps = backends::steps_of_a_pair;
    shared += backends::sharing_of(a, b, steps) == sharing::some ? 1 : 0;
  }
  EXPECT_GT(shared, cases / 10);
  EXPECT_LT(shared, cases * 9 / 10);
}

/// Views of one large matrix take one step, whatever their sizes.
TEST(Overlap, OfLargeViewsIsQuick) {
  constexpr std::int64_t base = std::int64_t{1} << 40;
  constexpr std::int64_t n = 50'000'000;
  const auto expect = [](const const_matrix_view& a, const const_matrix_view& b, sharing expected) {
    std::int64_t steps = 1;
    EXPECT_EQ(backends::sharing_of(a, b, steps), expected) << text(a) << "; " << text(b);
  };
  const auto fp16_at = [](std::int64_t first, std::int64_t rows, std::int64_t cols,
                          std::int64_t row_stride, std::int64_t col_stride) {
    return view_at(base + 2 * first, format_id::fp16, rows, cols, row_stride, col_stride);
  };
  expect(fp16_at(0, n, 32, 64, 1), fp16_at(32, n, 32, 64, 1), sharing::none);  // halves of rows
  expect(fp16_at(0, n, 33, 64, 1), fp16_at(32, n, 32, 64, 1), sharing::some);
  expect(fp16_at(0, n, 30, 64, 2), fp16_at(1, n, 30, 64, 2), sharing::none);  // odd and even
  expect(fp16_at(0, n, 30, 64, 2), fp16_at(2, n, 30, 64, 2), sharing::some);
  expect(fp16_at(0, n, 32, 64, 1), fp16_at(32, 30, n / 2, 1, 64), sharing::none);  // transposed
  expect(fp16_at(0, n, 32, 64, 1), fp16_at(33, n, 31, 128, 1), sharing::none);
  expect(fp16_at(0, n, 1, 999'983, 1), fp16_at(1, n, 1, 1'000'003, 1), sharing::some);  // coprime
}

TEST(Overlap, ThatTakesTooLongIsUndecided) {
  const const_matrix_view a = view_at(1 << 20, format_id::fp16, 90'001, 2'999, 50'021'011, 9'973);
  const const_matrix_view b =
      view_at((1 << 20) + 2, format_id::fp16, 90'007, 2'003, 49'999'987, 19'997);
  std::int64_t steps = 3;
  EXPECT_EQ(backends::sharing_of(a, b, steps), sharing::undecided);
}

std::string refused(const std::vector<list_tensor>& tensors) {
  return support::refusal_of([&] { const tensor_list list(tensors); });
}

TEST(Overlap, OfTensorsInAList) {
  std::vector<float> a(40);
  const auto part = [&](std::int64_t first, std::int64_t rows, std::int64_t cols,
                        std::int64_t row_stride) {
    return list_tensor{view_of(a.data() + first, rows, cols, row_stride)};
  };
  const auto text = [&](const list_tensor& x, const list_tensor& y) { return refused({x, y}); };
  // Every other element inside a dense tensor, whichever comes first.
  EXPECT_EQ(text(part(0, 1, 40, 0), part(1, 10, 1, 2)), "tensors[0] and tensors[1] overlap");
  EXPECT_EQ(text(part(1, 10, 1, 2), part(0, 1, 40, 0)), "tensors[0] and tensors[1] overlap");
  EXPECT_EQ(text(part(0, 10, 1, 4), part(2, 1, 3, 0)), "tensors[0] and tensors[1] overlap");
  EXPECT_EQ(text(part(0, 10, 1, 4), part(1, 1, 3, 0)), "");  // between two elements
  EXPECT_EQ(text(part(0, 10, 2, 4), part(2, 10, 2, 4)), "");
  EXPECT_EQ(text(part(0, 10, 3, 4), part(2, 10, 2, 4)), "tensors[0] and tensors[1] overlap");
}

TEST(Overlap, OfListsThatAreReadAndWritten) {
  std::vector<float> m(64);
  const auto columns = [&](std::int64_t first) {
    return tensor_list(
        {{view_of(m.data() + first, 16, 1, 4)}, {view_of(m.data() + first + 1, 16, 1, 4)}});
  };
  for (float& x : m) x = 1.0f;
  EXPECT_NO_THROW(accumulate(columns(0), columns(2)));
  EXPECT_EQ(m[0] + m[1] + m[2] + m[3], 2.0f + 2.0f + 1.0f + 1.0f);
  EXPECT_THROW(accumulate(columns(0), columns(1)), invalid_argument);
}

/// Outputs of one tensor between the elements of another's.
TEST(Overlap, OfListsToQuantize) {
  std::vector<float> x(64, 1.0f);
  std::vector<e4m3> codes(64);
  const auto item = [&](std::int64_t first, std::int64_t cols) {
    return quantize_item{.in = view_of(x.data(), 8, cols),
                         .outputs = {.codes = view_of(codes.data() + first, 8, cols, 8)}};
  };
  EXPECT_NO_THROW(quantize(quantize_list({item(0, 4), item(4, 4)}, quantize_options{})));
  for (const e4m3 code : codes) EXPECT_EQ(static_cast<float>(code), 448.0f);
  EXPECT_THROW(quantize_list({item(0, 5), item(4, 4)}, quantize_options{}), invalid_argument);
}

/// Views that no rule of larger strides admits: rows 0 2 4 and 3 5 7 of a vector.
TEST(Overlap, ElementsBetweenEachOtherAreConverted) {
  for (const std::string& backend : support::supported_backends()) {
    const std::vector<float> x = {1, 2, 3, 4, 5, 6};
    std::vector<fp16> y(8);
    matrix_view out = view_of(y.data(), 2, 3, 3);
    out.col_stride = 2;
    convert(view_of(x.data(), 2, 3), out, {}, {backend});
    const float expected[] = {1, 0, 2, 4, 3, 5, 0, 6};
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(static_cast<float>(y[i]), expected[i]);

    std::vector<fp16> pairs(4000);  // even elements into the odd ones between them
    for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i] = fp16(static_cast<float>(i % 7));
    const matrix_view even = {pairs.data(), format_id::fp16, 2, 1000, 2000, 2};
    matrix_view odd = even;
    odd.data = pairs.data() + 1;
    odd.format = format_id::bf16;
    convert(even, odd, {}, {backend});
    for (std::size_t i = 0; i < pairs.size(); i += 2) {
      ASSERT_EQ(static_cast<float>(pairs[i]), static_cast<float>(i % 7)) << i;
      ASSERT_EQ(pairs[i + 1].bits(), bf16(static_cast<float>(i % 7)).bits()) << i;
    }
  }
}

}  // namespace
}  // namespace samebits
