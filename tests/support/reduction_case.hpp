// Random gradient reductions: lists of tensors with codes of every rank's own, in memory with
// guards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iosfwd>
#include <utility>
#include <vector>

#include "samebits/communicator.hpp"
#include "samebits/distributed.hpp"

namespace samebits::support {

/// A tensor with gaps between its rows, or between all elements, of which every rank has a copy
/// with codes of its own.
struct reduction_tensor {
  format_id format;
  std::int64_t rows, cols, row_stride, col_stride;
  std::vector<std::vector<std::uint64_t>> codes;  ///< per rank, in the order (row, column)
};

struct reduction_case {
  int ranks;
  std::vector<reduction_tensor> tensors;
  gradient_reduction how;
};

std::ostream& operator<<(std::ostream& out, const reduction_case& c);

/// Any communication dtype, formats, rounding and factor; up to 3 rows of up to `elements` elements
/// a tensor.
reduction_case draw_reduction(std::uint64_t seed, int ranks, int tensors, int elements);

/// One rank's memory for a tensor, guard bytes in the gaps.
struct reduction_buffer {
  std::vector<std::byte> bytes;
  matrix_view view;

  reduction_buffer(const reduction_tensor& t, int rank) {
    const auto size = static_cast<std::size_t>(storage_bytes(t.format));
    bytes.assign(static_cast<std::size_t>(t.rows * t.row_stride + 1) * size, std::byte{0xA5});
    view = view_of_codes(t.format, bytes.data(), t.rows, t.cols);
    view.row_stride = t.row_stride;
    view.col_stride = t.col_stride;
    for (std::size_t i = 0; i < t.codes[static_cast<std::size_t>(rank)].size(); ++i) {
      std::memcpy(at(t, i), &t.codes[static_cast<std::size_t>(rank)][i], size);
    }
  }
  std::byte* at(const reduction_tensor& t, std::size_t i) {
    const auto row = static_cast<std::int64_t>(i) / t.cols;
    const auto col = static_cast<std::int64_t>(i) % t.cols;
    return bytes.data() + (row * t.row_stride + col * t.col_stride) * storage_bytes(t.format);
  }
};

/// The memory of a rank's tensors after the call.
using reduction_image = std::vector<std::vector<std::byte>>;

/// Those of all ranks, on host memory; `simulate` is testkit::simulate_ranks.
template <class Simulate>
std::vector<reduction_image> reduced_on_host(const reduction_case& c, const Simulate& simulate) {
  std::vector<reduction_image> images(static_cast<std::size_t>(c.ranks));
  simulate(c.ranks, [&](communicator& ranks) {
    std::vector<reduction_buffer> buffers;
    for (const reduction_tensor& t : c.tensors) buffers.emplace_back(t, ranks.rank());
    std::vector<matrix_view> views;
    for (const reduction_buffer& b : buffers) views.push_back(b.view);
    reduce_gradients(ranks, views, c.how);
    for (reduction_buffer& b : buffers) {
      images[static_cast<std::size_t>(ranks.rank())].push_back(std::move(b.bytes));
    }
  });
  return images;
}

}  // namespace samebits::support
