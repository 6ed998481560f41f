// Norms of sums, and the operators that they consist of.
#include "engine/cases/operations.hpp"

#include "engine/cases/torch_numbers.hpp"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "samebits/operators.hpp"
#include "samebits/row_functions.hpp"

namespace samebits::support {
namespace {

struct norm_of_sum_case {
  bool rms = false, gradient = false;
  format_id format = format_id::fp32;
  array_layout in = {}, added = {}, sum = {}, out = {};  ///< of gradients: grad, of_sum, sum, out
  bool weight = false, bias = false;
  bool has_added = true;  ///< whether a gradient of the sum is given
  bool in_place = false;  ///< sum in the memory of in, or out in that of grad
  std::int64_t offset = 0;
  int threads = 1;
  std::uint64_t content = 0;
};

constexpr std::size_t at_in = 0, at_added = 1, at_weight = 2, at_bias = 3, at_mean = 4, at_rstd = 5,
                      at_sum = 6, at_out = 7;
constexpr float epsilon = 1e-3F;

void describe(norm_of_sum_case& c, case_fields& fields) {
  fields.show("RMSNorm", c.rms, "gradient", c.gradient, "format", c.format, "added", c.has_added);
  fields.matrices({{"in", !c.in_place  ? c.in
                          : c.gradient ? c.out
                                       : c.sum},
                   {"added", c.added},
                   {"sum", c.sum},
                   {"out", c.out}});
  if (c.in_place) c.in = c.gradient ? c.out : c.sum;
  fields.reset("in place", c.in_place, false, "weight", c.weight, false, "bias", c.bias, false,
               "offset", c.offset, 0);
}

norm_of_sum_case draw_norm(const word_source& next) {
  norm_of_sum_case c;
  c.rms = below(2, next) == 0;
  c.gradient = below(2, next) == 0;
  c.format = one_of(torch_formats, next);
  const std::int64_t rows = below(8, next) == 0 ? below(22, next) : 1 + below(5, next);
  std::int64_t cols = below(6, next) == 0   ? 1 + below(13'000, next)
                      : below(3, next) == 0 ? 1 + below(2100, next)
                                            : below(80, next);
  if (below(2, next) == 0) cols = cols / 8 * 8;
  const bool dense = below(2, next) == 0;
  for (array_layout* l : {&c.in, &c.added, &c.sum, &c.out}) {
    *l = dense ? dense_layout(rows, cols) : draw_layout(rows, cols, array_side::written, next);
  }
  c.weight = below(2, next) == 0;
  c.bias = below(2, next) == 0;
  c.has_added = !c.gradient || below(4, next) != 0;
  c.in_place = below(4, next) == 0;
  if (c.in_place) c.in = c.gradient ? c.out : c.sum;
  c.offset = below(3, next);
  c.threads = static_cast<int>(below(5, next));
  c.content = next();
  return c;
}

buffers memory_of_norm(const norm_of_sum_case& c) {
  const word_source next = words_from(c.content);
  buffers all;
  const auto add = [&](const char* name, bool given, format_id format, const array_layout& layout) {
    all.push_back({name, given ? buffer_use::given : buffer_use::result,
                   given ? rows_of(format, layout, next) : strided_buffer(format, layout)});
  };
  const array_layout none = {}, statistics = {c.out.rows, 1, 3, 1, 0},
                     parameters = dense_layout(1, c.out.cols);
  const bool sum_in_place = c.in_place && !c.gradient, out_in_place = c.in_place && c.gradient;
  add("in", true, c.format, c.in);
  add("added", true, c.format, c.has_added ? c.added : none);
  add("weight", true, c.format, c.weight ? parameters : none);
  add("bias", true, c.format, c.bias && !c.rms && !c.gradient ? parameters : none);
  add("mean", c.gradient, format_id::fp32, c.rms ? none : statistics);
  add("rstd", c.gradient, format_id::fp32, statistics);
  add("sum", c.gradient, c.format, sum_in_place ? none : c.sum);
  add("out", false, c.format, out_in_place ? none : c.out);
  return all;
}

matrix_view sum_of(const norm_of_sum_case& c, const call_site& site) {
  return site.views[c.in_place && !c.gradient ? at_in : at_sum];
}
matrix_view out_of(const norm_of_sum_case& c, const call_site& site) {
  return site.views[c.in_place && c.gradient ? at_in : at_out];
}

matrix_view weight_of(const norm_of_sum_case& c, const call_site& site) {
  return c.weight ? site.views[at_weight] : matrix_view{};
}
matrix_view bias_of(const norm_of_sum_case& c, const call_site& site) {
  return c.bias ? site.views[at_bias] : matrix_view{};
}
layer_norm_options options_of(const norm_of_sum_case& c) {
  return {function_rule::torch_2_11, epsilon, c.offset};
}

returned_values norm_on(const norm_of_sum_case& c, const call_site& site) {
  const std::vector<matrix_view>& v = site.views;
  const executor where = site.target.where(c.threads);
  const layer_norm_options options = options_of(c);
  const matrix_view weight = weight_of(c, site), bias = bias_of(c, site);
  const const_matrix_view added = c.has_added ? v[at_added] : matrix_view{};
  const matrix_view sum = sum_of(c, site), out = out_of(c, site);
  site.target.enqueue([&] {
    if (c.gradient && c.rms) {
      add_rms_norm_gradient(v[at_in], added, sum, v[at_rstd], weight, out, options, where);
    } else if (c.gradient) {
      add_layer_norm_gradient(v[at_in], added, sum, v[at_mean], v[at_rstd], weight, out, options,
                              where);
    } else if (c.rms) {
      add_rms_norm(v[at_in], added, weight, sum, out, v[at_rstd], options, where);
    } else {
      add_layer_norm(v[at_in], added, weight, bias, sum, out, v[at_mean], v[at_rstd], options,
                     where);
    }
  });
  return {};
}

/// to = a + b, rounded to the format.
void add_elements(const matrix_view& to, const matrix_view& a, const matrix_view& b) {
  for_each_element(to, [&](std::int64_t row, std::int64_t col) {
    put_value(to, row, col, numerics::ptx::add(value_at(a, row, col), value_at(b, row, col)));
  });
}

/// What PyTorch's operators leave one after another: the sum by its definition, the norm by the reference
/// backend, which the functions of rows judge.
returned_values norms_of_sums_by_definition(const norm_of_sum_case& c, const call_site& site) {
  if (c.out.cols == 0) return {};  // LayerNorm writes no statistics either
  const std::vector<matrix_view>& v = site.views;
  const executor where{"reference", 1};
  const layer_norm_options options = options_of(c);
  const matrix_view weight = weight_of(c, site), sum = sum_of(c, site), out = out_of(c, site);
  if (!c.gradient) add_elements(sum, v[at_in], v[at_added]);
  if (c.gradient && c.rms) {
    rms_norm_gradient(v[at_in], sum, v[at_rstd], weight, out, options, where);
  } else if (c.gradient) {
    layer_norm_gradient(v[at_in], sum, v[at_mean], v[at_rstd], weight, out, options, where);
  } else if (c.rms) {
    rms_norm(sum, weight, out, v[at_rstd], options, where);
  } else {
    layer_norm(sum, weight, bias_of(c, site), out, v[at_mean], v[at_rstd], options, where);
  }
  if (c.gradient && c.has_added) add_elements(out, out, v[at_added]);
  return {};
}

}  // namespace

array_operation norm_of_sum_operation() {
  return judged(
      "PyTorch's operators", norms_of_sums_by_definition,
      make_operation<norm_of_sum_case>("norms of sums", {draw_norm, memory_of_norm, norm_on}, 256));
}

}  // namespace samebits::support
