// tensor_list: what it describes, its chunk table, and what it refuses by name.
#include "samebits/tensor_list.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "backends/dispatch/access.hpp"
#include "backends/dispatch/calls/list.hpp"
#include "samebits/error.hpp"
#include "samebits/types.hpp"
#include "support/refusal.hpp"

namespace samebits {
namespace {

std::string refused(const std::vector<list_tensor>& tensors) {
  return support::refusal_of([&] { const tensor_list list(tensors); });
}

using support::contains;

TEST(TensorList, DescribesItsTensors) {
  std::vector<float> a(6);
  std::vector<fp16> b(3);
  std::vector<e4m3> c(2);
  const tensor_list list({{view_of(a), "weight"}, {view_of(b)}, {view_of(c), "codes", 7}});
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list.elements(), 11u);
  EXPECT_EQ(list.space(), memory_space::host);
  EXPECT_EQ(list.name(0), "weight");
  EXPECT_EQ(list.name(1), "tensors[1]");
  EXPECT_EQ(list[2].group, 7u);
  EXPECT_EQ(list[2].view.format, format_id::e4m3);
  EXPECT_EQ(backends::data_of(list).rows[2].group, 7u);
  const tensor_list copy = list;
  EXPECT_EQ(&backends::data_of(copy), &backends::data_of(list));
}

/// Where element 7 of rows of 3 lies.
constexpr std::int64_t offset_of_seven(std::int64_t row_stride, std::int64_t col_stride,
                                       bool dense) {
  numerics::list_row row{};
  row.cols = 3;
  row.row_stride = row_stride;
  row.col_stride = col_stride;
  row.dense = dense;
  return numerics::offset_of(row, 7);
}
static_assert(offset_of_seven(0, 0, true) == 7);  // a dense tensor is walked without its strides
static_assert(offset_of_seven(10, -2, false) == 18);

TEST(TensorList, EmptyOnes) {
  const tensor_list none;
  EXPECT_EQ(none.size(), 0u);
  EXPECT_EQ(none.elements(), 0u);
  EXPECT_EQ(backends::data_of(none).tables().chunks, 0u);
  const tensor_list of_nothing(
      {{view_of_codes(format_id::bf16, static_cast<void*>(nullptr), 0, 5)},
       {view_of_codes(format_id::bf16, static_cast<void*>(nullptr), 5, 0)}});
  EXPECT_EQ(of_nothing.size(), 2u);
  EXPECT_EQ(backends::data_of(of_nothing).tables().chunks, 0u);
}

TEST(TensorList, ChunksAreNumberedThrough) {
  const std::vector<std::size_t> counts = {0, 1, 4095, 4096, 4097, 0, 12288, 12289, 0, 5};
  std::vector<std::vector<float>> memory(counts.begin(), counts.end());
  std::vector<matrix_view> views;
  for (std::vector<float>& m : memory) views.push_back(view_of(m));
  const tensor_list list(views);
  const numerics::tensor_tables tables = backends::data_of(list).tables();
  std::uint64_t chunk = 0;
  for (std::size_t t = 0; t < counts.size(); ++t) {
    EXPECT_EQ(tables.rows[t].first_chunk, chunk);
    for (std::size_t first = 0; first < counts[t]; first += 4096) {
      ASSERT_LT(chunk, tables.chunks);
      const numerics::list_chunk c = numerics::chunk_at(tables, chunk++);
      EXPECT_EQ(c.tensor, t);
      EXPECT_EQ(c.first, static_cast<std::int64_t>(first));
      EXPECT_EQ(c.count, static_cast<std::int64_t>(std::min<std::size_t>(4096, counts[t] - first)));
    }
  }
  EXPECT_EQ(chunk, tables.chunks);
}

TEST(TensorList, SizesAre64Bit) {
  // Addresses alone: nothing is read. 2^33 + 5 elements and one more tensor behind them.
  const auto address = [](std::uintptr_t a) { return reinterpret_cast<void*>(a); };
  constexpr std::int64_t many = (std::int64_t{1} << 33) + 5;
  const tensor_list list(
      {{view_of_codes(format_id::fp32, address(1 << 20), 1, many)},
       {view_of_codes(format_id::bf16, address(std::uintptr_t{1} << 40), 3, 1)}});
  const numerics::tensor_tables tables = backends::data_of(list).tables();
  EXPECT_EQ(list.elements(), static_cast<std::uint64_t>(many) + 3);
  ASSERT_EQ(tables.chunks, (std::uint64_t{1} << 21) + 2);
  const numerics::list_chunk last = numerics::chunk_at(tables, tables.chunks - 2);
  EXPECT_EQ(last.tensor, 0u);
  EXPECT_EQ(last.first, std::int64_t{1} << 33);
  EXPECT_EQ(last.count, 5);
  EXPECT_EQ(static_cast<void*>(numerics::element_at(tables.rows[0], many - 1)),
            address((std::uintptr_t{1} << 20) + (static_cast<std::uintptr_t>(many) - 1) * 4));
  EXPECT_EQ(numerics::chunk_at(tables, tables.chunks - 1).tensor, 1u);
}

TEST(TensorList, FindsElementsInAnyStrides) {
  std::vector<std::uint16_t> memory(100);
  const auto check = [&](std::int64_t rows, std::int64_t cols, std::int64_t row_stride,
                         std::int64_t col_stride, bool dense) {
    const matrix_view v = {memory.data(), format_id::fp16, rows, cols, row_stride, col_stride};
    const tensor_list list(std::vector<list_tensor>{{v}});
    const numerics::list_row& row = backends::data_of(list).rows[0];
    EXPECT_EQ(row.dense, dense) << rows << ' ' << cols << ' ' << row_stride << ' ' << col_stride;
    for (std::int64_t i = 0; i < rows * cols; ++i) {
      const std::int64_t offset = i / cols * row_stride + i % cols * col_stride;
      EXPECT_EQ(static_cast<void*>(numerics::element_at(row, i)), memory.data() + offset);
    }
  };
  check(3, 4, 4, 1, true);
  check(3, 4, 5, 1, false);
  check(3, 4, 1, 3, false);
  check(3, 4, 8, 2, false);
  check(1, 7, 0, 1, true);
  check(1, 7, 0, 2, false);
  check(7, 1, 1, 9, true);
  check(7, 1, 2, 1, false);
  check(1, 1, 0, 0, true);
}

TEST(TensorList, RefusesByName) {
  std::vector<float> a(4), b(4);
  std::vector<double> wide(2);
  const list_tensor good = {view_of(a), "a"};
  matrix_view bad = view_of(b);
  const auto refusal = [&] { return refused({good, {bad, "b"}}); };

  EXPECT_TRUE(contains(refused({good, {view_of(wide), "w"}}), "tensors[1] 'w': format must be"));
  bad.data = nullptr;
  EXPECT_TRUE(contains(refusal(), "tensors[1] 'b': data is null"));
  bad = view_of(b);
  bad.cols = -1;
  EXPECT_TRUE(contains(refusal(), "tensors[1] 'b': sizes must be >= 0"));
  bad = view_of(b);
  bad.row_stride = -4;
  EXPECT_TRUE(contains(refusal(), "tensors[1] 'b': strides must be >= 0"));
  bad = view_of(b);
  bad.col_stride = 0;
  EXPECT_TRUE(contains(refusal(), "tensors[1] 'b': elements share memory"));
  EXPECT_TRUE(contains(refused({good, {on_device(view_of(b)), "b"}}),
                       "tensors[1] 'b': must lie in the same memory as tensors[0]"));
  EXPECT_EQ(refused({good, {view_of(b), "b"}}), "");
}

TEST(TensorList, RefusesSharedMemory) {
  std::vector<float> a(8), b(8);
  const list_tensor tied[] = {{view_of(a), "in"}, {view_of(b)}, {view_of(a), "out"}};
  EXPECT_TRUE(contains(refused({tied[0], tied[1], tied[2]}),
                       "tensors[0] 'in' and tensors[2] 'out' begin at the same element"));
  EXPECT_TRUE(contains(refused({{view_of(a.data() + 3, 1, 2)}, {view_of(b)}, {view_of(a)}}),
                       "tensors[0] and tensors[2] overlap"));
  EXPECT_EQ(refused({{view_of(a.data(), 1, 4)}, {view_of(a.data() + 4, 1, 4)}}), "");
  // Columns of one matrix.
  EXPECT_EQ(refused({{view_of(a.data(), 4, 1, 2)}, {view_of(a.data() + 1, 4, 1, 2)}}), "");
  // No elements, no memory.
  EXPECT_EQ(refused({{view_of(a)}, {view_of(a.data(), 0, 3)}, {view_of(a.data() + 1, 2, 0)}}), "");
}

/// Its tables lie where the tensors do; this program has no backend that could put them there.
TEST(TensorList, NeedsADeviceForTensorsOnIt) {
  std::vector<float> a(4);  // an address is enough: nothing is read
  EXPECT_THROW(tensor_list(std::vector<list_tensor>{{on_device(view_of(a))}}), unsupported);
}

}  // namespace
}  // namespace samebits
