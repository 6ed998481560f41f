// Refused arguments of fused operators: each message names its argument, and nothing is written.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "engine/suites/refusals.hpp"
#include "samebits/operators.hpp"

namespace samebits::support {
namespace {

/// Calls on [2, 4] matrices that would succeed.
struct operator_call {
  void expect_untouched() const {
    for (const std::vector<float>* all : {&first_memory, &second_memory}) {
      for (const float result : *all) ASSERT_EQ(result, 42.0f) << "something was written";
    }
  }
  static const_matrix_view row(const std::vector<float>& memory) {
    return view_of(memory.data(), 1, 4);
  }

  std::vector<float> operands = std::vector<float>(8, 0.5f);
  std::vector<float> first_memory = std::vector<float>(8, 42.0f);
  std::vector<float> second_memory = std::vector<float>(8, 42.0f);
  function f = function::silu;
  function_rule rule = function_rule::torch_2_11;
  const_matrix_view x = view_of(operands.data(), 2, 4), y = x, z = x;
  matrix_view out = view_of(first_memory.data(), 2, 4);
  matrix_view second = view_of(second_memory.data(), 2, 4);
  executor where;
};
struct gated_call : operator_call {
  void run() const { gated(f, x, y, out, rule, where); }
};
struct gated_gradient_call : operator_call {
  void run() const { gated_gradient(f, x, y, z, out, second, rule, where); }
};
struct biased_call : operator_call {
  const_matrix_view bias = row(operands);
  void run() const { biased(f, x, bias, out, rule, where); }
};
struct rotate_call : operator_call {
  const_matrix_view cos = view_of(operands.data(), 2, 2), sin = cos;
  rotate_options options{function_rule::torch_2_11};
  void run() const { rotate(x, cos, sin, out, options, where); }
};
struct embed_call : operator_call {
  std::vector<std::int64_t> indices = {1, 0};
  const_matrix_view positions = row(operands);
  embed_options options{function_rule::torch_2_11};
  void run() const { embed(indices, x, positions, out, options, where); }
};
struct dropout_call : operator_call {
  dropout_options options;
  void run() const { dropout(x, out, options, where); }
};
struct fake_quantize_call : operator_call {
  const_matrix_view clip = view_of(operands.data(), 1, 1);
  clip_fake_quantize_options options;
  void run() const { clip_fake_quantize_gradient(x, y, clip, out, second, options, where); }
};
struct norm_call : operator_call {
  layer_norm_options options{.rule = function_rule::torch_2_11};
  void run() const { add_layer_norm(x, y, {}, {}, second, out, {}, {}, options, where); }
};
struct norm_gradient_call : operator_call {
  const_matrix_view rstd = view_of(operands.data(), 2, 1);
  layer_norm_options options{.rule = function_rule::torch_2_11};
  void run() const { add_rms_norm_gradient(x, y, z, rstd, {}, out, options, where); }
};
struct scores_call : operator_call {
  scaled_softmax_options options{
      .rule = function_rule::torch_2_11, .mask = row(operands), .mask_steps = {}};
  void run() const { scaled_softmax_gradient(x, y, out, options, where); }
};

TEST(OperatorArguments, WhatIsAllowed) {
  gated_call g;
  EXPECT_NO_THROW(g.run());
  gated_gradient_call in_place;
  in_place.x = in_place.out;
  in_place.y = in_place.second;
  EXPECT_NO_THROW(in_place.run());
  embed_call e;
  e.positions = {};
  EXPECT_NO_THROW(e.run());
  norm_gradient_call n;
  n.y = {};
  EXPECT_NO_THROW(n.run());
  embed_call none;
  none.indices.clear();
  none.out.rows = 0;
  EXPECT_NO_THROW(none.run());
}

TEST(OperatorArguments, OfGatedAndBiasedFunctions) {
  expect_refused<gated_call>({
      {"up: shape must be that of out, [2, 4], got [1, 4]", "", [](auto& c) { c.y.rows = 1; }},
      {"gate: format must be that of out, fp32, got bf16", "",
       [](auto& c) { c.x.format = format_id::bf16; }},
      {"out: ", "", [](auto& c) { c.out.row_stride = 0; }},
      {"gate", "", [](auto& c) { c.x.data = &c.first_memory[1]; }},
  });
  expect_refused<gated_call, unsupported>({
      {"rule torch_2_11 has no gated tanh of fp32 numbers", "",
       [](auto& c) { c.f = function::tanh; }},
      {"rule exact has no gated silu of fp32 numbers", "",
       [](auto& c) { c.rule = function_rule::exact; }},
  });
  expect_refused<gated_gradient_call>({
      {"of_gate", "", [](auto& c) { c.second.data = c.out.data; }},
      {"of_up: shape must be that of of_gate, [2, 4], got [2, 3]", "",
       [](auto& c) { c.second.cols = 3; }},
      {"grad", "", [](auto& c) { c.x.data = &c.second_memory[1]; }},
  });
  expect_refused<biased_call>({
      {"bias: shape must be [1, 4], got [2, 4]", "", [](auto& c) { c.bias = c.x; }},
      {"bias", "", [](auto& c) { c.bias.data = c.out.data; }},
  });
}

TEST(OperatorArguments, OfEmbeddings) {
  expect_refused<rotate_call>({
      {"each: must be at least 1, got 0", "", [](auto& c) { c.options.each = 0; }},
      {"cos: shape must be [2, 2], got [2, 4]", "", [](auto& c) { c.cos = c.x; }},
      {"sin: must have rows", "", [](auto& c) { c.sin.rows = 0; }},
      {"out: must have an even number of columns, got 3", "",
       [](auto& c) { c.out.cols = c.x.cols = 3; }},
  });
  expect_refused<rotate_call, unsupported>(
      {{"rule exact has no rotary embedding of fp32 numbers", "",
        [](auto& c) { c.options.rule = function_rule::exact; }}});
  expect_refused<embed_call>({
      {"indices: must be from 0 to 1, got 2 at position 1", "", [](auto& c) { c.indices[1] = 2; }},
      {"indices: must be 2, one for each row, got 1", "", [](auto& c) { c.indices.pop_back(); }},
      {"positions: must have rows", "", [](auto& c) { c.positions.rows = 0; }},
      {"table", "", [](auto& c) { c.x.cols = 3; }},
  });
  expect_refused<embed_call, unsupported>(
      {{"rule exact has no embedding of fp32 numbers", "",
        [](auto& c) { c.options.rule = function_rule::exact; }}});
}

TEST(OperatorArguments, OfScores) {
  scores_call allowed;
  EXPECT_NO_THROW(allowed.run());
  expect_refused<scores_call>({
      {"heads: must be at least 1, got 0", "", [](auto& c) { c.options.heads = 0; }},
      {"queries: must be at least 1, got -1", "", [](auto& c) { c.options.queries = -1; }},
      {"out: rows must be a multiple of heads * queries, got 2", "",
       [](auto& c) { c.options.queries = 3; }},
      {"mask_steps: must be at least 0, got -1", "", [](auto& c) { c.options.mask_steps[1] = -1; }},
      {"mask: has too few rows, 1", "", [](auto& c) { c.options.mask_steps[0] = 1; }},
      {"mask: has too few rows, 2", "",
       [](auto& c) {
         c.options.mask = c.x;
         c.options.queries = 2;
         c.options.mask_steps[2] = std::int64_t{1} << 62;
       }},
      {"mask: has too few rows, 0", "", [](auto& c) { c.options.mask.rows = 0; }},
      {"mask: shape must be [1, 4], got [1, 3]", "", [](auto& c) { c.options.mask.cols = 3; }},
      {"mask: format must be that of out, fp32, got bf16", "",
       [](auto& c) { c.options.mask.format = format_id::bf16; }},
      {"mask", "", [](auto& c) { c.options.mask.data = c.out.data; }},
      {"result: shape must be that of out, [2, 4], got [1, 4]", "", [](auto& c) { c.y.rows = 1; }},
  });
  expect_refused<scores_call, unsupported>(
      {{"rule triton_3_6 has no scaled softmax of fp32 numbers", "",
        [](auto& c) { c.options.rule = function_rule::triton_3_6; }}});
}

TEST(OperatorArguments, OfDropoutAndNormsOfSums) {
  expect_refused<dropout_call>({
      {"probability: must be from 0 to 1", "", [](auto& c) { c.options.probability = 1.5; }},
      {"probability: must be from 0 to 1", "", [](auto& c) { c.options.probability = -0.5; }},
  });
  expect_refused<fake_quantize_call>({
      {"bits: must be from 2 to 16, got 1", "", [](auto& c) { c.options.bits = 1; }},
      {"bits: must be from 2 to 16, got 17", "", [](auto& c) { c.options.bits = 17; }},
      {"clip: shape must be [1, 1], got [1, 4]", "", [](auto& c) { c.clip.cols = 4; }},
      {"clip", "", [](auto& c) { c.clip.data = c.out.data; }},
  });
  expect_refused<norm_call>({
      {"added: shape must be that of sum, [2, 4], got [1, 4]", "", [](auto& c) { c.y.rows = 1; }},
      {"sum", "", [](auto& c) { c.second.data = c.out.data; }},
      {"offset: must be at least 0, got -1", "", [](auto& c) { c.options.offset = -1; }},
      {"out: overlaps in", "", [](auto& c) { c.x.data = &c.first_memory[1]; }},
  });
  expect_refused<norm_gradient_call>({
      {"of_sum", "", [](auto& c) { c.y.data = c.out.data; }},
      {"of_sum: format must be that of out, fp32, got fp16", "",
       [](auto& c) { c.y.format = format_id::fp16; }},
      {"rstd: data must not be null", "", [](auto& c) { c.rstd.data = nullptr; }},
  });
}

}  // namespace
}  // namespace samebits::support
