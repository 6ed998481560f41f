// Row layer norm: LayerNorm of one row as PyTorch 2.11 computes it on CUDA tensors, and the
// gradient of its input.
//
// Rows are binary32 bits of numbers in the tensor's format. Results are rounded to the format by
// the caller; mean and rstd stay binary32. Source: PyTorch's layer_norm_kernel.cu and
// SharedReduceOps.h; which products and sums are fused follows from the machine code that nvcc
// 13.0 makes of them for sm_90.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/cuda_functions/rsqrt_function.hpp"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/torch_operators/row_order.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::torch_2_11 {

/// Mean and sum of squared distances from the mean of `count` elements; binary32 bits.
struct moments {
  std::uint32_t mean = 0;
  std::uint32_t squares = 0;
  std::uint32_t count = 0;
};

/// The result's mean, and 1 / sqrt(variance + epsilon).
struct row_statistics {
  std::uint32_t mean = 0;
  std::uint32_t rstd = 0;
};

/// Whether rows are read in vectors of 4 elements. `shift`: elements from a 16-byte boundary to the
/// tensor.
SAMEBITS_HD constexpr bool has_vectors_of_4(std::int64_t n, std::int64_t shift) {
  return n % 4 == 0 && shift % 4 == 0 && n <= (std::int64_t{1} << 24);
}

/// Threads of the kernels that read vectors of 4: four warps.
inline constexpr int layer_norm_threads = 128;
inline constexpr int scalar_layer_norm_threads = 512;

/// The moments with one more element, by the kernel that reads vectors.
SAMEBITS_HD constexpr moments with_element(const moments& m, std::uint32_t x) {
  const std::uint32_t delta = ptx::sub(x, m.mean);
  const std::uint32_t count = ptx::add(m.count, binary32::one);
  const std::uint32_t mean = ptx::fma(delta, ptx::div(binary32::one, count), m.mean);
  return {mean, ptx::fma(delta, ptx::sub(x, mean), m.squares), count};
}

/// The moments of both, by the kernel that reads vectors.
SAMEBITS_HD constexpr moments together(const moments& b, const moments& a) {
  const std::uint32_t delta = ptx::sub(b.mean, a.mean);
  const std::uint32_t count = ptx::add(a.count, b.count);
  if (count == 0) return {};
  const std::uint32_t factor = ptx::div(binary32::one, count);
  const std::uint32_t share_a = ptx::mul(a.count, factor);
  const std::uint32_t share_b = ptx::mul(b.count, factor);
  const std::uint32_t mean = ptx::fma(share_a, a.mean, ptx::mul(share_b, b.mean));
  const std::uint32_t between = ptx::mul(ptx::mul(delta, delta), a.count);
  return {mean, ptx::fma(between, share_b, ptx::add(a.squares, b.squares)), count};
}

/// The same by the kernel that reads single elements.
SAMEBITS_HD constexpr moments with_single_element(const moments& m, std::uint32_t x) {
  const std::uint32_t delta = ptx::sub(x, m.mean);
  const std::uint32_t count = ptx::add(m.count, binary32::one);
  const std::uint32_t mean = ptx::add(m.mean, ptx::div(delta, count));
  return {mean, ptx::fma(delta, ptx::sub(x, mean), m.squares), count};
}
SAMEBITS_HD constexpr moments together_of_singles(const moments& a, const moments& b) {
  if (a.count == 0) return b;
  if (b.count == 0) return a;
  const std::uint32_t delta = ptx::sub(b.mean, a.mean);
  const std::uint32_t count = ptx::add(a.count, b.count);
  const std::uint32_t share_b = ptx::div(b.count, count);
  const std::uint32_t mean = ptx::fma(delta, share_b, a.mean);
  const std::uint32_t between = ptx::mul(ptx::mul(delta, delta), a.count);
  return {mean, ptx::fma(between, share_b, ptx::add(a.squares, b.squares)), count};
}

/// Moments of a row; `vectors` as has_vectors_of_4() says.
SAMEBITS_HD constexpr moments row_moments(const std::uint32_t* x, std::int64_t n, bool vectors) {
  moments threads[scalar_layer_norm_threads] = {};
  if (!vectors) {
    for (std::int64_t i = 0; i < n; ++i) {
      moments& m = threads[i % scalar_layer_norm_threads];
      m = with_single_element(m, x[i]);
    }
    return fold_warps(threads, scalar_layer_norm_threads, warp_lanes, moments{},
                      together_of_singles);
  }
  for (std::int64_t i = 0; i < n; ++i) {
    moments& m = threads[i / 4 % layer_norm_threads];
    m = with_element(m, x[i]);
  }
  return fold_warps(threads, layer_norm_threads, layer_norm_threads / warp_lanes, moments{},
                    together);
}

/// A layer norm's element: x, weight and bias are binary32 bits.
struct layer_norm_affine {
  const std::uint32_t* weight = nullptr;  ///< n elements, or null
  const std::uint32_t* bias = nullptr;    ///< n elements, or null
};

/// The result for one element. The kernel of single elements adds a bias of 0 if there is none. In
/// the kernel that reads vectors, a bias without weight is added by fma, but to the first element
/// of each vector by a sum: its product is shared with other branches of the machine code.
SAMEBITS_HD constexpr std::uint32_t layer_norm_element(std::uint32_t x, const row_statistics& s,
                                                       const layer_norm_affine& affine,
                                                       std::int64_t i, bool vectors) {
  const std::uint32_t distance = ptx::sub(x, s.mean);
  const std::uint32_t normal = ptx::mul(distance, s.rstd);
  const bool adds = affine.bias != nullptr || !vectors;
  const std::uint32_t bias = affine.bias != nullptr ? affine.bias[i] : 0;
  if (affine.weight != nullptr) {
    return adds ? ptx::fma(affine.weight[i], normal, bias) : ptx::mul(affine.weight[i], normal);
  }
  if (!adds) return normal;
  const bool fused = !vectors || i % 4 != 0;
  return fused ? ptx::fma(distance, s.rstd, bias) : ptx::add(normal, bias);
}

/// x[i] = (x[i] - mean) * rstd * weight[i] + bias[i]; returns mean and rstd.
SAMEBITS_HD constexpr row_statistics layer_norm_row(std::uint32_t* x, std::int64_t n,
                                                    const layer_norm_affine& affine,
                                                    std::uint32_t epsilon, bool vectors) {
  const moments m = row_moments(x, n, vectors);
  const std::uint32_t variance = ptx::div(m.squares, m.count);
  const row_statistics s{m.mean, cuda_13_0::rsqrt(ptx::add(variance, epsilon))};
  for (std::int64_t i = 0; i < n; ++i) x[i] = layer_norm_element(x[i], s, affine, i, vectors);
  return s;
}

/// grad[i] = the gradient of x[i], where grad[i] is that of the result. `weight` may be null: ones.
SAMEBITS_HD constexpr void layer_norm_gradient_row(const std::uint32_t* x, const row_statistics& s,
                                                   const std::uint32_t* weight, std::uint32_t* grad,
                                                   std::int64_t n) {
  row_order order{layer_norm_threads, thread_sums::warps, 4};
  order.body = n;
  const auto weight_at = [&](std::int64_t i) {
    return weight == nullptr ? binary32::one : weight[i];
  };
  const auto weighted = [&](std::int64_t i) { return ptx::mul(grad[i], weight_at(i)); };
  const std::uint32_t sum = row_sum(order, n, weighted);
  std::uint32_t products[max_threads] = {};
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint32_t& total = products[order.thread_of(i)];
    total = ptx::fma(ptx::mul(weighted(i), ptx::sub(x[i], s.mean)), s.rstd, total);
  }
  const std::uint32_t product = combined(order, products);
  const std::uint32_t count = ptx::from_int(static_cast<std::uint32_t>(n));
  const std::uint32_t factor = ptx::mul(ptx::div(binary32::one, count), s.rstd);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t normal = ptx::mul(ptx::sub(x[i], s.mean), s.rstd);
    const std::uint32_t own = ptx::mul(count, weight_at(i));
    const std::uint32_t rest = ptx::fma(own, grad[i], ptx::neg(ptx::mul(normal, product)));
    grad[i] = ptx::mul(ptx::sub(rest, sum), factor);
  }
}

}  // namespace samebits::numerics::torch_2_11
