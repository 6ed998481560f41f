// Row sums: sums of a row's elements on SIMD lanes, in the order of PyTorch's and Triton's CUDA
// kernels (numerics/hardware/torch_operators/row_order.hpp). One lane computes as one CUDA thread.
//
// convert_kernel.hpp says what code may be used here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/dispatch/calls/row_functions.hpp"
#include "backends/simd/lanes/access.hpp"
#include "backends/simd/lanes/rule.hpp"
#include "numerics/bits/word.hpp"
#include "samebits/core/config.hpp"

namespace samebits::simd {

namespace torch = numerics::torch_2_11;

/// Words behind an array that lanes may read and overwrite.
inline constexpr int lane_padding = 16;
alignas(64) inline constexpr std::uint32_t first_numbers[lane_padding] = {
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/// Lane first + t of x in each lane t, modulo the lanes' count.
template <class Isa>
SAMEBITS_INLINE typename Isa::word lanes_from(typename Isa::word x, int first) {
  return permuted(x,
                  load<Isa>(first_numbers) + typename Isa::word(static_cast<std::uint32_t>(first)));
}
/// The word of lane 0.
template <class Isa>
SAMEBITS_INLINE std::uint32_t of_lane_0(typename Isa::word x) {
  std::uint32_t words[lane_padding];
  store<Isa>(words, x);
  return words[0];
}

/// Elements that consecutive threads add at the same time: thread + t adds element
/// first + t * stride, for t < count.
struct row_step {
  int thread;
  std::int64_t first;
  std::int64_t stride;
  std::int64_t count;
};

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

/// One sum of each of `Threads` threads.
template <class Isa, int Threads = torch::max_threads>
struct thread_words {
  using value = typename Isa::word;
  std::uint32_t words[static_cast<std::size_t>(Threads + lane_padding)];

  [[nodiscard]] SAMEBITS_INLINE value load(int t) const { return simd::load<Isa>(words + t); }
  SAMEBITS_INLINE void store(int t, value x) { simd::store<Isa>(words + t, x); }
  SAMEBITS_INLINE static value chosen(numerics::mask_of<value> m, value a, value b) {
    return select(m, a, b);
  }
  SAMEBITS_INLINE static value upper(value x, int first) { return lanes_from<Isa>(x, first); }
};

/// Moments of each thread, for LayerNorm.
template <class Isa, int Threads = torch::scalar_layer_norm_threads>
struct thread_moments {
  using value = torch::moments<typename Isa::word>;
  thread_words<Isa, Threads> mean, squares, count;

  [[nodiscard]] SAMEBITS_INLINE value load(int t) const {
    return {mean.load(t), squares.load(t), count.load(t)};
  }
  SAMEBITS_INLINE void store(int t, const value& m) {
    mean.store(t, m.mean);
    squares.store(t, m.squares);
    count.store(t, m.count);
  }
  SAMEBITS_INLINE static value chosen(numerics::mask_of<typename Isa::word> m, const value& a,
                                      const value& b) {
    return {select(m, a.mean, b.mean), select(m, a.squares, b.squares),
            select(m, a.count, b.count)};
  }
  SAMEBITS_INLINE static value upper(const value& m, int first) {
    return {lanes_from<Isa>(m.mean, first), lanes_from<Isa>(m.squares, first),
            lanes_from<Isa>(m.count, first)};
  }
};

/// Adds elements of a step, as add_elements() says.
template <class Isa, class Threads, class Add>
SAMEBITS_INLINE void add_step(const row_step& step, std::int64_t number, Threads& threads,
                              const Add& add_element) {
  using lanes = typename Isa::word;
  for (std::int64_t t = 0; t < step.count; t += lanes::count) {
    const auto left = static_cast<std::uint32_t>(smaller(step.count - t, lanes::count));
    const int thread = step.thread + static_cast<int>(t);
    const auto before = threads.load(thread);
    const auto of = [&](const std::uint32_t* x) { return elements<Isa>(x, step, t); };
    const auto after = add_element(before, of, number);
    threads.store(thread, Threads::chosen(load<Isa>(first_numbers) < lanes(left), after, before));
  }
}

/// Adds `rounds` times `vector` neighbours for each of `count` threads, from element `first` on.
/// The sums of one register of threads stay in this register. Requires a count that is a multiple
/// of the lanes, and a vector of 1, 4 or 8.
template <class Isa, class Threads, class Add>
SAMEBITS_INLINE void add_rounds(int count, int vector, std::int64_t first, std::int64_t rounds,
                                Threads& threads, const Add& add_element) {
  const std::int64_t end = first + rounds * count * vector;
  for (int t = 0; t < count; t += Isa::word::count) {
    auto sum = threads.load(t);
    std::int64_t number = 0;
    for (std::int64_t i = first + std::int64_t{t} * vector; i < end;
         i += std::int64_t{count} * vector) {
      if (vector == 1) {
        const auto of = [&](const std::uint32_t* x) { return load<Isa>(x + i); };
        sum = add_element(sum, of, number++);
        continue;
      }
      for (std::int64_t j = i; j < i + vector; j += 4) {
        const auto add_column = [&]<int C>(std::integral_constant<int, C>) {
          const auto of = [&](const std::uint32_t* x) {
            return Isa::template column<C>(x + j, vector);
          };
          sum = add_element(sum, of, number++);
        };
        add_column(std::integral_constant<int, 0>{});
        add_column(std::integral_constant<int, 1>{});
        add_column(std::integral_constant<int, 2>{});
        add_column(std::integral_constant<int, 3>{});
      }
    }
    threads.store(t, sum);
  }
}

/// Adds the elements from `first` to `end`: each of `count` threads adds `vector` neighbours, then
/// thread 0 goes on behind thread count - 1.
template <class Isa, class Threads, class Add>
SAMEBITS_INLINE void add_section(int count, int vector, std::int64_t first, std::int64_t end,
                                 Threads& threads, const Add& add_element) {
  const std::int64_t round = std::int64_t{count} * vector;
  const bool in_registers = count % Isa::word::count == 0 && (vector == 1 || vector % 4 == 0);
  const std::int64_t rounds = in_registers ? (end - first) / round : 0;
  if (rounds > 0) add_rounds<Isa>(count, vector, first, rounds, threads, add_element);
  std::int64_t number = rounds * vector;
  for (first += rounds * round; first < end; first += round) {
    for (std::int64_t j = 0; j < smaller(vector, end - first); ++j) {
      const std::int64_t vectors = (end - first - j + vector - 1) / vector;
      add_step<Isa>({0, first + j, vector, smaller(vectors, count)}, number++, threads,
                    add_element);
    }
  }
}

/// threads[t] = add_element(threads[t], of, number) for every element of a row, beginning with
/// zeros, in the order of row_order::thread_of(). of(x): the element of an array x. number:
/// elements that the thread added before, if the row is all body or has none.
template <class Isa, class Threads, class Add>
SAMEBITS_INLINE void add_elements(const torch::row_order& order, std::int64_t n, Threads& threads,
                                  const Add& add_element) {
  for (int t = 0; t < order.threads; t += Isa::word::count) threads.store(t, {0u});
  if (order.head > 0) {
    add_step<Isa>({static_cast<int>(order.shift), 0, 1, order.head}, 0, threads, add_element);
  }
  const std::int64_t end = order.head + order.body;
  add_section<Isa>(order.threads, order.vector, order.head, end, threads, add_element);
  add_section<Isa>(order.threads, 1, end, n, threads, add_element);
}

/// As torch::fold_halves() on `count` threads from `first`, in lane 0.
template <class Isa, class Threads, class Combine>
SAMEBITS_INLINE typename Threads::value fold_halves(Threads& threads, int first, int count,
                                                    const Combine& combine) {
  constexpr int lanes = Isa::word::count;
  for (; count > lanes; count /= 2) {
    for (int t = first; t < first + count / 2; t += lanes) {
      threads.store(t, combine(threads.load(t), threads.load(t + count / 2)));
    }
  }
  auto sum = threads.load(first);
  for (int step = count / 2; step > 0; step /= 2) {
    sum = combine(sum, Threads::upper(sum, step));
  }
  return sum;
}

/// As torch::fold_warps(), in lane 0, where only the first `used` threads have other sums than
/// zeros.
template <class Isa, class OfWarps, class Threads, class Combine>
SAMEBITS_INLINE typename Threads::value fold_warps(Threads& threads, std::int64_t used,
                                                   int lanes_of_warps, const Combine& combine) {
  OfWarps of_warps = {};
  const auto lane_0 = load<Isa>(first_numbers) == typename Isa::word(0u);
  for (int warp = 0; warp * torch::warp_lanes < used; ++warp) {
    const auto sum =
        fold_halves<Isa>(threads, warp * torch::warp_lanes, torch::warp_lanes, combine);
    of_warps.store(warp, OfWarps::chosen(lane_0, sum, {0u}));
  }
  return fold_halves<Isa>(of_warps, 0, lanes_of_warps, combine);
}

/// As torch::combined(); the sum in all lanes.
template <class Isa>
SAMEBITS_INLINE typename Isa::word combined(const torch::row_order& order,
                                            thread_words<Isa>& sums) {
  using lanes = typename Isa::word;
  const auto plus = [](lanes a, lanes b) { return add(a, b); };
  if (order.combine == torch::thread_sums::halves) {
    return of_lane_0<Isa>(fold_halves<Isa>(sums, 0, order.threads, plus));
  }
  if (order.combine == torch::thread_sums::warps) {
    return of_lane_0<Isa>(fold_warps<Isa, thread_words<Isa, torch::warp_lanes>>(
        sums, order.threads, torch::warp_lanes, plus));
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
  add_elements<Isa>(order, n, sums,
                    [&](lanes sum, const auto& of, std::int64_t) { return add(sum, of(x)); });
  return combined<Isa>(order, sums);
}

}  // namespace samebits::simd
