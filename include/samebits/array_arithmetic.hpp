// Array arithmetic: an operation on every element of views; each result is rounded once.
#pragma once

#include <cstdint>

#include "samebits/backend.hpp"
#include "samebits/core/flags.hpp"
#include "samebits/core/operation.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/view.hpp"

namespace samebits {

/// Operands of an operation, each of the destination's shape. Strides of 0 repeat a row, a column
/// or one number. Operands that the operation does not have are not read.
struct array_operands {
  const_matrix_view a;
  const_matrix_view b = {};
  const_matrix_view c = {};
};

/// Options of compute(): how results are rounded (contract §3 to §5).
struct compute_options {
  samebits::rounding rounding = samebits::rounding::nearest_even;
  samebits::overflow overflow = samebits::overflow::ieee;
  nan_policy nan = nan_policy::canonical;
  random_stream random = {};  ///< read only by rounding::stochastic
};

/// Destination of the flags of each element: a matrix of the destination's shape in the same
/// memory, strides in bytes. Null data: the flags are not written.
struct flags_view {
  flags* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t col_stride = 1;
};

/// Computes out = op(a, b, c) for every element: the result of compute() of samebits/arithmetic.hpp
/// for the codes of the element.
///
/// The result depends on the inputs and options alone. The executor, the thread count, the strides
/// and the alignment do not change a bit.
///
/// With stochastic rounding, element (r, c) of `out` uses the random bits of index
/// random.offset + r * pitch + c (mod 2^64). A block can be computed alone with the bits it has in
/// the whole matrix. For this set random.offset to the index of the block's first element, and
/// random.pitch to the pitch of the whole matrix.
///
/// @param op  the operation
/// @param in  operands of the shape of `out`, in fp32, fp16, bf16, e4m3 or e5m2. Each operand may
///   have another format.
/// @param out  [rows, cols] in fp32, fp16, bf16, e4m3 or e5m2, host or device memory. `out` may be
///   the same memory as an operand if element size and strides are equal. Otherwise they must not
///   overlap.
/// @param options  rounding, overflow and NaN rules
/// @param where  backend, threads and stream
/// @throws invalid_argument, before anything is written, if:
///   - the operation is none of the enumerators, or a format has no arithmetic;
///   - the shapes differ, or a size or stride is negative;
///   - the data of a non-empty view is null;
///   - elements of `out` share memory, or views overlap;
///   - random.bits is outside 1..32;
///   - the views lie in different memory or not in the backend's memory;
///   - the backend's name is unknown.
/// @throws unsupported if this machine lacks the backend or if the backend has no such arithmetic.
/// @throws cuda_error
/// @throws environment_error if the GPU does not compute in IEEE 754 steps
///   (samebits/self_test.hpp).
/// @note Thread-safe. Allocates nothing per element.
/// @note Device memory: the call is enqueued on where.stream. It neither waits nor allocates, and
///   can be captured into a CUDA graph.
///
///   std::vector<samebits::bf16> x = ..., y = ..., sum(x.size());
///   samebits::compute(samebits::operation::add, {samebits::view_of(x), samebits::view_of(y)},
///                     samebits::view_of(sum));
void compute(operation op, const array_operands& in, const matrix_view& out,
             const compute_options& options = {}, const executor& where = {});

/// Computes as compute() does and returns the flags that any element raised.
///
/// @param each  receives the flags of each element if it has data; lies in the memory of `out`
/// @throws invalid_argument if `each` overlaps another view.
/// @throws as compute() does.
/// @note Waits for the stream. On device memory the call allocates 4 bytes from the stream's memory
///   pool.
flags compute_with_flags(operation op, const array_operands& in, const matrix_view& out,
                         const compute_options& options = {}, const flags_view& each = {},
                         const executor& where = {});

/// Computes as compute_with_flags() does on device memory, without waiting.
///
/// @param raised  4 bytes of device memory, aligned to 4; receives the flags that any element
///   raised, as an integer
/// @throws invalid_argument for host memory.
/// @throws as compute_with_flags() does.
/// @note Enqueued on where.stream. Allocates nothing, and can be captured into a CUDA graph.
void enqueue_compute_with_flags(operation op, const array_operands& in, const matrix_view& out,
                                std::uint32_t* raised, const compute_options& options = {},
                                const flags_view& each = {}, const executor& where = {});

}  // namespace samebits
