// The exact value of every function of the rule `exact`, by MPFR: 400 bits, which also hold
// x - x^3 / 3 for the smallest binary32 number.
#pragma once

#include <mpfr.h>

#include "numerics/functions/exact_function.hpp"

namespace samebits::support {

/// Computes one function; a thread needs its own object.
class exact_value {
 public:
  explicit exact_value(numerics::real::exact_function f) : f_(f) {
    mpfr_inits2(precision, x_, y_, t_, u_, static_cast<mpfr_ptr>(nullptr));
  }
  exact_value(const exact_value&) = delete;
  exact_value& operator=(const exact_value&) = delete;
  ~exact_value() { mpfr_clears(x_, y_, t_, u_, static_cast<mpfr_ptr>(nullptr)); }

  /// f(x) for a finite x in the function's domain. The result lives until the next call.
  mpfr_srcptr operator()(double x) {
    using numerics::real::exact_function;
    mpfr_set_d(x_, x, MPFR_RNDN);
    switch (f_) {
      case exact_function::exp: mpfr_exp(y_, x_, MPFR_RNDN); break;
      case exact_function::exp2: mpfr_exp2(y_, x_, MPFR_RNDN); break;
      case exact_function::expm1: mpfr_expm1(y_, x_, MPFR_RNDN); break;
      case exact_function::log: mpfr_log(y_, x_, MPFR_RNDN); break;
      case exact_function::log2: mpfr_log2(y_, x_, MPFR_RNDN); break;
      case exact_function::log1p: mpfr_log1p(y_, x_, MPFR_RNDN); break;
      case exact_function::tanh: mpfr_tanh(y_, x_, MPFR_RNDN); break;
      case exact_function::erf: mpfr_erf(y_, x_, MPFR_RNDN); break;
      case exact_function::rsqrt: mpfr_rec_sqrt(y_, x_, MPFR_RNDN); break;
      case exact_function::reciprocal: mpfr_ui_div(y_, 1, x_, MPFR_RNDN); break;
      case exact_function::sigmoid: sigmoid(y_, x_); break;
      case exact_function::silu: sigmoid(y_, x_), mpfr_mul(y_, y_, x_, MPFR_RNDN); break;
      case exact_function::gelu: normal(y_), mpfr_mul(y_, y_, x_, MPFR_RNDN); break;
      case exact_function::gelu_tanh: gelu_tanh(); break;
      case exact_function::softplus: softplus(); break;
      case exact_function::silu_gradient:
        sigmoid(y_, x_);
        sigmoid_gradient(x_);
        break;
      case exact_function::gelu_gradient: gelu_gradient(); break;
      case exact_function::gelu_tanh_gradient: gelu_tanh_gradient(); break;
    }
    return y_;
  }

 private:
  static constexpr mpfr_prec_t precision = 400;

  /// out = 1 / (1 + e^-v); out may not be t_.
  void sigmoid(mpfr_t out, const mpfr_t v) {
    mpfr_neg(t_, v, MPFR_RNDN);
    mpfr_exp(t_, t_, MPFR_RNDN);
    mpfr_add_ui(t_, t_, 1, MPFR_RNDN);
    mpfr_ui_div(out, 1, t_, MPFR_RNDN);
  }
  /// y_ = y_ + factor y_ (1 - y_)
  void sigmoid_gradient(const mpfr_t factor) {
    mpfr_ui_sub(t_, 1, y_, MPFR_RNDN);
    mpfr_mul(t_, t_, y_, MPFR_RNDN);
    mpfr_mul(t_, t_, factor, MPFR_RNDN);
    mpfr_add(y_, y_, t_, MPFR_RNDN);
  }
  /// u_ = 2 sqrt(2 / pi)
  void gelu_slope() {
    mpfr_const_pi(u_, MPFR_RNDN);
    mpfr_ui_div(u_, 8, u_, MPFR_RNDN);
    mpfr_sqrt(u_, u_, MPFR_RNDN);
  }
  /// t_ = 1 + n 0.044715 x^2
  void gelu_cubic(unsigned long n) {
    mpfr_sqr(t_, x_, MPFR_RNDN);
    mpfr_mul_ui(t_, t_, n * 44715, MPFR_RNDN);
    mpfr_div_ui(t_, t_, 1000000, MPFR_RNDN);
    mpfr_add_ui(t_, t_, 1, MPFR_RNDN);
  }
  /// y_ = sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3))
  void gelu_sigmoid() {
    gelu_slope();
    gelu_cubic(1);
    mpfr_mul(u_, u_, t_, MPFR_RNDN);
    mpfr_mul(u_, u_, x_, MPFR_RNDN);
    sigmoid(y_, u_);
  }
  void gelu_tanh() {
    gelu_sigmoid();
    mpfr_mul(y_, y_, x_, MPFR_RNDN);
  }
  void gelu_tanh_gradient() {
    gelu_sigmoid();
    gelu_slope();
    gelu_cubic(3);
    mpfr_mul(u_, u_, t_, MPFR_RNDN);
    mpfr_mul(u_, u_, x_, MPFR_RNDN);
    sigmoid_gradient(u_);
  }
  /// out = Phi(x)
  void normal(mpfr_t out) {
    mpfr_sqrt_ui(t_, 2, MPFR_RNDN);
    mpfr_div(t_, x_, t_, MPFR_RNDN);
    mpfr_neg(t_, t_, MPFR_RNDN);
    mpfr_erfc(out, t_, MPFR_RNDN);
    mpfr_div_2ui(out, out, 1, MPFR_RNDN);
  }
  /// Phi(x) + x e^(-x^2 / 2) / sqrt(2 pi)
  void gelu_gradient() {
    normal(y_);
    gelu_slope();
    mpfr_div_2ui(u_, u_, 2, MPFR_RNDN);
    mpfr_sqr(t_, x_, MPFR_RNDN);
    mpfr_div_2ui(t_, t_, 1, MPFR_RNDN);
    mpfr_neg(t_, t_, MPFR_RNDN);
    mpfr_exp(t_, t_, MPFR_RNDN);
    mpfr_mul(t_, t_, u_, MPFR_RNDN);
    mpfr_mul(t_, t_, x_, MPFR_RNDN);
    mpfr_add(y_, y_, t_, MPFR_RNDN);
  }
  /// log(1 + e^x) = max(x, 0) + log1p(e^-|x|)
  void softplus() {
    mpfr_abs(t_, x_, MPFR_RNDN);
    mpfr_neg(t_, t_, MPFR_RNDN);
    mpfr_exp(t_, t_, MPFR_RNDN);
    mpfr_log1p(y_, t_, MPFR_RNDN);
    if (mpfr_sgn(x_) > 0) mpfr_add(y_, y_, x_, MPFR_RNDN);
  }

  numerics::real::exact_function f_;
  mpfr_t x_, y_, t_, u_;
};

}  // namespace samebits::support
