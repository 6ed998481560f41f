// Attention by products and a softmax: composes convert(), matmul(), softmax() and
// softmax_gradient() in binary32.
#include "backends/api/functions/attention_math.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "samebits/convert.hpp"
#include "samebits/matmul.hpp"
#include "samebits/row_functions.hpp"

namespace samebits::backends {
namespace {

namespace torch = numerics::torch_2_11;

/// A matrix of binary32 numbers.
struct number_matrix {
  number_matrix(std::int64_t height, std::int64_t width)
      : rows(height), cols(width), words(static_cast<std::size_t>(height * width)) {}

  [[nodiscard]] const_matrix_view view() const {
    return view_of_codes(format_id::fp32, words.data(), rows, cols);
  }
  matrix_view view() { return view_of_codes(format_id::fp32, words.data(), rows, cols); }
  void multiply(std::uint32_t factor) {
    for (std::uint32_t& x : words) x = numerics::ptx::mul(x, factor);
  }

  std::int64_t rows, cols;
  std::vector<std::uint32_t> words;
};

class math_head {
 public:
  math_head(const attention_call& call, const executor& where, std::int64_t head)
      : call_(call),
        p_(call.plan),
        where_(where),
        head_(head),
        q_(loaded(call.q)),
        k_(loaded(call.k)),
        v_(loaded(call.v)),
        scores_(p_.queries, p_.keys) {
    q_.multiply(p_.rule.scale);
    k_.multiply(p_.rule.scale);
    multiply(q_.view(), transposed(k_.view()), scores_);
    for (std::int64_t i = 0; i < p_.queries; ++i) mask(i);
    softmax(scores_.view(), scores_.view(), rule_, where_);
    for (std::int64_t i = 0; i < p_.queries; ++i) {  // PyTorch's softmax of no visible key is 0
      if (blind_[static_cast<std::size_t>(i)]) std::fill_n(row(i), p_.keys, 0u);
    }
  }

  void forward() { store_product(scores_.view(), v_.view(), call_.out, false); }

  void backward() {
    const number_matrix grad = loaded(call_.grad);
    store_product(transposed(scores_.view()), grad.view(), call_.dv, false);
    number_matrix dp(p_.queries, p_.keys);
    multiply(grad.view(), transposed(v_.view()), dp);
    softmax_gradient(dp.view(), scores_.view(), dp.view(), rule_, where_);
    store_product(dp.view(), k_.view(), call_.dq, true);
    store_product(transposed(dp.view()), q_.view(), call_.dk, true);
  }

 private:
  [[nodiscard]] number_matrix loaded(const const_tensor_view& t) const {
    const const_matrix_view from = head_of(t, head_);
    number_matrix x(from.rows, from.cols);
    convert(from, x.view(), {}, where_);
    return x;
  }
  void multiply(const const_matrix_view& a, const const_matrix_view& b, number_matrix& d) const {
    matmul(a, b, d.view(), accumulator::ieee_fp32(fp32_order::ascending_fused), {}, where_);
  }
  /// Stores a product, if it is wanted. Those of the scores' gradients are scaled.
  void store_product(const const_matrix_view& a, const const_matrix_view& b,
                     const const_tensor_view& t, bool scaled) const {
    if (t.data == nullptr) return;
    number_matrix d(a.rows, b.cols);
    multiply(a, b, d);
    if (scaled) d.multiply(p_.rule.scale);
    const const_matrix_view to = head_of(t, head_);
    convert(d.view(),
            {const_cast<void*>(to.data), to.format, to.rows, to.cols, to.row_stride, to.col_stride},
            {}, where_);
  }

  std::uint32_t* row(std::int64_t i) {
    return scores_.words.data() + static_cast<std::size_t>(i * p_.keys);
  }
  /// Adds -Inf to the scores of keys that query i does not see.
  void mask(std::int64_t i) {
    for (std::int64_t j = torch::visible_keys(p_, i); j < p_.keys; ++j) {
      row(i)[j] = numerics::ptx::add(row(i)[j], torch::minus_inf);
    }
    blind_.push_back(std::all_of(row(i), row(i) + p_.keys,
                                 [](std::uint32_t s) { return s == torch::minus_inf; }));
  }

  const attention_call& call_;
  const torch::attention_plan& p_;
  const executor& where_;
  std::int64_t head_;
  number_matrix q_, k_, v_;
  number_matrix scores_;  ///< then probabilities
  std::vector<bool> blind_;
  softmax_options rule_ = {.rule = function_rule::torch_2_11};
};

}  // namespace

void attention_math(const attention_call& call, const executor& where) {
  for (std::int64_t head = 0; head < call.plan.batch * call.plan.heads; ++head) {
    math_head of(call, where, head);
    if (call.grad.data != nullptr) {
      of.backward();
    } else {
      of.forward();
    }
  }
}

}  // namespace samebits::backends
