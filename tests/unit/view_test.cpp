// Views: what the factories fill in.
#include "samebits/view.hpp"

#include <gtest/gtest.h>

#include <array>
#include <ranges>
#include <span>
#include <utility>
#include <vector>

namespace samebits {
namespace {

TEST(View, OfARangeIsOneRow) {
  std::vector<float> x(5);
  const matrix_view v = view_of(x);
  EXPECT_EQ(v.data, x.data());
  EXPECT_EQ(v.format, format_id::fp32);
  EXPECT_EQ(v.rows, 1);
  EXPECT_EQ(v.cols, 5);
  EXPECT_EQ(v.col_stride, 1);
}

TEST(View, OfConstDataIsReadOnly) {
  const std::array<e4m3, 6> x{};
  const auto v = view_of(x.data(), 2, 3);
  static_assert(std::is_same_v<decltype(v), const const_matrix_view>);
  EXPECT_EQ(v.format, format_id::e4m3);
  EXPECT_EQ(v.row_stride, 3);
}

static_assert(element<float> && element<double> && element<e5m2>);
static_assert(!element<int> && !element<const float> && !element<long double>);

TEST(View, WritableConvertsToReadable) {
  std::vector<bf16> x(6);
  const const_matrix_view v = view_of(x.data(), 2, 2, 3);
  EXPECT_EQ(v.format, format_id::bf16);
  EXPECT_EQ(v.rows, 2);
  EXPECT_EQ(v.row_stride, 3);
  EXPECT_EQ(v.space, memory_space::host);
}

/// Spans, as temporaries too, refer to elements that live on; a returned vector's would be gone.
TEST(View, OfATemporarySpan) {
  std::vector<float> x(5);
  EXPECT_EQ(view_of(std::span(x).subspan(2)).data, x.data() + 2);
  EXPECT_EQ(view_of(std::span<const float, 3>(x.data(), 3)).cols, 3);
}
template <class Range>
concept can_be_viewed = requires(Range&& range) {
  view_of(std::forward<Range>(range));
};
static_assert(can_be_viewed<std::vector<float>&> && can_be_viewed<const std::vector<float>&>);
static_assert(can_be_viewed<std::span<fp16>> && can_be_viewed<float (&)[3]>);
static_assert(!can_be_viewed<std::vector<float>> && !can_be_viewed<const std::vector<float>>);
static_assert(!can_be_viewed<std::array<fp16, 3>> && !can_be_viewed<float[3]>);
static_assert(!can_be_viewed<std::ranges::single_view<float>>);  // a view that owns its element

TEST(View, OfCodesTakesAnyFormat) {
  std::uint8_t codes[4] = {};
  EXPECT_EQ(view_of_codes(format_id::e2m1, codes, 2, 2).format, format_id::e2m1);
}

}  // namespace
}  // namespace samebits
