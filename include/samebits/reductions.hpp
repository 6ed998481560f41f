// Reductions in a fixed order of steps: tree_sum adds numbers; functions compute the amax, counts,
// sums and dot products of matrices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "samebits/backend.hpp"
#include "samebits/view.hpp"

namespace samebits {

/// A binary64 sum over a fixed tree (contract §6).
///
/// Leaves are the added numbers in order. Level by level neighbours 2j and 2j+1 become
/// RN64(a + b), and a lone last node passes up unchanged; an empty sum is +0. The result depends
/// on the sequence alone, not on how it is cut into add() calls. A sum that is NaN is the canonical
/// one, 7FFFFFFFFFFFFFFF.
///
/// add, add_squares, add_node and value throw environment_error, leaving the sum as it was, in a
/// process or thread that does not compute in IEEE 754 steps (samebits/self_test.hpp).
class tree_sum {
 public:
  /// Appends leaves.
  void add(std::span<const double> leaves);
  /// Appends one leaf.
  void add(double leaf) { add(std::span<const double>(&leaf, 1)); }
  /// Appends the leaves RN64(x * x).
  void add_squares(std::span<const double> values);
  /// Appends 2^level leaves by their node in the tree: what the sum of them alone is. Throws
  /// invalid_argument unless the node stands there, that is unless count() is a multiple of
  /// 2^level, and for levels outside 0..62 and more than 2^63 leaves.
  void add_node(int level, double node);

  /// Leaves so far.
  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// The sum of the leaves so far.
  [[nodiscard]] double value() const;

 private:
  void push(int level, double node);

  // Bit l of count_ says whether a complete node of 2^l leaves waits in nodes_[l].
  std::uint64_t count_ = 0;
  double nodes_[64] = {};
};

// The functions below take views in fp32, fp16, bf16, e4m3 or e5m2 with any strides. Elements are
// counted row by row. Results depend on the elements in that order alone, not on the executor, the
// thread count, the launch shape, the strides or the alignment.
//
// They throw invalid_argument for a view that is not well-formed, another format, unequal shapes,
// an unknown backend or negative threads; unsupported for a backend that this machine lacks;
// cuda_error. Sums and dot products also throw environment_error in a process, a thread or on a GPU
// that does not compute in IEEE 754 steps (samebits/self_test.hpp). Each allocates a few bytes for
// every 4096 elements; on device memory, from the memory pool of where.stream. The enqueue_ forms
// below do not wait.

/// The largest magnitude; NaN (7FFFFFFF) if any element is NaN, +0 of nothing. Waits for the
/// stream.
float amax(const const_matrix_view& in, const executor& where = {});

/// How many elements of a matrix are NaN, infinite, zero and subnormal in their own format.
struct element_counts {
  std::uint64_t elements = 0;
  std::uint64_t nan = 0;
  std::uint64_t inf = 0;
  std::uint64_t zeros = 0;  ///< of either sign
  std::uint64_t subnormals = 0;

  friend constexpr bool operator==(const element_counts&, const element_counts&) = default;
};

/// Counts the elements of a matrix by kind. Waits for the stream.
element_counts counts(const const_matrix_view& in, const executor& where = {});

/// The sum in binary64 over the tree of tree_sum, whose leaves are the elements. Waits for the
/// stream. NaN is 7FFFFFFFFFFFFFFF.
double sum(const const_matrix_view& in, const executor& where = {});

/// The sum of the leaves RN64(x * x), as sum() adds them. Waits for the stream.
double sum_of_squares(const const_matrix_view& in, const executor& where = {});

/// What products and sums of dot() are rounded to, to nearest even.
enum class accumulation : std::uint8_t { fp32, fp64 };

/// The order in which dot() adds its products.
enum class sum_order : std::uint8_t {
  tree,        ///< as sum() does
  sequential,  ///< ((p0 + p1) + p2) + ..., on one thread
};

struct dot_options {
  accumulation precision = accumulation::fp64;
  sum_order order = sum_order::tree;
};

/// The sum of products x * y of elements in the same place. Waits for the stream. Every product is
/// rounded to the accumulation format (in binary64 it is exact), then every sum; no step is fused.
/// Nothing gives +0, NaN the canonical one of the accumulation format; a binary32 result is
/// returned as it is.
double dot(const const_matrix_view& x, const const_matrix_view& y, const dot_options& options = {},
           const executor& where = {});

// The same of views of device memory, enqueued on where.stream: they neither wait nor allocate, but
// for a workspace that is not given, and can be captured into a CUDA graph. The result is written
// to device memory, aligned as its type asks. They also throw invalid_argument for views of host
// memory, and for a result or workspace that is null, misaligned or too small.

void enqueue_amax(const const_matrix_view& in, float* result, const executor& where = {});
void enqueue_counts(const const_matrix_view& in, element_counts* result,
                    const executor& where = {});

/// Bytes of device memory that sums and dot products over a matrix of this shape need besides.
std::size_t reduction_workspace(const const_matrix_view& in, const executor& where = {});

// `workspace`: reduction_workspace() bytes or more, aligned to 16, the call's alone until it is
// done; empty: the stream's memory pool provides it.

void enqueue_sum(const const_matrix_view& in, double* result, std::span<std::byte> workspace = {},
                 const executor& where = {});
void enqueue_sum_of_squares(const const_matrix_view& in, double* result,
                            std::span<std::byte> workspace = {}, const executor& where = {});
void enqueue_dot(const const_matrix_view& x, const const_matrix_view& y, double* result,
                 const dot_options& options = {}, std::span<std::byte> workspace = {},
                 const executor& where = {});

}  // namespace samebits
