// Checks shared by the public array functions: views, overlaps and the backend's memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "backends/dispatch/backend.hpp"
#include "samebits/view.hpp"

namespace samebits {
struct const_tensor_view;  // samebits/axis_reductions.hpp
}

namespace samebits::backends {

// All functions throw invalid_argument. `which` is the argument's name in messages.

/// Throws that `which` is a number without a name in the enumeration samebits::`type`.
[[noreturn]] void refuse_value(const char* which, int number, const char* type);
/// An enumeration whose values are 0 .. count - 1.
template <class Enum>
void check_value(const char* which, Enum value, const char* type) {
  if (static_cast<int>(value) >= enum_count<Enum>)
    refuse_value(which, static_cast<int>(value), type);
}

inline bool is_empty(const const_matrix_view& v) { return v.rows == 0 || v.cols == 0; }

/// Whether element i of a view, in row-major order, lies i elements after the first one.
inline bool is_dense(const const_matrix_view& v) {
  return is_empty(v) ||
         ((v.cols == 1 || v.col_stride == 1) && (v.rows == 1 || v.row_stride == v.cols));
}

/// Whether a format is one of these.
inline bool is_among(format_id format, std::span<const format_id> formats) {
  return std::find(formats.begin(), formats.end(), format) != formats.end();
}

/// Checks sizes and strides of a tensor. Returns the memory that it spans as one row, of 2^60
/// elements if it spans more; an empty row for an empty tensor.
const_matrix_view memory_of(const const_tensor_view& t, const char* which);

/// Checks format, sizes, strides and data of a view.
void check_view(const const_matrix_view& v, const char* which);

void check_shape(const const_matrix_view& v, const char* which, std::int64_t rows,
                 std::int64_t cols);
/// Requires the shape, the format or the memory of `other`.
void check_shape_of(const const_matrix_view& v, const char* which, const const_matrix_view& other,
                    const char* other_name);
void check_format_of(const const_matrix_view& v, const char* which, const const_matrix_view& other,
                     const char* other_name);
void check_space_of(const const_matrix_view& v, const char* which, const const_matrix_view& other,
                    const char* other_name);
/// check_view(), and the shape, the format and the memory of `other`.
void check_like(const const_matrix_view& v, const char* which, const const_matrix_view& other,
                const char* other_name);
void check_format(const const_matrix_view& v, const char* which, std::span<const format_id> among);
void check_host(const const_matrix_view& v, const char* which);

void check_at_least(const char* which, std::int64_t number, std::int64_t least);

/// The formats of numbers in most functions, and those of array arithmetic.
inline constexpr std::array number_formats = {format_id::fp32, format_id::fp16, format_id::bf16};
inline constexpr std::array arithmetic_formats = {format_id::fp32, format_id::fp16, format_id::bf16,
                                                  format_id::e4m3, format_id::e5m2};

/// Requires that no two elements share memory.
void check_distinct(const const_matrix_view& v, const char* which);

/// Requires that no element of `v` shares memory with an element of `other`.
void check_apart(const const_matrix_view& v, const std::string& which,
                 const const_matrix_view& other, const std::string& other_name);

/// Whether two views of one shape have equal data pointers, element sizes and strides.
bool are_same_elements(const const_matrix_view& a, const const_matrix_view& b);

/// Requires that `out` is disjoint from `in` or has exactly the elements of `in` at equal
/// positions.
void check_overlap(const const_matrix_view& in, const char* which, const matrix_view& out);

/// The error text for an undecided search: a view may overlap `other`.
std::string undecided_overlap(const std::string& other);

/// Checks K, the number of random bits of stochastic rounding.
void check_random(rounding round, const random_stream& random);

/// Checks the rounding options: enumerators, and K of stochastic rounding.
void check_rule(const cast_rule& rule, const random_stream& random);

void check_threads(const executor& where);

/// Requires `needed` bytes, aligned to 16.
void check_workspace(std::span<const std::byte> workspace, const char* which, std::size_t needed);

/// Requires that the backend works on the memory of the views.
void check_memory(const backend& b, memory_space space);

}  // namespace samebits::backends
