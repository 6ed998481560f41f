// Cuts arrays of one shape and any number of axes into matrices, which the library works on.
#pragma once

#include <cstdint>

#include "array.hpp"

namespace samebits::python {

inline constexpr int max_operands = 5;

/// A list of matrices [rows, cols] that together hold every element of up to five arrays once.
///
/// Neighbouring axes are merged into one axis where this is possible in every array. Of the axes
/// that remain, the last two are rows and columns; for_each() loops over all others.
struct slices {
  int operands = 0;
  std::int64_t rows = 1;
  std::int64_t cols = 1;
  std::int64_t row_strides[max_operands] = {};
  std::int64_t col_strides[max_operands] = {};

  int loops = 0;
  std::int64_t sizes[max_dims];
  std::int64_t strides[max_operands][max_dims];
  std::int64_t flat_strides[max_dims];  ///< steps of the element's index in C order

  /// Calls visit(offsets, flat) for each matrix. offsets[i] is the offset of the matrix's first
  /// element in array i, in elements; `flat` is the index of this element in C order.
  template <class Visit>
  void for_each(Visit&& visit) const {
    std::int64_t offsets[max_operands] = {};
    std::int64_t flat = 0;
    if (loops == 0) return visit(offsets, flat);
    std::int64_t position[max_dims] = {};
    for (;;) {
      visit(offsets, flat);
      int axis = loops - 1;
      for (; axis >= 0; --axis) {
        const bool wraps = ++position[axis] == sizes[axis];
        const std::int64_t steps = wraps ? -(sizes[axis] - 1) : 1;
        for (int i = 0; i < operands; ++i) offsets[i] += steps * strides[i][axis];
        flat += steps * flat_strides[axis];
        if (!wraps) break;
        position[axis] = 0;
      }
      if (axis < 0) return;
    }
  }
};

/// An array and its name in messages. Axes that the array lacks, and axes of size 1, broadcast.
struct operand {
  const array* a;
  const char* name;
};

/// Cuts arrays into matrices.
///
/// @param shape  the common shape, [dims]
/// @param operands  arrays that broadcast to the shape
/// @throws samebits.InvalidArgument, naming the array and the remedy, if the last axis of an array
///   has a negative stride.
slices slices_of(int dims, const std::int64_t* shape, const operand* operands, int count);

/// One array as one matrix [product of the leading axes, last axis].
struct matrix {
  std::int64_t rows;
  std::int64_t cols;
  std::int64_t row_stride;
  std::int64_t col_stride;
};

/// Describes an array as one matrix.
///
/// @throws samebits.InvalidArgument, naming the array and the remedy, if the leading axes cannot be
///   merged or a stride is negative.
matrix matrix_of(const operand& of);

/// Refuses a result whose elements share memory, and arrays whose memory overlaps in part: loops
/// over matrices write them one by one.
void check_overlap(const operand& out, const operand* in, int count);

}  // namespace samebits::python
