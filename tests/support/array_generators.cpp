// Array cases: shapes, strides, random streams and threads; and the codes that fill them.
#include "support/array_generators.hpp"

#include <algorithm>
#include <ostream>
#include <random>
#include <utility>

#include "support/case_generator.hpp"
#include "support/generators.hpp"
#include "support/rules.hpp"

namespace samebits::support {
namespace {

std::int64_t below(std::int64_t limit, const word_source& next) {
  return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(limit));
}

std::int64_t draw_size(const word_source& next) {
  switch (below(8, next)) {
    case 0: return below(3, next);
    case 1: return (std::int64_t{1} << below(7, next)) - 1 + below(3, next);
    default: return 1 + below(40, next);
  }
}

array_case draw_array_case(const word_source& next) {
  array_case c;
  c.from = format_at(static_cast<int>(below(format_count, next)));
  c.to = format_at(static_cast<int>(below(format_count, next)));
  std::int64_t rows = draw_size(next);
  std::int64_t cols = draw_size(next);
  if (below(64, next) == 0) {  // enough for several threads
    rows = 1 + below(9, next);
    cols = 70000 / rows;
    if (below(2, next) == 0) std::swap(rows, cols);
  }
  c.in = draw_layout(rows, cols, array_side::read, next);
  c.out = draw_layout(rows, cols, array_side::written, next);
  c.rule.rounding = static_cast<rounding>(below(enum_count<rounding>, next));
  if (below(3, next) == 0) c.rule.rounding = rounding::stochastic;
  c.rule.overflow = static_cast<overflow>(below(enum_count<overflow>, next));
  c.rule.nan = static_cast<nan_policy>(below(enum_count<nan_policy>, next));
  c.random.seed = draw_number(next);
  c.random.stream = draw_number(next);
  c.random.offset = draw_number(next);
  if (below(2, next) == 0) c.random.pitch = draw_number(next);
  c.random.bits = 1 + static_cast<int>(below(32, next));
  c.threads = static_cast<int>(below(9, next));
  c.content = next();
  return c;
}

/// Fewer rows, fewer columns, dense layouts, one thread, plain random stream.
std::vector<array_case> simpler_array_cases(const array_case& c) {
  std::vector<array_case> simpler;
  const auto add = [&](auto change) {
    array_case other = c;
    change(other);
    simpler.push_back(std::move(other));
  };
  const auto resize = [&](std::int64_t rows, std::int64_t cols) {
    add([&](array_case& other) {
      for (array_layout* layout : {&other.in, &other.out}) {
        layout->rows = rows;
        layout->cols = cols;
      }
    });
  };
  if (c.in.rows > 1) resize(1, c.in.cols);
  if (c.in.cols > 1) resize(c.in.rows, 1);
  if (c.in.rows > 1) resize(c.in.rows / 2, c.in.cols);
  if (c.in.cols > 1) resize(c.in.rows, c.in.cols / 2);
  if (c.in.rows > 1) resize(c.in.rows - 1, c.in.cols);
  if (c.in.cols > 1) resize(c.in.rows, c.in.cols - 1);
  if (c.threads != 1) add([](array_case& other) { other.threads = 1; });
  for (array_layout array_case::*member : {&array_case::in, &array_case::out}) {
    const array_layout& layout = c.*member;
    const array_layout dense{layout.rows, layout.cols, layout.cols, 1, 0};
    if (layout.row_stride != dense.row_stride || layout.col_stride != 1 ||
        layout.misalignment != 0) {
      add([&](array_case& other) { other.*member = dense; });
    }
  }
  if (c.random.seed != 0) add([](array_case& other) { other.random.seed = 0; });
  if (c.random.stream != 0) add([](array_case& other) { other.random.stream = 0; });
  if (c.random.offset != 0) add([](array_case& other) { other.random.offset = 0; });
  if (c.random.pitch) add([](array_case& other) { other.random.pitch = std::nullopt; });
  return simpler;
}

}  // namespace

array_layout draw_layout(std::int64_t rows, std::int64_t cols, array_side which,
                         const word_source& next) {
  array_layout layout{rows, cols, 0, 0, below(8, next)};
  if (rows <= 32 && below(16, next) == 0) {  // rows that interleave, by coprime strides
    layout.col_stride = std::max<std::int64_t>(rows, 1) + below(3, next);
    layout.row_stride = layout.col_stride * (1 + below(3, next)) + 1;
    return layout;
  }
  const std::int64_t gap = 1 + (below(3, next) == 0 ? below(4, next) : 0);
  const std::int64_t pad = below(2, next) == 0 ? 0 : below(9, next);
  if (below(4, next) == 0) {  // transposed
    layout.row_stride = gap;
    layout.col_stride = std::max<std::int64_t>(rows, 1) * gap + pad;
  } else {
    layout.col_stride = gap;
    layout.row_stride = std::max<std::int64_t>(cols, 1) * gap + pad;
  }
  if (which == array_side::read && below(8, next) == 0) layout.row_stride = 0;
  if (which == array_side::read && below(8, next) == 0) layout.col_stride = 0;
  return layout;
}

std::int64_t array_layout::span() const {
  if (rows == 0 || cols == 0) return 0;
  return (rows - 1) * row_stride + (cols - 1) * col_stride + 1;
}

rc::Gen<array_case> array_cases() {
  return case_generator<array_case>(draw_array_case, simpler_array_cases);
}

std::vector<std::uint64_t> content_of(const array_case& c) {
  std::mt19937_64 engine(c.content);
  const word_source next = [&engine] { return engine(); };
  std::vector<std::uint64_t> content(static_cast<std::size_t>(c.in.span()));
  for (std::uint64_t& code : content) {
    const auto family = static_cast<code_family>(engine() % code_family_count);
    code = draw_code(family, c.from, c.to, next);
  }
  return content;
}

std::ostream& operator<<(std::ostream& out, const array_case& c) {
  const auto show = [&](const char* side_name, const array_layout& layout) {
    out << side_name << " [" << layout.rows << ", " << layout.cols << "] strides "
        << layout.row_stride << ", " << layout.col_stride << " elements, " << layout.misalignment
        << " bytes off; ";
  };
  out << name(c.from) << " to " << name(c.to) << ", " << text_of(c.rule) << "; ";
  show("in", c.in);
  show("out", c.out);
  out << "random seed " << c.random.seed << " stream " << c.random.stream << " offset "
      << c.random.offset << " pitch ";
  if (c.random.pitch) {
    out << *c.random.pitch;
  } else {
    out << "default";
  }
  return out << " K " << c.random.bits << "; threads " << c.threads << "; content seed "
             << c.content;
}

}  // namespace samebits::support
