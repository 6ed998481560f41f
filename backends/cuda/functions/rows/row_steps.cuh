// Row steps: softmax, LayerNorm and others of one row, which the threads hold in registers
// (rows_in_registers.cuh) or read again for every pass (rows_in_memory.cuh). The steps of an element
// are those of numerics/hardware/torch_operators/row_softmax.hpp and row_layer_norm.hpp.
#pragma once

#include <cstdint>

#include "backends/cuda/functions/rows/row_operands.cuh"
#include "backends/cuda/functions/rows/row_sums.cuh"
#include "backends/dispatch/calls/row_functions.hpp"
#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/cuda_functions/exp.hpp"
#include "numerics/hardware/cuda_functions/log.hpp"
#include "numerics/hardware/torch_operators/row_layer_norm.hpp"
#include "numerics/hardware/triton_functions/full_divide.hpp"
#include "numerics/hardware/triton_functions/triton_functions.hpp"

namespace samebits::cuda {

namespace triton = numerics::triton_3_6;

/// The operations on one row. `Row` is row_in_registers or row_in_memory.
template <class Row>
struct row_steps {
  using word = typename Row::word;
  using element = typename Row::element;
  using statistics = torch::gradient_sums<word>;
  static constexpr row_function function = backends::plain_function(Row::function);

  const Row& row;

  template <class Add>
  [[nodiscard]] __device__ __forceinline__ word total(const Add& add_element) const {
    return row.total(word(0u), torch::warp_lanes, add_element,
                     [](word a, word b) { return add(a, b); });
  }
  /// The sum of term(element, register).
  template <class Term>
  [[nodiscard]] __device__ __forceinline__ word sum(const Term& term) const {
    return total([&](word before, const element& e, int reg) { return add(before, term(e, reg)); });
  }
  template <class Function>
  __device__ __forceinline__ void store(const Function& f) const {
    row.store(f, [](auto&) {});
  }
  /// torch::row_max(); either zero, if the largest numbers are zeros of both signs: exp(x - max) is
  /// the same for both, and the logarithm of the sum is not 0.
  [[nodiscard]] __device__ __forceinline__ word largest() const {
    const word lowest = numerics::binary32::sign_bit | numerics::binary32::inf;
    word max[1] = {row.largest()};
    return row.threads.template fold<1>(max, lowest, torch::warp_lanes,
                                        [](word a, word b) { return larger(a, b); });
  }

  __device__ __forceinline__ void softmax() const {
    const word max = largest();
    const auto powers = row.kept(
        [=](const element& e) { return numerics::cuda_13_0::exp<word>(torch::sub(e.x, max)); });
    const typename Row::numbers::divisor s(sum(powers));
    if constexpr (Row::takes_any_call) {
      row.store(powers, [&](auto& y) { s.divide(y); });
    } else {
      // Rows with other sums and powers are rare, or stored twice: their code stands apart.
      bool other = !s.is_usual();
      if (!other) {
        row.store(powers, [&](auto& y) {
          other |= s.is_small(y);
          s.divide_usual(y);
        });
      }
      if (other) row.store(powers, [&](auto& y) { s.divide_other(y); });
    }
  }
  __device__ __forceinline__ void triton_softmax() const {
    const word max = largest();
    const auto powers =
        row.kept([=](const element& e) { return triton::exp<word>(torch::sub(e.x, max)); });
    const word s = sum(powers);
    store([&](const element& e, int reg) { return triton::full_divide<word>(powers(e, reg), s); });
  }
  /// The logarithm of softmax of a row's numbers.
  struct logarithm {
    word max, of_sum;

    [[nodiscard]] __device__ __forceinline__ word operator()(word x) const {
      return torch::sub(torch::sub(x, max), of_sum);
    }
  };
  [[nodiscard]] __device__ __forceinline__ logarithm log_softmax_of_row() const {
    const word max = largest();
    const word s = sum([&](const element& e, int) {
      return numerics::cuda_13_0::exp<word>(torch::sub(e.x, max));
    });
    return {max, numerics::cuda_13_0::log<word>(s)};
  }
  __device__ __forceinline__ void log_softmax() const {
    const logarithm log = log_softmax_of_row();
    store([&](const element& e, int) { return log(e.x); });
  }
  /// Stores the log-probability of the row's target, if it is wanted: +0 if the row is ignored, NaN if
  /// the target is none of a class. Then, if Gradient, log_softmax_gradient() of nll_loss's gradient,
  /// whose sum is its one number that is not 0.
  template <bool Gradient>
  __device__ __forceinline__ void cross_entropy() const {
    const logarithm log = log_softmax_of_row();
    if (row.row >= row.launch.rows) return;
    const loss_launch& loss = row.launch.loss;
    const std::int64_t target = loss.targets[row.row];
    const bool ignored = target == loss.ignore_index;
    const bool valid = target >= 0 && target < row.launch.orders.n;
    // The thread that stores the target's element also reads it, before: `out` may be `in`.
    const bool own = valid ? row.owns(target) : row.threads.index() == 0;
    const word x = own && valid ? row.number_at(target) : word(0u);
    const word nan = numerics::binary32::nan;
    if (own && loss.picked != nullptr) {
      loss.picked[row.row] = ignored ? 0u : valid ? row.stored(log(x)).bits : nan.bits;
    }
    if constexpr (Gradient) {
      word factor = 0u;
      if (!ignored)
        factor = !valid ? nan : loss.factor == nullptr ? factor_of_row() : word(*loss.factor);
      const word s = add(word(0u), factor);
      const auto result = [&](word of, word grad) {
        return fma(neg(numerics::cuda_13_0::exp<word>(row.stored(log(of)))), s, grad);
      };
      const word of_target = result(x, factor);
      store([&](const element& e, int) { return result(e.x, word(0u)); });
      if (own && valid) row.store_at(target, of_target);
    }
  }
  __device__ __forceinline__ void softmax_gradient() const {
    const auto product = [&](const element& e) { return row.stored(mul(e.grad, e.x)); };
    const word s = sum([&](const element& e, int) { return product(e); });
    const std::int64_t visible = row.launch.scores.visible(row.row, row.launch.orders.n);
    store([&](const element& e, int) {
      const word y = fma(neg(e.x), s, product(e));
      if constexpr (backends::is_of_scores(Row::function)) {
        const bool hidden = e.index >= visible || e.weight != word(0u);
        return torch::score_gradient<word>(row.launch.scores, row.stored(y), hidden);
      } else {
        return y;
      }
    });
  }
  __device__ __forceinline__ void log_softmax_gradient() const {
    const word s = sum([](const element& e, int) { return e.grad; });
    store([&](const element& e, int) {
      return fma(neg(numerics::cuda_13_0::exp<word>(e.x)), s, e.grad);
    });
  }

  /// torch::row_moments()
  [[nodiscard]] __device__ __forceinline__ torch::moments<word> moments() const {
    using moments = torch::moments<word>;
    if (!Row::takes_any_call || row.launch.orders.vectors) {
      return row.total(
          moments{}, torch::layer_norm_threads / torch::warp_lanes,
          [&](const moments& m, const element& e, int) {
            const int n = e.number + 1;
            return torch::with_element<word>(m, e.x, row.count(n), row.reciprocal(n));
          },
          [](const moments& a, const moments& b) { return torch::together<word>(a, b); });
    }
    return row.total(
        moments{}, torch::warp_lanes,
        [](const moments& m, const element& e, int) {
          return torch::with_single_element<word>(m, e.x);
        },
        [](const moments& a, const moments& b) { return torch::together_of_singles<word>(a, b); });
  }
  __device__ __forceinline__ void layer_norm() const {
    const row_launch& d = row.launch;
    const torch::moments<word> m = moments();
    const word rstd = torch::rstd_of<word>(m, d.epsilon);
    put(d.mean, m.mean);
    put(d.rstd, rstd);
    const bool has_weight = d.weight.data != nullptr, has_bias = d.bias.data != nullptr;
    // `Both`: constants for the usual call; else the compiler selects for each element.
    const auto store_with = [&]<bool Both>() {
      store([&](const element& e, int) {
        const torch::element_affine<word> affine{Both || has_weight, Both || has_bias, e.weight,
                                                 e.bias};
        return torch::layer_norm_element<word>(e.x, m.mean, rstd, affine, e.index % 4 == 0,
                                               !Row::takes_any_call || d.orders.vectors);
      });
    };
    if (has_weight && has_bias) return store_with.template operator()<true>();
    store_with.template operator()<false>();
  }
  __device__ __forceinline__ void rms_norm() const {
    const row_launch& d = row.launch;
    const word epsilon = d.epsilon;
    const auto with_square = [](word s, const element& e, int) { return fma(e.x, e.x, s); };
    const word rstd = !Row::takes_any_call || d.orders.vectors
                          ? torch::rms_rstd_of_squares<word>(total(with_square), count(), epsilon)
                          : torch::rms_rstd_of_moments<word>(moments(), epsilon);
    put(d.rstd, rstd);
    const bool has_weight = d.weight.data != nullptr;
    store([&](const element& e, int) {
      const word y = mul(e.x, rstd);
      return has_weight ? mul(e.weight, y) : y;
    });
  }
  __device__ __forceinline__ void norm_gradient() const {
    const row_launch& d = row.launch;
    const bool rms = function == row_function::rms_norm_gradient;
    const word mean = rms ? word(0u) : get(d.mean), rstd = get(d.rstd);
    const bool has_weight = d.weight.data != nullptr;
    const auto weight = [&](const element& e) {
      return has_weight ? e.weight : word(numerics::binary32::one);
    };
    const auto weighted = [&](const element& e) { return mul(e.grad, weight(e)); };
    const word s = rms ? word(0u) : sum([&](const element& e, int) { return weighted(e); });
    const word product = total([&](word before, const element& e, int) {
      return torch::with_product<word>(before, weighted(e), e.x, mean, rstd);
    });
    const statistics of_row{mean, rstd,    count(),
                            s,    product, torch::gradient_factor<word>(count(), rstd)};
    store([&](const element& e, int) {
      const word y = torch::layer_norm_gradient_element<word>(e.x, e.grad, weight(e), of_row);
      return backends::adds_rows(Row::function) ? add(row.stored(y), e.bias) : y;
    });
  }

  __device__ __forceinline__ void compute() const {
    constexpr row_function f = function;
    if constexpr (f == row_function::softmax) {
      if (Row::takes_any_call && row.launch.orders.rule == function_rule::triton_3_6) {
        triton_softmax();
      } else {
        softmax();
      }
    } else if constexpr (f == row_function::log_softmax) {
      log_softmax();
    } else if constexpr (f == row_function::softmax_gradient) {
      softmax_gradient();
    } else if constexpr (f == row_function::log_softmax_gradient) {
      log_softmax_gradient();
    } else if constexpr (f == row_function::layer_norm) {
      layer_norm();
    } else if constexpr (f == row_function::rms_norm) {
      rms_norm();
    } else if constexpr (f == row_function::picked_log_softmax) {
      cross_entropy<false>();
    } else if constexpr (f == row_function::cross_entropy_gradient) {
      cross_entropy<true>();
    } else {
      norm_gradient();
    }
  }

 private:
  /// torch::loss_gradient_of() of the row's target, without a reduction.
  [[nodiscard]] __device__ __forceinline__ word factor_of_row() const {
    const loss_launch& loss = row.launch.loss;
    const std::uint32_t code = code_of_gradient<Row::numbers::bytes>(loss, row.row);
    const bool widened = loss.rule.loss_format == format_id::fp32;
    return row.stored(neg(widened ? word(code) : row.number_of(code)));
  }
  [[nodiscard]] __device__ __forceinline__ word count() const {
    return from_int(word(static_cast<std::uint32_t>(row.launch.orders.n)));
  }
  [[nodiscard]] __device__ __forceinline__ word get(const row_operand& v) const {
    return operand_row<4>(v, row.row).load(0);
  }
  /// Whether this thread stores the numbers of a row. A block of several rows may have threads
  /// behind the last row.
  [[nodiscard]] __device__ __forceinline__ bool writes_numbers() const {
    return row.threads.index() == 0 && row.row < row.launch.rows;
  }
  /// Stores a number of the row, if the call wants it.
  __device__ __forceinline__ void put(const row_operand& v, word x) const {
    if (v.data == nullptr || !writes_numbers()) return;
    operand_row<4>(v, row.row).store(0, torch::code_of<word>(format_id::fp32, x).bits);
  }
};

}  // namespace samebits::cuda
