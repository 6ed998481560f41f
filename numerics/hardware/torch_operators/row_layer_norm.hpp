// Row layer norm: LayerNorm and RMSNorm of one row as PyTorch 2.11 computes them on CUDA tensors,
// and the gradient of their input. The same kernels compute both; RMSNorm's have no mean.
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

using namespace ptx;  // NOLINT(google-build-using-namespace): steps of any Word

/// Mean and sum of squared distances from the mean of `count` elements; binary32 bits.
template <class Word = std::uint32_t>
struct moments {
  Word mean = 0u;
  Word squares = 0u;
  Word count = 0u;
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

/// The moments with one more element, by the kernel that reads vectors. `count` is m.count + 1,
/// `reciprocal` 1 / count.
template <class Word>
SAMEBITS_HD constexpr moments<Word> with_element(const moments<Word>& m, operand<Word> x,
                                                 operand<Word> count, operand<Word> reciprocal) {
  const Word delta = sub(x, m.mean);
  const Word mean = fma(delta, reciprocal, m.mean);
  return {mean, fma(delta, sub(x, mean), m.squares), count};
}

/// The moments of both, by the kernel that reads vectors. All are 0 if neither has elements.
template <class Word>
SAMEBITS_HD constexpr moments<Word> together(const moments<Word>& b, const moments<Word>& a) {
  const Word zero = 0u;
  const Word delta = sub(b.mean, a.mean);
  const Word count = add(a.count, b.count);
  const Word factor = div(Word(binary32::one), count);
  const Word share_a = mul(a.count, factor);
  const Word share_b = mul(b.count, factor);
  const Word mean = fma(share_a, a.mean, mul(share_b, b.mean));
  const Word between = mul(mul(delta, delta), a.count);
  const Word squares = fma(between, share_b, add(a.squares, b.squares));
  const mask_of<Word> none = count == zero;
  return {select(none, zero, mean), select(none, zero, squares), count};
}

/// The same by the kernel that reads single elements.
template <class Word>
SAMEBITS_HD constexpr moments<Word> with_single_element(const moments<Word>& m, operand<Word> x) {
  const Word delta = sub(x, m.mean);
  const Word count = add(m.count, Word(binary32::one));
  const Word mean = add(m.mean, div(delta, count));
  return {mean, fma(delta, sub(x, mean), m.squares), count};
}
template <class Word>
SAMEBITS_HD constexpr moments<Word> together_of_singles(const moments<Word>& a,
                                                        const moments<Word>& b) {
  const Word zero = 0u;
  const Word delta = sub(b.mean, a.mean);
  const Word count = add(a.count, b.count);
  const Word share_b = div(b.count, count);
  const Word mean = fma(delta, share_b, a.mean);
  const Word between = mul(mul(delta, delta), a.count);
  const Word squares = fma(between, share_b, add(a.squares, b.squares));
  const mask_of<Word> only_a = b.count == zero;
  const mask_of<Word> only_b = a.count == zero;
  return {select(only_b, b.mean, select(only_a, a.mean, mean)),
          select(only_b, b.squares, select(only_a, a.squares, squares)), count};
}

/// Moments of a row; `vectors` as has_vectors_of_4() says.
SAMEBITS_HD constexpr moments<> row_moments(const std::uint32_t* x, std::int64_t n, bool vectors) {
  moments<> threads[scalar_layer_norm_threads] = {};
  if (!vectors) {
    for (std::int64_t i = 0; i < n; ++i) {
      moments<>& m = threads[i % scalar_layer_norm_threads];
      m = with_single_element(m, x[i]);
    }
    return fold_warps(threads, scalar_layer_norm_threads, warp_lanes, moments<>{},
                      together_of_singles<std::uint32_t>);
  }
  for (std::int64_t i = 0; i < n; ++i) {
    moments<>& m = threads[i / 4 % layer_norm_threads];
    const std::uint32_t count = add(m.count, binary32::one);
    m = with_element(m, x[i], count, div(binary32::one, count));
  }
  return fold_warps(threads, layer_norm_threads, layer_norm_threads / warp_lanes, moments<>{},
                    together<std::uint32_t>);
}

/// A layer norm's element: x, weight and bias are binary32 bits.
struct layer_norm_affine {
  const std::uint32_t* weight = nullptr;  ///< n elements, or null
  const std::uint32_t* bias = nullptr;    ///< n elements, or null
};

/// The weight and the bias of one element, or of all lanes.
template <class Word>
struct element_affine {
  bool has_weight;
  bool has_bias;
  Word weight;
  Word bias;
};

/// The result for one element. The kernel of single elements adds a bias of 0 if there is none. In
/// the kernel that reads vectors, a bias without weight is added by fma, but to the first element
/// of each vector by a sum: its product is shared with other branches of the machine code.
/// @param first_of_vector  whether the element's index is a multiple of 4
template <class Word>
SAMEBITS_HD constexpr Word layer_norm_element(operand<Word> x, Word mean, operand<Word> rstd,
                                              const element_affine<Word>& affine,
                                              mask_of<Word> first_of_vector, bool vectors) {
  const Word distance = sub(x, mean);
  const Word normal = mul(distance, rstd);
  const bool adds = affine.has_bias || !vectors;
  const Word bias = affine.has_bias ? affine.bias : Word(0u);
  if (affine.has_weight) {
    return adds ? fma(affine.weight, normal, bias) : mul(affine.weight, normal);
  }
  if (!adds) return normal;
  const Word fused = fma(distance, rstd, bias);
  return vectors ? select(first_of_vector, add(normal, bias), fused) : fused;
}

/// 1 / sqrt(variance + epsilon) of a row with these moments.
template <class Word>
SAMEBITS_HD constexpr Word rstd_of(const moments<Word>& m, operand<Word> epsilon) {
  return cuda_13_0::rsqrt<Word>(add(div(m.squares, m.count), epsilon));
}

/// x[i] = (x[i] - mean) * rstd * weight[i] + bias[i]; returns mean and rstd.
SAMEBITS_HD constexpr row_statistics layer_norm_row(std::uint32_t* x, std::int64_t n,
                                                    const layer_norm_affine& affine,
                                                    std::uint32_t epsilon, bool vectors) {
  const moments<> m = row_moments(x, n, vectors);
  const row_statistics s{m.mean, rstd_of(m, epsilon)};
  const bool has_weight = affine.weight != nullptr, has_bias = affine.bias != nullptr;
  for (std::int64_t i = 0; i < n; ++i) {
    const element_affine<std::uint32_t> own{has_weight, has_bias, has_weight ? affine.weight[i] : 0,
                                            has_bias ? affine.bias[i] : 0};
    x[i] = layer_norm_element<std::uint32_t>(x[i], s.mean, s.rstd, own, i % 4 == 0, vectors);
  }
  return s;
}

/// The order in which the gradient's kernel adds a row of n elements, and RMSNorm's kernel that
/// reads vectors.
SAMEBITS_HD constexpr row_order layer_norm_gradient_order(std::int64_t n) {
  row_order order{layer_norm_threads, thread_sums::warps, 4};
  order.body = n;
  return order;
}

/// One element's part of the sum of products: `weighted` is the gradient times the weight.
template <class Word>
SAMEBITS_HD constexpr Word with_product(Word total, operand<Word> weighted, operand<Word> x,
                                        operand<Word> mean, operand<Word> rstd) {
  return fma(mul(weighted, sub<Word>(x, mean)), rstd, total);
}

/// What all elements of a row's gradient use.
template <class Word>
struct gradient_sums {
  Word mean;
  Word rstd;
  Word count;
  Word sum;      ///< sum of the gradients times the weights
  Word product;  ///< sum of the gradients times the weights times (x - mean) * rstd
  Word factor;   ///< gradient_factor()
};
template <class Word>
SAMEBITS_HD constexpr Word gradient_factor(Word count, operand<Word> rstd) {
  return mul(div(Word(binary32::one), count), rstd);
}
template <class Word>
SAMEBITS_HD constexpr Word layer_norm_gradient_element(operand<Word> x, operand<Word> grad,
                                                       operand<Word> weight,
                                                       const gradient_sums<Word>& s) {
  const Word normal = mul(sub<Word>(x, s.mean), s.rstd);
  const Word own = mul(s.count, weight);
  const Word rest = fma(own, grad, neg(mul(normal, s.product)));
  return mul(sub(rest, s.sum), s.factor);
}

/// grad[i] = the gradient of x[i], where grad[i] is that of the result. `weight` may be null: ones.
/// RMSNorm's gradient has a mean of +0 and no sum.
SAMEBITS_HD constexpr void layer_norm_gradient_row(const std::uint32_t* x, const row_statistics& s,
                                                   const std::uint32_t* weight, std::uint32_t* grad,
                                                   std::int64_t n, bool rms = false) {
  const row_order order = layer_norm_gradient_order(n);
  const auto weight_at = [&](std::int64_t i) {
    return weight == nullptr ? binary32::one : weight[i];
  };
  const auto weighted = [&](std::int64_t i) { return ptx::mul(grad[i], weight_at(i)); };
  const std::uint32_t sum = rms ? 0 : row_sum(order, n, weighted);
  const std::uint32_t product = row_total(order, n, [&](std::uint32_t total, std::int64_t i) {
    return with_product(total, weighted(i), x[i], s.mean, s.rstd);
  });
  const std::uint32_t count = ptx::from_int(static_cast<std::uint32_t>(n));
  const gradient_sums<std::uint32_t> sums{s.mean, s.rstd,  count,
                                          sum,    product, gradient_factor(count, s.rstd)};
  for (std::int64_t i = 0; i < n; ++i) {
    grad[i] = layer_norm_gradient_element<std::uint32_t>(x[i], grad[i], weight_at(i), sums);
  }
}

/// RMSNorm's 1 / sqrt(mean square + epsilon): of a sum of `count` squares, by the kernel that reads
/// vectors.
template <class Word>
SAMEBITS_HD constexpr Word rms_rstd_of_squares(Word squares, operand<Word> count,
                                               operand<Word> epsilon) {
  return cuda_13_0::rsqrt<Word>(add(div(squares, count), epsilon));
}
/// The same of a row's moments, by the kernel that reads single elements.
template <class Word>
SAMEBITS_HD constexpr Word rms_rstd_of_moments(const moments<Word>& m, operand<Word> epsilon) {
  return cuda_13_0::rsqrt<Word>(add(fma(m.mean, m.mean, div(m.squares, m.count)), epsilon));
}

/// x[i] = x[i] * rstd * weight[i]; returns rstd. `weight` may be null: ones.
SAMEBITS_HD constexpr std::uint32_t rms_norm_row(std::uint32_t* x, std::int64_t n,
                                                 const std::uint32_t* weight, std::uint32_t epsilon,
                                                 bool vectors) {
  const auto square = [&](std::uint32_t sum, std::int64_t i) { return ptx::fma(x[i], x[i], sum); };
  const std::uint32_t rstd =
      vectors ? rms_rstd_of_squares(row_total(layer_norm_gradient_order(n), n, square),
                                    ptx::from_int(static_cast<std::uint32_t>(n)), epsilon)
              : rms_rstd_of_moments(row_moments(x, n, vectors), epsilon);
  for (std::int64_t i = 0; i < n; ++i) {
    x[i] = ptx::mul(x[i], rstd);
    if (weight != nullptr) x[i] = ptx::mul(weight[i], x[i]);
  }
  return rstd;
}

}  // namespace samebits::numerics::torch_2_11
