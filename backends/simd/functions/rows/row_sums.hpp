// Row sums: sums of a row's elements on SIMD lanes, in the order of PyTorch's and Triton's CUDA
// kernels (numerics/hardware/torch_operators/row_order.hpp). One lane computes as one CUDA thread.
//
// convert_kernel.hpp says what code may be used here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/dispatch/calls/row_functions.hpp"
#include "numerics/bits/word.hpp"
#include "samebits/core/config.hpp"

namespace samebits::simd {

namespace torch = numerics::torch_2_11;

/// Words behind an array that lanes may read and overwrite.
inline constexpr int lane_padding = 16;
alignas(64) inline constexpr std::uint32_t first_numbers[lane_padding] = {
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

template <class Isa>
SAMEBITS_INLINE typename Isa::word load(const std::uint32_t* p) {
  return Isa::template load<32>(reinterpret_cast<const std::byte*>(p));
}
template <class Isa>
SAMEBITS_INLINE void store(std::uint32_t* p, typename Isa::word x) {
  Isa::template store<32>(reinterpret_cast<std::byte*>(p), x);
}

/// Elements that consecutive threads add at the same time: thread + t adds element
/// first + t * stride, for t < count.
struct row_step {
  int thread;
  std::int64_t first;
  std::int64_t stride;
  std::int64_t count;
};

SAMEBITS_INLINE std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

/// Calls step(row_step) for all elements of a row. The steps of each thread are in rising order, as
/// row_order::thread_of() says.
template <class Step>
SAMEBITS_INLINE void for_each_step(const torch::row_order& order, std::int64_t n,
                                   const Step& step) {
  const std::int64_t threads = order.threads, vector = order.vector;
  if (order.head > 0) step(row_step{static_cast<int>(order.shift), 0, 1, order.head});
  const std::int64_t end = order.head + order.body;
  for (std::int64_t first = order.head; first < end; first += threads * vector) {
    for (std::int64_t j = 0; j < smaller(vector, end - first); ++j) {
      const std::int64_t vectors = (end - first - j + vector - 1) / vector;
      step(row_step{0, first + j, vector, smaller(vectors, threads)});
    }
  }
  for (std::int64_t first = end; first < n; first += threads) {
    step(row_step{0, first, 1, smaller(n - first, threads)});
  }
}

/// The elements of x that threads t, t + 1, ... of a step add. Reads up to 8 * 16 words behind the
/// step's last element.
template <class Isa>
SAMEBITS_INLINE typename Isa::word elements(const std::uint32_t* x, const row_step& step,
                                            std::int64_t t) {
  using lanes = typename Isa::word;
  const std::uint32_t* const p = x + step.first + t * step.stride;
  if (step.stride == 1) return load<Isa>(p);
  return gather(p,
                product(load<Isa>(first_numbers), lanes(static_cast<std::uint32_t>(step.stride))));
}

/// One sum of each thread.
template <class Isa>
struct thread_words {
  using value = typename Isa::word;
  std::uint32_t words[torch::max_threads + lane_padding] = {};

  [[nodiscard]] SAMEBITS_INLINE value load(int t) const { return simd::load<Isa>(words + t); }
  SAMEBITS_INLINE void store(int t, value x) { simd::store<Isa>(words + t, x); }
  SAMEBITS_INLINE void copy(int to, const thread_words& from, int t) { words[to] = from.words[t]; }
  SAMEBITS_INLINE static value chosen(numerics::mask_of<value> m, value a, value b) {
    return select(m, a, b);
  }
};

/// Moments of each thread, for LayerNorm.
template <class Isa>
struct thread_moments {
  using value = torch::moments<typename Isa::word>;
  std::uint32_t mean[torch::scalar_layer_norm_threads + lane_padding] = {};
  std::uint32_t squares[torch::scalar_layer_norm_threads + lane_padding] = {};
  std::uint32_t count[torch::scalar_layer_norm_threads + lane_padding] = {};

  [[nodiscard]] SAMEBITS_INLINE value load(int t) const {
    return {simd::load<Isa>(mean + t), simd::load<Isa>(squares + t), simd::load<Isa>(count + t)};
  }
  SAMEBITS_INLINE void store(int t, const value& m) {
    simd::store<Isa>(mean + t, m.mean);
    simd::store<Isa>(squares + t, m.squares);
    simd::store<Isa>(count + t, m.count);
  }
  SAMEBITS_INLINE void copy(int to, const thread_moments& from, int t) {
    mean[to] = from.mean[t];
    squares[to] = from.squares[t];
    count[to] = from.count[t];
  }
  SAMEBITS_INLINE static value chosen(numerics::mask_of<typename Isa::word> m, const value& a,
                                      const value& b) {
    return {select(m, a.mean, b.mean), select(m, a.squares, b.squares),
            select(m, a.count, b.count)};
  }
};

/// threads[t] = add(threads[t], step, t) for every element of a row.
template <class Isa, class Threads, class Add>
SAMEBITS_INLINE void add_elements(const torch::row_order& order, std::int64_t n, Threads& threads,
                                  const Add& add_element) {
  using lanes = typename Isa::word;
  for_each_step(order, n, [&](const row_step& step) {
    for (std::int64_t t = 0; t < step.count; t += lanes::count) {
      const auto left = static_cast<std::uint32_t>(smaller(step.count - t, lanes::count));
      const int thread = step.thread + static_cast<int>(t);
      const auto before = threads.load(thread);
      const auto after = add_element(before, step, t);
      threads.store(thread, Threads::chosen(load<Isa>(first_numbers) < lanes(left), after, before));
    }
  });
}

/// As torch::fold_halves() on `count` threads from `first`. Overwrites up to lane_padding threads.
template <class Isa, class Threads, class Combine>
SAMEBITS_INLINE void fold_halves(Threads& threads, int first, int count, const Combine& combine) {
  for (int step = count / 2; step > 0; step /= 2) {
    for (int t = first; t < first + step; t += Isa::word::count) {
      threads.store(t, combine(threads.load(t), threads.load(t + step)));
    }
  }
}

/// As torch::fold_warps(), with zeros in lanes beyond the warps. The result is thread 0 of the
/// returned threads.
template <class Isa, class Threads, class Combine>
SAMEBITS_INLINE Threads fold_warps(Threads& threads, int count, int lanes_of_warps,
                                   const Combine& combine) {
  Threads of_warps;
  for (int warp = 0; warp < count / torch::warp_lanes; ++warp) {
    fold_halves<Isa>(threads, warp * torch::warp_lanes, torch::warp_lanes, combine);
    of_warps.copy(warp, threads, warp * torch::warp_lanes);
  }
  fold_halves<Isa>(of_warps, 0, lanes_of_warps, combine);
  return of_warps;
}

/// As torch::combined(); the sum in all lanes.
template <class Isa>
SAMEBITS_INLINE typename Isa::word combined(const torch::row_order& order,
                                            thread_words<Isa>& sums) {
  using lanes = typename Isa::word;
  const auto plus = [](lanes a, lanes b) { return add(a, b); };
  if (order.combine == torch::thread_sums::halves) {
    fold_halves<Isa>(sums, 0, order.threads, plus);
    return sums.words[0];
  }
  if (order.combine == torch::thread_sums::warps) {
    return fold_warps<Isa>(sums, order.threads, torch::warp_lanes, plus).words[0];
  }
  lanes total = 0u;
  for (int warp = 0; warp < order.threads / torch::warp_lanes; ++warp) {
    lanes sum = 0u;
    for (int lane = 0; lane < torch::warp_lanes; ++lane) {
      sum = add(sum, lanes(sums.words[warp * torch::warp_lanes + lane]));
    }
    total = add(total, sum);
  }
  return total;
}

/// The sum of x[0], ..., x[n - 1] in all lanes. Reads up to row_padding words behind x[n].
template <class Isa>
SAMEBITS_INLINE typename Isa::word row_sum(const torch::row_order& order, std::int64_t n,
                                           const std::uint32_t* x) {
  using lanes = typename Isa::word;
  thread_words<Isa> sums;
  add_elements<Isa>(order, n, sums, [&](lanes sum, const row_step& step, std::int64_t t) {
    return add(sum, elements<Isa>(x, step, t));
  });
  return combined<Isa>(order, sums);
}

}  // namespace samebits::simd
