// unscale(): what it takes, and what it refuses. engine.lists_oracle judges its results and counts.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "samebits/loss_scaler.hpp"
#include "samebits/types.hpp"
#include "support/refusal.hpp"

namespace samebits {
namespace {

TEST(Unscale, TakesAViewSeveralViewsARangeAndAList) {
  std::vector<float> a = {8, 8};
  std::vector<fp16> b = {fp16(8.0f)};
  const std::vector<matrix_view> both = {view_of(a), view_of(b)};
  EXPECT_EQ(unscale(view_of(a), 0.5f).elements, 2u);
  EXPECT_EQ(unscale({view_of(a), view_of(b)}, 0.5f).elements, 3u);
  EXPECT_EQ(unscale(both, 0.5f).elements, 3u);
  EXPECT_EQ(unscale(tensor_list({{view_of(a), "a"}, {view_of(b), "b"}}), 0.5f).elements, 3u);
  EXPECT_EQ(unscale({}, 0.5f), unscale_report{});
  EXPECT_EQ(a[0], 0.5f);
  EXPECT_EQ(static_cast<float>(b[0]), 1.0f);
}

TEST(Unscale, Refused) {
  std::vector<float> a = {1};
  std::vector<e4m3> b(1);
  const auto expect_refused = [](const char* words, const std::vector<matrix_view>& views,
                                 float inverse) {
    support::expect_refusal(words, [&] { unscale(views, inverse); });
  };
  expect_refused("tensors[1]: format", {view_of(a), view_of(b)}, 0.5f);
  EXPECT_THROW(unscale(on_device(view_of(a)), 0.5f), unsupported);  // no backend for it here
  expect_refused("inverse_scale", {view_of(a)}, -1.0f);
  expect_refused("inverse_scale", {view_of(a)}, std::nanf(""));
  matrix_view repeated = view_of(a);
  repeated.cols = 2;
  repeated.col_stride = 0;
  expect_refused("tensors[0]", {repeated}, 0.5f);
  std::vector<float> c(4), d(4);
  expect_refused("tensors[1] and tensors[3]", {view_of(c), view_of(a), view_of(d), view_of(a)},
                 0.5f);
  EXPECT_NO_THROW(unscale({view_of(c.data(), 2, 1, 2), view_of(c.data() + 1, 2, 1, 2)}, 0.5f));
  EXPECT_EQ(a[0], 1.0f);
}

}  // namespace
}  // namespace samebits
