// Reductions in a fixed order of steps: sums, dot products, amax and counts of matrices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "samebits/backend.hpp"
#include "samebits/core/table.hpp"
#include "samebits/view.hpp"

namespace samebits {

/// A binary64 sum over a fixed tree (contract §6).
///
/// The inputs are the added numbers, in order. At each level, neighbours 2j and 2j+1 become
/// RN64(a + b). A last value without neighbour moves up unchanged. An empty sum is +0. A NaN sum is
/// the canonical NaN, 7FFFFFFFFFFFFFFF. The result depends only on the sequence of inputs, not on
/// how the sequence is cut into add() calls.
///
/// @throws environment_error from add, add_squares, add_partial_sum and value, leaving the sum
///   unchanged, if the process or thread does not compute in IEEE 754 steps
///   (samebits/self_test.hpp).
class tree_sum {
 public:
  /// Appends inputs.
  void add(std::span<const double> inputs);
  /// Appends one input.
  void add(double input) { add(std::span<const double>(&input, 1)); }
  /// Appends the inputs RN64(x * x).
  void add_squares(std::span<const double> values);
  /// Appends 2^level inputs by their partial sum.
  ///
  /// @param level  0..62
  /// @param partial_sum  the partial sum: the value() of a tree_sum over these inputs alone
  /// @throws invalid_argument if count() is not a multiple of 2^level, if level is out of range, or
  ///   for more than 2^63 inputs.
  void add_partial_sum(int level, double partial_sum);

  /// Returns the number of inputs so far.
  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// Returns the sum of the inputs so far.
  [[nodiscard]] double value() const;

 private:
  void push(int level, double partial_sum);

  // Bit l of count_ is 1 if partial_sums_[l] holds the partial sum of 2^l inputs.
  std::uint64_t count_ = 0;
  double partial_sums_[64] = {};
};

// The functions below accept views in fp32, fp16, bf16, e4m3 or e5m2 with any strides. Elements are
// counted row by row. Results depend only on the elements in this order, not on the executor, the
// thread count, the launch shape, the strides or the alignment.
//
// The functions throw:
// - invalid_argument for a view that is not well-formed, another format, unequal shapes, an unknown
//   backend or a negative thread count;
// - unsupported for a backend that this machine lacks;
// - cuda_error;
// - environment_error, from sums and dot products, in a process or thread that does not compute in
//   IEEE 754 steps; from all functions, if a GPU's self-test fails (samebits/self_test.hpp).
//
// Each call allocates a few bytes for every 4096 elements; on device memory, from the memory pool
// of where.stream. The enqueue_ functions at the end do not wait.

/// Returns the max magnitude; NaN (7FFFFFFF) if any element is NaN, +0 for an empty matrix.
///
/// @note Waits for the stream.
float amax(const const_matrix_view& in, const executor& where = {});

/// Numbers of elements of a matrix that are NaN, infinite, zero and subnormal in their own format.
struct element_counts {
  std::uint64_t elements = 0;
  std::uint64_t nan = 0;
  std::uint64_t inf = 0;
  std::uint64_t zeros = 0;  ///< of either sign
  std::uint64_t subnormals = 0;

  friend constexpr bool operator==(const element_counts&, const element_counts&) = default;
};

/// Counts the elements of a matrix by kind.
///
/// @note Waits for the stream.
element_counts counts(const const_matrix_view& in, const executor& where = {});

/// Returns the sum of the elements in binary64 over the tree of tree_sum. A NaN is
/// 7FFFFFFFFFFFFFFF.
///
/// @note Waits for the stream.
double sum(const const_matrix_view& in, const executor& where = {});

/// Returns the sum of RN64(x * x) over all elements x, over the tree of tree_sum.
///
/// @note Waits for the stream.
double sum_of_squares(const const_matrix_view& in, const executor& where = {});

/// Format that dot() rounds each product and each sum to, to nearest even.
enum class accumulation : std::uint8_t { fp32, fp64 };
template <>
inline constexpr auto table_of<accumulation> = enum_table<accumulation::fp64>({"fp32", "fp64"});

/// The order in which dot() adds its products.
enum class sum_order : std::uint8_t {
  tree,        ///< the tree of sum()
  sequential,  ///< ((p0 + p1) + p2) + ..., on one thread
};
template <>
inline constexpr auto table_of<sum_order> = enum_table<sum_order::sequential>({"tree",
                                                                               "sequential"});

/// Options of dot().
struct dot_options {
  accumulation precision = accumulation::fp64;
  sum_order order = sum_order::tree;
};

/// Returns the sum of the products x(r, c) * y(r, c).
///
/// Each product is rounded to the accumulation format (in binary64 products are exact), then each
/// sum. No step is fused. An empty sum is +0. A NaN is the canonical NaN of the accumulation
/// format. A binary32 result is returned without further rounding.
///
/// @param x  [rows, cols]
/// @param y  [rows, cols]
/// @param options  accumulation format and order of the sums
/// @param where  backend, threads and stream
/// @note Waits for the stream.
double dot(const const_matrix_view& x, const const_matrix_view& y, const dot_options& options = {},
           const executor& where = {});

// The enqueue_ functions compute the results of the functions above on device memory, enqueued on
// where.stream. They do not wait. They allocate only a workspace that the caller does not pass.
// They can be captured into a CUDA graph. Parameters besides those above:
// - result: device memory, aligned as its type requires.
// - workspace: device memory for the call alone until its work is done, reduction_workspace() bytes
//   or more, aligned to 16. Empty: the stream's memory pool provides the workspace.
//
// They also throw invalid_argument for views of host memory, and for a result or workspace that is
// null, misaligned or too small.

/// Enqueues amax(): writes the max magnitude to *result.
void enqueue_amax(const const_matrix_view& in, float* result, const executor& where = {});
/// Enqueues counts().
void enqueue_counts(const const_matrix_view& in, element_counts* result,
                    const executor& where = {});

/// Returns the bytes of workspace that enqueue_sum, enqueue_sum_of_squares and enqueue_dot need for
/// a matrix of this shape.
std::size_t reduction_workspace(const const_matrix_view& in, const executor& where = {});

/// Enqueues sum().
void enqueue_sum(const const_matrix_view& in, double* result, std::span<std::byte> workspace = {},
                 const executor& where = {});
/// Enqueues sum_of_squares().
void enqueue_sum_of_squares(const const_matrix_view& in, double* result,
                            std::span<std::byte> workspace = {}, const executor& where = {});
/// Enqueues dot().
void enqueue_dot(const const_matrix_view& x, const const_matrix_view& y, double* result,
                 const dot_options& options = {}, std::span<std::byte> workspace = {},
                 const executor& where = {});

}  // namespace samebits
