// softmax and log_softmax of rows and of scores, their gradients, and their definition.
#include "engine/cases/operations.hpp"

#include <bit>
#include <limits>
#include <vector>

#include "engine/cases/torch_numbers.hpp"
#include "numerics/hardware/torch_operators/row_softmax.hpp"
#include "numerics/hardware/triton_functions/triton_softmax.hpp"
#include "samebits/operators.hpp"
#include "samebits/row_functions.hpp"

namespace samebits::support {
namespace {

enum class row_function : std::uint8_t {
  softmax,
  log_softmax,
  softmax_gradient,
  log_softmax_gradient,
  scaled_softmax,
  scaled_softmax_gradient,
};
inline constexpr int row_function_count = 6;

/// How rows are scores.
struct score_case {
  double scale = 1;
  bool causal = false;
  std::int64_t heads = 1, queries = 1;
  bool has_mask = false, adds = false;
  bool own[3] = {};  ///< whether each batch, head, query has rows of the mask of its own
};

struct row_case {
  row_function of = row_function::softmax;
  softmax_options options = {.rule = function_rule::torch_2_11};
  format_id format = format_id::fp32;
  array_layout in = {}, second = {}, out = {};  ///< gradients read two matrices
  bool in_place = false;
  score_case scores = {};
  int threads = 1;
  std::uint64_t content = 0;
};

namespace torch = numerics::torch_2_11;

bool reads_two(const row_case& c) {
  return c.of == row_function::softmax_gradient || c.of == row_function::log_softmax_gradient ||
         c.of == row_function::scaled_softmax_gradient;
}
bool has_scores(const row_case& c) { return c.of >= row_function::scaled_softmax; }

/// The call's options, but for the mask. Its rows are those of batches, heads and queries that have
/// their own.
scaled_softmax_options score_options(const row_case& c, std::int64_t& mask_rows) {
  const score_case& s = c.scores;
  scaled_softmax_options options = {.rule = function_rule::torch_2_11,
                                    .scale = s.scale,
                                    .causal = s.causal,
                                    .heads = s.heads,
                                    .queries = s.queries};
  const std::int64_t sizes[] = {c.in.rows / s.heads / s.queries, s.heads, s.queries};
  mask_rows = 1;
  for (int axis = 2; axis >= 0; --axis) {
    options.mask_steps[axis] = s.own[axis] ? mask_rows : 0;
    if (s.own[axis]) mask_rows *= sizes[axis];
  }
  return options;
}

score_case draw_scores(const word_source& next) {
  score_case s;
  constexpr double scales[] = {1, 0.125, 0.08838834764831845, -3, 0};
  s.scale = one_of(scales, next);
  s.causal = below(3, next) == 0;
  s.heads = 1 + below(3, next);
  s.queries = 1 + below(5, next);
  s.has_mask = below(4, next) != 0;
  s.adds = below(2, next) == 0;
  for (bool& own : s.own) own = below(2, next) == 0;
  return s;
}

std::string_view name(row_function of) {
  constexpr std::string_view names[] = {"softmax",          "log_softmax",
                                        "softmax_gradient", "log_softmax_gradient",
                                        "scaled_softmax",   "scaled_softmax_gradient"};
  return names[static_cast<int>(of)];
}

void describe(row_case& c, case_fields& fields) {
  score_case& s = c.scores;
  fields.show("of", c.of, "rule", c.options.rule, "format", c.format, "warps", c.options.num_warps,
              "elements a thread", c.options.elements_per_thread, "scale", s.scale, "heads",
              s.heads, "queries", s.queries, "mask is added", s.adds, "rows of the mask", s.own);
  fields.matrices({{"in", c.in}, {"second", c.second}, {"out", c.out}});
  if (c.in.rows % (s.heads * s.queries) != 0) s.heads = s.queries = 1;
  fields.reset("in place", c.in_place, false, "causal", s.causal, false, "mask", s.has_mask, false,
               "offset", c.options.offset, 0);
}

row_case draw_rows(const word_source& next) {
  row_case c;
  c.of = static_cast<row_function>(below(row_function_count, next));
  c.format = one_of(torch_formats, next);
  if (c.of == row_function::softmax && below(3, next) == 0) {
    c.options.rule = function_rule::triton_3_6;
    c.options.num_warps = 1 << below(6, next);
    constexpr int elements[] = {0, 1, 2, 4, 8};
    c.options.elements_per_thread = one_of(elements, next);
  } else {
    c.options.offset = below(10, next);
    if (below(8, next) == 0) {
      c.options.offset = std::numeric_limits<std::int64_t>::max() - below(8, next);
    }
  }
  std::int64_t rows = below(8, next) == 0 ? below(22, next) : 1 + below(5, next);
  if (has_scores(c)) {
    c.scores = draw_scores(next);
    rows = below(3, next) * c.scores.heads * c.scores.queries;
  }
  const std::int64_t cols = below(8, next) == 0   ? 1 + below(13'000, next)
                            : below(4, next) == 0 ? 1 + below(2100, next)
                                                  : below(80, next);
  for (array_layout* l : {&c.in, &c.second, &c.out}) *l = draw_written(rows, cols, next);
  c.in_place = below(8, next) == 0;
  return c;
}

constexpr std::size_t at_in = 0, at_second = 1, at_out = 2, at_mask = 3;

/// A mask that fills, or is added: a third of the rows fill all, or nearly all.
strided_buffer mask_of(const row_case& c, const word_source& next) {
  if (!has_scores(c) || !c.scores.has_mask) return {c.format, {}};
  std::int64_t rows = 0;
  score_options(c, rows);
  const array_layout layout = below(2, next) == 0
                                  ? dense_layout(rows, c.in.cols)
                                  : draw_layout(rows, c.in.cols, array_side::read, next);
  if (c.scores.adds) return rows_of(c.format, layout, next);
  strided_buffer m(format_id::e8m0, layout);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t kind = below(3, next);
    for (std::int64_t col = 0; col < layout.cols; ++col) {
      const bool fills = kind == 0 || below(kind == 1 ? 2 : 40, next) == 0;
      m.store(layout.at(row, col), fills ? 1 + next() % 255 : 0);
    }
  }
  return m;
}

buffers memory_of_rows(const row_case& c) {
  const word_source next = words_from(c.content);
  const array_layout second = reads_two(c) ? c.second : array_layout{};
  return {{"in", buffer_use::given, rows_of(c.format, c.in_place ? c.out : c.in, next)},
          {"second", buffer_use::given, rows_of(c.format, second, next)},
          {.name = "out", .memory = {c.format, c.out}, .over = c.in_place ? 0 : -1},
          {"mask", buffer_use::given, mask_of(c, next)}};
}

returned_values rows_on(const row_case& c, const call_site& site) {
  const std::vector<matrix_view>& v = site.views;
  const matrix_view &in = v[at_in], &second = v[at_second], &out = v[at_out];
  const executor where = site.target.where(c.threads);
  std::int64_t mask_rows = 0;
  scaled_softmax_options scores = score_options(c, mask_rows);
  if (c.scores.has_mask) scores.mask = v[at_mask];
  site.target.enqueue([&] {
    switch (c.of) {
      case row_function::softmax: softmax(in, out, c.options, where); break;
      case row_function::log_softmax: log_softmax(in, out, c.options, where); break;
      case row_function::softmax_gradient:
        softmax_gradient(in, second, out, c.options, where);
        break;
      case row_function::log_softmax_gradient:
        log_softmax_gradient(in, second, out, c.options, where);
        break;
      case row_function::scaled_softmax: scaled_softmax(in, out, scores, where); break;
      case row_function::scaled_softmax_gradient:
        scaled_softmax_gradient(in, second, out, scores, where);
        break;
    }
  });
  return {};
}

/// The operators around softmax of one row, one after another.
struct score_operators {
  const row_case& c;
  const matrix_view& mask;
  std::int64_t row;
  std::uint32_t scale = std::bit_cast<std::uint32_t>(static_cast<float>(c.scores.scale));

  void multiply(words& x) const {
    for (std::uint32_t& each : x) each = torch::stored(c.format, numerics::ptx::mul(each, scale));
  }
  /// masked_fill() by the mask and above the diagonal; or the sum with the mask, of `sums`.
  void fill(words& x, std::uint32_t value, bool sums) const {
    std::int64_t rows = 0;
    const scaled_softmax_options o = score_options(c, rows);
    const std::int64_t query = row % o.queries, matrix = row / o.queries;
    const std::int64_t of = matrix / o.heads * o.mask_steps[0] +
                            matrix % o.heads * o.mask_steps[1] + query * o.mask_steps[2];
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(x.size()); ++i) {
      std::uint32_t& each = x[static_cast<std::size_t>(i)];
      if (c.scores.has_mask) {
        if (c.scores.adds && sums)
          each = torch::stored(c.format, numerics::ptx::add(each, value_at(mask, of, i)));
        if (!c.scores.adds && code_at(mask, of, i) != 0) each = value;
      }
      if (c.scores.causal && i > query) each = value;
    }
  }
};

/// What the definition in numerics/ leaves, one row after another.
returned_values rows_by_definition(const row_case& c, const call_site& site) {
  const std::vector<matrix_view>& v = site.views;
  const matrix_view& out = v[at_out];
  const std::int64_t cols = out.cols;
  if (cols == 0) return {};
  const int vector = torch::vector_of(c.format);
  const std::int64_t offset = c.options.offset % 8;
  for (std::int64_t row = 0; row < out.rows; ++row) {
    words x = row_of(v[at_in], row);
    const words second = reads_two(c) ? row_of(v[at_second], row) : words{};
    const auto shift = [&](std::int64_t from) { return (from + row * cols) % vector; };
    const score_operators scores{c, v[at_mask], row};
    switch (c.of) {
      case row_function::softmax:
        if (c.options.rule == function_rule::triton_3_6) {
          const int each = c.options.elements_per_thread;
          numerics::triton_3_6::softmax_row(
              numerics::triton_3_6::sum_order(cols, c.options.num_warps, each == 0 ? vector : each),
              x.data(), cols);
        } else {
          torch::softmax_row(torch::softmax_order(c.format, cols, shift(offset)), x.data(), cols);
        }
        break;
      case row_function::log_softmax:
        torch::log_softmax_row(torch::softmax_order(c.format, cols, shift(offset)), x.data(), cols);
        break;
      case row_function::softmax_gradient:
        torch::softmax_gradient_row(torch::softmax_gradient_order(c.format, cols, shift(0)),
                                    c.format, second.data(), x.data(), cols);
        break;
      case row_function::log_softmax_gradient:
        torch::log_softmax_gradient_row(
            torch::softmax_gradient_order(c.format, cols, shift(offset)), second.data(), x.data(),
            cols);
        break;
      case row_function::scaled_softmax:
        scores.multiply(x);
        scores.fill(x, 0xFF800000, true);
        torch::softmax_row(torch::softmax_order(c.format, cols, shift(0)), x.data(), cols);
        break;
      case row_function::scaled_softmax_gradient:
        torch::softmax_gradient_row(torch::softmax_gradient_order(c.format, cols, shift(0)),
                                    c.format, second.data(), x.data(), cols);
        for (std::uint32_t& each : x) each = torch::stored(c.format, each);
        scores.fill(x, 0, false);
        scores.multiply(x);
        break;
    }
    put_row(out, row, x);
  }
  return {};
}

/// Offsets and what is beside.
std::vector<row_case> every_width() {
  std::vector<row_case> all;
  for (const format_id format : torch_formats) {
    for (const std::int64_t cols : row_widths(format)) {
      for (int f = 0; f < row_function_count; ++f) {
        for (const std::int64_t offset : {0, 3, 5}) {
          row_case c{.of = static_cast<row_function>(f), .format = format};
          c.options.offset = offset;
          const std::int64_t rows = cols <= 1100 ? 7 : 3;
          c.in = {rows, cols, 2 * cols + 3, 2, 0};
          c.second = dense_layout(rows, cols);
          c.out = {rows, cols, cols + 3, 1, 0};
          if (offset == 0) c.in = c.out = c.second;
          c.threads = 3;
          c.content = all.size();
          if (has_scores(c)) {
            c.scores = {.scale = 0.3, .causal = offset == 3, .queries = rows};
            c.scores.has_mask = offset != 3;
            c.scores.adds = offset == 5;
            c.scores.own[2] = true;
          }
          all.push_back(c);
          if (c.of != row_function::softmax) continue;
          c.options = {.rule = function_rule::triton_3_6,
                       .num_warps = 1 << offset,
                       .elements_per_thread = offset == 3 ? 2 : 0};
          c.content = all.size();
          all.push_back(c);
        }
      }
    }
  }
  return all;
}

const operation_of<row_case> row_functions = {draw_rows, memory_of_rows, rows_on};

}  // namespace

array_operation row_operation() {
  return judged("the definition", rows_by_definition,
                make_operation("functions of rows", row_functions, 256));
}

array_operation rows_of_every_width() {
  return judged("the definition", rows_by_definition,
                listed_operation("functions of rows", row_functions, every_width(), 64));
}

}  // namespace samebits::support
