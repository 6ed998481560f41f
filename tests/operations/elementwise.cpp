// Conversion and arithmetic of arrays.
#include <algorithm>
#include <array>
#include <cstring>

#include "operations/operations.hpp"
#include "samebits/array_arithmetic.hpp"
#include "samebits/convert.hpp"
#include "support/array_arithmetic_case.hpp"
#include "support/array_generators.hpp"

namespace samebits::support {
namespace {

std::vector<case_buffer> memory_of_conversion(const array_case& c) {
  strided_buffer in(c.from, c.in);
  // Choosing codes takes longer than all the rest: a prime number of them, again and again.
  array_case few = c;
  few.in = {1, std::min<std::int64_t>(c.in.span(), 251), 251, 1, 0};
  const std::vector<std::uint64_t> content = content_of(few);
  for (std::int64_t i = 0; i < c.in.span(); ++i) {
    in.store(i, content[static_cast<std::size_t>(i) % content.size()]);
  }
  return {{"in", buffer_use::given, std::move(in)},
          {"out", buffer_use::result, strided_buffer(c.to, c.out)}};
}

returned_values convert_case(const array_case& c, const call_site& site) {
  convert(site.views[0], site.views[1], {c.rule.rounding, c.rule.overflow, c.rule.nan, c.random},
          site.target.where(c.threads));
  return {};
}

/// What cuda-native has; it refuses anything else by name.
void make_native(array_case& c) {
  using enum format_id;
  constexpr std::pair<format_id, format_id> pairs[] = {{fp32, e4m3}, {fp32, e5m2}, {fp16, e4m3},
                                                       {fp16, e5m2}, {bf16, e4m3}, {bf16, e5m2},
                                                       {fp32, fp16}, {fp32, bf16}};
  std::tie(c.from, c.to) = pairs[c.content % std::size(pairs)];
  c.rule = {rounding::nearest_even, c.content >> 32 & 1 ? overflow::ieee : overflow::saturate};
}

/// The same of arithmetic: one format, without flags (docs/decisions/0026).
void make_native(array_arithmetic_case& c) {
  constexpr operation of_gpu[] = {operation::add,  operation::sub, operation::mul, operation::div,
                                  operation::sqrt, operation::fma, operation::min, operation::max};
  if (std::ranges::find(of_gpu, c.op) == std::end(of_gpu)) {
    c.op = of_gpu[c.content % std::size(of_gpu)];
  }
  c.from.fill(c.to);
  c.rule = {rounding::nearest_even, c.content >> 32 & 1 ? overflow::ieee : overflow::saturate};
  c.asked = flags_asked::none;
}

std::vector<case_buffer> memory_of_computation(const array_arithmetic_case& c) {
  compute_memory m(c);
  return {{"a", buffer_use::given, std::move(m.in[0])},
          {"b", buffer_use::given, std::move(m.in[1])},
          {"c", buffer_use::given, std::move(m.in[2])},
          {"out", buffer_use::result, std::move(m.out)},
          {"flags of each", buffer_use::result, std::move(m.each)},
          {"flags", buffer_use::result, strided_buffer(format_id::fp32, {1, 1, 1, 1, 0})}};
}

returned_values array_arithmetic_case_on(const array_arithmetic_case& c, const call_site& site) {
  const std::vector<matrix_view>& v = site.views;
  const array_operands in = {v[0], v[1], v[2]};
  const executor where = site.target.where(c.threads);
  if (c.asked == flags_asked::none) {
    compute(c.op, in, v[3], options_of(c), where);
    return {};
  }
  const flags_view each{site.pointer<flags>(4), v[4].row_stride, v[4].col_stride};
  if (site.on_device()) {
    enqueue_compute_with_flags(c.op, in, v[3], site.pointer<std::uint32_t>(5), options_of(c), each,
                               where);
    return {};
  }
  const auto raised =
      static_cast<std::uint32_t>(compute_with_flags(c.op, in, v[3], options_of(c), each, where));
  std::memcpy(v[5].data, &raised, sizeof raised);
  return {};
}

}  // namespace

array_operation convert_operation(std::string_view backend) {
  const bool native = backend == "cuda-native";
  return make_operation<array_case>(
      "convert",
      rc::gen::map(array_cases(),
                   [native](array_case c) {
                     if (native) make_native(c);
                     if (c.content >> 63 ==
                         0) {  // what kernels are written for: dense, from an aligned start
                       c.in = c.out = {c.in.rows, c.in.cols, c.in.cols, 1, 0};
                     }
                     return c;
                   }),
      memory_of_conversion, convert_case);
}

array_operation compute_operation(std::string_view backend) {
  const bool native = backend == "cuda-native";
  return make_operation<array_arithmetic_case>("compute",
                                               rc::gen::map(array_arithmetic_cases(),
                                                            [native](array_arithmetic_case c) {
                                                              if (native) make_native(c);
                                                              return c;
                                                            }),
                                               memory_of_computation, array_arithmetic_case_on);
}

}  // namespace samebits::support
