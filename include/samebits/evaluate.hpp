// Functions of arrays and of tensor lists: exp, tanh, gelu and others, by a rule that says whose
// bits they return.
#pragma once

#include <optional>

#include "samebits/backend.hpp"
#include "samebits/core/function.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/tensor_list.hpp"
#include "samebits/view.hpp"

namespace samebits {

/// Options of evaluate() and evaluate_gradient().
struct evaluate_options {
  /// Whose bits the call returns (contract §11 and §13).
  function_rule rule = function_rule::exact;
  /// The exponent of pow, which pow requires; the alpha of elu, default 1; the slope of leaky_relu,
  /// default 0.01. Other functions have no parameter.
  std::optional<double> parameter = {};
  /// Rounding of the exact value, by rule `exact` alone: to nearest even, or stochastic into fp16,
  /// bf16, e4m3 and e5m2.
  samebits::rounding rounding = samebits::rounding::nearest_even;
  samebits::overflow overflow = samebits::overflow::ieee;  ///< rule `exact` alone
  /// Read only by rounding::stochastic. bits must be in 1..16, but a random_stream has 32 by
  /// default: beside a seed name them too, as in {.seed = 5, .bits = 16}.
  random_stream random = {.bits = 16};
};

/// Computes out = f(in) for every element, with the bits that the rule names.
///
/// function_rule::exact returns the exact real value of the function, rounded once into the format
/// of `out`. It has exp, exp2, expm1, log, log2, log1p, tanh, erf, rsqrt, reciprocal, sigmoid,
/// silu, gelu, gelu_tanh and softplus of fp32, fp16 and bf16 numbers, into fp32, fp16, bf16, e4m3
/// and e5m2. function_rule::cuda_13_0 has exp, exp2, expm1, log, log2, log10, log1p, sin, cos,
/// tanh, erf, erfc, pow, rsqrt, fast_exp and fast_log of fp32 numbers. function_rule::torch_2_11
/// has all other functions too, of fp32, fp16 and bf16 numbers, but not log10, sin, cos, erfc,
/// fast_exp and fast_log. function_rule::triton_3_6 has exp, exp2, log, log2, erf, rsqrt and
/// sigmoid, function_rule::torch_compile_2_11 sigmoid, silu, gelu and gelu_tanh. Every NaN result
/// is the canonical NaN of the format.
///
/// @param f  the function
/// @param in  [rows, cols] in fp32, fp16 or bf16, host or device memory
/// @param out  the shape of `in`, and the format of `in` unless the rule is `exact`. `out` may be
///   the same memory as `in` if element sizes and strides are equal. Otherwise they must not
///   overlap.
/// @param options  the rule, and the parameter of functions that have one
/// @param where  backend; threads for host memory, stream for device memory
/// @throws invalid_argument, before anything is written, if:
///   - the function or the rule is none of the enumerators;
///   - `f` is pow and there is no parameter, or `f` has no parameter and there is one;
///   - the shapes differ, the formats differ and the rule is not `exact`, or a size or stride is
///     negative;
///   - rounding or overflow is not the default and the rule is not `exact`;
///   - `round` is stochastic and random.bits is outside 1..16;
///   - the data of a non-empty view is null;
///   - elements of `out` share memory, or views overlap;
///   - the views lie in different memory or not in the backend's memory;
///   - views of device memory have an address of host memory or of another device;
///   - the backend's name is unknown.
/// @throws unsupported if the rule lacks the function in this format or the rounding mode, or if
///   this machine lacks the backend.
/// @throws environment_error if the device backend's self-test fails.
/// @note Thread-safe. Allocates nothing per element. The result does not depend on the executor.
/// @note Device memory: the call is enqueued on `where.stream` and can be captured into a graph.
///   `cuda-emulated` computes in integers. `cuda-native` uses the GPU's binary64 instructions for
///   rule `exact`, and tables for 2^23 or more elements of 16 bits: the first such call of a
///   function with these formats and policy computes the table and waits. Tables stay on the
///   device. For the other rules it uses the GPU's function units if the GPU has compute
///   capability 9.0 and the units return the model's results, else integers. The first such call
///   on a device compares the units and waits.
///
///   std::vector<float> x = ..., y(x.size());
///   samebits::evaluate(samebits::function::gelu_tanh, samebits::view_of(x), samebits::view_of(y));
void evaluate(function f, const const_matrix_view& in, const matrix_view& out,
              const evaluate_options& options = {}, const executor& where = {});

/// Computes out = grad * f'(in) for every element: the gradient of `in`, where `grad` is the
/// gradient of f(in).
///
/// function_rule::exact has the gradients of silu, gelu and gelu_tanh: the exact value of f'(in),
/// rounded to fp32, times `grad`, rounded into the format of `out`. function_rule::torch_2_11
/// returns the results of PyTorch's backward pass.
///
/// @param grad  the shape of `in`, and the format of `in` unless the rule is `exact`
/// @param out  as in evaluate(); may also be the same memory as `grad`
/// @throws as evaluate() does.
/// @note Steps that PyTorch does in several kernels are rounded to the format after each kernel.
void evaluate_gradient(function f, const const_matrix_view& grad, const const_matrix_view& in,
                       const matrix_view& out, const evaluate_options& options = {},
                       const executor& where = {});

/// Computes out = f(in) for every element of a list of tensors, tensor by tensor, as evaluate() of
/// views does.
///
/// @param f  the function
/// @param in  tensors in fp32, fp16 or bf16, host or device memory; formats may differ from tensor
///   to tensor
/// @param out  tensors with the rows and columns of `in`, and with its formats unless the rule is
///   `exact`. A tensor of `out` may be the tensor of `in` at the same position. It overlaps no
///   other tensor of `in`.
/// @param options  as of evaluate() of views. With stochastic rounding, tensor i uses the random
///   stream options.random.stream + i (mod 2^64).
/// @param where  backend; threads for host memory, stream for device memory
/// @throws as evaluate() of views does, and invalid_argument, naming the tensor, if the lists
///   differ in length or lie in different memory. Nothing is written if one tensor is refused.
/// @note Thread-safe. Threads share the elements of one tensor after another.
/// @note Device memory: one kernel per tensor is enqueued on `where.stream`. The call can be
///   captured into a graph, which must not outlive the lists.
///
///   const samebits::tensor_list x({{samebits::view_of(a)}, {samebits::view_of(b)}});
///   const samebits::tensor_list y({{samebits::view_of(c)}, {samebits::view_of(d)}});
///   samebits::evaluate(samebits::function::silu, x, y);
void evaluate(function f, const tensor_list& in, const tensor_list& out,
              const evaluate_options& options = {}, const executor& where = {});

/// Computes out = grad * f'(in) for every element of a list of tensors, tensor by tensor, as
/// evaluate_gradient() of views does.
///
/// @param grad  tensors with the rows and columns of `in`, and with its formats unless the rule is
///   `exact`
/// @param out  as in evaluate() of lists; a tensor may also be the tensor of `grad` at the same
///   position
/// @throws as evaluate() of lists does.
void evaluate_gradient(function f, const tensor_list& grad, const tensor_list& in,
                       const tensor_list& out, const evaluate_options& options = {},
                       const executor& where = {});

}  // namespace samebits
