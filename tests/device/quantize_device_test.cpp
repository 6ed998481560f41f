// Quantization on each CUDA backend where random cases do not reach: workspaces and flags that
// change between the replays of a graph, long lists.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "device/device_test.hpp"
#include "engine/cases/quantize.hpp"
#include "samebits/quantize_list.hpp"
#include "samebits/samebits.hpp"

namespace samebits::support {
namespace {

class QuantizeDevice : public DeviceTest {};

matrix_view placed(const guarded_copy& memory, format_id f, std::int64_t rows, std::int64_t cols) {
  return on_device(view_of_codes(f, memory.data(), rows, cols));
}

/// A matrix of the engine's.
strided_buffer random_matrix(format_id from, std::int64_t rows, std::int64_t cols) {
  quantize_case c{.from = from, .in = dense_layout(rows, cols), .content = 11};
  return matrix_of(c);
}

/// Zeros alone have no smallest magnitude above zero, alone or beside rows of numbers; and what is
/// captured into a graph counts at each replay, in a workspace of the caller's or the stream's.
TEST_P(QuantizeDevice, CountsZerosAndInGraphs) {
  constexpr std::int64_t rows = 96, cols = 256;
  for (const format_id from : {format_id::fp32, format_id::fp16, format_id::bf16}) {
    for (const tile_shape tile : {tile_shape{1, 128}, tile_shape{32, 32}, tile_shape{0, 0}}) {
      for (const bool own_workspace : {false, true}) {
        strided_buffer data = random_matrix(from, rows, cols);
        std::vector<std::uint8_t> codes(rows * cols);
        quantize_statistics got, expected;
        const guarded_copy in(data.view()), out(codes.data(), codes.size()),
            statistics(&got, sizeof got);
        const quantize_outputs to{
            .codes = placed(out, format_id::e4m3, rows, cols),
            .statistics = static_cast<quantize_statistics*>(statistics.data())};
        quantize_options options{.tile = tile};
        const matrix_view device_in = placed(in, from, rows, cols);
        std::vector<std::byte> memory(quantize_workspace(device_in, to, options, here()));
        const guarded_copy workspace(memory.data(), memory.size());
        if (own_workspace) {
          options.workspace = {static_cast<std::byte*>(workspace.data()), memory.size()};
        }
        const captured_graph graph(stream_.get(),
                                   [&] { quantize(device_in, to, options, here()); });
        for (const std::int64_t zero_rows : {rows, rows / 2}) {
          strided_buffer part = data;
          for (std::int64_t i = 0; i < zero_rows * cols; ++i) part.store(i, 0);
          check_cuda(cudaMemcpy(in.data(), part.view().data, spanned_bytes(part.view()),
                                cudaMemcpyHostToDevice),
                     "to the device");
          graph.replay();
          statistics.copy_back();
          quantize(part.view(),
                   {.codes = view_of_codes(format_id::e4m3, codes.data(), rows, cols),
                    .statistics = &expected},
                   {.tile = tile}, find_executor("reference"));
          EXPECT_TRUE(got == expected) << name(from) << " " << tile.rows << " x " << tile.cols
                                       << ", " << zero_rows << " rows of zeros: min_nonzero "
                                       << got.min_nonzero << ", expected " << expected.min_nonzero;
          if (zero_rows == rows) {
            EXPECT_EQ(std::bit_cast<std::uint32_t>(got.min_nonzero), 0u);
          }
        }
        workspace.copy_back();  // throws where something was written beside it
      }
    }
  }
}

TEST_P(QuantizeDevice, RefusesAWorkspaceThatIsTooSmall) {
  std::vector<std::byte> zeros(64 * 128 * 2);
  quantize_statistics counted;
  const guarded_copy in(zeros.data(), zeros.size()), codes(zeros.data(), zeros.size() / 2),
      statistics(&counted, sizeof counted);
  const matrix_view from = placed(in, format_id::bf16, 64, 128);
  const quantize_outputs to{.codes = placed(codes, format_id::e4m3, 64, 128),
                            .statistics = static_cast<quantize_statistics*>(statistics.data())};
  const std::size_t bytes = quantize_workspace(from, to, {}, here());
  ASSERT_GT(bytes, 0u);
  auto* const memory = static_cast<std::byte*>(in.data());
  EXPECT_THROW(quantize(from, to, {.workspace = {memory, bytes - 1}}, here()), invalid_argument);
  EXPECT_THROW(quantize(from, to, {.workspace = {memory + 8, bytes}}, here()), invalid_argument);
}

/// The flag is read at each replay, by a call on a matrix and by one on a list.
TEST_P(QuantizeDevice, IsCapturedAndSkippedByTheFlag) {
  constexpr std::int64_t rows = 64, cols = 256, tensors = 3;
  std::vector<bf16> x(tensors * rows * cols, bf16(1.5f));
  std::vector<std::uint8_t> codes(x.size());
  std::uint32_t skip = 0;
  const guarded_copy in(x.data(), x.size() * 2), out(codes.data(), codes.size()),
      flag(&skip, sizeof skip);
  std::vector<quantize_item> items;
  for (std::int64_t i = 0; i < tensors; ++i) {
    quantize_item item{.in = placed(in, format_id::bf16, rows, cols),
                       .outputs = {.codes = placed(out, format_id::e4m3, rows, cols)}};
    item.in.data = static_cast<const std::byte*>(in.data()) + i * rows * cols * 2;
    item.outputs.codes.data = static_cast<std::byte*>(out.data()) + i * rows * cols;
    items.push_back(item);
  }
  for (const tile_shape tile : {tile_shape{1, 32}, tile_shape{1, 0}, tile_shape{0, 0}}) {
    const quantize_options options{
        .tile = tile, .skip_if_nonzero = static_cast<const std::uint32_t*>(flag.data())};
    for (const bool listed : {false, true}) {
      const captured_graph graph(stream_.get(), [&, list = quantize_list(items, options)] {
        if (listed) return quantize(list, here());
        for (const quantize_item& i : items) quantize(i.in, i.outputs, options, here());
      });
      for (const std::uint32_t skipped : {1u, 0u}) {
        check_cuda(cudaMemset(out.data(), 0x11, codes.size()), "cudaMemset");
        check_cuda(cudaMemcpy(flag.data(), &skipped, sizeof skipped, cudaMemcpyHostToDevice),
                   "flag");
        graph.replay();
        out.copy_back();
        EXPECT_EQ(std::ranges::count(codes, skipped != 0 ? 0x11 : 0x7E),
                  static_cast<std::ptrdiff_t>(codes.size()))
            << "listed " << listed << ", flag " << skipped;
      }
    }
  }
}

/// Three thousand small tensors and an empty list: kernel arguments hold no table.
TEST_P(QuantizeDevice, ListsOfAnyLength) {
  EXPECT_NO_THROW(quantize(quantize_list(), here()));
  EXPECT_NO_THROW(quantize(quantize_list({}, quantize_options{})));
  expect_host_bits(long_quantize_lists());
}

INSTANTIATE_TEST_SUITE_P(Backends, QuantizeDevice, cuda_backends(), cuda_backend_name);

}  // namespace
}  // namespace samebits::support
