// Checks that the public array functions share: views, what they may overlap, the backend's memory.
#pragma once

#include <cstdint>
#include <string>

#include "backends/dispatch/backend.hpp"
#include "samebits/view.hpp"

namespace samebits::backends {

// All of these throw invalid_argument; `which` names the argument.

/// Throws that `which` is a number without a name in the enumeration samebits::`type`.
[[noreturn]] void refuse_value(const char* which, int number, const char* type);
/// An enumeration whose values are 0 .. count - 1.
template <class Enum>
void check_value(const char* which, Enum value, int count, const char* type) {
  if (static_cast<int>(value) >= count) refuse_value(which, static_cast<int>(value), type);
}

/// "[rows, cols]"
std::string shape_text(std::int64_t rows, std::int64_t cols);

bool is_empty(const const_matrix_view& v);

/// Format, sizes, strides and data.
void check_view(const const_matrix_view& v, const char* which);

/// No two elements share memory.
void check_distinct(const const_matrix_view& v, const char* which);

/// No element of `v` shares memory with one of `other`.
void check_apart(const const_matrix_view& v, const std::string& which,
                 const const_matrix_view& other, const std::string& other_name);

/// Views of one shape have the same elements in the same places.
bool are_same_elements(const const_matrix_view& a, const const_matrix_view& b);

/// `out` is apart from `in`, or the same elements in the same places.
void check_overlap(const const_matrix_view& in, const char* which, const matrix_view& out);

/// The error text if the search gave up before it knew whether a view overlaps `other`.
std::string undecided_overlap(const std::string& other);

/// K of stochastic rounding.
void check_random(rounding round, const random_stream& random);

/// The options that say how results are rounded: enumerators, and K of stochastic rounding.
void check_rule(const cast_rule& rule, const random_stream& random);

void check_threads(const executor& where);

/// The backend works on the memory of the views.
void check_memory(const backend& b, memory_space space);

}  // namespace samebits::backends
