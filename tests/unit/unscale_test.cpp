// unscale(): every code of 16 bits against the processor's product, and what is counted.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "samebits/loss_scaler.hpp"
#include "samebits/scalar.hpp"
#include "samebits/types.hpp"
#include "support/refusal.hpp"

namespace samebits {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

std::uint32_t bits(float x) {
  return std::isnan(x) ? 0x7FFFFFFFu : std::bit_cast<std::uint32_t>(x);
}

/// All 2^16 codes, unscaled, against binary32 products of the processor rounded by encode().
template <class Value>
void check_all_codes(float inverse) {
  std::vector<Value> x;
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    x.push_back(Value::from_bits(static_cast<std::uint16_t>(code)));
  }
  std::vector<Value> got = x;
  const matrix_view views[] = {view_of(got)};
  const unscale_report report = unscale(views, inverse);
  std::uint64_t nonfinite = 0;
  std::uint64_t overflowed = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    volatile float product = static_cast<float>(x[i]) * inverse;
    const Value expected(std::isnan(product) ? std::nanf("") : product);
    ASSERT_EQ(bits(static_cast<float>(got[i])), bits(static_cast<float>(expected))) << i;
    const bool was = std::isfinite(static_cast<float>(x[i]));
    if (!was) ++nonfinite;
    if (was && !std::isfinite(static_cast<float>(expected))) ++overflowed;
  }
  EXPECT_EQ(report.elements, 0x10000u);
  EXPECT_EQ(report.nonfinite, nonfinite);
  EXPECT_EQ(report.overflowed, overflowed);
  EXPECT_EQ(report.amax_bits, 0x7FFFFFFFu);  // a NaN is never dropped
  EXPECT_EQ(report.first_bad, 0);
}

TEST(Unscale, AllCodes) {
  for (const float inverse : {1.0f / 65536, 1.0f, 16.0f, 1.0f / 50000, 0.3f, 1e-38f, 1e38f, 0.0f}) {
    check_all_codes<fp16>(inverse);
    check_all_codes<bf16>(inverse);
  }
  check_all_codes<fp16>(infinity);
}

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
