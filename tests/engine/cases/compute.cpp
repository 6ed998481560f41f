// Calls of array arithmetic.
#include "engine/cases/compute.hpp"

#include <algorithm>
#include <optional>
#include <random>

#include "engine/cases/operations.hpp"
#include "engine/core/text.hpp"

namespace samebits::support {
namespace {

/// Operands of a case; by default a prime number of them, so that no stride falls in step with it.
std::vector<operands> operands_of(const array_arithmetic_case& c) {
  std::mt19937_64 random(c.content);
  std::vector<operands> all;
  for (std::int64_t i = 0; i < std::min(c.out.rows * c.out.cols, c.drawn); ++i) {
    all.push_back(draw_operands(c.op, c.from, c.to, [&random] { return random(); }));
  }
  return all;
}

/// One format in half of the cases, since kernels support those, as they support dense arrays and
/// operands that are one number.
array_arithmetic_case draw_case(const word_source& next) {
  array_arithmetic_case c;
  c.op = any_enumerator<operation>(next);
  const auto any_format = [&] { return one_of(arithmetic_formats, next); };
  c.to = any_format();
  c.from.fill(c.to);
  if (below(2, next) == 0) c.from = {any_format(), any_format(), any_format()};
  const std::int64_t rows = below(8, next);
  const std::int64_t cols = below(64, next) == 0 ? below(3000, next) : below(90, next);
  for (array_layout& l : c.in) l = draw_layout(rows, cols, array_side::read, next);
  c.out = draw_layout(rows, cols, array_side::written, next);
  c.each = draw_layout(rows, cols, array_side::written, next);
  if (below(2, next) == 0) {
    c.in.fill(dense_layout(rows, cols));
    c.out = c.each = c.in[0];
    if (below(4, next) == 0) c.in[static_cast<std::size_t>(below(3, next))] = {rows, cols, 0, 0, 0};
  }
  c.asked = static_cast<flags_asked>(below(3, next));
  if (below(2, next) == 0) c.rule.rounding = any_enumerator<rounding>(next);
  c.rule.overflow = any_enumerator<overflow>(next);
  c.rule.nan = any_enumerator<nan_policy>(next);
  c.random = draw_random_stream(next);
  return c;
}

/// Lets the result overwrite an operand of its element size; other operands may be the same memory.
void draw_in_place(array_arithmetic_case& c, const word_source& next) {
  const auto over = static_cast<int>(below(operand_count(c.op), next));
  if (storage_bytes(c.from[static_cast<std::size_t>(over)]) != storage_bytes(c.to)) return;
  if (below(4, next) != 0) return;
  c.over = over;
}

/// What cuda-native has: one format, without flags (docs/decisions/0026).
void make_native(array_arithmetic_case& c, const word_source& next) {
  constexpr operation of_gpu[] = {operation::add,  operation::sub, operation::mul, operation::div,
                                  operation::sqrt, operation::fma, operation::min, operation::max};
  if (std::ranges::find(of_gpu, c.op) == std::end(of_gpu)) {
    c.op = one_of(of_gpu, next);
  }
  c.from.fill(c.to);
  c.rule = {rounding::nearest_even, below(2, next) == 0 ? overflow::ieee : overflow::saturate};
  c.asked = flags_asked::none;
}

buffers memory_of_computation(const array_arithmetic_case& c) {
  std::array<array_layout, 3> layouts = c.in;
  if (c.over >= 0) layouts[static_cast<std::size_t>(c.over)] = c.out;
  std::vector<strided_buffer> in;
  for (std::size_t k = 0; k < 3; ++k) in.emplace_back(c.from[k], layouts[k]);
  const std::vector<operands> all = operands_of(c);
  for (std::int64_t i = 0; i < c.out.rows * c.out.cols; ++i) {
    if (c.drawn == 0) {
      auto bits = static_cast<std::uint64_t>(i);
      for (std::size_t k = 0; k < 3; ++k) {
        in[k].store(layouts[k].at(i), bits);
        bits >>= spec_of(c.from[k]).storage_bits;
      }
      continue;
    }
    const operands& x = all[static_cast<std::size_t>(i) % all.size()];
    in[0].store(layouts[0].at(i), x.a.code);
    in[1].store(layouts[1].at(i), x.b.code);
    in[2].store(layouts[2].at(i), x.c.code);
  }
  const buffer_use others = c.alike ? buffer_use::fixed : buffer_use::given;
  const int same = c.alike ? 0 : -1;
  return {{"a", buffer_use::given, std::move(in[0])},
          {"b", others, std::move(in[1]), false, same},
          {"c", others, std::move(in[2]), false, same},
          {.name = "out", .memory = {c.to, c.out}, .over = c.over},
          {.name = "flags of each", .memory = {format_id::e4m3, c.each}},
          {.name = "flags", .memory = {format_id::fp32, dense_layout(1, 1)}}};
}

returned_values compute_case(const array_arithmetic_case& c, const call_site& site) {
  const std::vector<matrix_view>& v = site.views;
  const array_operands in = {v[0], v[1], v[2]};
  const matrix_view& out = v[at_result];
  const executor where = site.target.where(c.threads);
  if (c.asked == flags_asked::none) {
    site.target.enqueue([&] { compute(c.op, in, out, options_of(c), where); });
    return {};
  }
  const matrix_view& flags_of_each = v[at_each_flags];
  flags_view each;
  if (c.asked == flags_asked::each) {
    each = {site.pointer<flags>(at_each_flags), flags_of_each.row_stride, flags_of_each.col_stride};
  }
  if (site.on_device()) {
    site.target.enqueue([&] {
      enqueue_compute_with_flags(c.op, in, out, site.pointer<std::uint32_t>(at_all_flags),
                                 options_of(c), each, where);
    });
    return {};
  }
  const auto raised =
      static_cast<std::uint32_t>(compute_with_flags(c.op, in, out, options_of(c), each, where));
  put_code(v[at_all_flags], 0, 0, raised);
  return {};
}

}  // namespace

array_arithmetic_case dense_case(operation op, const operand_formats& from, format_id to,
                                 std::int64_t rows, std::int64_t cols, const cast_rule& rule) {
  array_arithmetic_case c;
  c.op = op;
  c.from = from;
  c.to = to;
  c.in.fill(dense_layout(rows, cols));
  c.out = c.each = c.in[0];
  c.rule = rule;
  c.random = {0x9E3779B97F4A7C15u, 3, 1000, std::nullopt, 16};
  c.content = static_cast<std::uint64_t>(op) * 31 + static_cast<std::uint64_t>(to);
  return c;
}

compute_options options_of(const array_arithmetic_case& c) {
  return {c.rule.rounding, c.rule.overflow, c.rule.nan, c.random};
}

void describe(array_arithmetic_case& c, case_fields& fields) {
  fields.show("op", c.op, "from", c.from, "to", c.to);
  fields.matrices(
      {{"a", c.in[0]}, {"b", c.in[1]}, {"c", c.in[2]}, {"out", c.out}, {"each", c.each}});
  fields.reset("over operand", c.over, -1, "alike", c.alike, false, "flags", c.asked,
               flags_asked::none, "rule", c.rule, cast_rule{c.rule.rounding});
  if (fields.change(c.rule.rounding != rounding{})) c.rule.rounding = {};
  fields.reset(c.random);
  fields.show("drawn operands", c.drawn);
}

operation_of<array_arithmetic_case> computations(std::string_view backend) {
  const bool native = backend == "cuda-native";
  return {[native](const word_source& next) {
            array_arithmetic_case c = draw_case(next);
            if (native) make_native(c, next);
            draw_in_place(c, next);
            return c;
          },
          memory_of_computation, compute_case};
}

array_operation compute_operation(std::string_view backend) {
  return make_operation("compute", computations(backend));
}

}  // namespace samebits::support
