// Reductions of matrices: amax, counts, sums and dot products in a fixed order of steps.
#pragma once

#include <cstdint>

#include "samebits/backend.hpp"
#include "samebits/view.hpp"

namespace samebits {

// All of them take views of host memory in the formats of arithmetic (fp32, fp16, bf16, e4m3, e5m2)
// and any strides, elements counted row by row. Results depend on the elements in that order alone,
// not on the executor, the thread count, the strides or the alignment.
//
// They throw invalid_argument for a view that is not well-formed, another format, unequal shapes,
// an unknown backend or negative threads; unsupported for device memory. Sums and dot products also
// throw environment_error in a process or thread that does not compute in IEEE 754 steps
// (samebits/self_test.hpp). Each allocates a few bytes for every 4096 elements.

/// The largest magnitude; NaN (7FFFFFFF) if any element is NaN, +0 of nothing.
float amax(const const_matrix_view& in, const executor& where = {});

struct element_counts {
  std::uint64_t elements = 0;
  std::uint64_t nan = 0;
  std::uint64_t inf = 0;
  std::uint64_t zero = 0;  ///< of either sign
  std::uint64_t subnormal = 0;

  friend constexpr bool operator==(const element_counts&, const element_counts&) = default;
};

element_counts counts(const const_matrix_view& in, const executor& where = {});

/// The sum in binary64 over the tree of tree_sum (samebits/reduce.hpp), elements its leaves. NaN is
/// 7FFFFFFFFFFFFFFF.
double sum(const const_matrix_view& in, const executor& where = {});

/// The same of the leaves RN64(x * x).
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

/// The sum of products x * y of elements in the same place. Every product is rounded to the
/// accumulation format (in binary64 it is exact), then every sum; no step is fused. Nothing gives
/// +0, NaN the canonical one of the accumulation format; a binary32 result is returned as it is.
double dot(const const_matrix_view& x, const const_matrix_view& y, const dot_options& options = {},
           const executor& where = {});

}  // namespace samebits
