// Row vectors: loads vectors of elements of one row from all operands of a call, and stores them.
#pragma once

#include <cstdint>

#include "backends/cuda/functions/rows/row_formats.cuh"
#include "backends/cuda/functions/rows/row_operands.cuh"
#include "backends/dispatch/calls/row_functions.hpp"
#include "numerics/hardware/torch_operators/scores.hpp"

namespace samebits::cuda {

namespace torch = numerics::torch_2_11;

/// An element of a row. `grad`, `weight` and `bias` are 0 if the call lacks them. In the gradient of
/// scores `weight` is not 0 where a mask fills.
template <class Word>
struct row_element {
  Word x, grad, weight, bias;
  std::int64_t index;
  int number;  ///< of the thread's elements, in the order in which it adds them: 0, 1, ...
};

template <class Numbers, row_function F>
class row_vectors {
 public:
  using word = typename Numbers::word;
  static constexpr int bytes = Numbers::bytes;
  static constexpr bool has_grad = backends::is_gradient(F);
  static constexpr bool of_norm = backends::is_norm(F);
  static constexpr bool of_sum = backends::adds_rows(F) && !has_grad;
  static constexpr bool of_scores = F == row_function::scaled_softmax;
  /// Whether a copy may hold the beginning of a row.
  static constexpr bool splits =
      Numbers::native && !has_grad && !of_norm && !backends::is_of_scores(F);

  __device__ __forceinline__ row_vectors(const row_launch& d, std::int64_t row)
      : numbers(d.format),
        n(d.orders.n),
        in(d.in, row),
        copy(d.in, row),
        grad(d.grad, row),
        weight(d.weight, 0),
        bias(d.bias, backends::adds_rows(F) && has_grad ? row : 0),
        sum(d.sum, row),
        out(d.out, row),
        visible(of_scores ? d.scores.visible(row, n) : n),
        scores(d.scores),
        mask(d.mask, masks(d) ? d.scores.mask_row_of(row) : 0),
        mask_bytes(d.mask, masks(d) ? d.scores.mask_row_of(row) : 0) {}

  /// Whether all operands have vectors of E elements at element i.
  template <int E>
  [[nodiscard]] __device__ __forceinline__ bool has_vectors_at(std::int64_t i) const {
    bool all = in.template has_vectors_at<E>(i);
    if constexpr (F != row_function::picked_log_softmax) {
      all = all && out.template has_vectors_at<E>(i);
    }
    if constexpr (has_grad || of_sum) all = all && grad.template has_vectors_at<E>(i);
    if constexpr (of_sum || of_scores) all = all && sum.template has_vectors_at<E>(i);
    if constexpr (of_norm) {
      all = all && (weight.data == nullptr || weight.template has_vectors_at<E>(i)) &&
            (bias.data == nullptr || bias.template has_vectors_at<E>(i));
    }
    return all;
  }

  /// The row that element i is read from.
  [[nodiscard]] __device__ __forceinline__ const operand_row<bytes>& source(std::int64_t i) const {
    if constexpr (splits) return i < copy_end ? copy : in;
    return in;
  }

  /// Codes of a weight's or a bias's vector; zeros if the call lacks it, or not `wanted`.
  template <int E>
  [[nodiscard]] static __device__ __forceinline__ row_codes<bytes, E> column_codes(
      const operand_row<bytes>& of, std::int64_t i, bool wanted) {
    if constexpr (!of_norm) return {};
    return wanted && of.data != nullptr ? of.template load<E>(i) : row_codes<bytes, E>{};
  }

  /// Codes of the weights of elements from element i on. In the gradient of scores they are the codes of
  /// a mask that fills.
  template <int E>
  [[nodiscard]] __device__ __forceinline__ row_codes<bytes, E> weight_codes(std::int64_t i,
                                                                            bool wanted) const {
    if constexpr (F == row_function::scaled_softmax_gradient) {
      return wanted && scores.mask == torch::mask_use::fills ? codes_of_mask<E>(mask_bytes, i)
                                                             : row_codes<bytes, E>{};
    } else {
      return column_codes<E>(weight, i, wanted);
    }
  }

  /// Codes of softmax's argument, from those of the scores from element i on.
  template <int E>
  [[nodiscard]] __device__ __forceinline__ row_codes<bytes, E> masked(
      std::int64_t i, const row_codes<bytes, E>& x) const {
    row_codes<bytes, E> m{};
    if (scores.mask == torch::mask_use::fills) m = codes_of_mask<E>(mask_bytes, i);
    if (scores.mask == torch::mask_use::added) m = codes_of_mask<E>(mask, i);
    word y[E];
#pragma unroll
    for (int k = 0; k < E; ++k) {
      y[k] = i + k < visible ? torch::masked_score(scores, numbers, numbers.value(x.code(k)),
                                                   numbers.value(m.code(k)))
                             : word(numerics::binary32::sign_bit | numerics::binary32::inf);
    }
    return numbers.codes(y);
  }

  /// The elements from element i on, whose codes are x, g, w and b.
  template <int E>
  __device__ __forceinline__ void decode(std::int64_t i, int number, const row_codes<bytes, E>& x,
                                         const row_codes<bytes, E>& g, const row_codes<bytes, E>& w,
                                         const row_codes<bytes, E>& b,
                                         row_element<word> (&v)[E]) const {
#pragma unroll
    for (int k = 0; k < E; ++k) {
      v[k] = {numbers.value(x.code(k)),
              has_grad ? numbers.value(g.code(k)) : word(0u),
              numbers.value(w.code(k)),
              numbers.value(b.code(k)),
              i + k,
              number + k};
    }
  }
  template <int E>
  __device__ __forceinline__ void load(std::int64_t i, int number,
                                       row_element<word> (&v)[E]) const {
    row_codes<bytes, E> g{};
    if constexpr (has_grad) g = grad.template load<E>(i);
    decode<E>(i, number, source(i).template load<E>(i), g, weight_codes<E>(i, true),
              column_codes<E>(bias, i, true), v);
  }

  /// Codes of x + added, which it stores as the sum's.
  template <int E>
  __device__ __forceinline__ row_codes<bytes, E> store_sum(std::int64_t i,
                                                           const row_codes<bytes, E>& x,
                                                           const row_codes<bytes, E>& added) const {
    word y[E];
#pragma unroll
    for (int k = 0; k < E; ++k) y[k] = add(numbers.value(x.code(k)), numbers.value(added.code(k)));
    const row_codes<bytes, E> codes = numbers.codes(y);
    sum.template store<E>(i, codes);
    return codes;
  }

  /// out = f(element, its register) for a vector inside the row, after finish(array of results).
  template <int E, class Function, class Finish>
  __device__ __forceinline__ void store(const row_element<word> (&v)[E], int reg, const Function& f,
                                        const Finish& finish, bool inside = true) const {
    word y[E];
#pragma unroll
    for (int k = 0; k < E; ++k) y[k] = f(v[k], reg + k);
    finish(y);
    if (inside) out.template store<E>(v[0].index, numbers.codes(y));
  }

  Numbers numbers;
  std::int64_t n;
  operand_row<bytes> in, copy, grad, weight, bias, sum, out;
  std::int64_t copy_end = 0;  ///< elements before it are read from `copy`
  std::int64_t visible;       ///< columns of scores that the diagonal does not hide

 private:
  [[nodiscard]] static __device__ __forceinline__ bool masks(const row_launch& d) {
    return backends::is_of_scores(F) && d.scores.mask != torch::mask_use::none;
  }
  /// Codes of a row of the mask, or its bytes; it need not have vectors.
  template <int E, int Bytes>
  [[nodiscard]] static __device__ __forceinline__ row_codes<bytes, E> codes_of_mask(
      const operand_row<Bytes>& of, std::int64_t i) {
    row_codes<bytes, E> m{};
    if constexpr (E > 1 && E * Bytes % 4 == 0) {  // other codes are not packed
      if (of.template has_vectors_at<E>(i)) {
        const auto x = of.template load<E>(i);
#pragma unroll
        for (int k = 0; k < E; ++k) m.set(k, x.code(k));
        return m;
      }
    }
#pragma unroll
    for (int k = 0; k < E; ++k) m.set(k, of.load(i + k));
    return m;
  }

  const torch::score_rule& scores;
  operand_row<bytes> mask;
  operand_row<1> mask_bytes;
};

}  // namespace samebits::cuda
