// Checks that the public array functions share: views, what they may overlap, the backend's memory.
#pragma once

#include <cstdint>
#include <string>

#include "backends/backend.hpp"
#include "samebits/view.hpp"

namespace samebits::backends {

// All of these throw invalid_argument; `which` names the argument.

/// "[rows, cols]"
std::string shape_text(std::int64_t rows, std::int64_t cols);

bool is_empty(const const_matrix_view& v);

/// Format, sizes, strides and data.
void check_view(const const_matrix_view& v, const char* which);

/// No two elements share memory: one axis is dense enough to fit between steps of the other.
void check_distinct(const matrix_view& v, const char* which);

/// The bytes from the first to the last element of two views do not intersect.
bool are_disjoint(const const_matrix_view& a, const const_matrix_view& b);

/// `out` is disjoint from `in`, or the same elements in the same place.
void check_overlap(const const_matrix_view& in, const char* which, const matrix_view& out);

/// K of stochastic rounding.
void check_random(rounding round, const random_stream& random);

/// The options that say how results are rounded: enumerators, and K of stochastic rounding.
void check_rule(const cast_rule& rule, const random_stream& random);

void check_threads(const executor& where);

/// The backend works on the memory of the views.
void check_memory(const backend& b, memory_space space);

}  // namespace samebits::backends
