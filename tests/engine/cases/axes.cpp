// Sums, means and norms over axes, and their definition.
#include "engine/cases/operations.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "engine/cases/torch_numbers.hpp"
#include "numerics/hardware/torch_operators/axis_reduction.hpp"
#include "samebits/axis_reductions.hpp"

namespace samebits::support {
namespace {

struct axis_case {
  axis_reduction_options options = {.rule = function_rule::torch_2_11};
  format_id format = format_id::fp32;
  std::vector<std::int64_t> shape = {};
  std::vector<std::int64_t> strides = {};
  std::vector<int> axes = {};
  array_layout out = {};
  int threads = 1;
  std::uint64_t content = 0;
};

namespace torch = numerics::torch_2_11;

bool is_reduced(const axis_case& c, int axis) {
  return c.axes.empty() || std::find(c.axes.begin(), c.axes.end(), axis) != c.axes.end();
}
std::int64_t results_of(const axis_case& c) {
  std::int64_t results = 1;
  for (int i = 0; i < static_cast<int>(c.shape.size()); ++i) {
    if (!is_reduced(c, i)) results *= c.shape[static_cast<std::size_t>(i)];
  }
  return results;
}
/// Elements from the first to behind the last one.
std::int64_t span_of(const axis_case& c) {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < c.shape.size(); ++i) {
    if (c.shape[i] == 0) return 0;
    last += (c.shape[i] - 1) * c.strides[i];
  }
  return last + 1;
}

void describe(axis_case& c, case_fields& fields) {
  fields.show("of", c.options.of, "format", c.format, "shape", c.shape, "strides", c.strides,
              "axes", c.axes, "multiprocessors", c.options.multiprocessors, "out", c.out);
  const auto dense_out = [&] { c.out = dense_layout(1, results_of(c)); };
  for (std::int64_t& size : c.shape) {
    const std::int64_t of_case = size;
    for (const std::int64_t fewer : {std::int64_t{1}, of_case / 2, of_case - 1}) {
      if (fields.change(fewer > 0 && fewer < of_case)) size = fewer, dense_out();
    }
  }
  if (fields.change(c.out != dense_layout(1, results_of(c)))) dense_out();
  fields.reset("offset", c.options.offset, 0);
}

/// Dense strides in any order of the axes, some with a gap behind an axis, some repeated.
std::vector<std::int64_t> draw_strides(const std::vector<std::int64_t>& shape,
                                       const word_source& next) {
  std::vector<std::size_t> order(shape.size());
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  if (below(3, next) == 0) {
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[next() % i]);
  }
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t stride = below(6, next) == 0 ? 1 + below(3, next) : 1;
  for (const std::size_t axis : order) {
    strides[axis] = stride;
    stride *= std::max<std::int64_t>(shape[axis], 1);
    if (below(8, next) == 0) stride += below(9, next);
  }
  if (!strides.empty() && below(12, next) == 0) strides[next() % strides.size()] = 0;
  return strides;
}

axis_case draw_axes(const word_source& next) {
  axis_case c;
  c.options.of = any_enumerator<axis_reduction>(next);
  c.options.offset = below(3, next) == 0 ? below(20, next) : 0;
  constexpr int multiprocessors[] = {132, 1, 114, 4};
  c.options.multiprocessors = one_of(multiprocessors, next);
  c.format = one_of(torch_formats, next);
  // From 2^17 elements on, several blocks may share a result.
  constexpr int log2_elements[] = {12, 12, 12, 12, 12, 17, 17, 20};
  std::int64_t room = 1 << one_of(log2_elements, next);
  for (std::int64_t axes = below(6, next); axes > 0; --axes) {
    const std::int64_t limit = below(4, next) == 0 ? room : std::min<std::int64_t>(room, 40);
    c.shape.push_back(below(60, next) == 0 ? 0 : 1 + below(limit, next));
    room /= std::max<std::int64_t>(c.shape.back(), 1);
  }
  c.strides = draw_strides(c.shape, next);
  for (int i = 0; i < static_cast<int>(c.shape.size()); ++i) {
    if (below(2, next) == 0) c.axes.push_back(i);
  }
  const std::int64_t results = results_of(c), rows = results % 3 == 0 ? 3 : 1;
  c.out = draw_layout(rows, results / rows, array_side::written, next);
  return c;
}

/// In one case of four some numbers are special.
buffers memory_of_axes(const axis_case& c) {
  const word_source next = words_from(c.content);
  const number_kind kind{.rarity = below(4, next) == 0 ? std::uint64_t{512} : 0};
  return {{"in", buffer_use::given, numbers(c.format, dense_layout(1, span_of(c)), next, kind)},
          result_buffer("out", c.format, c.out)};
}

returned_values axes_on(const axis_case& c, const call_site& site) {
  const const_tensor_view in{site.views[0].data, c.format, c.shape, c.strides};
  reduce_axes(in, c.axes, site.views[1], c.options, site.target.where(c.threads));
  return {};
}

/// What the definition in numerics/ leaves, one result after another.
returned_values axes_by_definition(const axis_case& c, const call_site& site) {
  const matrix_view &in = site.views[0], &out = site.views[1];
  const std::int64_t results = out.rows * out.cols;
  if (results == 0) return {};
  const auto put = [&](std::int64_t i, std::uint32_t code) {
    put_code(out, i / out.cols, i % out.cols, code);
  };
  const axis_reduction of = c.options.of;
  if (in.cols == 0) {
    const std::uint32_t nan = torch::code_of<std::uint32_t>(c.format, 0x7FC00000);
    for (std::int64_t i = 0; i < results; ++i) put(i, of == axis_reduction::mean ? nan : 0);
    return {};
  }
  const auto count = static_cast<int>(c.shape.size());
  std::uint64_t reduced = 0;
  for (int i = 0; i < count; ++i) {
    if (is_reduced(c, i)) reduced |= std::uint64_t{1} << static_cast<unsigned>(i);
  }
  const torch::axis_plan plan =
      torch::plan_of({c.format, of, count, c.shape.data(), c.strides.data(), reduced,
                      c.options.offset, c.options.multiprocessors});
  for (std::int64_t i = 0; i < results; ++i) {
    std::int64_t first = 0, rest = i;
    for (int axis = count - 1; axis >= 0; --axis) {
      const auto at = static_cast<std::size_t>(axis);
      if (is_reduced(c, axis)) continue;
      first += rest % c.shape[at] * c.strides[at];
      rest /= c.shape[at];
    }
    const auto element = [&](std::int64_t k) {
      const std::int64_t at = first + torch::place_of(plan.axes, plan.reduced, k);
      return value_at(in, 0, at);
    };
    const std::int64_t shift = plan.vector == 0 ? 0 : (c.options.offset + first) % plan.vector;
    const std::uint32_t sum = torch::axis_sum(plan, of, shift, element);
    put(i, torch::code_of(c.format, torch::axis_result(plan, of, sum)));
  }
  return {};
}

}  // namespace

array_operation axis_operation() {
  return judged(
      "the definition", axes_by_definition,
      make_operation<axis_case>("reductions over axes", {draw_axes, memory_of_axes, axes_on}, 64));
}

}  // namespace samebits::support
