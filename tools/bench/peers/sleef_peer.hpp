// Loops over the AVX-512 functions of SLEEF, with an error of at most 1 ulp, and of glibc's libmvec.
// For builds with SLEEF and glibc on x86-64.
#pragma once

#include <cstddef>

#include "samebits/evaluate.hpp"

namespace samebits::bench {

/// y[i] = f(x[i]); count is a multiple of 16.
using function_loop = void (*)(const float* x, float* y, std::size_t count);

/// Null if the library lacks the function, or the processor lacks AVX-512.
function_loop sleef_loop(function f);
function_loop libmvec_loop(function f);

}  // namespace samebits::bench
