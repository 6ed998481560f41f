// Rows in memory: every pass over a row reads it again, from the tensor or from a copy in shared
// memory. For every order of sums: a thread t of T computes as PyTorch's threads t, t + T, ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/cuda/functions/rows/row_sums.cuh"
#include "backends/cuda/functions/rows/row_vectors.cuh"
#include "numerics/arithmetic/binary32.hpp"

namespace samebits::cuda {

/// Enqueues a copy of 16 aligned bytes into shared memory. No register holds them, so a thread may have
/// all of its copies under way.
__device__ __forceinline__ void copy_later(std::byte* to, const std::byte* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(to))),
               "l"(from)
               : "memory");
}
/// Copies n elements of a row to `to` in shared memory, which is aligned to 4 bytes. They are there for
/// this thread at its return.
template <int Bytes>
__device__ __forceinline__ void copy_row(const operand_row<Bytes>& from, std::byte* to,
                                         std::int64_t n, int thread, int threads) {
  const operand_row<Bytes> dense(to);
  constexpr int vector = 16 / Bytes;
  const auto misaligned = [](const std::byte* p) {
    return static_cast<int>(reinterpret_cast<std::uintptr_t>(p) % 16);
  };
  std::int64_t head = n, body = 0;  // elements before the first vector, vectors
  if (from.contiguous && misaligned(from.data) == misaligned(to)) {
    const std::int64_t to_vector = (16 - misaligned(to)) % 16 / Bytes;
    head = to_vector < n ? to_vector : n;
    body = (n - head) / vector;
  }
  for (std::int64_t v = thread; v < body; v += threads) {
    const std::int64_t at = head * Bytes + v * 16;
    copy_later(to + at, from.data + at);
  }
  for (std::int64_t i = thread; i < head; i += threads) dense.store(i, from.load(i));
  for (std::int64_t i = head + body * vector + thread; i < n; i += threads) {
    dense.store(i, from.load(i));
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
}

/// Elements of the memory of one row's copy.
[[nodiscard]] SAMEBITS_HD constexpr std::int64_t copied_elements(std::int64_t n, int bytes) {
  const int vector = 16 / bytes;
  return (n + 2 * vector - 1) / vector * vector;
}

/// `V`: elements of a vector that is loaded at once, if PyTorch's threads add such vectors. `Copied`:
/// whether the row is read from a copy in shared memory.
template <class Numbers, row_function F, int V, bool Copied>
class row_in_memory {
 public:
  using numbers = Numbers;
  using word = typename Numbers::word;
  using element = row_element<word>;
  using vectors = row_vectors<Numbers, F>;
  static constexpr row_function function = F;
  static constexpr bool takes_any_call = true;  ///< as in row_in_registers

  /// `copy`: shared memory for the row, of two rows with a gradient, if Copied, else for its first
  /// d.copied elements. `words`: shared memory
  /// of a word for each of PyTorch's threads.
  __device__ __forceinline__ row_in_memory(const row_launch& d, row_threads<word>& with,
                                           std::int64_t at, std::byte* copy, word* words)
      : launch(d),
        threads(with),
        row(at),
        vectors_(d, at),
        order_(d.has_order ? d.order : d.orders.of_row(at)),
        words_(words) {
    constexpr int bytes = Numbers::bytes;
    if constexpr (Copied) {
      const auto place = [&](operand_row<bytes>& of, std::int64_t first) {
        std::byte* const to = copy + (first + order_.shift) * bytes;
        copy_row(of, to, vectors_.n, threads.index(), threads.count());
        of = operand_row<bytes>(to);
      };
      place(vectors_.in, 0);
      if constexpr (backends::is_gradient(F))
        place(vectors_.grad, copied_elements(vectors_.n, bytes));
      if constexpr (vectors::of_scores) vectors_.sum = vectors_.in;
      __syncthreads();
    }
    if constexpr (!Copied && vectors::splits) {
      if (d.copied > 0) {
        std::byte* const to = copy + order_.shift * bytes;
        const std::int64_t count = d.copied < vectors_.n ? d.copied : vectors_.n;
        copy_row(vectors_.in, to, count, threads.index(), threads.count());
        vectors_.copy = operand_row<bytes>(to);
        vectors_.copy_end = count - V + 1;  // of first elements of vectors
        __syncthreads();
      }
    }
    has_vectors_ = V > 1 && order_.vector == V && vectors_.template has_vectors_at<V>(order_.head);
    if constexpr (vectors::of_sum || vectors::of_scores) {
      for (int part = 0; part < parts(); ++part) {
        visit_places(part, [&]<int E>(index i, int) {
          const auto x = vectors_.in.template load<E>(i);
          if constexpr (vectors::of_scores) {
            vectors_.sum.template store<E>(i, vectors_.template masked<E>(i, x));
          } else {
            vectors_.template store_sum<E>(i, x, vectors_.grad.template load<E>(i));
          }
        });
      }
      vectors_.in = vectors_.sum;  // a thread reads what it has stored
    }
  }

  [[nodiscard]] __device__ __forceinline__ word largest() const {
    typename Numbers::largest max;
    for (int part = 0; part < parts(); ++part) {
      visit_places(part, [&]<int E>(index i, int) {
        max.template take<E>(vectors_.numbers, vectors_.source(i).template load<E>(i));
      });
    }
    return max.value();
  }
  template <class Function, class Finish>
  __device__ __forceinline__ void store(const Function& f, const Finish& finish) const {
    for (int part = 0; part < parts(); ++part) {
      visit(part, [&]<int E>(const element(&v)[E]) { vectors_.store(v, 0, f, finish); });
    }
  }
  /// f itself.
  template <class Function>
  [[nodiscard]] __device__ __forceinline__ auto kept(const Function& f) const {
    return [f](const element& e, int) { return f(e); };
  }
  /// As row_in_registers::total().
  template <class Sum, class Add, class Both>
  [[nodiscard]] __device__ __forceinline__ Sum total(const Sum& zero, int lanes, const Add& add,
                                                     const Both& both) const {
    const auto of_part = [&](int part) {
      Sum sum = zero;
      visit(part, [&]<int E>(const element(&v)[E]) {
#pragma unroll
        for (int k = 0; k < E; ++k) sum = add(sum, v[k], 0);
      });
      return sum;
    };
    if constexpr (backends::is_gradient(F) && !backends::is_norm(F)) {
      if (order_.combine == torch::thread_sums::sequential) {
        return threads.fold_in_order(parts(), of_part, words_, both);
      }
    }
    return threads.fold_parts(parts(), of_part, zero, lanes, both);
  }

  const row_launch& launch;
  row_threads<word>& threads;
  std::int64_t row;

  [[nodiscard]] __device__ __forceinline__ word stored(word x) const {
    return vectors_.numbers.stored(x);
  }
  [[nodiscard]] __device__ __forceinline__ word number_of(std::uint32_t code) const {
    return vectors_.numbers.value(code);
  }
  [[nodiscard]] __device__ __forceinline__ word number_at(std::int64_t i) const {
    return number_of(vectors_.source(i).load(i));
  }
  /// Whether the thread adds element i.
  [[nodiscard]] __device__ __forceinline__ bool owns(std::int64_t i) const {
    return order_.thread_of(i) % threads.count() == threads.index();
  }
  __device__ __forceinline__ void store_at(std::int64_t i, word y) const {
    vectors_.out.store(i, vectors_.numbers.code(y));
  }
  /// n and 1 / n
  [[nodiscard]] static __device__ __forceinline__ word count(int n) {
    return from_int(word(static_cast<std::uint32_t>(n)));
  }
  [[nodiscard]] static __device__ __forceinline__ word reciprocal(int n) {
    return div(word(numerics::binary32::one), count(n));
  }

 private:
  using index = std::conditional_t<Copied, int, std::int64_t>;  ///< of a row's elements

  /// PyTorch's threads that one thread computes as.
  [[nodiscard]] __device__ __forceinline__ int parts() const {
    return order_.threads > threads.count() ? order_.threads / threads.count() : 1;
  }
  /// f(vector) for the vectors of one of PyTorch's threads, of V elements or of one: head, body, rest.
  template <class Function>
  __device__ __forceinline__ void visit(int part, const Function& f) const {
    visit_places(part, [&]<int E>(index i, int number) {
      element v[E];
      vectors_.load(i, number, v);
      f(v);
    });
  }
  /// f<elements>(first element, the number of the thread's elements before it)
  template <class Function>
  __device__ __forceinline__ void visit_places(int part, const Function& f) const {
    const int t = part * threads.count() + threads.index();
    if (row >= launch.rows || t >= order_.threads) return;
    const index head = static_cast<index>(order_.head), n = static_cast<index>(vectors_.n);
    const int shift = static_cast<int>(order_.shift);
    int number = 0;
    const auto one = [&](index i) { f.template operator()<1>(i, number++); };
    if (t >= shift && t - shift < head) one(t - shift);
    const index round = index{order_.vector} * order_.threads;
    const index end = head + static_cast<index>(order_.body);
    index i = head + index{t} * order_.vector;
    if constexpr (V > 1) {
      if (has_vectors_) {
        for (; i + V <= end; i += round, number += V) f.template operator()<V>(i, number);
      }
    }
    for (; i < end; i += round) {
      for (index k = i; k < i + order_.vector && k < end; ++k) one(k);
    }
    for (i = end + t; i < n; i += order_.threads) one(i);
  }

  vectors vectors_;
  torch::row_order order_;
  word* words_;
  bool has_vectors_;
};

}  // namespace samebits::cuda
