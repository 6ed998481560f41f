// Norms of a list's tensors on host backends: adds the squares of each chunk by a backend's kernel.
#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/dispatch/calls/sums.hpp"
#include "backends/reference/functions/function_range.hpp"
#include "backends/threads/parts.hpp"
#include "numerics/hardware/torch_operators/foreach_norm.hpp"

namespace samebits::backends {
namespace {

namespace torch = numerics::torch_2_11;

struct chunk {
  const const_matrix_view* tensor;
  std::int64_t first;  ///< element of the tensor, in C order
};

/// Adds the squares of elements [first, first + n) of a tensor, in C order, to sums[0..n).
void add_squares(const const_matrix_view& v, std::int64_t first, std::int64_t n,
                 std::uint32_t* sums, const sum_kernels& by) {
  const std::int64_t bytes = spec_of(v.format).storage_bits / 8;
  std::byte codes[torch::foreach_sums * sizeof(std::uint32_t)];
  const bool dense = v.col_stride == 1 && (v.row_stride == v.cols || v.rows == 1);
  const std::byte* from = static_cast<const std::byte*>(v.data) + first * bytes;
  for (std::int64_t i = 0; !dense && i < n; ++i) {
    const std::int64_t row = (first + i) / v.cols, col = (first + i) % v.cols;
    std::memcpy(codes + i * bytes, row_of(v, row, col).data, static_cast<std::size_t>(bytes));
  }
  by.add(sums, dense ? from : codes, n, v.format, true);
}

std::uint32_t sum_of(const chunk& c, const sum_kernels& by) {
  std::uint32_t in_memory[torch::foreach_sums] = {}, in_place[torch::foreach_sums];
  const std::int64_t rest = c.tensor->rows * c.tensor->cols - c.first;
  const std::int64_t count = std::min(rest, torch::foreach_chunk);
  for (std::int64_t i = 0; i < count; i += torch::foreach_sums) {
    const std::int64_t n = std::min<std::int64_t>(torch::foreach_sums, count - i);
    add_squares(*c.tensor, c.first + i, n, in_memory, by);
  }
  const bool vectors = torch::reads_vectors(rest);
  for (int i = 0; i < torch::foreach_sums; ++i) {
    in_place[torch::foreach_place(vectors, i)] = in_memory[i];
  }
  return torch::foreach_block_sum(in_place, torch::foreach_sums / torch::foreach_threads);
}

}  // namespace

void foreach_norm_on_threads(std::span<const const_matrix_view> tensors, std::uint32_t* norms,
                             const executor& where, const sum_kernels& sums) {
  std::vector<chunk> chunks;
  std::vector<std::size_t> ends;
  for (const const_matrix_view& v : tensors) {
    for (std::int64_t i = 0; i < v.rows * v.cols; i += torch::foreach_chunk) {
      chunks.push_back({&v, i});
    }
    ends.push_back(chunks.size());
  }
  std::vector<std::uint32_t> of_chunks(chunks.size());
  for_each_part(
      static_cast<std::int64_t>(chunks.size()), where.threads,
      [&](element_range range) {
        sums.in_scope([&] {
          for (auto i = static_cast<std::size_t>(range.begin);
               i < static_cast<std::size_t>(range.end); ++i) {
            of_chunks[i] = sum_of(chunks[i], sums);
          }
        });
      },
      items_worth_a_thread(torch::foreach_chunk));
  std::size_t begin = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    norms[i] = torch::foreach_norm_of(of_chunks.data() + begin,
                                      static_cast<std::int64_t>(ends[i] - begin));
    begin = ends[i];
  }
}

}  // namespace samebits::backends
