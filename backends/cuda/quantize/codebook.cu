// Codebooks on CUDA: absmaxes and codes of blocks, and their numbers.
//
// Numbers are written by vectors of 16 bytes where arrays are aligned and blocks are powers of two. All
// else is computed element by element.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "backends/cuda/common/cells.cuh"
#include "backends/cuda/common/codes.cuh"
#include "backends/cuda/common/divisor.cuh"
#include "backends/cuda/common/launch.cuh"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/instructions/hardware.cuh"
#include "backends/cuda/instructions/warp.cuh"
#include "backends/cuda/quantize/quantize.hpp"
#include "backends/cuda/quantize/value_vectors.cuh"
#include "backends/cuda/tensor_list/list_codes.cuh"
#include "backends/dispatch/visit.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/quantize/codebook.hpp"

namespace samebits::cuda {
namespace {

/// The elements of a call, and the blocks and the book they belong to.
struct blocks_task {
  std::byte* elements;
  format_spec format;
  std::uint64_t count;
  divisor block;
  codebook book;
  codebook_steps steps;

  blocks_task(const const_matrix_view& v, const codebook_options& o)
      : elements(static_cast<std::byte*>(const_cast<void*>(v.data))),
        format(spec_of(v.format)),
        count(size_of(v)),
        block(o.block),
        book(o.book),
        steps(o.steps) {}

  [[nodiscard]] std::uint64_t block_count() const { return (count - 1) / block.by + 1; }
  [[nodiscard]] __device__ int bytes() const { return format.storage_bits / 8; }
  [[nodiscard]] __device__ const numerics::codebook_table& table() const {
    return numerics::codebook_of(book, steps);
  }
};

struct quantize_blocks_task : blocks_task {
  std::uint8_t* codes;
  std::uint32_t* absmax;

  __device__ std::uint32_t element(std::uint64_t i) const {
    const std::uint64_t code = load_code(elements + i * bytes(), bytes());
    return numerics::decode<std::uint32_t>(format, static_cast<std::uint32_t>(code));
  }
  template <class Arithmetic>
  __device__ numerics::codebook_scale scale_of(std::uint64_t i, std::uint32_t largest) const {
    return numerics::codebook_scale_of<Arithmetic>(book, steps, largest,
                                                   (i + 1) * block.by <= count);
  }
  /// The code of element i. codebook_scale_of() of the stored absmax is that of the elements' absmax.
  template <class Arithmetic>
  __device__ std::uint32_t code(std::uint64_t i) const {
    const std::uint64_t b = block.quotient(i);
    return numerics::block_code<Arithmetic>(book, steps, table(),
                                            scale_of<Arithmetic>(b, absmax[b]), element(i));
  }
};

/// Writes the absmax of each block. One warp per block.
template <class Arithmetic>
__global__ void __launch_bounds__(block_threads) absmax_kernel(const quantize_blocks_task t) {
  const std::uint64_t warps = std::uint64_t{gridDim.x} * (block_threads / 32);
  const unsigned lane = threadIdx.x % 32;
  const std::uint64_t last = t.block.quotient(t.count - 1);  // its product by a block's size fits
  for (std::uint64_t b = (std::uint64_t{blockIdx.x} * block_threads + threadIdx.x) / 32; b <= last;
       b += warps) {
    std::uint32_t a = 0;
    const std::uint64_t first = b * t.block.by;
    const std::uint64_t end = first + min(t.block.by, t.count - first);
    for (std::uint64_t i = first + lane; i < end; i += 32) {
      a = numerics::block_absmax(t.book, t.steps, a, t.element(i));
    }
    for (int distance = 16; distance > 0; distance /= 2) {  // a NaN that counts is the largest
      a = max(a, __shfl_down_sync(all_lanes, a, distance));
    }
    if (lane == 0) t.absmax[b] = t.scale_of<Arithmetic>(b, a).stored;
  }
}

/// Writes the codes by the absmaxes. One thread per byte and step.
template <class Arithmetic>
__global__ void __launch_bounds__(block_threads) codes_kernel(const quantize_blocks_task t) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * block_threads;
  const bool pairs = t.book != codebook::dynamic8;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * block_threads + threadIdx.x;
       i < (pairs ? (t.count + 1) / 2 : t.count); i += step) {
    std::uint32_t code = t.code<Arithmetic>(pairs ? 2 * i : i);
    if (pairs) {
      const bool padded = 2 * i + 1 == t.count;
      code = code << 4 |
             (padded ? numerics::codebook_code(t.table(), 0) : t.code<Arithmetic>(2 * i + 1));
    }
    t.codes[i] = static_cast<std::uint8_t>(code);
  }
}

struct dequantize_blocks_task : blocks_task {
  const std::uint8_t* codes;
  const std::uint32_t* absmax;
  const std::uint8_t* codes_of_absmax;  ///< null without double quantization
  divisor block_of_absmax;
  std::uint32_t offset;

  /// The absmax of the block of element i.
  template <class Arithmetic>
  __device__ __forceinline__ std::uint32_t absmax_of(std::uint64_t i) const {
    const std::uint64_t b = block.quotient(i);
    if (codes_of_absmax == nullptr) return absmax[b];
    const std::uint32_t number = numerics::dynamic8_table.numbers[codes_of_absmax[b]];
    return numerics::restored_absmax<Arithmetic>(number, absmax[block_of_absmax.quotient(b)],
                                                 offset);
  }
};

/// Writes the numbers of elements from `first` on. One element per thread and step.
template <class Arithmetic>
__global__ void __launch_bounds__(block_threads)
    numbers_kernel(const dequantize_blocks_task t, std::uint64_t first) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * block_threads;
  for (std::uint64_t i = first + std::uint64_t{blockIdx.x} * block_threads + threadIdx.x;
       i < t.count; i += step) {
    const std::uint32_t code = t.book == codebook::dynamic8 ? t.codes[i]
                               : i % 2 == 0                 ? t.codes[i / 2] >> 4
                                                            : t.codes[i / 2] & 15;
    const std::uint32_t x =
        Arithmetic::product(t.table().numbers[code], t.absmax_of<Arithmetic>(i));
    store_code(t.elements + i * t.bytes(), t.bytes(),
               numerics::encode<std::uint32_t>(t.format, cast_rule{}, x, 0).code);
  }
}

/// Elements of the vectors of a thread block.
template <format_id F>
inline constexpr int tile_elements_of = vector_elements_of<F>* vectors_in_flight* block_threads;

/// A call in vectors; blocks of elements and of absmaxes have sizes that are powers of two.
template <int CodeBits>
struct vectors_task : dequantize_blocks_task {
  std::uint32_t numbers[1 << CodeBits];

  /// The absmaxes of the blocks of elements. Loads that do not depend on each other come together.
  __device__ __forceinline__ void absmaxes_of(const std::uint64_t (&elements)[vectors_in_flight],
                                              std::uint32_t (&a)[vectors_in_flight]) const {
    if (codes_of_absmax == nullptr) {
#pragma unroll
      for (int k = 0; k < vectors_in_flight; ++k) a[k] = absmax[elements[k] >> block.shift];
      return;
    }
    std::uint32_t code[vectors_in_flight], number[vectors_in_flight];
#pragma unroll
    for (int k = 0; k < vectors_in_flight; ++k) {
      code[k] = codes_of_absmax[elements[k] >> block.shift];
      a[k] = absmax[elements[k] >> block.shift >> block_of_absmax.shift];
    }
#pragma unroll
    for (int k = 0; k < vectors_in_flight; ++k) {
      number[k] = numerics::dynamic8_table.numbers[code[k]];
    }
#pragma unroll
    for (int k = 0; k < vectors_in_flight; ++k) {
      a[k] = numerics::restored_absmax<hardware>(number[k], a[k], offset);
    }
  }
};

/// Writes whole tiles by the GPU's instructions. One thread block per tile_elements_of<F> elements.
/// Requires: output aligned to 16 bytes, codes to the bytes of one vector's codes; blocks of whole
/// vectors.
/// Shared memory: the numbers of all codes; those of 16 codes lie in different banks.
template <format_id F, int CodeBits>
__global__ void __launch_bounds__(block_threads)
    number_vectors_kernel(const __grid_constant__ vectors_task<CodeBits> t) {
  constexpr int length = vector_elements_of<F>;
  using code_word = typename samebits::detail::storage_of<length * CodeBits>::type;
  const std::uint64_t first =
      std::uint64_t{blockIdx.x} * (block_threads * vectors_in_flight) + threadIdx.x;
  code_word words[vectors_in_flight];
  std::uint64_t elements[vectors_in_flight];
  std::uint32_t absmax[vectors_in_flight];
#pragma unroll
  for (int k = 0; k < vectors_in_flight; ++k) {
    words[k] = __ldcs(reinterpret_cast<const code_word*>(t.codes) + first + k * block_threads);
    elements[k] = (first + k * block_threads) * length;
  }
  t.absmaxes_of(elements, absmax);
  __shared__ std::uint32_t numbers[1 << CodeBits];
  if (threadIdx.x < 1 << CodeBits) numbers[threadIdx.x] = t.numbers[threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < vectors_in_flight; ++k) {
    store_numbers<F, CodeBits>(numbers, words[k], absmax[k],
                               t.elements + (first + k * block_threads) * 16);
  }
}

/// Enqueues the whole tiles of a call, if it has vectors. Returns the number of their elements.
template <format_id F, int CodeBits>
std::uint64_t launch_vectors(const dequantize_blocks_task& t, cudaStream_t stream) {
  constexpr std::uint64_t length = vector_elements_of<F>;
  const std::uint64_t tiles = t.count / tile_elements_of<F>;
  if (tiles == 0 || tiles > 0x7FFFFFFF || !is_aligned(t.elements, 16) ||
      !is_aligned(t.codes, length * CodeBits / 8) || t.block.shift < 0 || t.block.by < length ||
      t.block_of_absmax.shift < 0) {
    return 0;
  }
  vectors_task<CodeBits> v{t, {}};
  const numerics::codebook_table& table = numerics::codebook_of(t.book, t.steps);
  std::copy_n(table.numbers, 1 << CodeBits, v.numbers);
  launch_kernel("dequantize_blocks", number_vectors_kernel<F, CodeBits>,
                static_cast<unsigned>(tiles), block_threads, 0, stream, v);
  return tiles * tile_elements_of<F>;
}

}  // namespace

void enqueue_quantize_blocks(const backends::quantize_blocks_call& call, arithmetic by,
                             void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  const quantize_blocks_task t{{call.in, call.options},
                               call.codes.data(),
                               reinterpret_cast<std::uint32_t*>(call.absmax.data())};
  const std::uint64_t codes = call.options.book == codebook::dynamic8 ? t.count : (t.count + 1) / 2;
  with_arithmetic(by, [&](auto chosen) {
    using policy = decltype(chosen);
    launch_kernel("quantize_blocks", absmax_kernel<policy>,
                  grid_for(t.block_count(), block_threads / 32), block_threads, 0, on, t);
    launch_kernel("quantize_blocks", codes_kernel<policy>, grid_for(codes, block_threads),
                  block_threads, 0, on, t);
  });
}

void enqueue_dequantize_blocks(const backends::dequantize_blocks_call& call, arithmetic by,
                               void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  const quantized_absmax& absmax = call.absmax;
  const dequantize_blocks_task t{{call.out, call.options},
                                 call.codes.data(),
                                 reinterpret_cast<const std::uint32_t*>(absmax.absmax.data()),
                                 absmax.codes.empty() ? nullptr : absmax.codes.data(),
                                 divisor(absmax.block),
                                 std::bit_cast<std::uint32_t>(absmax.offset)};
  std::uint64_t done = 0;
  if (by == arithmetic::hardware) {
    backends::visit_quantized(call.out.format, [&]<format_id F>() {
      done = call.options.book == codebook::dynamic8 ? launch_vectors<F, 8>(t, on)
                                                     : launch_vectors<F, 4>(t, on);
    });
  }
  if (done == t.count) return;
  with_arithmetic(by, [&](auto chosen) {
    launch_kernel("dequantize_blocks", numbers_kernel<decltype(chosen)>,
                  grid_for(t.count - done, block_threads), block_threads, 0, on, t, done);
  });
}

}  // namespace samebits::cuda
