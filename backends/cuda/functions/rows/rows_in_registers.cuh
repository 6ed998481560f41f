// Rows in registers: the threads of a row load it once, in J vectors of V elements each, and hold the
// codes.
//
//   row  | t = 0 | t = 1 | ... | t = T - 1 | t = 0 | ...     V elements each
//
// A thread has the sums of A of PyTorch's threads, where A is V or 1: PyTorch's thread t * V + i adds
// the elements i of the vectors of thread t, or its thread t adds the vectors of thread t.
#pragma once

#include <cstdint>

#include "backends/cuda/functions/rows/row_sums.cuh"
#include "backends/cuda/functions/rows/row_vectors.cuh"
#include "numerics/arithmetic/binary32.hpp"

namespace samebits::cuda {

/// n and 1 / n for the elements of one thread.
struct count_table {
  static constexpr std::uint32_t most = 128;
  std::uint32_t of[most + 1], reciprocal[most + 1];
};
constexpr count_table make_counts() {
  count_table t = {};
  for (std::uint32_t n = 1; n <= count_table::most; ++n) {
    t.of[n] = numerics::ptx::from_int(n);
    t.reciprocal[n] = numerics::ptx::div(numerics::binary32::one, t.of[n]);
  }
  return t;
}
SAMEBITS_TABLE count_table counts = make_counts();

/// Requires rows of whole vectors, and operands that have such vectors. A vector behind the row is
/// computed with the others and not stored: its elements are -Inf, or gradients of 0, which change no
/// sum. The norms skip it.
template <class Numbers, row_function F, int V, int J, int A>
class row_in_registers {
 public:
  using numbers = Numbers;
  using word = typename Numbers::word;
  using element = row_element<word>;
  using vectors = row_vectors<Numbers, F>;
  static constexpr row_function function = F;
  /// Whether a call may have another rule than torch_2_11, or be of a norm without vectors.
  static constexpr bool takes_any_call = false;

  __device__ __forceinline__ row_in_registers(const row_launch& d, row_threads<word>& with,
                                              std::int64_t at)
      : launch(d),
        threads(with),
        row(at),
        vectors_(d, at),
        n_(at < d.rows ? static_cast<int>(d.orders.n) : 0) {
    constexpr std::uint32_t lowest = numerics::binary32::sign_bit | numerics::binary32::inf;
    const std::uint32_t code = has_grad ? 0u : vectors_.numbers.code(word(lowest));
    const auto load = [&](int j, bool inside) {
      const int i = first(j);
      if constexpr (vectors::of_scores) inside = inside && i < vectors_.visible;
      x_[j] = inside ? vectors_.in.template load_once<V>(i) : repeated(code);
      if constexpr (has_grad) {
        grad_[j] = inside ? vectors_.grad.template load_once<V>(i) : repeated(code);
      }
    };
#pragma unroll
    for (int c = 0; c < J; c += chunk) {
      const bool whole = is_whole(c);
#pragma unroll
      for (int j = c; j < c + chunk; ++j) load(j, whole || first(j) < n_);
    }
    if constexpr (vectors::of_sum) add_rows();
    if constexpr (vectors::of_scores) mask_scores();
  }

  /// Stores the results as dense elements at `to`, aligned to a vector.
  __device__ __forceinline__ void store_at(std::byte* to) {
    vectors_.out = operand_row<Numbers::bytes>(to);
  }

  /// f(element, its register) for the thread's elements.
  template <class Function>
  __device__ __forceinline__ void for_each(const Function& f) const {
    visit([&](const element(&v)[V], int reg, bool) {
#pragma unroll
      for (int k = 0; k < V; ++k) f(v[k], reg + k);
    });
  }
  template <class Function, class Finish>
  __device__ __forceinline__ void store(const Function& f, const Finish& finish) const {
    visit([&](const element(&v)[V], int reg, bool inside) {
      vectors_.store(v, reg, f, finish, inside);
    });
  }

  [[nodiscard]] __device__ __forceinline__ word largest() const {
    typename Numbers::largest max;
#pragma unroll
    for (int j = 0; j < J; ++j) max.template take<V>(vectors_.numbers, x_[j]);
    return max.value();
  }

  struct kept_words {
    word words[J * V];
    __device__ __forceinline__ word operator()(const element&, int reg) const { return words[reg]; }
  };
  /// k, so that k(element, register) is f(element).
  template <class Function>
  [[nodiscard]] __device__ __forceinline__ kept_words kept(const Function& f) const {
    kept_words k;
    // Without a value behind the row, these registers would be live from the kernel's first line on.
#pragma unroll
    for (word& w : k.words) w = 0u;
    for_each([&](const element& e, int reg) { k.words[reg] = f(e); });
    return k;
  }

  /// The sum of the row in the order of PyTorch's threads: a thread's sum becomes add(sum, element,
  /// register), from `zero` on; both(a, b) are the sums of two threads. `lanes`: as in
  /// torch::fold_warps().
  template <class Sum, class Add, class Both>
  [[nodiscard]] __device__ __forceinline__ Sum total(const Sum& zero, int lanes, const Add& add,
                                                     const Both& both) const {
    Sum sums[A];
#pragma unroll
    for (int k = 0; k < A; ++k) sums[k] = zero;
    for_each([&](const element& e, int reg) {
      Sum& sum = sums[A == 1 ? 0 : reg % V];
      sum = add(sum, e, reg);
    });
    return threads.template fold<A>(sums, zero, lanes, both);
  }

  const row_launch& launch;
  row_threads<word>& threads;
  std::int64_t row;

  [[nodiscard]] __device__ __forceinline__ word stored(word x) const {
    return vectors_.numbers.stored(x);
  }
  /// n and 1 / n, constants if n is one.
  [[nodiscard]] static __device__ __forceinline__ word count(int n) { return counts.of[n]; }
  [[nodiscard]] static __device__ __forceinline__ word reciprocal(int n) {
    return counts.reciprocal[n];
  }

 private:
  static constexpr bool has_grad = backends::is_gradient(F);
  static constexpr bool skips = backends::is_norm(F);
  /// Vectors of a chunk: chains of steps of one thread that overlap.
  static constexpr int chunk_elements = V >= 4 && !(skips && Numbers::bytes == 4) ? 32 : 16;
  static constexpr int most = J * V >= chunk_elements ? chunk_elements / V : J;
  static constexpr int chunk = J % most == 0 ? most : 3;
  static_assert(J % chunk == 0);
  using codes = row_codes<Numbers::bytes, V>;

  /// Makes the codes those of the sum. All vectors are loaded before one is stored: loads do not
  /// pass stores.
  __device__ __forceinline__ void add_rows() {
    codes added[J];
#pragma unroll
    for (int j = 0; j < J; ++j) {
      if (first(j) < n_) added[j] = vectors_.grad.template load_once<V>(first(j));
    }
#pragma unroll
    for (int j = 0; j < J; ++j) {
      if (first(j) < n_) x_[j] = vectors_.template store_sum<V>(first(j), x_[j], added[j]);
    }
  }

  /// Makes the codes those of softmax's argument. Hidden vectors are -Inf already.
  __device__ __forceinline__ void mask_scores() {
#pragma unroll
    for (int j = 0; j < J; ++j) {
      if (first(j) < n_ && first(j) < vectors_.visible) {
        x_[j] = vectors_.template masked<V>(first(j), x_[j]);
      }
    }
  }

  [[nodiscard]] __device__ __forceinline__ int first(int j) const {
    return (j * threads.count() + threads.index()) * V;
  }
  [[nodiscard]] static __device__ __forceinline__ codes repeated(std::uint32_t code) {
    codes x{};
#pragma unroll
    for (int k = 0; k < V; ++k) x.set(k, code);
    return x;
  }
  /// Whether the vectors of the chunk from vector c on, of all threads, lie in the row.
  [[nodiscard]] __device__ __forceinline__ bool is_whole(int c) const {
    return (c + chunk) * threads.count() * V <= n_;
  }
  /// f(vector, its first register, whether it lies in the row), chunk by chunk.
  template <class Function>
  __device__ __forceinline__ void visit(const Function& f) const {
#pragma unroll
    for (int c = 0; c < J; c += chunk) {
      if (is_whole(c)) {
        visit_chunk<true>(c, f);
      } else if (c * threads.count() * V < n_) {
        visit_chunk<false>(c, f);
      }
    }
  }
  /// A chunk loads weights and biases together, and computes its vectors together.
  template <bool Whole, class Function>
  __device__ __forceinline__ void visit_chunk(int c, const Function& f) const {
    codes weights[chunk], biases[chunk];
#pragma unroll
    for (int k = 0; k < chunk; ++k) {
      const int i = first(c + k);
      weights[k] = vectors_.template weight_codes<V>(i, Whole || i < n_);
      biases[k] = vectors_.template column_codes<V>(vectors_.bias, i, Whole || i < n_);
    }
#pragma unroll
    for (int k = 0; k < chunk; ++k) {
      const int j = c + k;
      const bool inside = Whole || first(j) < n_;
      if (skips && !inside) continue;
      element v[V];
      vectors_.template decode<V>(first(j), j * V, x_[j], grad_[has_grad ? j : 0], weights[k],
                                  biases[k], v);
      f(v, j * V, inside);
    }
  }

  vectors vectors_;
  codes x_[J];
  codes grad_[has_grad ? J : 1];
  int n_;  ///< 0 behind the last row
};

}  // namespace samebits::cuda
