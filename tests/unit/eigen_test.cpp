// Value types inside Eigen: storage, Maps, blocks, casts and views of either storage order.
#include "samebits/eigen.hpp"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <type_traits>
#include <utility>
#include <vector>

#include "samebits/convert.hpp"

namespace samebits {
namespace {

template <class T>
using row_major = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::MatrixXf numbers(Eigen::Index rows, Eigen::Index cols) {
  Eigen::MatrixXf m(rows, cols);
  for (Eigen::Index r = 0; r < rows; ++r) {
    for (Eigen::Index c = 0; c < cols; ++c)
      m(r, c) = 0.3f * static_cast<float>(r * cols + c) - 1.0f;
  }
  return m;
}

TEST(EigenTypes, CastRoundsOnce) {
  const Eigen::MatrixXf x = numbers(3, 5);
  const Eigen::Matrix<e4m3, Eigen::Dynamic, Eigen::Dynamic> y = x.cast<e4m3>();
  const Eigen::MatrixXf back = y.cast<float>();
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    EXPECT_EQ(y.data()[i].bits(), encode<format_id::e4m3>(x.data()[i]));
    EXPECT_EQ(back.data()[i], decode<format_id::e4m3>(y.data()[i].bits()));
  }
}

TEST(EigenTypes, MapsLieOverCodes) {
  std::vector<std::uint16_t> codes = {0x3F80, 0x4000, 0xC040, 0x0000};
  const Eigen::Map<const Eigen::Matrix<bf16, 2, 2>> m(reinterpret_cast<const bf16*>(codes.data()));
  EXPECT_EQ(m.cast<float>()(0, 1), -3.0f);
  EXPECT_TRUE(m(0, 0) < m(1, 0));
}

TEST(EigenTypes, TraitsAreTheFormats) {
  EXPECT_EQ(static_cast<float>(Eigen::NumTraits<fp16>::highest()), 65504.0f);
  EXPECT_EQ(static_cast<float>(Eigen::NumTraits<e5m2>::epsilon()), 0.25f);
}

TEST(EigenArithmetic, CoefficientsAreRoundedOnce) {
  const Eigen::Matrix<fp16, 3, 5> x = numbers(3, 5).cast<fp16>();
  const Eigen::Matrix<fp16, 3, 5> y = (x.array() * x.array() - x.array() / fp16(3.0f)).matrix();
  const Eigen::Matrix<fp16, 3, 5> z = x.cwiseAbs().cwiseSqrt();
  EXPECT_TRUE(z.allFinite());
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    const fp16 v = x.data()[i];
    EXPECT_EQ(y.data()[i].bits(), (v * v - v / fp16(3.0f)).bits());
    EXPECT_EQ(z.data()[i].bits(), sqrt(abs(v)).bits());
  }
}

TEST(EigenArithmetic, ProductsAndSums) {
  Eigen::Matrix<e4m3, 2, 2> a;
  a << e4m3(1.0f), e4m3(2.0f), e4m3(-0.5f), e4m3(16.0f);
  const Eigen::Matrix<e4m3, 2, 2> square = a * a;  // exact in e4m3 in every order but the last
  EXPECT_EQ(static_cast<float>(square(0, 0)), 0.0f);
  EXPECT_EQ(static_cast<float>(square(1, 0)), -8.0f);   // -8.5, tie to even
  EXPECT_EQ(static_cast<float>(square(1, 1)), 256.0f);  // 255
  EXPECT_EQ(static_cast<float>(a.maxCoeff()), 16.0f);
  EXPECT_EQ(static_cast<float>(a.row(0).sum()), 3.0f);
}

template <class In, class Out>
void check_conversion(const In& x, Out&& y) {
  convert(view_of(x), view_of(y), {.rounding = rounding::toward_zero});
  for (Eigen::Index r = 0; r < x.rows(); ++r) {
    for (Eigen::Index c = 0; c < x.cols(); ++c) {
      const auto expected = encode<format_id::e5m2>(x(r, c), {.rounding = rounding::toward_zero});
      EXPECT_EQ(y(r, c).bits(), expected) << r << "," << c;
    }
  }
}

TEST(EigenViews, ConvertBetweenStorageOrdersAndBlocks) {
  const Eigen::MatrixXf x = numbers(7, 4);
  row_major<e5m2> y(7, 4);
  check_conversion(x, y);
  Eigen::Matrix<e5m2, Eigen::Dynamic, Eigen::Dynamic> big(9, 9);
  big.setConstant(e5m2(1.0f));
  auto block = big.block(1, 2, 7, 4);
  check_conversion(x, block);
  check_conversion(x, big.block(2, 1, 7, 4));
  EXPECT_EQ(static_cast<float>(big(0, 0)), 1.0f);
  EXPECT_EQ(static_cast<float>(big(8, 8)), 1.0f);
  const row_major<float> z = x;
  check_conversion(z, y);
}

/// One name: the view of what can be written can be written.
TEST(EigenViews, ConstnessDecides) {
  Eigen::MatrixXf m = numbers(4, 3);
  const Eigen::MatrixXf& read = m;
  Eigen::Map<Eigen::MatrixXf> map(m.data(), 4, 3);
  Eigen::Map<const Eigen::MatrixXf> read_map(m.data(), 4, 3);
  Eigen::Ref<Eigen::MatrixXf> ref(m);
  const auto can_write = [](const auto& view) {
    return std::is_same_v<std::remove_cvref_t<decltype(view)>, matrix_view>;
  };
  EXPECT_TRUE(can_write(view_of(m)));
  EXPECT_TRUE(can_write(view_of(m.row(1))));
  EXPECT_TRUE(can_write(view_of(m.transpose())));
  EXPECT_TRUE(can_write(view_of(map)));
  EXPECT_TRUE(can_write(view_of(Eigen::Map<Eigen::MatrixXf>(m.data(), 4, 3))));
  EXPECT_TRUE(can_write(view_of(ref)));
  EXPECT_FALSE(can_write(view_of(read)));
  EXPECT_FALSE(can_write(view_of(read.row(1))));
  EXPECT_FALSE(can_write(view_of(read.transpose())));
  EXPECT_FALSE(can_write(view_of(read_map)));
  EXPECT_FALSE(can_write(view_of(Eigen::Map<const Eigen::MatrixXf>(m.data(), 4, 3))));
  const matrix_view row = view_of(m.row(1));
  EXPECT_EQ(row.data, &m(1, 0));
  EXPECT_EQ(row.rows, 1);
  EXPECT_EQ(row.cols, 3);
  EXPECT_EQ(row.col_stride, 4);
  Eigen::VectorXf v(5);
  EXPECT_TRUE(can_write(view_of(v)));
  EXPECT_EQ(view_of(v).rows, 5);
}

template <class M>
concept can_be_viewed = requires(M&& m) {
  view_of(std::forward<M>(m));
};
static_assert(can_be_viewed<Eigen::MatrixXf&> && !can_be_viewed<Eigen::MatrixXf>);
static_assert(!can_be_viewed<const Eigen::MatrixXf>);
static_assert(!can_be_viewed<decltype(Eigen::MatrixXf() + Eigen::MatrixXf())>);

}  // namespace
}  // namespace samebits
