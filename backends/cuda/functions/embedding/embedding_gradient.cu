// The gradient of an embedding's weights on the CUDA backends: rows are sorted by word, then the rows
// of each word are added in the order of PyTorch's deterministic kernels.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "backends/cuda/common/workspace.hpp"
#include "backends/cuda/functions/embedding/sorted_rows.cuh"
#include "backends/cuda/functions/functions.hpp"
#include "backends/cuda/functions/rows/row_formats.cuh"
#include "backends/cuda/functions/rows/row_operands.cuh"
#include "backends/dispatch/visit.hpp"
#include "numerics/hardware/torch_operators/embedding_gradient.hpp"

namespace samebits::cuda {
namespace {

namespace torch = numerics::torch_2_11;

constexpr const char* what = "embedding gradient";

struct embedding_launch {
  row_operand grad, out;
  const std::uint32_t* words;  ///< sorted
  const std::int64_t* rows;
  std::int64_t count, cols;
  std::uint32_t none;  ///< the word of rows without one
  format_id format;
  bool few;  ///< torch::few_indices()
};

/// Computes the rows of `out` that have a word in the call; all others are zeros. blockDim.x threads
/// a word, of V columns each; blockDim.y words a block. Cost: one read of grad.
template <class Numbers, int V>
__global__ void __launch_bounds__(128) add_rows_of_words(const embedding_launch d) {
  if constexpr (Numbers::compiled) {
    using word = typename Numbers::word;
    constexpr int bytes = Numbers::bytes, at_once = 8;
    const Numbers numbers(d.format);
    const std::int64_t begin = std::int64_t{blockIdx.x} * blockDim.y + threadIdx.y;
    const std::int64_t col = (std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x) * V;
    if (begin >= d.count || col >= d.cols) return;
    const std::uint32_t own = d.words[begin];
    if (own == d.none || (begin > 0 && d.words[begin - 1] == own)) return;
    const std::int64_t* const rows = d.rows + begin;
    const std::int64_t left = d.count - begin;
    word total[V], part[V];
#pragma unroll
    for (int k = 0; k < V; ++k) total[k] = part[k] = 0u;
    const auto add_part = [&] {
#pragma unroll
      for (int k = 0; k < V; ++k) {
        const word sum = add(total[k], d.few ? numbers.stored(part[k]) : part[k]);
        total[k] = d.few ? numbers.stored(sum) : sum;
        part[k] = 0u;
      }
    };
    std::int64_t first = 0;
    for (std::int64_t i = 0; i < left && d.words[begin + i] == own; i += at_once) {
      row_codes<bytes, V> x[at_once];
      int count = 0;
#pragma unroll
      for (int k = 0; k < at_once; ++k) {
        if (i + k >= left || d.words[begin + i + k] != own) continue;
        x[k] = operand_row<bytes>(d.grad, rows[i + k]).template load<V>(col);
        count = k + 1;
      }
#pragma unroll
      for (int k = 0; k < at_once; ++k) {
        if (k >= count) continue;
        if (!torch::in_part(d.few, rows, first, i + k)) {
          add_part();
          first = i + k;
        }
#pragma unroll
        for (int c = 0; c < V; ++c) part[c] = add(part[c], numbers.value(x[k].code(c)));
      }
    }
    add_part();
    operand_row<bytes>(d.out, own).template store<V>(col, numbers.codes(total));
  }
}

template <class Numbers, int V>
void launch_sums(const embedding_launch& d, cudaStream_t stream) {
  constexpr unsigned threads = 128;
  const std::int64_t groups = (d.cols + V - 1) / V;
  const auto width = static_cast<unsigned>(
      std::bit_ceil(static_cast<std::uint64_t>(std::min<std::int64_t>(groups, threads))));
  const unsigned height = threads / width;
  const dim3 grid(static_cast<unsigned>((d.count + height - 1) / height),
                  static_cast<unsigned>((groups + width - 1) / width));
  launch_kernel(what, add_rows_of_words<Numbers, V>, grid, dim3(width, height), 0, stream, d);
}

/// Sorts the rows, then calls launch(parameters).
template <class Launch>
void enqueue(const backends::device_embedding_call& call, void* on, const Launch& launch) {
  const auto stream = static_cast<cudaStream_t>(on);
  const matrix_view& out = call.out;
  const auto bytes = static_cast<std::size_t>(storage_bytes(out.format));
  const std::int64_t pitch = std::max(out.row_stride, out.cols);  // of one row any stride
  check(cudaMemset2DAsync(out.data, static_cast<std::size_t>(pitch) * bytes, 0,
                          static_cast<std::size_t>(out.cols) * bytes,
                          static_cast<std::size_t>(out.rows), stream),
        what);
  const std::int64_t count = call.grad.rows;
  if (count == 0) return;
  const workspace memory(nullptr, rows_of_words({}, count).bytes, stream, what);
  const rows_of_words rows(memory_layout(memory.data()), count);
  const auto none = static_cast<std::uint32_t>(out.rows);
  const int sorted = sort_rows(rows, call.indices, call.padding, none, stream);
  launch(embedding_launch{operand_of(call.grad), operand_of(out), rows.words[sorted],
                          rows.rows[sorted], count, out.cols, none, out.format, call.few});
}

}  // namespace

bool has_embedding_gradient(const backends::device_embedding_call& call) {
  constexpr std::int64_t most = std::int64_t{1} << 31;
  const matrix_view& out = call.out;
  const bool dense = out.cols <= 1 || out.col_stride == 1;
  return dense && (out.rows <= 1 || out.row_stride >= out.cols) && out.rows < most &&
         call.grad.rows < most;
}

void enqueue_embedding_gradient(const backends::device_embedding_call& call, arithmetic by,
                                void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  const bool units = by_units(by);
  enqueue(call, stream, [&](const embedding_launch& d) {
    if (!units) return launch_sums<definition_rows, 1>(d, on);
    backends::visit_quantized(d.format, [&]<format_id Format>() {
      using numbers = instruction_rows<Format>;
      constexpr int vector = 16 / numbers::bytes;
      if (d.cols % vector == 0 && d.grad.has_vectors(16) && d.out.has_vectors(16)) {
        launch_sums<numbers, vector>(d, on);
      } else {
        launch_sums<numbers, 1>(d, on);
      }
    });
  });
}

}  // namespace samebits::cuda
