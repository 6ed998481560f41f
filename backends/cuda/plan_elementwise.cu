// Scaling, adding and accumulating the tensors of plans on CUDA, one launch each.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "backends/cuda/codes.cuh"
#include "backends/cuda/error.hpp"
#include "backends/cuda/plan.hpp"
#include "backends/cuda/plan_codes.cuh"
#include "backends/cuda/plan_launch.cuh"
#include "numerics/plan_ops.hpp"

namespace samebits::cuda {
namespace {

using numerics::plan_chunk;
using numerics::plan_row;
using numerics::plan_tables;

/// A chunk of a tensor, as its elements are reached.
struct chunk_codes {
  const plan_row& row;
  std::int64_t first;
  format_spec format = spec_of(row.format);

  __device__ std::byte* at(std::int64_t i) const { return numerics::element_at(row, first + i); }
  __device__ std::uint32_t load(std::int64_t i) const {
    return static_cast<std::uint32_t>(load_code(at(i), format.storage_bits / 8));
  }
  __device__ void store(std::int64_t i, std::uint32_t code) const {
    store_code(at(i), format.storage_bits / 8, code);
  }
  /// Whether octets may be read as vectors.
  __device__ bool has_octets() const {
    const std::uintptr_t alignment = format.storage_bits == 8 ? 8 : 16;
    return row.dense && reinterpret_cast<std::uintptr_t>(row.data) % alignment == 0;
  }
};

/// All lanes: octet(i) for every eight elements from i on, then one(i) for what is left.
template <class Octet, class One>
__device__ __forceinline__ void by_octets(std::int64_t count, unsigned lane, const Octet& octet_at,
                                          const One& one) {
  const int whole = static_cast<int>(count) / octet;
#pragma unroll 2
  for (int i = static_cast<int>(lane); i < whole; i += 32) octet_at(i * octet);
  for (int i = whole * octet + static_cast<int>(lane); i < count; i += 32) one(i);
}

template <class One>
__device__ __forceinline__ void one_by_one(std::int64_t count, unsigned lane, const One& one) {
  for (std::int64_t i = lane; i < count; i += 32) one(i);
}

/// Calls f with the format as a constant.
template <class Function>
__device__ __forceinline__ void with_wide(format_id f, const Function& function) {
  switch (f) {
    case format_id::fp32: return function(fixed<format_id::fp32>{});
    case format_id::fp16: return function(fixed<format_id::fp16>{});
    default: return function(fixed<format_id::bf16>{});
  }
}
template <class Function>
__device__ __forceinline__ void with_any(format_id f, const Function& function) {
  switch (f) {
    case format_id::e4m3: return function(fixed<format_id::e4m3>{});
    case format_id::e5m2: return function(fixed<format_id::e5m2>{});
    default: return with_wide(f, function);
  }
}

// --- scale
// -----------------------------------------------------------------------------------------

/// What one thread saw.
struct scaled_figures {
  std::uint32_t amax = 0;  ///< magnitudes, NaN the largest
  std::uint32_t nonfinite = 0;
  std::uint32_t nonfinite_after = 0;
};

template <format_id F>
__device__ __forceinline__ void scale_octet(std::byte* p, std::uint32_t factor,
                                            scaled_figures& seen) {
  octet_values v = load_octet<F>(p);
#pragma unroll
  for (int i = 0; i < octet; ++i) {
    const std::uint32_t m = v.x[i] & 0x7FFFFFFFu;
    seen.amax = max(seen.amax, m);
    seen.nonfinite += m >= numerics::binary32::inf ? 1 : 0;
    v.x[i] = numerics::scaled_value<hardware_steps>(v.x[i], factor);
  }
  seen.nonfinite_after += store_octet<F>(p, v);
}

template <class Steps>
__device__ __forceinline__ void scale_one(const chunk_codes& codes, std::int64_t i,
                                          std::uint32_t factor, scaled_figures& seen) {
  numerics::scale_tally tally = {};
  const std::uint32_t before = codes.load(i);
  const std::uint32_t after = numerics::scaled_code<Steps>(codes.format, before, factor);
  numerics::count_scaled(codes.format, tally, before, after);
  seen.amax = max(seen.amax, tally.amax);
  seen.nonfinite += tally.nonfinite;
  seen.nonfinite_after += tally.nonfinite + tally.overflowed;
  codes.store(i, after);
}

/// Adds a warp's figures to the report, in any order: they are integers.
__device__ void report_chunk(const scaled_figures& own, std::uint32_t tensor, unsigned lane,
                             unscale_report* report) {
  const std::uint32_t before = __reduce_add_sync(0xFFFFFFFFu, own.nonfinite);
  const std::uint32_t after = __reduce_add_sync(0xFFFFFFFFu, own.nonfinite_after);
  if (after == 0 || lane != 0) return;
  using word = unsigned long long;
  if (before != 0) atomicAdd(reinterpret_cast<word*>(&report->nonfinite), word{before});
  if (after != before) {
    atomicAdd(reinterpret_cast<word*>(&report->overflowed), word{after - before});
  }
  // -1, no tensor, is the largest as an unsigned number.
  atomicMin(reinterpret_cast<word*>(&report->first_bad), word{tensor});
}

template <class Steps>
__global__ void __launch_bounds__(plan_threads, plan_residents)
    scale_kernel(const plan_tables plan, const scale_factor given, unscale_report* const report) {
  if (given.only_if != nullptr && !*given.only_if) return;
  const std::uint32_t factor = given.pointer != nullptr ? *given.pointer : given.value;
  std::uint32_t amax = 0;
  for_each_chunk(plan, [&](const plan_row& row, const plan_chunk& c, std::uint64_t, unsigned lane) {
    const chunk_codes codes{row, c.first};
    scaled_figures seen;
    const auto one = [&](std::int64_t i) { scale_one<Steps>(codes, i, factor, seen); };
    if (std::is_same_v<Steps, hardware_steps> && codes.has_octets()) {
      with_wide(row.format, [&](auto f) {
        by_octets(
            c.count, lane, [&](int i) { scale_octet<f.value>(codes.at(i), factor, seen); }, one);
      });
    } else {
      one_by_one(c.count, lane, one);
    }
    amax = max(amax, seen.amax);
    if (report != nullptr) report_chunk(seen, c.tensor, lane, report);
  });
  if (report == nullptr) return;
  amax = __reduce_max_sync(0xFFFFFFFFu, amax);
  if (threadIdx.x % 32 == 0) {
    atomicMax(&report->amax, amax > numerics::binary32::inf ? numerics::binary32::nan : amax);
  }
}

// --- accumulate
// ------------------------------------------------------------------------------------

template <format_id Acc, format_id X>
__device__ __forceinline__ void accumulate_octet(std::byte* acc, const std::byte* x,
                                                 std::uint32_t scale) {
  octet_values sum = load_octet<Acc>(acc);
  const octet_values v = load_octet<X>(x);
#pragma unroll
  for (int i = 0; i < octet; ++i) {
    sum.x[i] = numerics::accumulated_value<hardware_steps>(sum.x[i], v.x[i], scale);
  }
  store_octet<Acc>(acc, sum);
}

template <class Steps>
__global__ void __launch_bounds__(plan_threads, plan_residents)
    accumulate_kernel(const backends::accumulate_call call) {
  for_each_chunk(
      call.acc, [&](const plan_row& row, const plan_chunk& c, std::uint64_t, unsigned lane) {
        const plan_row from = call.gradients.rows[c.tensor];
        const chunk_codes acc{row, c.first}, x{from, c.first};
        const std::uint32_t scale = call.scales == nullptr ? numerics::binary32::one
                                                           : __float_as_uint(call.scales[c.tensor]);
        const auto one = [&](std::int64_t i) {
          acc.store(i, numerics::accumulated_code<Steps>(acc.format, acc.load(i), x.format,
                                                         x.load(i), scale));
        };
        if (!std::is_same_v<Steps, hardware_steps> || !acc.has_octets() || !x.has_octets()) {
          return one_by_one(c.count, lane, one);
        }
        with_wide(row.format, [&](auto f) {
          with_any(from.format, [&](auto g) {
            by_octets(
                c.count, lane,
                [&](int i) { accumulate_octet<f.value, g.value>(acc.at(i), x.at(i), scale); }, one);
          });
        });
      });
}

// --- axpby
// -----------------------------------------------------------------------------------------

template <class Steps>
__global__ void __launch_bounds__(plan_threads, plan_residents)
    axpby_kernel(const backends::axpby_call call) {
  for_each_chunk(call.out, [&](const plan_row& row, const plan_chunk& c, std::uint64_t,
                               unsigned lane) {
    const plan_row x_row = call.x.rows[c.tensor], y_row = call.y.rows[c.tensor];
    const chunk_codes out{row, c.first}, x{x_row, c.first}, y{y_row, c.first};
    const auto one = [&](std::int64_t i) {
      out.store(i, numerics::combined_code<Steps>(out.format, call.a, x.format, x.load(i), call.b,
                                                  y.format, y.load(i)));
    };
    const bool octets = out.has_octets() && x.has_octets() && y.has_octets();
    // Three formats that may all differ: those that agree are what is fast.
    const bool same = row.format == x_row.format && row.format == y_row.format;
    if (!std::is_same_v<Steps, hardware_steps> || !octets || !same) {
      return one_by_one(c.count, lane, one);
    }
    with_wide(row.format, [&](auto f) {
      by_octets(
          c.count, lane,
          [&](int i) {
            octet_values sum = load_octet<f.value>(x.at(i));
            const octet_values v = load_octet<f.value>(y.at(i));
#pragma unroll
            for (int k = 0; k < octet; ++k) {
              sum.x[k] = numerics::combined_value<hardware_steps>(call.a, sum.x[k], call.b, v.x[k]);
            }
            store_octet<f.value>(out.at(i), sum);
          },
          one);
    });
  });
}

/// Launches the kernel of the steps over a plan that has chunks.
template <class Hardware, class Definition, class... Arguments>
void launch(steps by, const plan_tables& plan, void* stream, const char* what, Hardware hardware,
            Definition definition, const Arguments&... arguments) {
  if (plan.chunks == 0) return;
  const auto kernel = by == steps::hardware ? hardware : definition;
  kernel<<<plan_blocks(plan, kernel), plan_threads, 0, static_cast<cudaStream_t>(stream)>>>(
      arguments...);
  check(cudaPeekAtLastError(), what);
}

}  // namespace

void enqueue_scale(const plan_tables& plan, const scale_factor& factor, unscale_report* report,
                   steps by, void* stream) {
  launch(by, plan, stream, "scale kernel", scale_kernel<hardware_steps>,
         scale_kernel<numerics::binary32_steps>, plan, factor, report);
}

void enqueue_accumulate(const backends::accumulate_call& call, steps by, void* stream) {
  launch(by, call.acc, stream, "accumulate kernel", accumulate_kernel<hardware_steps>,
         accumulate_kernel<numerics::binary32_steps>, call);
}

void enqueue_axpby(const backends::axpby_call& call, steps by, void* stream) {
  launch(by, call.out, stream, "axpby kernel", axpby_kernel<hardware_steps>,
         axpby_kernel<numerics::binary32_steps>, call);
}

}  // namespace samebits::cuda
