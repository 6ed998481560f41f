// Array arithmetic: an operation on the elements of views, each result rounded once.
#pragma once

#include <cstdint>

#include "samebits/backend.hpp"
#include "samebits/core/flags.hpp"
#include "samebits/core/operation.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/view.hpp"

namespace samebits {

/// The operands of an operation, each of the destination's shape; strides of 0 repeat a row, a
/// column or one number. Those that the operation does not take are not looked at.
struct array_operands {
  const_matrix_view a;
  const_matrix_view b = {};
  const_matrix_view c = {};
};

/// How results are rounded (contract §3 to §5).
struct compute_options {
  rounding round = rounding::nearest_even;
  overflow on_overflow = overflow::ieee;
  nan_policy on_nan = nan_policy::canonical;
  random_stream random = {};  ///< read only by rounding::stochastic; index of the result's element
};

/// Where the flags of each element go: a matrix of the destination's shape in the same memory,
/// strides in bytes. Not wanted where data is null.
struct flags_view {
  flags* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t col_stride = 1;
};

/// out = op(a, b, c), element by element, in any formats that have arithmetic (fp32, fp16, bf16,
/// e4m3, e5m2), each operand and out in one of its own: what compute() of samebits/arithmetic.hpp
/// returns for the codes of the element.
///
/// The result depends on the inputs and options alone: not on the executor, the thread count, the
/// strides or the alignment. With stochastic rounding element (r, c) uses the random bits of index
/// random.offset + r * pitch + c (mod 2^64), so a block computed alone, with the offset of its
/// first element and the pitch of the whole, gets the bits it has in the whole.
///
/// out may be the same memory as an operand whose element size and strides are equal to its own;
/// otherwise they must not overlap. Thread-safe; allocates nothing per element. Of device memory
/// the call is enqueued on where.stream: it neither waits nor allocates, and can be captured into a
/// CUDA graph.
///
/// Throws invalid_argument, before anything is written, for: an operation that is none, formats
/// without arithmetic, unequal shapes, negative sizes or strides, null data of a non-empty view,
/// elements of out that share memory, overlap, random.bits outside 1..32, views in different memory
/// or not in the backend's, an unknown backend name; unsupported for a backend this machine lacks
/// or that has no such arithmetic; cuda_error; environment_error where a GPU does not compute in
/// IEEE 754 steps (samebits/self_test.hpp).
///
///   std::vector<samebits::bf16> x = ..., y = ..., sum(x.size());
///   samebits::compute(samebits::operation::add, {samebits::view_of(x), samebits::view_of(y)},
///                     samebits::view_of(sum));
void compute(operation op, const array_operands& in, const matrix_view& out,
             const compute_options& options = {}, const executor& where = {});

/// Computes as compute() does and returns the flags that any element raised. Waits for the stream.
///
/// Writes the flags of each element to `each` where that has data; `each` must not overlap the
/// other views (invalid_argument). On device memory, where `each` lies too, the call takes 4 bytes
/// from the stream's memory pool.
flags compute_with_flags(operation op, const array_operands& in, const matrix_view& out,
                         const compute_options& options = {}, const flags_view& each = {},
                         const executor& where = {});

/// The same on device memory without waiting: `raised`, 4 bytes of device memory aligned to 4,
/// becomes the flags that any element raised as an integer. Enqueued on where.stream; allocates
/// nothing, and can be captured into a CUDA graph. Throws invalid_argument for host memory, too.
void enqueue_compute_with_flags(operation op, const array_operands& in, const matrix_view& out,
                                std::uint32_t* raised, const compute_options& options = {},
                                const flags_view& each = {}, const executor& where = {});

}  // namespace samebits
