// Scaled dot product attention, forward and backward, with the bits that PyTorch returns on a GPU.
//
//   // o = F.scaled_dot_product_attention(q, k, v, is_causal=True) of bf16 tensors on an H200
//   const std::int64_t shape[] = {2, 12, 256, 64}, strides[] = {12 * 256 * 64, 256 * 64, 64, 1};
//   std::vector<samebits::bf16> q(2 * 12 * 256 * 64), k(q), v(q), o(q);
//   const auto of = [&](auto& x) {
//     return samebits::tensor_view{x.data(), samebits::format_id::bf16, shape, strides};
//   };
//   samebits::attention(of(q), of(k), of(v), of(o), {},
//                       {.kernel = samebits::attention_kernel::cudnn, .causal = true});
#pragma once

#include <cstdint>
#include <span>

#include "samebits/axis_reductions.hpp"
#include "samebits/backend.hpp"
#include "samebits/core/attention.hpp"
#include "samebits/core/format.hpp"
#include "samebits/view.hpp"

namespace samebits {

/// A writable tensor of any number of axes.
struct tensor_view {
  void* data = nullptr;
  format_id format = format_id::fp32;
  std::span<const std::int64_t> shape = {};
  std::span<const std::int64_t> strides = {};  ///< in elements, one per axis, >= 0
  memory_space space = memory_space::host;

  // NOLINTNEXTLINE(google-explicit-constructor): a writable view is also readable
  operator const_tensor_view() const { return {data, format, shape, strides, space}; }
};

/// Options of attention() and attention_backward().
struct attention_options {
  /// Whose bits the call returns (contract §16).
  attention_kernel kernel = attention_kernel::flash;
  bool causal = false;  ///< query i sees keys 0 to i; requires as many keys as queries
  float scale = 0;      ///< of the scores, finite and > 0; 0: 1 / sqrt(head dimension)
  /// Streaming multiprocessors of the GPU, >= 1: an H100 and an H200 have 132. FlashAttention
  /// splits the keys, and the sum of dQ, so that blocks fill the GPU.
  int multiprocessors = 132;
  /// Forward of `flash`: parts of the keys, 1 to 128; 0: as many as PyTorch chooses.
  int splits = 0;
  float dropout = 0;  ///< probability; another value than 0 has no rule
};

/// Computes out = softmax(scale * q k^T) v for each head.
///
/// Every NaN result is the canonical NaN. If a query sees no key, or its sum is NaN, `lse` is Inf.
///
/// @param q  [batch, heads, queries, head dimension] in fp16 or bf16, host memory, no axis empty
/// @param k,v  [batch, heads, keys, head dimension], the format of `q`
/// @param out  the shape and format of `q`
/// @param lse  [batch, heads, queries] in fp32: the logarithm of each query's sum of exponentials;
///   data null: not wanted
/// @param options  kernel, mask and scale
/// @param where  backend and threads; threads share the heads
/// @throws invalid_argument, before anything is written, if:
///   - an enumerator is none of its type, or an option is out of its range;
///   - a tensor has not its number of axes, a shape does not fit that of `q`, or an axis is empty;
///   - formats differ, `lse` is not fp32, or memories differ;
///   - strides are not one per axis and >= 0, or those of a result are not positive where an axis
///     has more than one element;
///   - `causal` is set and the numbers of queries and keys differ;
///   - data is null (`lse` apart), or elements of a result share memory with another tensor;
///   - the backend's name is unknown.
/// @throws unsupported for what has no rule: the kernels `efficient` and `flash_3`, dropout, heads
///   of k and v that groups of queries share, head dimensions other than 64 and 128, formats other
///   than fp16 and bf16, `splits` of other kernels than `flash`, `lse` of `math`, one query of
///   `cudnn` or `math`, one key of `math`; for device memory; or if this machine lacks the backend
/// @note Thread-safe. The result does not depend on the executor.
void attention(const const_tensor_view& q, const const_tensor_view& k, const const_tensor_view& v,
               const tensor_view& out, const tensor_view& lse, const attention_options& options,
               const executor& where = {});

/// The tensors that attention_backward() reads.
struct attention_results {
  const_tensor_view q, k, v;  ///< as attention() had them
  const_tensor_view out;      ///< attention()'s result; `math` does not read it
  const_tensor_view lse;      ///< [batch, heads, queries], attention()'s; `math` does not read it
};

/// Computes the gradients of q, k and v from the gradient of out.
///
/// For `flash` these are the bits under torch.use_deterministic_algorithms(True); otherwise
/// PyTorch adds dQ in an order that is not fixed.
///
/// @param grad  the gradient of `out`, in its shape and format
/// @param of  attention()'s operands and results
/// @param dq,dk,dv  the shapes and formats of q, k and v; data null: not wanted
/// @throws as attention() does; also unsupported for the dQ of `cudnn` with more than 256 keys,
///   which differs from run to run on the GPU
/// @note Thread-safe. The result does not depend on the executor.
void attention_backward(const const_tensor_view& grad, const attention_results& of,
                        const tensor_view& dq, const tensor_view& dk, const tensor_view& dv,
                        const attention_options& options, const executor& where = {});

}  // namespace samebits
