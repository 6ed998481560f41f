// Refused arguments of functions of matrices, tensor lists and rows: each message names its argument,
// and nothing is written.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "engine/suites/refusals.hpp"
#include "samebits/evaluate.hpp"
#include "samebits/row_functions.hpp"
#include "samebits/types.hpp"
#include "support/refusal.hpp"

namespace samebits::support {
namespace {

void expect_42(const std::vector<float>& all) {
  for (const float y : all) ASSERT_EQ(y, 42.0f) << "something was written";
}

/// exp of 1/2 by rule `exact` that would succeed.
struct evaluation {
  void run() { evaluate(f, in, out, options, where); }
  void expect_untouched() const { expect_42(results); }
  template <class T>
  void write_to(std::vector<T>& memory) {
    memory.resize(8);
    out = view_of(memory);
  }

  std::vector<float> operands = std::vector<float>(8, 0.5f);
  std::vector<float> results = std::vector<float>(8, 42.0f);
  std::vector<bf16> narrow;
  function f = function::exp;
  const_matrix_view in = view_of(operands);
  matrix_view out = view_of(results);
  evaluate_options options;
  executor where;
};

/// The same by rule cuda_13_0.
struct cuda_evaluation : evaluation {
  cuda_evaluation() { options.rule = function_rule::cuda_13_0; }
};

TEST(EvaluateArguments, WhatIsAllowed) {
  evaluation exact;
  exact.run();
  EXPECT_EQ(std::bit_cast<std::uint32_t>(exact.results[7]), 0x3FD3094Cu);
  cuda_evaluation cuda;
  cuda.run();
  EXPECT_EQ(std::bit_cast<std::uint32_t>(cuda.results[7]), 0x3FD3094Cu);
  evaluation empty;
  empty.in = {nullptr, format_id::fp32, 1, 0};
  empty.out.cols = 0;
  EXPECT_NO_THROW(empty.run());
  // Stochastic rounding has 16 bits by default.
  evaluation by_default, with_16_bits;
  for (evaluation* e : {&by_default, &with_16_bits}) {
    e->write_to(e->narrow);
    e->options.rounding = rounding::stochastic;
  }
  with_16_bits.options.random = {.bits = 16};
  by_default.run();
  with_16_bits.run();
  EXPECT_EQ(std::memcmp(by_default.narrow.data(), with_16_bits.narrow.data(), 16), 0);
}

TEST(EvaluateArguments, OtherRules) {
  expect_refused<cuda_evaluation>({
      {"f: ", "", [](auto& c) { c.f = static_cast<function>(enum_count<function>); }},
      {"rule: ", "",
       [](auto& c) { c.options.rule = static_cast<function_rule>(enum_count<function_rule>); }},
      {"options: rule cuda_13_0 has its own rounding", "",
       [](auto& c) { c.options.rounding = rounding::stochastic; }},
      {"options: rule cuda_13_0 has its own rounding", "",
       [](auto& c) { c.options.overflow = overflow::saturate; }},
      {"parameter: exp has no parameter", "", [](auto& c) { c.options.parameter = 1.0; }},
      {"parameter: pow needs its exponent", "", [](auto& c) { c.f = function::pow; }},
      {"in: shape must be that of out, [1, 7]", "", [](auto& c) { c.out.cols = 7; }},
      {"in: format must be that of out, tf32, got fp32", "",
       [](auto& c) { c.out.format = format_id::tf32; }},
      {"out", "",  // shares a part of in
       [](auto& c) {
         c.in.cols = c.out.cols = 7;
         c.out.data = c.operands.data() + 1;
       }},
  });
  expect_refused<cuda_evaluation, unsupported>({
      {"rule cuda_13_0 has no gelu of fp32 numbers", "", [](auto& c) { c.f = function::gelu; }},
      {"rule torch_2_11 has no sin of fp32 numbers", "",
       [](auto& c) { c.f = function::sin, c.options.rule = function_rule::torch_2_11; }},
  });
  cuda_evaluation c;
  EXPECT_THROW(evaluate_gradient(c.f, c.in, c.in, c.out, c.options), unsupported);
}

TEST(EvaluateArguments, RuleExact) {
  expect_refused<evaluation, unsupported>({
      {"rule exact has no sin of fp32 numbers", "", [](auto& c) { c.f = function::sin; }},
      {"rule exact has no exp of tf32 numbers", "", [](auto& c) { c.in.format = format_id::tf32; }},
      {"rule exact has no exp into tf32 numbers", "",
       [](auto& c) { c.out.format = format_id::tf32; }},
      {"options.rounding: rule exact rounds into fp32 to nearest even, got", "",
       [](auto& c) { c.options.rounding = rounding::stochastic; }},
      {"options.rounding: rule exact rounds into bf16 to nearest even or stochastically, got", "",
       [](auto& c) { c.write_to(c.narrow), c.options.rounding = rounding::upward; }},
  });
  expect_refused<evaluation>({
      {"options.random.bits must be in 1..16 for functions, got 32",
       "write .random = {.seed = ..., .bits = 16}",
       [](auto& c) {
         c.write_to(c.narrow);
         c.options.rounding = rounding::stochastic;
         c.options.random = {.seed = 5};  // which has 32 bits
       }},
      {"options.random.bits must be in 1..32, got 0", "",
       [](auto& c) {
         c.write_to(c.narrow);
         c.options.rounding = rounding::stochastic;
         c.options.random.bits = 0;
       }},
      {"parameter: exp has no parameter", "", [](auto& c) { c.options.parameter = 1.0; }},
      {"in: shape must be that of out, [1, 7]", "", [](auto& c) { c.out.cols = 7; }},
      {"out", "", [](auto& c) { c.out = {c.operands.data(), format_id::bf16, 1, 8, 8, 1}; }},
  });
  evaluation c;
  const auto gradient = [&] { evaluate_gradient(function::exp, c.in, c.in, c.out); };
  EXPECT_EQ(support::refusal_of<unsupported>(gradient),
            "rule exact has no gradient of exp of fp32 numbers");
  std::vector<float> x(9, 42.0f);  // out may not share a part of in
  const const_matrix_view in = view_of(x.data(), 1, 8);
  const matrix_view out = view_of(x.data() + 1, 1, 8);
  EXPECT_THROW(evaluate(function::exp, in, out), invalid_argument);
  EXPECT_THROW(evaluate_gradient(function::silu, in, c.out, out), invalid_argument);
  expect_42(x);
}

/// exp of two tensors that would succeed.
struct list_evaluation {
  void run() { evaluate(f, in, out, options, where); }
  void expect_untouched() const {
    expect_42(c);
    expect_42(d);
  }

  std::vector<float> a = {0.5f, 0.5f}, b = std::vector<float>(3, 0.5f);
  std::vector<float> c = {42, 42}, d = std::vector<float>(3, 42.0f);
  std::vector<bf16> e = std::vector<bf16>(3);
  function f = function::exp;
  tensor_list in{view_of(a), view_of(b)};
  tensor_list out{view_of(c), view_of(d)};
  evaluate_options options;
  executor where;
};

TEST(EvaluateListArguments, WhatIsAllowed) {
  list_evaluation plain;
  plain.run();
  EXPECT_EQ(plain.c, (std::vector<float>(2, 0x1.a61298p+0f)));
  EXPECT_EQ(plain.d, (std::vector<float>(3, 0x1.a61298p+0f)));
  list_evaluation views;
  evaluate(views.f, {view_of(views.a), view_of(views.b)}, {view_of(views.c), view_of(views.d)});
  EXPECT_EQ(views.d, (std::vector<float>(3, 0x1.a61298p+0f)));
  const tensor_list none;
  const function f = function::exp;
  evaluate(f, none, none);
  EXPECT_THROW(evaluate(f, none, none, {.parameter = 1.0}), invalid_argument);
  EXPECT_THROW(evaluate(f, none, none, {.rounding = static_cast<rounding>(99)}), invalid_argument);
  EXPECT_THROW(evaluate(f, none, none, {}, {"nonsense"}), invalid_argument);
}

TEST(EvaluateListArguments, Refused) {
  expect_refused<list_evaluation>({
      {"f: ", "", [](auto& c) { c.f = static_cast<function>(enum_count<function>); }},
      {"parameter: pow needs its exponent", "",
       [](auto& c) { c.f = function::pow, c.options.rule = function_rule::torch_2_11; }},
      {"out: must have as many tensors as in, 1, got 2", "",
       [](auto& c) { c.in = tensor_list(view_of(c.a)); }},
      {"out[1]: shape must be that of in[1], [3, 1], got [1, 3]", "",
       [](auto& c) {
         c.in = {view_of(c.a), view_of(c.b.data(), 3, 1)};
       }},
      {"in[1]: format must be fp32, fp16 or bf16, got e4m3", "",
       [](auto& c) {
         c.in = {view_of(c.a), view_of_codes(format_id::e4m3, c.b.data(), 1, 3)};
       }},
      {"in[1]: format must be that of out[1], fp32, got bf16", "",
       [](auto& c) {
         c.in = {view_of(c.a), view_of(c.e)};
         c.options.rule = function_rule::torch_2_11;
       }},
      {"out[1]: overlaps in[0]", "",
       [](auto& c) {
         c.c.assign(6, 42.0f);
         c.in = {view_of(c.c.data(), 1, 3), view_of(c.c.data() + 3, 1, 3)};
         c.out = {view_of(c.c.data() + 3, 1, 3), view_of(c.c.data(), 1, 3)};
       }},
      {"out[0]: overlaps in[0]", "",
       [](auto& c) {
         c.c.assign(6, 42.0f);
         c.in = tensor_list(view_of(c.c.data(), 1, 5));
         c.out = tensor_list(view_of(c.c.data() + 1, 1, 5));
       }},
      {"backend 'nonsense' is unknown", "", [](auto& c) { c.where = {"nonsense"}; }},
      {"", "threads",
       [](auto& c) {
         c.where = {"", -1};
       }},
  });
  expect_refused<list_evaluation, unsupported>({
      {"rule exact has no sin of fp32 numbers", "", [](auto& c) { c.f = function::sin; }},
      {"rule cuda_13_0 has no exp of bf16 numbers", "",
       [](auto& c) {
         c.in = {view_of(c.a), view_of(c.e)};
         c.out = {view_of(c.c), view_of(c.e)};
         c.options.rule = function_rule::cuda_13_0;
       }},
      {"options.rounding: rule exact rounds into fp32 to nearest even", "",
       [](auto& c) {
         c.out = {view_of(c.e.data(), 1, 2), view_of(c.d)};
         c.options.rounding = rounding::stochastic;
       }},
  });
}

TEST(EvaluateListArguments, GradientsAreCheckedToo) {
  list_evaluation c;
  const auto refused = [&](const tensor_list& grad, const evaluate_options& options) {
    EXPECT_THROW(evaluate_gradient(function::silu, grad, c.in, c.out, options), invalid_argument);
    c.expect_untouched();
  };
  refused(tensor_list(view_of(c.a)), {});
  refused({view_of(c.a), view_of_codes(format_id::e4m3, c.b.data(), 1, 3)}, {});
  refused({view_of(c.a), view_of(c.e)}, {.rule = function_rule::torch_2_11});
  refused({view_of(c.a), view_of(c.c.data(), 1, 2)}, {});
  EXPECT_THROW(evaluate_gradient(function::exp, c.in, c.in, c.out), unsupported);
}

/// Calls on rows that would succeed.
struct row_call {
  [[nodiscard]] const_matrix_view in() const { return view_of(operands.data(), 2, 4); }
  void expect_untouched() const { expect_42(results); }
  void set_rule(function_rule rule) { options.rule = norm.rule = rule; }

  std::vector<float> operands = std::vector<float>(8, 0.5f);
  std::vector<float> results = std::vector<float>(8, 42.0f);
  std::vector<float> numbers = std::vector<float>(16, 1.0f);
  matrix_view out = view_of(results.data(), 2, 4);
  softmax_options options{.rule = function_rule::torch_2_11};
  layer_norm_options norm{.rule = function_rule::torch_2_11};
  matrix_view weight = view_of(numbers.data(), 1, 4);
  matrix_view bias = view_of(numbers.data(), 1, 4);
  matrix_view mean = view_of(numbers.data() + 4, 2, 1);
  matrix_view rstd = view_of(numbers.data() + 6, 2, 1);
};
struct softmax_call : row_call {
  void run() { softmax(in(), out, options); }
};
struct log_softmax_call : row_call {
  void run() { log_softmax(in(), out, options); }
};
struct softmax_gradient_call : row_call {
  void run() { softmax_gradient(in(), in(), out, options); }
};
struct log_softmax_gradient_call : row_call {
  void run() { log_softmax_gradient(in(), in(), out, options); }
};
struct layer_norm_call : row_call {
  void run() { layer_norm(in(), weight, bias, out, mean, rstd, norm); }
};
struct layer_norm_gradient_call : row_call {
  void run() { layer_norm_gradient(in(), in(), mean, rstd, weight, out, norm); }
};

TEST(RowFunctionsArguments, WhatIsAllowed) {
  softmax_call s;
  s.run();
  EXPECT_EQ(s.results, std::vector<float>(8, 0.25f));
  layer_norm_call n;
  n.run();
  EXPECT_EQ(n.results, std::vector<float>(8, 1.0f));
  EXPECT_EQ(n.numbers[5], 0.5f);
  n.mean = n.rstd = {};  // the gradient alone requires statistics
  EXPECT_NO_THROW(n.run());
  layer_norm_gradient_call g;
  g.numbers = n.numbers;
  g.run();
  EXPECT_EQ(g.results, std::vector<float>(8, 0.0f));
  softmax({nullptr, format_id::fp32, 0, 4}, {nullptr, format_id::fp32, 0, 4}, s.options);
  softmax({nullptr, format_id::fp32, 2, 0}, {nullptr, format_id::fp32, 2, 0}, s.options);
}

template <class Call>
void expect_rules_refused(const std::string& what) {
  using enum function_rule;
  expect_refused<Call, unsupported>({
      {"rule exact has no " + what, "", [](auto& c) { c.set_rule(exact); }},
      {"rule cuda_13_0 has no " + what, "", [](auto& c) { c.set_rule(cuda_13_0); }},
      {"rule torch_compile_2_11 has no " + what, "",
       [](auto& c) { c.set_rule(torch_compile_2_11); }},
  });
}

TEST(RowFunctionsArguments, Rules) {
  expect_rules_refused<softmax_call>("softmax of fp32");
  expect_rules_refused<layer_norm_call>("layer_norm of fp32 numbers");
  expect_rules_refused<layer_norm_gradient_call>("gradient of layer_norm of fp32");
  const std::string none = "rule triton_3_6 has no ";
  expect_refused<log_softmax_call, unsupported>(
      {{none + "log_softmax of fp32 numbers", "",
        [](auto& c) { c.set_rule(function_rule::triton_3_6); }}});
  expect_refused<softmax_gradient_call, unsupported>(
      {{none + "gradient of softmax of fp32 numbers", "",
        [](auto& c) { c.set_rule(function_rule::triton_3_6); }}});
  expect_refused<log_softmax_gradient_call, unsupported>(
      {{none + "gradient of log_softmax of fp32 numbers", "",
        [](auto& c) { c.set_rule(function_rule::triton_3_6); }}});
}

template <int Warps>
void set_warps(softmax_call& c) {
  c.options.num_warps = Warps;
}
template <int Elements>
void set_elements(softmax_call& c) {
  c.options.elements_per_thread = Elements;
}

TEST(RowFunctionsArguments, Refused) {
  const std::string warps = "num_warps: must be a power of two from 1 to 32";
  const std::string elements = "elements_per_thread: must be 0, 1, 2, 4 or 8";
  expect_refused<softmax_call>({
      {"rule: ", "",
       [](auto& c) { c.set_rule(static_cast<function_rule>(enum_count<function_rule>)); }},
      {"offset: must be at least 0, got -1", "", [](auto& c) { c.options.offset = -1; }},
      {warps, "", set_warps<0>},
      {warps, "", set_warps<3>},
      {warps, "", set_warps<64>},
      {warps, "", set_warps<-4>},
      {elements, "", set_elements<-1>},
      {elements, "", set_elements<3>},
      {elements, "", set_elements<16>},
      {"in: shape must be that of out, [2, 3], got [2, 4]", "", [](auto& c) { c.out.cols = 3; }},
  });
  expect_refused<layer_norm_call>({
      {"offset: must be at least 0, got -1", "", [](auto& c) { c.norm.offset = -1; }},
      {"weight: shape must be [1, 4], got [1, 3]", "", [](auto& c) { c.weight.cols = 3; }},
      {"rstd: shape must be [2, 1], got [1, 1]", "", [](auto& c) { c.rstd.rows = 1; }},
      {"in: overlaps mean", "", [](auto& c) { c.mean = view_of(c.operands.data(), 2, 1); }},
      {"weight: overlaps mean", "", [](auto& c) { c.mean = view_of(c.numbers.data(), 2, 1); }},
      {"mean: overlaps rstd", "", [](auto& c) { c.mean = c.rstd; }},
      {"", "weight", [](auto& c) { c.weight = view_of(c.results.data(), 1, 4); }},
  });
  expect_refused<layer_norm_gradient_call>({
      {"weight: shape must be [1, 4], got [1, 3]", "", [](auto& c) { c.weight.cols = 3; }},
      {"rstd: shape must be [2, 1], got [1, 1]", "", [](auto& c) { c.rstd.rows = 1; }},
      {"mean: data must not be null", "", [](auto& c) { c.mean = c.rstd = {}; }},
  });
  softmax_call c;
  std::vector<std::uint8_t> codes(8);
  const matrix_view v = view_of_codes(format_id::e4m3, codes.data(), 2, 4);
  EXPECT_THROW(softmax(v, v, c.options), unsupported);
  EXPECT_THROW(softmax(v, c.out, c.options), invalid_argument);
}

}  // namespace
}  // namespace samebits::support
