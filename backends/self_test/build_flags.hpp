// Refuses to compile under flags that change the results of binary32 and binary64 operations.
//
// Every file that computes in float or double includes this header. Compilers define macros for
// only some of these flags (clang for two, nvcc for none, no compiler for contraction). The
// self-test's probes detect the others.
#pragma once

// A test defines SAMEBITS_TEST_WRONG_FLAGS to compile anyway and show that the probes detect these
// flags.
#if !defined(SAMEBITS_TEST_WRONG_FLAGS)

#if defined(__FAST_MATH__)
#error "samebits must not be compiled with -ffast-math or -Ofast: their results are not IEEE 754's"
#endif
#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "samebits must not be compiled with -ffinite-math-only: NaN and Inf would be assumed away"
#endif
#if defined(__ASSOCIATIVE_MATH__)
#error "samebits must not be compiled with -fassociative-math: sums would change their order"
#endif
#if defined(__RECIPROCAL_MATH__)
#error "samebits must not be compiled with -freciprocal-math: quotients would be rounded twice"
#endif
#if defined(__NO_SIGNED_ZEROS__)
#error "samebits must not be compiled with -fno-signed-zeros: -0 would be lost"
#endif
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0
#error "samebits needs float and double steps without excess precision: on x86, -mfpmath=sse"
#endif

#endif
