// LayerNorm and RMSNorm, of a sum or not, their gradients, and their definition.
#include "engine/cases/operations.hpp"

#include <bit>
#include <limits>
#include <vector>

#include "engine/cases/torch_numbers.hpp"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/torch_operators/row_layer_norm.hpp"
#include "samebits/operators.hpp"
#include "samebits/row_functions.hpp"

namespace samebits::support {
namespace {

struct norm_case {
  bool rms = false, gradient = false;
  bool of_sum = false;  ///< of in + added; the gradient adds that of the sum itself
  format_id format = format_id::fp32;
  /// Of gradients: that of the result, that of the sum, the norm's argument, the gradient.
  array_layout in = {}, added = {}, sum = {}, out = {};
  bool weight = false, bias = false;
  bool has_added = true;  ///< whether a gradient of the sum is given
  bool in_place = false;  ///< the result, or the sum, is the memory of in
  double epsilon = 0.5;
  std::int64_t offset = 0;
  int threads = 1;
  std::uint64_t content = 0;
};

namespace torch = numerics::torch_2_11;

constexpr std::size_t at_in = 0, at_added = 1, at_weight = 2, at_bias = 3, at_mean = 4, at_rstd = 5,
                      at_sum = 6, at_out = 7;

bool writes_sum(const norm_case& c) { return c.of_sum && !c.gradient; }

void describe(norm_case& c, case_fields& fields) {
  fields.show("RMSNorm", c.rms, "gradient", c.gradient, "of a sum", c.of_sum, "format", c.format,
              "added", c.has_added, "epsilon", c.epsilon);
  fields.matrices({{"in", c.in}, {"added", c.added}, {"sum", c.sum}, {"out", c.out}});
  fields.reset("in place", c.in_place, false, "weight", c.weight, false, "bias", c.bias, false,
               "offset", c.offset, 0);
}

norm_case draw_norm(const word_source& next) {
  norm_case c;
  for (bool* flag : {&c.rms, &c.gradient, &c.of_sum, &c.weight, &c.bias}) {
    *flag = below(2, next) == 0;
  }
  c.format = one_of(torch_formats, next);
  const std::int64_t rows = below(8, next) == 0 ? below(22, next) : 1 + below(5, next);
  std::int64_t cols = below(6, next) == 0   ? 1 + below(13'000, next)
                      : below(3, next) == 0 ? 1 + below(2100, next)
                                            : below(80, next);
  if (below(2, next) == 0) cols = cols / 8 * 8;
  const bool dense = below(2, next) == 0;
  for (array_layout* l : {&c.in, &c.added, &c.sum, &c.out}) {
    *l = dense ? dense_layout(rows, cols) : draw_written(rows, cols, next);
  }
  c.has_added = !c.gradient || below(4, next) != 0;
  c.in_place = below(4, next) == 0;
  constexpr double epsilons[] = {0.5, 1e-5, 1e-3, 0.0};
  c.epsilon = one_of(epsilons, next);
  c.offset = below(10, next);
  if (below(8, next) == 0) c.offset = std::numeric_limits<std::int64_t>::max() - below(8, next);
  return c;
}

buffers memory_of_norm(const norm_case& c) {
  const word_source next = words_from(c.content);
  buffers all;
  const auto add = [&](const char* name, bool has_it, bool given, format_id format,
                       const array_layout& layout) {
    all.push_back(result_buffer(name, format, layout, has_it));
    if (!given || !has_it) return;
    all.back().use = buffer_use::given;
    all.back().memory = rows_of(format, layout, next);
  };
  const array_layout statistics = {c.out.rows, 1, 3, 1, 0},
                     parameters = dense_layout(1, c.out.cols);
  const bool over_in = c.in_place && writes_sum(c);
  add("in", true, true, c.format, over_in ? c.sum : c.in_place ? c.out : c.in);
  add("added", c.of_sum && c.has_added, true, c.format, c.added);
  add("weight", c.weight, true, c.format, parameters);
  add("bias", c.bias && !c.rms && !c.gradient, true, c.format, parameters);
  add("mean", !c.rms, c.gradient, format_id::fp32, statistics);
  add("rstd", true, c.gradient, format_id::fp32, statistics);
  add("sum", c.of_sum || c.gradient, c.gradient, c.format, c.sum);
  add("out", true, false, c.format, c.out);
  if (c.in_place) all[over_in ? at_sum : at_out].over = at_in;
  return all;
}

returned_values norm_on(const norm_case& c, const call_site& site) {
  const std::vector<matrix_view>& v = site.views;
  const matrix_view &in = v[at_in], &added = v[at_added], &weight = v[at_weight],
                    &bias = v[at_bias], &mean = v[at_mean], &rstd = v[at_rstd];
  const matrix_view &sum = v[at_sum], &out = v[at_out];
  const layer_norm_options options{function_rule::torch_2_11, c.epsilon, c.offset};
  const executor where = site.target.where(c.threads);
  site.target.enqueue([&] {
    if (c.rms) {
      if (c.gradient && c.of_sum) {
        return add_rms_norm_gradient(in, added, sum, rstd, weight, out, options, where);
      }
      if (c.gradient) return rms_norm_gradient(in, sum, rstd, weight, out, options, where);
      if (c.of_sum) return add_rms_norm(in, added, weight, sum, out, rstd, options, where);
      return rms_norm(in, weight, out, rstd, options, where);
    }
    if (c.gradient && c.of_sum) {
      return add_layer_norm_gradient(in, added, sum, mean, rstd, weight, out, options, where);
    }
    if (c.gradient) return layer_norm_gradient(in, sum, mean, rstd, weight, out, options, where);
    if (c.of_sum) {
      return add_layer_norm(in, added, weight, bias, sum, out, mean, rstd, options, where);
    }
    layer_norm(in, weight, bias, out, mean, rstd, options, where);
  });
  return {};
}

/// to = a + b, rounded to the format.
void add_elements(const matrix_view& to, const matrix_view& a, const matrix_view& b) {
  for_each_element(to, [&](std::int64_t row, std::int64_t col) {
    put_value(to, row, col, numerics::ptx::add(value_at(a, row, col), value_at(b, row, col)));
  });
}

/// What the definition in numerics/ leaves, one row after another.
returned_values norms_by_definition(const norm_case& c, const call_site& site) {
  const std::vector<matrix_view>& v = site.views;
  const matrix_view &sum = v[at_sum], &out = v[at_out];
  const std::int64_t cols = out.cols;
  if (cols == 0) return {};  // LayerNorm writes no statistics either
  if (writes_sum(c)) add_elements(sum, v[at_in], v[at_added]);
  const auto parameters = [](const matrix_view& of) {
    return of.data == nullptr ? words{} : row_of(of, 0);
  };
  const words weights = parameters(v[at_weight]), biases = parameters(v[at_bias]);
  const std::uint32_t* const weight = weights.empty() ? nullptr : weights.data();
  const std::uint32_t* const bias = biases.empty() ? nullptr : biases.data();
  const auto epsilon = std::bit_cast<std::uint32_t>(static_cast<float>(c.epsilon));
  const bool vectors = torch::has_vectors_of_4(cols, c.offset % 8);
  for (std::int64_t row = 0; row < out.rows; ++row) {
    words x = row_of(writes_sum(c) ? sum : v[at_in], row);
    if (c.gradient) {
      const std::uint32_t mean = c.rms ? 0 : value_at(v[at_mean], row, 0);
      torch::layer_norm_gradient_row(row_of(sum, row).data(), {mean, value_at(v[at_rstd], row, 0)},
                                     weight, x.data(), cols, c.rms);
    } else if (c.rms) {
      put_code(v[at_rstd], row, 0, torch::rms_norm_row(x.data(), cols, weight, epsilon, vectors));
    } else {
      const torch::row_statistics s =
          torch::layer_norm_row(x.data(), cols, {weight, bias}, epsilon, vectors);
      put_code(v[at_mean], row, 0, s.mean);
      put_code(v[at_rstd], row, 0, s.rstd);
    }
    put_row(out, row, x);
  }
  if (c.gradient && c.of_sum && c.has_added) add_elements(out, out, v[at_added]);
  return {};
}

/// With offsets, and without gaps at offset 0.
std::vector<norm_case> every_width() {
  std::vector<norm_case> all;
  for (const format_id format : torch_formats) {
    for (const std::int64_t cols : row_widths(format)) {
      for (const int kind : {0, 1, 2, 3}) {
        for (const std::int64_t offset : {0, 3, 5}) {
          norm_case c{.rms = kind > 1, .gradient = kind % 2 == 1, .format = format};
          c.offset = offset;
          const std::int64_t rows = cols <= 1100 ? 7 : 3;
          c.in = {rows, cols, 2 * cols + 3, 2, 0};
          c.sum = dense_layout(rows, cols);
          c.out = {rows, cols, cols + 3, 1, 0};
          if (offset == 0) c.in = c.out = c.sum;
          c.weight = all.size() % 2 == 0;
          c.bias = all.size() % 3 == 0;
          c.threads = 3;
          c.content = all.size();
          all.push_back(c);
        }
      }
    }
  }
  return all;
}

const operation_of<norm_case> norms = {draw_norm, memory_of_norm, norm_on};

}  // namespace

array_operation norm_operation() {
  return judged("the definition", norms_by_definition, make_operation("norms", norms, 256));
}

array_operation norms_of_every_width() {
  return judged("the definition", norms_by_definition,
                listed_operation("norms", norms, every_width(), 64));
}

}  // namespace samebits::support
