// Memory, comparison and text of cases of array arithmetic.
#include "support/array_arithmetic_case.hpp"

#include <algorithm>
#include <map>
#include <ostream>
#include <random>
#include <tuple>

#include "support/case_generator.hpp"
#include "support/rules.hpp"

namespace samebits::support {
namespace {

/// Random operands of an operation, made once; a prime number of them, so that no stride falls in
/// step with it.
const std::vector<operands>& random_operands(operation op, const operand_formats& from,
                                             format_id to) {
  static std::map<std::tuple<operation, operand_formats, format_id>, std::vector<operands>> made;
  std::vector<operands>& all = made[{op, from, to}];
  if (all.empty()) {
    std::mt19937_64 random(static_cast<std::uint64_t>(op) * 31 + static_cast<std::uint64_t>(to));
    for (int i = 0; i < 1021; ++i) {
      all.push_back(draw_operands(op, from, to, [&random] { return random(); }));
    }
  }
  return all;
}

/// Operands of a case alone; a prime number of them.
std::vector<operands> random_for(const array_arithmetic_case& c) {
  std::mt19937_64 random(c.content);
  const auto elements = static_cast<std::size_t>(c.out.rows * c.out.cols);
  std::vector<operands> all;
  for (std::size_t i = 0; i < std::min<std::size_t>(elements, 67); ++i) {
    all.push_back(draw_operands(c.op, c.from, c.to, [&random] { return random(); }));
  }
  return all;
}

std::int64_t below(std::int64_t limit, const word_source& next) {
  return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(limit));
}

void make_dense(array_arithmetic_case& c) {
  const array_layout dense{c.out.rows, c.out.cols, c.out.cols, 1, 0};
  c.in = {dense, dense, dense};
  c.out = c.each = dense;
}

/// One format in half of the cases, since kernels support those, as they support dense arrays and
/// operands that are one number.
array_arithmetic_case draw_case(const word_source& next) {
  array_arithmetic_case c;
  c.op = static_cast<operation>(static_cast<int>(below(enum_count<operation>, next)));
  const auto any_format = [&] {
    return arithmetic_formats[static_cast<std::size_t>(below(5, next))];
  };
  c.to = any_format();
  for (format_id& f : c.from) f = c.to;
  if (below(2, next) == 0) c.from = {any_format(), any_format(), any_format()};
  const std::int64_t rows = below(8, next);
  const std::int64_t cols = below(64, next) == 0 ? below(3000, next) : below(90, next);
  for (array_layout& l : c.in) l = draw_layout(rows, cols, array_side::read, next);
  c.out = draw_layout(rows, cols, array_side::written, next);
  c.each = draw_layout(rows, cols, array_side::written, next);
  if (below(2, next) == 0) {
    make_dense(c);
    if (below(4, next) == 0) c.in[static_cast<std::size_t>(below(3, next))] = {rows, cols, 0, 0, 0};
  }
  c.asked = below(2, next) == 0 ? flags_asked::each : flags_asked::none;
  if (below(2, next) == 0)
    c.rule.rounding = static_cast<rounding>(below(enum_count<rounding>, next));
  c.rule.overflow = static_cast<overflow>(below(enum_count<overflow>, next));
  c.rule.nan = static_cast<nan_policy>(below(enum_count<nan_policy>, next));
  c.random = {draw_number(next), draw_number(next), draw_number(next), std::nullopt,
              1 + static_cast<int>(below(32, next))};
  if (below(2, next) == 0) c.random.pitch = draw_number(next);
  c.threads = static_cast<int>(below(5, next));
  c.content = next() | 1;
  return c;
}

/// Fewer rows or columns; dense arrays; default options one by one.
std::vector<array_arithmetic_case> simpler(const array_arithmetic_case& c) {
  std::vector<array_arithmetic_case> all;
  const auto resized = [&](std::int64_t rows, std::int64_t cols) {
    array_arithmetic_case other = c;
    for (array_layout* l : {&other.in[0], &other.in[1], &other.in[2], &other.out, &other.each}) {
      const bool dense = l->row_stride == l->cols && l->col_stride == 1;
      l->rows = rows;
      l->cols = cols;
      if (dense) l->row_stride = cols;
    }
    all.push_back(other);
  };
  const std::int64_t rows = c.out.rows, cols = c.out.cols;
  if (rows > 1) resized(1, cols);
  if (cols > 1) resized(rows, 1);
  if (rows > 1) resized(rows - 1, cols);
  if (cols > 1) resized(rows, cols / 2);
  if (cols > 1) resized(rows, cols - 1);
  const array_layout dense{rows, cols, cols, 1, 0};
  const auto set = [&](auto array_arithmetic_case::*member, const auto& value) {
    if (c.*member == value) return;
    all.push_back(c);
    all.back().*member = value;
  };
  set(&array_arithmetic_case::in, std::array{dense, dense, dense});
  set(&array_arithmetic_case::out, dense);
  set(&array_arithmetic_case::each, dense);
  set(&array_arithmetic_case::asked, flags_asked::none);
  set(&array_arithmetic_case::rule, cast_rule{c.rule.rounding});
  set(&array_arithmetic_case::rule, cast_rule{});
  set(&array_arithmetic_case::threads, 1);
  const auto reset = [&](auto random_stream::*part) {
    if (c.random.*part == random_stream{}.*part) return;
    all.push_back(c);
    all.back().random.*part = random_stream{}.*part;
  };
  reset(&random_stream::seed);
  reset(&random_stream::stream);
  reset(&random_stream::offset);
  reset(&random_stream::pitch);
  return all;
}

std::int64_t element_of(const array_layout& layout, std::int64_t row, std::int64_t col) {
  return row * layout.row_stride + col * layout.col_stride;
}

void print(std::ostream& out, const char* which, const array_layout& l) {
  out << "; " << which << " strides " << l.row_stride << ", " << l.col_stride << " +"
      << l.misalignment << " bytes";
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const array_arithmetic_case& c) {
  out << name(c.op) << " of " << name(c.from[0]) << ", " << name(c.from[1]) << ", "
      << name(c.from[2]) << " into " << name(c.to) << " [" << c.out.rows << ", " << c.out.cols
      << "], " << text_of(c.rule) << ", " << c.threads << " threads"
      << (c.asked == flags_asked::each ? ", with flags" : "");
  print(out, "a", c.in[0]);
  print(out, "b", c.in[1]);
  print(out, "c", c.in[2]);
  print(out, "out", c.out);
  print(out, "each", c.each);
  return out << "; seed " << c.random.seed << ", stream " << c.random.stream << ", offset "
             << c.random.offset << ", pitch "
             << (c.random.pitch ? std::to_string(*c.random.pitch) : "of the columns")
             << ", K = " << c.random.bits << "; content " << c.content;
}

rc::Gen<array_arithmetic_case> array_arithmetic_cases() {
  return case_generator<array_arithmetic_case>(draw_case, simpler);
}

array_arithmetic_case dense_case(operation op, const operand_formats& from, format_id to,
                                 std::int64_t rows, std::int64_t cols, const cast_rule& rule) {
  array_arithmetic_case c;
  c.op = op;
  c.from = from;
  c.to = to;
  const array_layout dense{rows, cols, cols, 1, 0};
  c.in = {dense, dense, dense};
  c.out = c.each = dense;
  c.rule = rule;
  c.random = {0x9E3779B97F4A7C15u, 3, 1000, std::nullopt, 16};
  return c;
}

compute_memory::compute_memory(const array_arithmetic_case& c)
    : in{strided_buffer(c.from[0], c.in[0]), strided_buffer(c.from[1], c.in[1]),
         strided_buffer(c.from[2], c.in[2])},
      out(c.to, c.out),
      each(format_id::e4m3, c.each) {
  const std::vector<operands> own = c.content != 0 ? random_for(c) : std::vector<operands>{};
  const std::vector<operands>& all = c.content != 0 ? own : random_operands(c.op, c.from, c.to);
  std::size_t next = 0;
  for (std::int64_t row = 0; row < c.out.rows; ++row) {
    for (std::int64_t col = 0; col < c.out.cols; ++col) {
      const operands& x = all[next];
      next = next + 1 == all.size() ? 0 : next + 1;
      in[0].store(element_of(c.in[0], row, col), x.a.code);
      in[1].store(element_of(c.in[1], row, col), x.b.code);
      in[2].store(element_of(c.in[2], row, col), x.c.code);
    }
  }
}

operands compute_memory::at(const array_arithmetic_case& c, std::int64_t row,
                            std::int64_t col) const {
  return {{c.from[0], in[0].at(row, col)},
          {c.from[1], in[1].at(row, col)},
          {c.from[2], in[2].at(row, col)}};
}

array_operands operands_of(compute_memory& m) {
  return {m.in[0].view(), m.in[1].view(), m.in[2].view()};
}

flags_view flags_of(compute_memory& m) {
  const matrix_view v = m.each.view();
  return {static_cast<flags*>(v.data), v.row_stride, v.col_stride};
}

compute_options options_of(const array_arithmetic_case& c) {
  return {c.rule.rounding, c.rule.overflow, c.rule.nan, c.random};
}

arithmetic_case element_case(const array_arithmetic_case& c, const operands& x, std::int64_t row,
                             std::int64_t col) {
  arithmetic_case e{.op = c.op, .x = x, .to = c.to, .rule = c.rule};
  if (c.rule.rounding == rounding::stochastic) {
    const std::uint64_t pitch = c.random.pitch.value_or(static_cast<std::uint64_t>(c.out.cols));
    const std::uint64_t index =
        c.random.offset + static_cast<std::uint64_t>(row) * pitch + static_cast<std::uint64_t>(col);
    e.random = {random_word(c.random.seed, c.random.stream, index, c.random.bits), c.random.bits};
  }
  return e;
}

compute_function computing_on(const std::string& backend) {
  return [backend](operation op, const array_operands& in, const matrix_view& out,
                   const compute_options& options, flags_asked asked, const flags_view& each,
                   int threads) {
    const executor where{backend, threads};
    if (asked == flags_asked::each) return compute_with_flags(op, in, out, options, each, where);
    compute(op, in, out, options, where);
    return flags::none;
  };
}

oracle::rounded_result by_definition(const arithmetic_case& c) {
  const arithmetic_result r = compute(c.op, c.x, c.to, c.rule, c.random);
  return {r.code, static_cast<unsigned>(r.raised)};
}

::testing::AssertionResult conforms(const array_arithmetic_case& c, const compute_function& compute,
                                    const reference_function& reference, const std::string& where) {
  compute_memory m(c);
  const compute_memory before = m;
  const flags united =
      compute(c.op, operands_of(m), m.out.view(), options_of(c), c.asked, flags_of(m), c.threads);
  const auto failed = [&](const std::string& what) {
    return ::testing::AssertionFailure() << what << ", on " << where << ": " << c;
  };
  for (std::size_t i = 0; i < 3; ++i) {
    if (m.in[i].bytes() != before.in[i].bytes()) return failed("an operand was written to");
  }
  if (!m.out.guards_are_intact()) return failed("wrote outside the view");
  const bool with_flags = c.asked == flags_asked::each;
  if (with_flags ? !m.each.guards_are_intact() : m.each.bytes() != before.each.bytes()) {
    return failed("wrote outside the flags");
  }
  unsigned all = 0;
  for (std::int64_t row = 0; row < c.out.rows; ++row) {
    for (std::int64_t col = 0; col < c.out.cols; ++col) {
      arithmetic_case e = element_case(c, m.at(c, row, col), row, col);
      const oracle::rounded_result expected = reference(e);
      all |= expected.flags;
      const unsigned raised =
          with_flags ? static_cast<unsigned>(m.each.at(row, col)) : expected.flags;
      const std::uint64_t got = m.out.at(row, col);
      if (got == expected.code && raised == expected.flags) continue;
      e.where = where;
      return ::testing::AssertionFailure()
             << same_result(e, {got, static_cast<flags>(raised)}, expected).message()
             << "\n  element [" << row << ", " << col << "] of " << c;
    }
  }
  if (with_flags && static_cast<unsigned>(united) != all) {
    return failed("returned flags " + std::to_string(static_cast<unsigned>(united)) +
                  " instead of " + std::to_string(all));
  }
  return ::testing::AssertionSuccess();
}

}  // namespace samebits::support
