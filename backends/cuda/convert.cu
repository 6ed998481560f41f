// cuda-emulated: conversion by the one definition in a kernel.
#include <algorithm>
#include <cstdint>

#include "backends/cuda/codes.cuh"
#include "backends/cuda/convert_ops.cuh"
#include "backends/cuda/cuda.hpp"
#include "backends/cuda/error.hpp"
#include "backends/cuda/launch.cuh"
#include "backends/visit.hpp"

namespace samebits::cuda {
namespace {

using backends::convert_call;

/// Everything one thread of the general kernel needs: any formats, strides and alignment.
struct general_call {
  const std::byte* in;
  std::byte* out;
  format_spec source;
  format_spec target;
  cast_rule rule;
  random_source random;
  std::uint64_t count, cols;
  std::uint64_t in_row_bytes, in_col_bytes, out_row_bytes, out_col_bytes;
  std::uint64_t index, pitch;
};

__global__ void general_kernel(const general_call c) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < c.count;
       i += step) {
    const std::uint64_t row = i / c.cols;
    const std::uint64_t col = i - row * c.cols;
    random_bits r{0, c.random.k};
    if (c.rule.round == rounding::stochastic) {
      r.value = dither_of(c.random, c.index + row * c.pitch + col) >> (32 - c.random.k);
    }
    const std::uint64_t code =
        load_code(c.in + row * c.in_row_bytes + col * c.in_col_bytes, c.source.storage_bits / 8);
    store_code(c.out + row * c.out_row_bytes + col * c.out_col_bytes, c.target.storage_bits / 8,
               numerics::convert_any(c.source, c.target, c.rule, code, r).code);
  }
}

void launch_general(const convert_call& call, cudaStream_t stream) {
  const std::uint64_t in_bytes = static_cast<std::uint64_t>(storage_bytes(call.in.format));
  const std::uint64_t out_bytes = static_cast<std::uint64_t>(storage_bytes(call.out.format));
  const auto bytes = [](std::int64_t elements, std::uint64_t size) {
    return static_cast<std::uint64_t>(elements) * size;
  };
  general_call c{static_cast<const std::byte*>(call.in.data),
                 static_cast<std::byte*>(call.out.data),
                 spec_of(call.in.format),
                 spec_of(call.out.format),
                 call.rule,
                 source_of(call.random),
                 static_cast<std::uint64_t>(call.in.rows * call.in.cols),
                 static_cast<std::uint64_t>(call.in.cols),
                 bytes(call.in.row_stride, in_bytes),
                 bytes(call.in.col_stride, in_bytes),
                 bytes(call.out.row_stride, out_bytes),
                 bytes(call.out.col_stride, out_bytes),
                 call.random.offset,
                 call.pitch};
  const std::uint64_t blocks = (c.count + block_threads - 1) / block_threads;
  const auto grid = static_cast<unsigned>(std::min<std::uint64_t>(blocks, 1u << 20));
  general_kernel<<<grid, block_threads, 0, stream>>>(c);
}

/// index_multiple: of the first element's random index and of the pitch, for stochastic rounding
template <class Op>
bool try_launch_dense(const Op& op, const convert_call& call, int index_multiple,
                      cudaStream_t stream) {
  const auto d = dense_layout(call, Op::pack, index_multiple);
  if (!d) return false;
  dense_kernel<<<dense_grid<Op>(*d), block_threads, 0, stream>>>(op, *d);
  return true;
}

template <int InBits, int OutBits>
bool try_launch_general_dense(const convert_call& call, cudaStream_t stream) {
  using op = general_op<InBits, OutBits>;
  return try_launch_dense(
      op{spec_of(call.in.format), spec_of(call.out.format), call.rule, source_of(call.random)},
      call, op::pack, stream);
}

template <int InBits>
bool try_launch_general_from(const convert_call& call, cudaStream_t stream) {
  switch (spec_of(call.out.format).storage_bits) {
    case 8: return try_launch_general_dense<InBits, 8>(call, stream);
    case 16: return try_launch_general_dense<InBits, 16>(call, stream);
    case 32: return try_launch_general_dense<InBits, 32>(call, stream);
    default: return false;
  }
}

void launch_any(const convert_call& call, cudaStream_t stream) {
  bool done = false;
  switch (spec_of(call.in.format).storage_bits) {
    case 8: done = try_launch_general_from<8>(call, stream); break;
    case 16: done = try_launch_general_from<16>(call, stream); break;
    case 32: done = try_launch_general_from<32>(call, stream); break;
    default: break;
  }
  if (!done) launch_general(call, stream);
}

struct dispatch {
  const convert_call& call;
  cudaStream_t stream;

  template <class Source, class Target, class Mode>
  void operator()(const Source& source, const Target& target, const Mode& mode) const {
    if (!dense(source, target, mode)) launch_any(call, stream);
  }

 private:
  // Formats are constants where that pays: nearest even, widening, and stochastic rounding of fp32
  // and bf16.
  template <format_id From, format_id To, rounding Mode>
  bool dense(backends::fixed_format<From>, backends::fixed_format<To>,
             backends::fixed_rounding<Mode>) const {
    using source = backends::fixed_format<From>;
    using target = backends::fixed_format<To>;
    if (call.rule.on_overflow == overflow::saturate_finite ||
        call.rule.on_nan != nan_policy::canonical) {
      return false;
    }
    const auto with_field = [&](auto field) {
      using op = emulated_op<source, target, backends::fixed_rounding<Mode>, field()>;
      return try_launch_dense(
          op{call.rule.on_overflow == overflow::saturate, source_of(call.random)}, call, op::fields,
          stream);
    };
    if constexpr (Mode != rounding::stochastic) {
      return with_field(std::integral_constant<int, 0>{});
    } else if constexpr (From == format_id::fp16) {
      return false;
    } else {
      switch (numerics::field_bits(call.random.bits)) {
        case 8: return with_field(std::integral_constant<int, 8>{});
        case 16: return with_field(std::integral_constant<int, 16>{});
        default: return with_field(std::integral_constant<int, 32>{});
      }
    }
  }
  template <class Source, class Target, class Mode>
  bool dense(const Source&, const Target&, const Mode&) const {
    return false;
  }
};

}  // namespace

void launch_emulated(const convert_call& call, void* stream) {
  backends::visit_conversion(call.in.format, call.out.format, call.rule.round,
                             dispatch{call, static_cast<cudaStream_t>(stream)});
  check(cudaGetLastError(), "cuda-emulated: convert");
}

}  // namespace samebits::cuda
