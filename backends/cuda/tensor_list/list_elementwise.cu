// Elementwise operations over lists of tensors on CUDA: scale, accumulate and axpby. One launch
// each.
//
// One warp per chunk of up to 4096 elements. Chunks of dense tensors aligned to 16 bytes are
// processed by vectors of 4 or 8 elements, all others element by element.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/cuda/common/error.hpp"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/instructions/warp.cuh"
#include "backends/cuda/tensor_list/list.hpp"
#include "backends/cuda/tensor_list/list_any.cuh"
#include "backends/cuda/tensor_list/list_codes.cuh"
#include "backends/cuda/tensor_list/list_launch.cuh"
#include "numerics/tensor_list/list_ops.hpp"

namespace samebits::cuda {
namespace {

using numerics::list_chunk;
using numerics::list_row;
using numerics::tensor_tables;

/// Minimum resident blocks per multiprocessor: leaves registers for many loads in flight.
constexpr int elementwise_residents = 4;

/// Address of the first element of a chunk in a dense tensor.
template <format_id F>
__device__ __forceinline__ std::byte* chunk_begin(const list_row& row, const list_chunk& c) {
  return static_cast<std::byte*>(row.data) + c.first * (spec_of(F).storage_bits / 8);
}

/// Elements of a vector: as many as fill 16 bytes of the widest format.
template <format_id... Formats>
constexpr int vector_elements = ((Formats == format_id::fp32) || ...) ? 4 : 8;

/// Dense elements of one format in memory, loaded and stored by vectors of N.
template <format_id F, int N>
struct vectors {
  static constexpr int element = spec_of(F).storage_bits / 8;
  std::byte* data;

  /// Loads the vectors that start at elements i, i + 32 N, ...
  template <int Count>
  __device__ __forceinline__ void load(code_vector<F, N> (&v)[Count], int i) const {
#pragma unroll
    for (int k = 0; k < Count; ++k)
      v[k] = code_vector<F, N>::load_once(data + (i + k * 32 * N) * element);
  }
  /// Stores the vector that starts at element i + k * 32 N.
  __device__ __forceinline__ void store(const code_vector<F, N>& v, int i, int k) const {
    v.store_once(data + (i + k * 32 * N) * element);
  }
};

/// A vector count as a compile-time constant.
template <int Count>
struct loads {
  static constexpr int count = Count;
};

/// Calls group(loads<Count>, i) for Count vectors of N elements that start at i, i + 32 N, ...
/// Loads of a group can be in flight together, before any store. Then calls group(loads<1>, i) for
/// single vectors, and one(i) for the elements after the last whole vector. All lanes of a warp
/// must call.
template <int N, int Count, class Group, class One>
__device__ __forceinline__ void by_vectors(int count, unsigned lane, const Group& group,
                                           const One& one) {
  const int whole = count / N;
  int i = static_cast<int>(lane);
#pragma unroll 1
  for (; i + 32 * (Count - 1) < whole; i += 32 * Count) group(loads<Count>{}, i * N);
#pragma unroll 1
  for (; i < whole; i += 32) group(loads<1>{}, i * N);
#pragma unroll 1
  for (i = whole * N + static_cast<int>(lane); i < count; i += 32) one(i);
}

// --- scale: x = RN(x * factor) in binary32, rounded to the format of x

/// Statistics of one thread for the report of scale.
struct scaled_statistics {
  std::uint32_t amax = 0;             ///< maximum magnitude before scaling; NaN is the largest
  std::uint32_t nonfinite = 0;        ///< elements that were Inf or NaN before
  std::uint32_t nonfinite_after = 0;  ///< elements that are Inf or NaN after

  /// Counts an element, as binary32 bits before and after scaling.
  __device__ __forceinline__ void count(std::uint32_t before, std::uint32_t after) {
    nonfinite += (before & 0x7FFFFFFFu) >= numerics::binary32::inf ? 1 : 0;
    nonfinite_after += (after & 0x7FFFFFFFu) >= numerics::binary32::inf ? 1 : 0;
  }
};

/// Scales a dense chunk in place, by vectors and by the hardware. Elements are counted one by one
/// only in vectors with a result that is Inf or NaN. An element that was Inf or NaN always gives
/// such a result.
template <format_id F>
__device__ __forceinline__ scaled_statistics scale_vectors(std::byte* data, int count,
                                                           unsigned lane, std::uint32_t factor) {
  constexpr int n = vector_elements<F>;
  constexpr auto inf = static_cast<std::uint32_t>(numerics::inf_code(spec_of(F)));
  const vectors<F, n> all{data};
  scaled_statistics seen;
  std::uint32_t largest = 0;
  by_vectors<n, 4>(
      count, lane,
      [&](auto group, int i) {
        code_vector<F, n> v[group.count];
        all.load(v, i);
#pragma unroll
        for (int k = 0; k < group.count; ++k) {
          value_vector<n> x = values_of<F>(v[k]);
#pragma unroll
          for (auto& e : x.x) e = numerics::scaled_value<hardware>(e, factor);
          const code_vector<F, n> after = codes_of<F>(x);
          std::uint32_t largest_after = 0;
#pragma unroll
          for (int w = 0; w < n * vectors<F, n>::element / 4; ++w) {
            largest = larger_codes<F>(largest, v[k].w[w]);
            largest_after = larger_codes<F>(largest_after, after.w[w]);
          }
          all.store(after, i, k);
          if (largest_code<F>(largest_after) >= inf) {
            const value_vector<n> before = values_of<F>(v[k]), rounded = values_of<F>(after);
            for (int e = 0; e < n; ++e) seen.count(before.x[e], rounded.x[e]);
          }
        }
      },
      [&](int i) {
        std::byte* const p = data + i * vectors<F, n>::element;
        const std::uint32_t before = load_value<F>(p);
        store_value<F>(p, numerics::scaled_value<hardware>(before, factor));
        seen.count(before, load_value<F>(p));
        seen.amax = max(seen.amax, before & 0x7FFFFFFFu);
      });
  seen.amax = max(seen.amax, widen<F>(largest_code<F>(largest)));
  return seen;
}

/// Scales any chunk in place, element by element. Not inlined, to keep its registers and stack out
/// of the loop of scale_vectors().
template <class Arithmetic>
__device__ __noinline__ scaled_statistics scale_any(const list_row& row, const list_chunk c,
                                                    unsigned lane, std::uint32_t factor) {
  const any_codes codes{row, c.first};
  scaled_statistics seen;
#pragma unroll 1
  for (std::int64_t i = lane; i < c.count; i += 32) {
    numerics::scale_statistics statistics = {};
    const std::uint32_t before = codes.load(i);
    const std::uint32_t after = numerics::scaled_code<Arithmetic>(codes.format, before, factor);
    numerics::count_scaled(codes.format, statistics, before, after);
    seen.amax = max(seen.amax, statistics.amax);
    seen.nonfinite += statistics.nonfinite;
    seen.nonfinite_after += statistics.nonfinite + statistics.overflowed;
    codes.store(i, after);
  }
  return seen;
}

/// Adds a warp's counts to the report. The counts are integers, so their order does not matter.
__device__ void report_chunk(const scaled_statistics& own, std::uint32_t tensor, unsigned lane,
                             unscale_report* report) {
  const std::uint32_t before = __reduce_add_sync(all_lanes, own.nonfinite);
  const std::uint32_t after = __reduce_add_sync(all_lanes, own.nonfinite_after);
  if (after == 0 || lane != 0) return;
  using word = unsigned long long;
  if (before != 0) atomicAdd(reinterpret_cast<word*>(&report->nonfinite), word{before});
  if (after != before) {
    atomicAdd(reinterpret_cast<word*>(&report->overflowed), word{after - before});
  }
  // -1 (no tensor) is the largest unsigned number.
  atomicMin(reinterpret_cast<word*>(&report->first_bad), word{tensor});
}

/// x = RN(x * factor) in place. One warp per chunk.
template <class Arithmetic>
__global__ void __launch_bounds__(chunk_threads, elementwise_residents)
    scale_kernel(const tensor_tables list, const scale_factor given, unscale_report* const report) {
  if (given.only_if != nullptr && !*given.only_if) return;
  const std::uint32_t factor = given.pointer != nullptr ? *given.pointer : given.value;
  std::uint32_t amax = 0;
  for_own_chunk(list, [&](const list_row& row, const list_chunk& c, std::uint64_t, unsigned lane) {
    scaled_statistics seen;
    if (std::is_same_v<Arithmetic, hardware> && is_dense_aligned(row)) {
      with_wide(row.format, [&](auto f) {
        seen = scale_vectors<f.value>(chunk_begin<f.value>(row, c), static_cast<int>(c.count), lane,
                                      factor);
      });
    } else {
      seen = scale_any<Arithmetic>(row, c, lane, factor);
    }
    amax = max(amax, seen.amax);
    if (report != nullptr) report_chunk(seen, c.tensor, lane, report);
  });
  if (report == nullptr) return;
  amax = __reduce_max_sync(all_lanes, amax);
  if (amax > numerics::binary32::inf) amax = numerics::binary32::nan;
  // A plain load first: few warps raise the maximum, but the atomics of all warps would wait for
  // each other.
  if (threadIdx.x % 32 == 0 && amax > __ldcg(&report->amax_bits))
    atomicMax(&report->amax_bits, amax);
}

/// out = f(x, y) in binary32, for dense chunks, by vectors and by the hardware. out may be x.
template <format_id F, format_id G, class Function>
__device__ __forceinline__ void combine_vectors(std::byte* out, std::byte* x, std::byte* y,
                                                int count, unsigned lane, const Function& f) {
  constexpr int n = vector_elements<F, G>;
  const vectors<F, n> sums{out}, first{x};
  const vectors<G, n> second{y};
  by_vectors<n, 4>(
      count, lane,
      [&](auto group, int i) {
        code_vector<F, n> s[group.count];
        code_vector<G, n> t[group.count];
        first.load(s, i);
        second.load(t, i);
#pragma unroll
        for (int k = 0; k < group.count; ++k) {
          value_vector<n> sum = values_of<F>(s[k]);
          const value_vector<n> term = values_of<G>(t[k]);
#pragma unroll
          for (int e = 0; e < n; ++e) sum.x[e] = f(sum.x[e], term.x[e]);
          sums.store(codes_of<F>(sum), i, k);
        }
      },
      [&](int i) {
        const int at = i * vectors<F, n>::element;
        store_value<F>(out + at,
                       f(load_value<F>(x + at), load_value<G>(y + i * vectors<G, n>::element)));
      });
}

// --- accumulate: acc = RN(acc + RN(x * scale)) in binary32, rounded to the format of acc

/// Accumulates any chunk, element by element.
template <class Arithmetic>
__device__ __noinline__ void accumulate_any(const list_row& row, const list_row& from,
                                            const list_chunk c, unsigned lane,
                                            std::uint32_t scale) {
  const any_codes acc{row, c.first}, x{from, c.first};
#pragma unroll 1
  for (std::int64_t i = lane; i < c.count; i += 32) {
    acc.store(i, numerics::accumulated_code<Arithmetic>(acc.format, acc.load(i), x.format,
                                                        x.load(i), scale));
  }
}

/// acc = acc + scale * x. One warp per chunk.
template <class Arithmetic>
__global__ void __launch_bounds__(chunk_threads, elementwise_residents)
    accumulate_kernel(const backends::accumulate_call call) {
  for_own_chunk(
      call.acc, [&](const list_row& row, const list_chunk& c, std::uint64_t, unsigned lane) {
        const list_row& from = call.gradients.rows[c.tensor];
        const std::uint32_t scale = call.scales == nullptr ? numerics::binary32::one
                                                           : __float_as_uint(call.scales[c.tensor]);
        if (!std::is_same_v<Arithmetic, hardware> || !is_dense_aligned(row) ||
            !is_dense_aligned(from)) {
          return accumulate_any<Arithmetic>(row, from, c, lane, scale);
        }
        with_wide(row.format, [&](auto f) {
          with_any(from.format, [&](auto g) {
            std::byte* const acc = chunk_begin<f.value>(row, c);
            combine_vectors<f.value, g.value>(
                acc, acc, chunk_begin<g.value>(from, c), static_cast<int>(c.count), lane,
                [scale](std::uint32_t sum, std::uint32_t x) {
                  return numerics::accumulated_value<hardware>(sum, x, scale);
                });
          });
        });
      });
}

// --- axpby: out = RN(RN(a * x) + RN(b * y)) in binary32, rounded to the format of out

/// out = a * x + b * y for any chunks, element by element.
template <class Arithmetic>
__device__ __noinline__ void combine_any(const list_row& row, const list_row& x_row,
                                         const list_row& y_row, const list_chunk c, unsigned lane,
                                         std::uint32_t a, std::uint32_t b) {
  const any_codes out{row, c.first}, x{x_row, c.first}, y{y_row, c.first};
#pragma unroll 1
  for (std::int64_t i = lane; i < c.count; i += 32) {
    out.store(i, numerics::combined_code<Arithmetic>(out.format, a, x.format, x.load(i), b,
                                                     y.format, y.load(i)));
  }
}

/// out = a * x + b * y. One warp per chunk.
template <class Arithmetic>
__global__ void __launch_bounds__(chunk_threads, elementwise_residents)
    axpby_kernel(const backends::axpby_call call) {
  for_own_chunk(
      call.out, [&](const list_row& row, const list_chunk& c, std::uint64_t, unsigned lane) {
        const list_row &x = call.x.rows[c.tensor], &y = call.y.rows[c.tensor];
        const bool vectors = is_dense_aligned(row) && is_dense_aligned(x) && is_dense_aligned(y);
        // The three formats may all differ; only three equal formats have a fast path.
        const bool same = row.format == x.format && row.format == y.format;
        if (!std::is_same_v<Arithmetic, hardware> || !vectors || !same) {
          return combine_any<Arithmetic>(row, x, y, c, lane, call.a, call.b);
        }
        with_wide(row.format, [&](auto f) {
          combine_vectors<f.value, f.value>(
              chunk_begin<f.value>(row, c), chunk_begin<f.value>(x, c), chunk_begin<f.value>(y, c),
              static_cast<int>(c.count), lane, [&](std::uint32_t first, std::uint32_t second) {
                return numerics::combined_value<hardware>(call.a, first, call.b, second);
              });
        });
      });
}

/// Launches a kernel with one warp per chunk, unless the list has no chunks.
template <class Kernel, class... Arguments>
void launch(Kernel kernel, const tensor_tables& list, void* stream, const char* what,
            const Arguments&... arguments) {
  if (list.chunks == 0) return;
  launch_kernel(what, kernel, blocks_of_chunks(list), chunk_threads, 0,
                static_cast<cudaStream_t>(stream), arguments...);
}

}  // namespace

void enqueue_scale(const tensor_tables& list, const scale_factor& factor, unscale_report* report,
                   arithmetic by, void* stream) {
  with_arithmetic(by, [&](auto policy) {
    launch(scale_kernel<decltype(policy)>, list, stream, "scale kernel", list, factor, report);
  });
}

void enqueue_accumulate(const backends::accumulate_call& call, arithmetic by, void* stream) {
  with_arithmetic(by, [&](auto policy) {
    launch(accumulate_kernel<decltype(policy)>, call.acc, stream, "accumulate kernel", call);
  });
}

void enqueue_axpby(const backends::axpby_call& call, arithmetic by, void* stream) {
  with_arithmetic(by, [&](auto policy) {
    launch(axpby_kernel<decltype(policy)>, call.out, stream, "axpby kernel", call);
  });
}

}  // namespace samebits::cuda
