// The kernel of functions of rows on SIMD lanes (`Isa`: steps_avx2.hpp, steps_avx512.hpp): the
// steps of numerics/hardware/torch_operators/row_softmax.hpp and row_layer_norm.hpp. Included by
// one file per instruction set, which defines nothing else. convert_kernel.hpp says what code may
// be used here.
//
// Loops over a row also compute up to 15 words behind the row.
#pragma once

#include <cstdint>

#include "backends/dispatch/calls/row_functions.hpp"
#include "backends/simd/functions/rows/row_sums.hpp"
#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/cuda_functions/exp.hpp"
#include "numerics/hardware/cuda_functions/log.hpp"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/torch_operators/row_layer_norm.hpp"
#include "numerics/hardware/torch_operators/scores.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"
#include "numerics/hardware/triton_functions/full_divide.hpp"
#include "numerics/hardware/triton_functions/triton_functions.hpp"
#include "samebits/core/config.hpp"

namespace samebits::simd {

namespace ptx = numerics::ptx;
namespace triton = numerics::triton_3_6;
namespace binary32 = numerics::binary32;
using backends::row_function;
using backends::row_task;

/// y[i] = f(x[i]) for i < n.
template <class Isa, class Function>
SAMEBITS_INLINE void transform(const std::uint32_t* x, std::uint32_t* y, std::int64_t n,
                               const Function& f) {
  for (std::int64_t i = 0; i < n; i += Isa::word::count) store<Isa>(y + i, f(load<Isa>(x + i)));
}
/// y[i] = f(x[i], y[i]) for i < n.
template <class Isa, class Function>
SAMEBITS_INLINE void combine_rows(const std::uint32_t* x, std::uint32_t* y, std::int64_t n,
                                  const Function& f) {
  for (std::int64_t i = 0; i < n; i += Isa::word::count) {
    store<Isa>(y + i, f(load<Isa>(x + i), load<Isa>(y + i)));
  }
}

/// Codes of results in the format of the row.
template <class Lanes>
SAMEBITS_INLINE Lanes code_of(const row_task& task, Lanes value) {
  return torch::code_of<Lanes>(task.format, value);
}

/// As torch::row_max(), in all lanes. If the largest numbers are zeros of both signs, the result
/// may be either zero: exp(x - max) is the same for both, and the logarithm of the sum is not 0.
template <class Isa>
SAMEBITS_INLINE typename Isa::word row_max(std::uint32_t* x, std::int64_t n) {
  using lanes = typename Isa::word;
  constexpr std::uint32_t lowest = binary32::sign_bit | binary32::inf;
  for (std::int64_t i = n; i < n + lane_padding; ++i) x[i] = lowest;
  lanes largest = lowest;
  for (std::int64_t i = 0; i < n; i += lanes::count) largest = larger(largest, load<Isa>(x + i));
  for (int step = lanes::count / 2; step > 0; step /= 2) {
    largest = larger(largest, lanes_from<Isa>(largest, step));
  }
  return of_lane_0<Isa>(largest);
}

/// y[i] = e^(x[i] - max) for i < n. In two loops over each chunk, because one number's chain of
/// steps is longer than what a processor has in flight: a third faster.
template <class Isa>
SAMEBITS_INLINE void exp_row(const std::uint32_t* x, std::uint32_t* y, std::int64_t n,
                             typename Isa::word max) {
  using lanes = typename Isa::word;
  constexpr std::int64_t size = 256;
  std::uint32_t scales[size];
  for (std::int64_t first = 0; first < n; first += size) {
    const std::int64_t end = smaller(first + size, n);
    for (std::int64_t i = first; i < end; i += lanes::count) {
      const auto of_x = numerics::cuda_13_0::exp_operands_of<lanes>(sub(load<Isa>(x + i), max));
      store<Isa>(y + i, of_x.exponent);
      store<Isa>(scales + (i - first), of_x.n_in_low_bits << 23u);
    }
    combine_rows<Isa>(
        scales, y + first, end - first,
        [](lanes scale, lanes exponent)
            __attribute__((always_inline)) { return mul(ex2_approx_ftz(exponent), scale); });
  }
}

template <class Isa>
SAMEBITS_INLINE void softmax_row(const row_task& task) {
  using lanes = typename Isa::word;
  const lanes max = row_max<Isa>(task.x, task.n);
  exp_row<Isa>(task.x, task.x, task.n, max);
  const lanes sum = row_sum<Isa>(task.order, task.n, task.x);
  transform<Isa>(task.x, task.x, task.n, [&](lanes x) { return code_of(task, div(x, sum)); });
}

template <class Isa>
SAMEBITS_INLINE void triton_softmax_row(const row_task& task) {
  using lanes = typename Isa::word;
  const lanes max = row_max<Isa>(task.x, task.n);
  transform<Isa>(task.x, task.x, task.n, [&](lanes x) { return triton::exp<lanes>(sub(x, max)); });
  const lanes sum = row_sum<Isa>(task.order, task.n, task.x);
  transform<Isa>(task.x, task.x, task.n,
                 [&](lanes x) { return code_of(task, triton::full_divide<lanes>(x, sum)); });
}

template <class Isa>
SAMEBITS_INLINE void log_softmax_row(const row_task& task) {
  using lanes = typename Isa::word;
  const lanes max = row_max<Isa>(task.x, task.n);
  exp_row<Isa>(task.x, task.grad, task.n, max);
  const lanes sum = row_sum<Isa>(task.order, task.n, task.grad);
  const auto logarithm = numerics::cuda_13_0::log<lanes>(sum);
  transform<Isa>(task.x, task.x, task.n,
                 [&](lanes x) { return code_of(task, sub(sub(x, max), logarithm)); });
}

template <class Isa>
SAMEBITS_INLINE void softmax_gradient_row(const row_task& task) {
  using lanes = typename Isa::word;
  combine_rows<Isa>(task.x, task.grad, task.n, [&](lanes y, lanes grad) {
    return torch::stored<lanes>(task.format, mul(grad, y));
  });
  const lanes sum = row_sum<Isa>(task.order, task.n, task.grad);
  combine_rows<Isa>(task.x, task.grad, task.n,
                    [&](lanes y, lanes grad) { return code_of(task, fma(neg(y), sum, grad)); });
}

template <class Isa>
SAMEBITS_INLINE void log_softmax_gradient_row(const row_task& task) {
  using lanes = typename Isa::word;
  const lanes sum = row_sum<Isa>(task.order, task.n, task.grad);
  exp_row<Isa>(task.x, task.x, task.n, 0u);
  combine_rows<Isa>(task.x, task.grad, task.n,
                    [&](lanes y, lanes grad) { return code_of(task, fma(neg(y), sum, grad)); });
}

/// As torch::row_moments(), in lane 0. `reciprocals`: scratch memory of n words.
template <class Isa>
SAMEBITS_INLINE torch::moments<typename Isa::word> row_moments(const std::uint32_t* x,
                                                               std::int64_t n, bool vectors,
                                                               std::uint32_t* reciprocals) {
  using lanes = typename Isa::word;
  using moments = torch::moments<lanes>;
  using of_warps = thread_moments<Isa, torch::warp_lanes>;
  thread_moments<Isa> threads;
  if (!vectors) {
    const torch::row_order order{torch::scalar_layer_norm_threads};
    add_elements<Isa>(order, n, threads, [&](const moments& m, const auto& of, std::int64_t) {
      return torch::with_single_element<lanes>(m, of(x));
    });
    const auto both = [](const moments& a, const moments& b) {
      return torch::together_of_singles<lanes>(a, b);
    };
    return fold_warps<Isa, of_warps>(threads, smaller(n, order.threads), torch::warp_lanes, both);
  }
  torch::row_order order{torch::layer_norm_threads, torch::thread_sums::warps, 4};
  order.body = n;
  for (std::int64_t i = 0; i < n / order.threads + order.vector; i += lanes::count) {
    const lanes number = load<Isa>(first_numbers) + lanes(static_cast<std::uint32_t>(i) + 1);
    store<Isa>(reciprocals + i, div(lanes(binary32::one), from_int(number)));
  }
  add_elements<Isa>(order, n, threads, [&](const moments& m, const auto& of, std::int64_t number) {
    return torch::with_element<lanes>(m, of(x), add(m.count, lanes(binary32::one)),
                                      lanes(reciprocals[number]));
  });
  const auto both = [](const moments& a, const moments& b) { return torch::together<lanes>(a, b); };
  return fold_warps<Isa, of_warps>(threads, smaller((n + 3) / 4, order.threads),
                                   order.threads / torch::warp_lanes, both);
}

template <class Isa>
SAMEBITS_INLINE typename Isa::word load_or_zero(const std::uint32_t* x, std::int64_t i) {
  return x != nullptr ? load<Isa>(x + i) : typename Isa::word(0u);
}

template <class Isa>
SAMEBITS_INLINE void layer_norm_row(const row_task& task) {
  using lanes = typename Isa::word;
  const auto lane_0 = row_moments<Isa>(task.x, task.n, task.vectors, task.grad);
  const torch::moments<lanes> m{of_lane_0<Isa>(lane_0.mean), of_lane_0<Isa>(lane_0.squares),
                                of_lane_0<Isa>(lane_0.count)};
  const auto rstd = torch::rstd_of<lanes>(m, lanes(task.epsilon));
  // i and the lanes' count are multiples of 4
  const auto first_of_vector = (load<Isa>(first_numbers) & lanes(3u)) == lanes(0u);
  for (std::int64_t i = 0; i < task.n; i += lanes::count) {
    const torch::element_affine<lanes> own{task.weight != nullptr, task.bias != nullptr,
                                           load_or_zero<Isa>(task.weight, i),
                                           load_or_zero<Isa>(task.bias, i)};
    const auto y = torch::layer_norm_element<lanes>(load<Isa>(task.x + i), m.mean, rstd, own,
                                                    first_of_vector, task.vectors);
    store<Isa>(task.x + i, code_of(task, y));
  }
  task.norms->mean = of_lane_0<Isa>(torch::code_of<lanes>(format_id::fp32, m.mean));
  task.norms->rstd = of_lane_0<Isa>(torch::code_of<lanes>(format_id::fp32, rstd));
}

/// RMSNorm's rstd, in lane 0.
template <class Isa>
SAMEBITS_INLINE typename Isa::word rms_rstd(const row_task& task) {
  using lanes = typename Isa::word;
  if (!task.vectors) {
    return torch::rms_rstd_of_moments<lanes>(row_moments<Isa>(task.x, task.n, false, task.grad),
                                             lanes(task.epsilon));
  }
  thread_words<Isa> squares;
  add_elements<Isa>(task.order, task.n, squares, [&](lanes sum, const auto& of, std::int64_t) {
    const lanes x = of(task.x);
    return fma(x, x, sum);
  });
  return torch::rms_rstd_of_squares<lanes>(combined<Isa>(task.order, squares),
                                           from_int(lanes(static_cast<std::uint32_t>(task.n))),
                                           lanes(task.epsilon));
}

template <class Isa>
SAMEBITS_INLINE void rms_norm_row(const row_task& task) {
  using lanes = typename Isa::word;
  const lanes rstd = of_lane_0<Isa>(rms_rstd<Isa>(task));
  for (std::int64_t i = 0; i < task.n; i += lanes::count) {
    const lanes y = mul(load<Isa>(task.x + i), rstd);
    store<Isa>(task.x + i,
               code_of(task, task.weight != nullptr ? mul(load<Isa>(task.weight + i), y) : y));
  }
  task.norms->rstd = of_lane_0<Isa>(torch::code_of<lanes>(format_id::fp32, rstd));
}

template <class Isa>
SAMEBITS_INLINE void layer_norm_gradient_row(const row_task& task) {
  using lanes = typename Isa::word;
  const lanes mean = task.norms->mean, rstd = task.norms->rstd;
  const auto weighted = [&](const auto& of) {
    return mul(of(task.grad), task.weight != nullptr ? of(task.weight) : lanes(binary32::one));
  };
  thread_words<Isa> sums, products;
  lanes sum = 0u;
  if (task.of == row_function::layer_norm_gradient) {
    add_elements<Isa>(task.order, task.n, sums, [&](lanes before, const auto& of, std::int64_t) {
      return add(before, weighted(of));
    });
    sum = combined<Isa>(task.order, sums);
  }
  add_elements<Isa>(task.order, task.n, products, [&](lanes before, const auto& of, std::int64_t) {
    return torch::with_product<lanes>(before, weighted(of), of(task.x), mean, rstd);
  });
  const lanes count = from_int(lanes(static_cast<std::uint32_t>(task.n)));
  const torch::gradient_sums<lanes> of_row{mean,
                                           rstd,
                                           count,
                                           sum,
                                           combined<Isa>(task.order, products),
                                           torch::gradient_factor<lanes>(count, rstd)};
  for (std::int64_t i = 0; i < task.n; i += lanes::count) {
    const lanes weight = task.weight != nullptr ? load<Isa>(task.weight + i) : lanes(binary32::one);
    const auto y = torch::layer_norm_gradient_element<lanes>(
        load<Isa>(task.x + i), load<Isa>(task.grad + i), weight, of_row);
    store<Isa>(task.grad + i, code_of(task, y));
  }
}

/// Makes scores softmax's argument.
template <class Isa>
SAMEBITS_INLINE void mask_scores(const row_task& task) {
  using lanes = typename Isa::word;
  const torch::tensor_numbers<lanes> numbers{task.format};
  combine_rows<Isa>(task.mask, task.x, task.n, [&](lanes mask, lanes x) {
    return numbers.stored(torch::masked_score<torch::tensor_numbers<lanes>, lanes>(
        *task.scores, numbers, x, numbers.value(mask)));
  });
  for (std::int64_t i = task.visible; i < task.n; ++i)
    task.x[i] = binary32::sign_bit | binary32::inf;
}

/// Makes codes of the gradient of softmax's argument those of the scores.
template <class Isa>
SAMEBITS_INLINE void score_gradients(const row_task& task) {
  using lanes = typename Isa::word;
  const torch::tensor_numbers<lanes> numbers{task.format};
  combine_rows<Isa>(task.mask, task.grad, task.n, [&](lanes mask, lanes grad) {
    return numbers.code(
        torch::score_gradient<lanes>(*task.scores, numbers.value(grad), mask != lanes(0u)));
  });
}

/// row_kernel of backends/dispatch/calls/row_functions.hpp.
template <class Isa>
SAMEBITS_INLINE void row_of(const row_task& task) {
  using lanes = typename Isa::word;
  const auto decode = [&](lanes code) { return torch::value_of<lanes>(task.format, code); };
  if (task.format != format_id::fp32) {
    transform<Isa>(task.x, task.x, task.n, decode);
    if (is_gradient(task.of)) transform<Isa>(task.grad, task.grad, task.n, decode);
  }
  if (task.scores != nullptr && task.of == row_function::softmax) mask_scores<Isa>(task);
  switch (task.of) {
    case row_function::softmax:
      if (task.rule == function_rule::triton_3_6) {
        triton_softmax_row<Isa>(task);
      } else {
        softmax_row<Isa>(task);
      }
      break;
    case row_function::log_softmax: log_softmax_row<Isa>(task); break;
    case row_function::softmax_gradient:
      softmax_gradient_row<Isa>(task);
      if (task.scores != nullptr) score_gradients<Isa>(task);
      break;
    case row_function::log_softmax_gradient: log_softmax_gradient_row<Isa>(task); break;
    case row_function::layer_norm: layer_norm_row<Isa>(task); break;
    case row_function::rms_norm: rms_norm_row<Isa>(task); break;
    case row_function::layer_norm_gradient:
    case row_function::rms_norm_gradient: layer_norm_gradient_row<Isa>(task); break;
    default: break;  // parts of device backends
  }
}

}  // namespace samebits::simd
