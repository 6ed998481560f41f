// Checks shared by the public array functions: views, overlaps and the backend's memory.
#pragma once

#include <cstdint>
#include <string>

#include "backends/dispatch/backend.hpp"
#include "samebits/view.hpp"

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

/// "[rows, cols]"
std::string shape_text(std::int64_t rows, std::int64_t cols);

bool is_empty(const const_matrix_view& v);

/// Checks format, sizes, strides and data of a view.
void check_view(const const_matrix_view& v, const char* which);

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

/// Requires that the backend works on the memory of the views.
void check_memory(const backend& b, memory_space space);

}  // namespace samebits::backends
