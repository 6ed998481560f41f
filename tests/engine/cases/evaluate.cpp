// Functions of matrices and of tensor lists, and their definition.
#include "engine/cases/operations.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/text.hpp"
#include "engine/inputs/families.hpp"
#include "engine/inputs/function_calls.hpp"
#include "numerics/bits/convert.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/random.hpp"
#include "numerics/functions/exact_function.hpp"
#include "numerics/hardware/evaluate.hpp"
#include "samebits/evaluate.hpp"
#include "samebits/scalar.hpp"

namespace samebits::support {
namespace {

/// One tensor of a call. `grad` is read by gradients alone.
struct evaluated_tensor {
  format_id from = format_id::fp32, grad = format_id::fp32, to = format_id::fp32;
  array_layout in = {}, gradient = {}, out = {};
};

/// Whether the result is written over an operand.
enum class written_over : std::uint8_t { nothing, operand, gradient };

struct evaluate_case {
  function of = function::exp;
  bool gradient = false;
  evaluate_options options = {};
  std::vector<evaluated_tensor> tensors = {};
  bool listed = false;  ///< one call on lists; otherwise there is one tensor
  written_over over = written_over::nothing;
  std::uint32_t first = 0,
                step = 0;  ///< operands are codes first, first + step, ... unless it is 0
  int threads = 1;
  std::uint64_t content = 0;
};

namespace real = numerics::real;

void describe(evaluate_case& c, case_fields& fields) {
  fields.show("of", c.of, "gradient", c.gradient, "rule", c.options.rule, "parameter",
              c.options.parameter, "rounding", c.options.rounding, "overflow", c.options.overflow,
              "first code", c.first, "step", c.step);
  if (c.listed) fields.fewer(c.tensors);
  for (evaluated_tensor& t : c.tensors) {
    fields.line();
    fields.show("from", t.from, "grad", t.grad, "to", t.to);
    fields.matrices({{"in", t.in}, {"gradient", t.gradient}, {"out", t.out}});
  }
  fields.line();
  if (c.tensors.size() == 1) fields.reset("listed", c.listed, false);
  fields.reset("written over", c.over, written_over::nothing);
  fields.reset(c.options.random);
}

constexpr double parameters_of_pow[] = {0, 1, 0.5, -0.5, -1, 2, 3, -2, 1.7, 2.001};

evaluate_case draw_evaluation(const word_source& next) {
  static const std::vector<function_case> calls = function_cases();
  const function_case& call = calls[next() % calls.size()];
  evaluate_case c;
  c.of = call.of;
  c.gradient = call.gradient;
  c.options = call.options;
  const bool exact = c.options.rule == function_rule::exact;
  if (c.of == function::pow) c.options.parameter = one_of(parameters_of_pow, next);
  if (exact) c.options.overflow = any_enumerator<overflow>(next);
  if (c.options.rounding == rounding::stochastic) {
    c.options.random = draw_random_stream(next);
    c.options.random.bits = 1 + static_cast<int>(below(16, next));
  }
  c.listed = below(2, next) == 0;
  c.over = static_cast<written_over>(below(4, next) == 0 ? 1 + below(c.gradient ? 2 : 1, next) : 0);
  c.tensors.resize(static_cast<std::size_t>(c.listed ? below(8, next) : 1));
  const bool plain = below(2, next) == 0;
  for (evaluated_tensor& t : c.tensors) {
    t.from = one_of(call.formats, next);
    t.to = exact ? one_of(call.results, next) : t.from;
    t.grad = exact && below(2, next) == 0 ? one_of(call.formats, next) : t.from;
    if (c.over == written_over::operand && storage_bytes(t.from) != storage_bytes(t.to)) {
      c.over = written_over::nothing;
    }
    if (c.over == written_over::gradient && storage_bytes(t.grad) != storage_bytes(t.to)) {
      t.grad = t.from;
      if (storage_bytes(t.grad) != storage_bytes(t.to)) c.over = written_over::nothing;
    }
    const std::int64_t rows = below(5, next);
    const std::int64_t cols = below(16, next) == 0 ? below(1500, next) : below(70, next);
    for (array_layout* l : {&t.in, &t.gradient, &t.out}) {
      const bool written = l == &t.out || c.listed;  // lists do not repeat elements
      *l = plain ? dense_layout(rows, cols)
                 : draw_layout(rows, cols, written ? array_side::written : array_side::read, next);
    }
  }
  return c;
}

/// Zeros, infinities, NaNs and numbers near borders of formulas; then codes of which every second
/// one has a magnitude between 2^-16 and 2^16.
std::uint64_t draw_operand(format_id format, std::int64_t i, const word_source& next) {
  constexpr std::uint32_t special[] = {
      0x00000000, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFF800001, 0x00000001,
      0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x3F800000, 0xBF800000, 0x40400000,
      0xC0400000, 0x41A00000, 0x42B17218, 0xC2CFF1B5, 0xC2D00000, 0x41C80001, 0x33800000,
      0xB3800000, 0x2B800000, 0xAB000000, 0x40A00001, 0xBFA3A4BA, 0xBF40A14F, 0xBF407569,
      0x3A000000, 0x47CE4780, 0xC7CE477F, 0x4120E148, 0xC2FC0000, 0xC2FC0001, 0x3F19999A,
      0x41102CB4, 0x7E800000, 0x7E800001, 0xC0000000, 0x3FFFFFFF, 0x3EFFFFFF};
  const auto bits = static_cast<std::uint32_t>(next());
  const auto exponent = static_cast<std::uint32_t>(111 + below(32, next));
  const auto count = static_cast<std::int64_t>(std::size(special));
  const bool chosen = i < 2 * count && below(2, next) == 0;
  const std::uint32_t code = chosen       ? special[i % count]
                             : i % 2 == 0 ? (bits & 0x807FFFFFu) | exponent << 23
                                          : bits;
  if (i % 16 == 15) return draw_any_code(format, format_id::fp16, next);
  return convert_code(format_id::fp32, format, code).code;
}

buffers memory_of_evaluation(const evaluate_case& c) {
  const word_source next = words_from(c.content);
  buffers all;
  for (std::size_t i = 0; i < c.tensors.size(); ++i) {
    const evaluated_tensor& t = c.tensors[i];
    const std::string prefix = "tensor " + std::to_string(i) + " ";
    const auto operand = [&](std::string_view name, format_id format, const array_layout& layout) {
      strided_buffer buffer(format, layout);
      for (std::int64_t k = 0; k < layout.rows * layout.cols; ++k) {
        buffer.store(layout.at(k), c.step != 0
                                       ? (c.first + static_cast<std::uint64_t>(k) * c.step) *
                                             (name == "grad" ? 0x9E3779B1u : 1u)
                                       : draw_operand(format, k, next));
      }
      all.push_back({prefix + std::string(name), buffer_use::given, std::move(buffer)});
    };
    const bool over_in = c.over == written_over::operand,
               over_gradient = c.over == written_over::gradient;
    operand("in", t.from, over_in ? t.out : t.in);
    operand("grad", t.grad, !c.gradient ? array_layout{} : over_gradient ? t.out : t.gradient);
    const auto first = static_cast<int>(3 * i);
    all.push_back({.name = prefix + "out",
                   .memory = {t.to, t.out},
                   .over = over_in         ? first
                           : over_gradient ? first + 1
                                           : -1});
  }
  return all;
}

// The buffers of a tensor: operand, gradient, result.
returned_values evaluate_on(const evaluate_case& c, const call_site& site) {
  std::vector<matrix_view> in, grad, out;
  for (std::size_t i = 0; i < c.tensors.size(); ++i) {
    in.push_back(site.views[3 * i]);
    grad.push_back(site.views[3 * i + 1]);
    out.push_back(site.views[3 * i + 2]);
  }
  const executor where = site.target.where(c.threads);
  const function_case call{c.of, c.gradient, c.options, {}, {}};
  if (c.listed) {
    site.target.enqueue([=, x = tensor_list(in), y = tensor_list(out),
                         g = c.gradient ? tensor_list(grad) : tensor_list()] {
      run_function(call, g, x, y, where);
    });
  } else {
    site.target.enqueue(
        [&] { run_function<const_matrix_view, matrix_view>(call, grad[0], in[0], out[0], where); });
  }
  return {};
}

std::uint64_t number(format_id format, std::uint64_t code) {
  return numerics::decode<std::uint64_t>(spec_of(format), code);
}

/// An element by rule `exact`.
std::uint64_t exact_code(const evaluate_case& c, const evaluated_tensor& t, std::uint64_t x,
                         std::uint64_t grad, std::uint64_t stream, std::uint64_t index) {
  const auto f = *real::find_exact(c.of, c.gradient);
  std::uint64_t y = real::with_function(
      f, [&]<real::exact_function F>() { return real::value_at<F>(number(t.from, x)); });
  if (c.gradient) {
    const std::uint64_t d =
        numerics::convert_any(spec_of(format_id::fp64), spec_of(format_id::fp32), {}, y, {}).code;
    y = real::gradient_product(number(t.grad, grad), number(format_id::fp32, d));
  }
  const random_stream& r = c.options.random;
  const std::uint64_t dither = numerics::align_random<std::uint64_t>(
      numerics::random_word(r.seed, stream, index, r.bits), r.bits);
  return real::destination_code(spec_of(t.to), {c.options.rounding, c.options.overflow}, y, dither);
}

numerics::function_plan plan_of(const evaluate_case& c, format_id format) {
  const double absent = c.of == function::elu ? 1.0 : c.of == function::leaky_relu ? 0.01 : 0.0;
  const double p = c.options.parameter.value_or(absent);
  return numerics::plan_of(c.options.rule, c.of, format, std::bit_cast<std::uint64_t>(p),
                           std::bit_cast<std::uint64_t>(p - 1));
}

/// What the definition in numerics/ leaves, one element after another.
returned_values evaluate_by_definition(const evaluate_case& c, const call_site& site) {
  for (std::size_t i = 0; i < c.tensors.size(); ++i) {
    const evaluated_tensor& t = c.tensors[i];
    const matrix_view &in = site.views[3 * i], &grad = site.views[3 * i + 1],
                      &out = site.views[3 * i + 2];
    const bool exact = c.options.rule == function_rule::exact;
    const numerics::function_plan plan = exact ? numerics::function_plan{} : plan_of(c, t.from);
    const random_stream& r = c.options.random;
    const std::uint64_t pitch = r.pitch.value_or(static_cast<std::uint64_t>(in.cols));
    for_each_element(in, [&](std::int64_t row, std::int64_t col) {
      const std::uint64_t x = code_at(in, row, col);
      const std::uint64_t g = c.gradient ? code_at(grad, row, col) : 0;
      const std::uint64_t index =
          r.offset + static_cast<std::uint64_t>(row) * pitch + static_cast<std::uint64_t>(col);
      const auto low = [](std::uint64_t code) { return static_cast<std::uint32_t>(code); };
      put_code(out, row, col,
               exact        ? exact_code(c, t, x, g, r.stream + i, index)
               : c.gradient ? numerics::evaluate_gradient_code(plan, low(g), low(x))
                            : numerics::evaluate_code(plan, low(x)));
    });
  }
  return {};
}

std::vector<evaluate_case> listed_evaluations() {
  std::vector<evaluate_case> all;
  for (const function_case& call : function_cases()) {
    std::vector<std::optional<double>> parameters = {call.options.parameter};
    if (call.of == function::pow) {
      if (call.options.parameter != 0.5) continue;  // once, with each parameter
      parameters.assign(std::begin(parameters_of_pow), std::end(parameters_of_pow));
    }
    const bool exact = call.options.rule == function_rule::exact;
    for (const auto& parameter : parameters) {
      for (const format_id from : call.formats) {
        for (const format_id to : exact ? call.results : std::vector{from}) {
          for (const format_id grad : exact&& call.gradient ? call.formats : std::vector{from}) {
            evaluate_case c{.of = call.of, .gradient = call.gradient, .options = call.options};
            c.options.parameter = parameter;
            const std::int64_t rows = exact ? 3 : 7, cols = exact ? 587 : 683;
            c.tensors = {{from,
                          grad,
                          to,
                          {rows, cols, cols + 13, 1, 0},
                          {rows, cols, 2 * cols + 1, 2, 0},
                          {rows, cols, 2 * cols + 9, 2, 0}}};
            c.threads = 2;
            c.content = all.size();
            all.push_back(c);
            if (!exact || from != format_id::fp32) continue;
            all.push_back(c);
            all.back().options.overflow = overflow::saturate;
          }
        }
      }
    }
  }
  // Long rows of 16-bit operands, whose results host backends take from a table.
  const auto add_long = [&](function f, format_id from, format_id to, const evaluate_options& o) {
    evaluate_case c{.of = f, .options = o, .step = 7, .threads = 2};
    c.tensors = {{from, from, to, {17, 65543, 65550, 1, 0}, {}, {17, 65543, 2 * 65550, 2, 0}}};
    all.push_back(c);
    if (from != to) return;
    all.back().tensors[0].in = all.back().tensors[0].out = dense_layout(1, 17 * 65550);
    all.back().over = written_over::operand;
    all.push_back(c);
  };
  add_long(function::exp, format_id::bf16, format_id::bf16, {});
  add_long(function::gelu, format_id::fp16, format_id::e4m3, {.overflow = overflow::saturate});
  add_long(function::log1p, format_id::bf16, format_id::fp32, {});
  add_long(function::pow, format_id::fp16, format_id::fp16,
           {.rule = function_rule::torch_2_11, .parameter = 1.7});
  add_long(function::exp, format_id::bf16, format_id::bf16, {.rule = function_rule::triton_3_6});
  return all;
}

const operation_of<evaluate_case> evaluations = {draw_evaluation, memory_of_evaluation,
                                                 evaluate_on};

array_operation listed(const std::vector<evaluate_case>& all, std::size_t batch) {
  return judged("the definition", evaluate_by_definition,
                listed_operation("evaluate", evaluations, all, batch));
}

}  // namespace

array_operation evaluations_of_codes(format_id from, bool exact, std::int64_t count,
                                     std::uint32_t first, std::uint32_t step, bool in_place) {
  std::vector<evaluate_case> all;
  for (const function_case& call : function_cases()) {
    if ((call.options.rule == function_rule::exact) != exact) continue;
    if (std::ranges::find(call.formats, from) == call.formats.end()) continue;
    if (call.of == function::pow && call.options.parameter != 0.5) continue;  // with each parameter
    for (const format_id to : exact ? call.results : std::vector{from}) {
      evaluate_case c{.of = call.of, .gradient = call.gradient, .options = call.options};
      c.first = first;
      c.step = step;
      const array_layout dense = dense_layout(1, count);
      c.tensors = {{from, from, to, dense, dense, dense}};
      c.threads = 4;
      if (in_place && from == to) c.over = written_over::operand;
      if (call.of != function::pow) all.push_back(c);
      if (exact && c.options.rounding == rounding::nearest_even) {
        all.push_back(c);
        all.back().options.overflow = overflow::saturate;
      }
      for (const double p : parameters_of_pow) {
        if (call.of != function::pow) break;
        c.options.parameter = p;
        all.push_back(c);
      }
    }
  }
  return listed(all, count > (1 << 20) ? 8 : 64);
}

array_operation every_evaluation() { return listed(listed_evaluations(), 64); }

array_operation evaluate_operation() {
  return judged("the definition", evaluate_by_definition, make_operation("evaluate", evaluations));
}

}  // namespace samebits::support
