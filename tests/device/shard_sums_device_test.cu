// How the decision of a scaler over shards combines partial sums: tensors of up to 71 slots, by
// both arithmetics, against the tree level by level.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "backends/cuda/instructions/hardware.cuh"
#include "backends/cuda/training/shard_memory.cuh"
#include "backends/dispatch/access.hpp"
#include "device/device_copy.hpp"
#include "numerics/tensor_list/inspect.hpp"
#include "samebits/distributed.hpp"
#include "samebits/testkit/ranks.hpp"
#include "support/level_sum.hpp"

namespace samebits::cuda {
namespace {

using support::check_cuda;
using support::level_by_level;

template <class Arithmetic>
__global__ void __launch_bounds__(total_threads)
    squares_kernel(const shard_tables tables, std::uint64_t* out) {
  __shared__ typename block_tree<Arithmetic, total_threads>::scratch scratch;
  const std::uint64_t squares = combined_squares<Arithmetic>(tables, scratch);
  if (threadIdx.x == 0) *out = squares;
}

template <class Arithmetic>
std::uint64_t squares_of(const shard_tables& tables) {
  const support::device_bytes out(sizeof(std::uint64_t));
  squares_kernel<Arithmetic><<<1, total_threads>>>(tables, out.as<std::uint64_t>());
  check_cuda(cudaGetLastError(), "squares_kernel");
  return support::downloaded(out.as<std::uint64_t>());
}

/// Sums of squares of chunks, in all binades around one; rarely Inf or NaN.
std::vector<double> random_chunks(std::size_t count, std::mt19937_64& random) {
  std::vector<double> chunks(count);
  for (double& c : chunks) {
    c = std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 40) - 70);
  }
  if (count != 0 && random() % 30 == 0) {
    chunks[random() % count] =
        random() % 2 == 0 ? std::numeric_limits<double>::infinity() : std::nan("");
  }
  return chunks;
}

/// A list whose tensors are cut for n ranks, in order.
struct list {
  std::vector<std::vector<double>> chunks;
  std::vector<std::vector<std::size_t>> borders;  ///< by tensor, n + 1

  list(std::span<const std::size_t> sizes, int n, std::mt19937_64& random) {
    for (const std::size_t size : sizes) {
      chunks.push_back(random_chunks(size, random));
      borders.push_back({0, size});
      for (int i = 1; i < n; ++i) borders.back().push_back(random() % (size + 1));
      std::sort(borders.back().begin(), borders.back().end());
    }
  }
  [[nodiscard]] double sum() const {
    std::vector<double> sums;
    for (const auto& c : chunks) sums.push_back(level_by_level(c));
    return level_by_level(sums);
  }
};

/// The layout of a rank, of tensors that nobody reads.
shard_layout layout_of(communicator& ranks, const list& l, std::byte* memory) {
  const auto r = static_cast<std::size_t>(ranks.rank());
  std::vector<matrix_view> views;
  std::vector<std::uint64_t> first;
  for (const auto& b : l.borders) {
    const auto count = static_cast<std::int64_t>(4096 * (b[r + 1] - b[r]));
    views.push_back({count == 0 ? nullptr : memory, format_id::e4m3, 1, count, count, 1});
    first.push_back(4096 * b[r]);
    memory += count;
  }
  return shard_layout(ranks, tensor_list(views), first);
}

/// What a rank sends.
std::vector<std::uint64_t> message_of(const shard_layout& layout, const list& l) {
  const backends::shard_data& d = backends::data_of(layout);
  const auto r = static_cast<std::size_t>(d.rank);
  std::vector<double> own;
  for (std::size_t t = 0; t < l.chunks.size(); ++t) {
    own.insert(own.end(), l.chunks[t].begin() + static_cast<std::ptrdiff_t>(l.borders[t][r]),
               l.chunks[t].begin() + static_cast<std::ptrdiff_t>(l.borders[t][r + 1]));
  }
  std::vector<std::uint64_t> message(d.message_words, ~std::uint64_t{0});
  for (std::size_t i = 0; i < d.own.size(); ++i) {
    numerics::square_sum sum;
    for (std::uint64_t c = 0; c < d.own[i].chunks; ++c) {
      sum.add(std::bit_cast<std::uint64_t>(own[d.own[i].first_chunk + c]));
    }
    message[backends::shard_data::first_value + i] = sum.value();
  }
  return message;
}

TEST(ShardSums, AreTheTreeOverAllChunks) {
  constexpr std::size_t sizes[] = {0,    1, 33 * 1024 + 5,   1024, 70 * 1024 + 1, 32 * 1024,
                                   2049, 3, 31 * 1024 + 1023};
  std::size_t all = 0;
  for (const std::size_t size : sizes) all += size;
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(4096 * all);
  std::mt19937_64 random(1);
  int finite = 0;
  for (int trial = 0; trial < 12; ++trial) {
    const int n = std::array{1, 2, 3, 8}[static_cast<std::size_t>(trial % 4)];
    const list l(sizes, n, random);
    std::vector<std::uint64_t> received;
    std::optional<shard_layout> layout;
    testkit::simulate_ranks(n, [&](communicator& ranks) {
      const shard_layout mine = layout_of(ranks, l, memory.get());
      const std::vector<std::uint64_t> sent = message_of(mine, l);
      std::vector<std::uint64_t> gathered(sent.size() * static_cast<std::size_t>(n));
      ranks.all_gather(std::as_bytes(std::span(sent)), std::as_writable_bytes(std::span(gathered)));
      if (ranks.rank() != 0) return;
      layout = mine;
      received = std::move(gathered);
    });
    const shard_memory tables(backends::data_of(*layout));
    check_cuda(cudaMemcpy(tables.tables().received, received.data(), 8 * received.size(),
                          cudaMemcpyHostToDevice),
               "messages to the device");
    const auto wanted = std::bit_cast<std::uint64_t>(l.sum());
    for (int again = 0; again < 2; ++again) {  // the sums' memory is used again
      ASSERT_EQ(squares_of<hardware>(tables.tables()), wanted) << n << " ranks";
      ASSERT_EQ(squares_of<numerics::by_definition>(tables.tables()), wanted) << n << " ranks";
    }
    finite += std::isfinite(l.sum()) ? 1 : 0;
  }
  EXPECT_GT(finite, 4);
}

}  // namespace
}  // namespace samebits::cuda
