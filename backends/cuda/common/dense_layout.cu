// Decides which conversions dense_kernel can run, and fills in its parameters.
#include "backends/cuda/common/cuda.hpp"
#include "backends/cuda/common/launch.cuh"

namespace samebits::cuda {
namespace {

/// Whether every row starts at a multiple of `bytes`.
bool aligned(const void* p, std::uint64_t row_bytes, std::uint64_t rows, std::uint64_t bytes) {
  return reinterpret_cast<std::uintptr_t>(p) % bytes == 0 && (rows == 1 || row_bytes % bytes == 0);
}

}  // namespace

std::optional<dense_rows> dense_layout(const backends::convert_call& call, int pack,
                                       int index_multiple) {
  const auto& in = call.in;
  const auto& out = call.out;
  if ((in.cols > 1 && in.col_stride != 1) || (out.cols > 1 && out.col_stride != 1)) {
    return std::nullopt;
  }
  const auto in_bytes = static_cast<std::uint64_t>(storage_bytes(in.format));
  const auto out_bytes = static_cast<std::uint64_t>(storage_bytes(out.format));
  const bool stochastic = call.rule.rounding == rounding::stochastic;
  dense_rows d{static_cast<const std::byte*>(in.data),
               static_cast<std::byte*>(out.data),
               static_cast<std::uint64_t>(in.rows),
               static_cast<std::uint64_t>(in.cols),
               static_cast<std::uint64_t>(in.row_stride) * in_bytes,
               static_cast<std::uint64_t>(out.row_stride) * out_bytes,
               call.random.offset,
               call.pitch};
  if (in.row_stride == in.cols && out.row_stride == out.cols &&
      (!stochastic || call.pitch == d.cols)) {
    d.cols *= d.rows;
    d.rows = 1;
  }
  const auto elements = static_cast<std::uint64_t>(pack);
  const auto access = [&](std::uint64_t bytes) {
    return elements * bytes < 16 ? elements * bytes : 16;
  };
  if (!aligned(d.in, d.in_row_bytes, d.rows, access(in_bytes)) ||
      !aligned(d.out, d.out_row_bytes, d.rows, access(out_bytes))) {
    return std::nullopt;
  }
  if (stochastic) {
    const auto multiple = static_cast<std::uint64_t>(index_multiple);
    if (d.index % multiple != 0 || (d.rows > 1 && d.pitch % multiple != 0)) return std::nullopt;
  }
  return d;
}

}  // namespace samebits::cuda
