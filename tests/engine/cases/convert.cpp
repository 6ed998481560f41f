// Conversions of arrays.
#include "engine/cases/convert.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "engine/cases/operations.hpp"
#include "engine/core/text.hpp"
#include "engine/inputs/families.hpp"

namespace samebits::support {
namespace {

std::int64_t draw_size(const word_source& next) {
  switch (below(8, next)) {
    case 0: return below(3, next);
    case 1: return (std::int64_t{1} << below(7, next)) - 1 + below(3, next);
    default: return 1 + below(40, next);
  }
}

buffers memory_of_conversion(const array_case& c) {
  const array_layout& layout = c.in_place ? c.out : c.in;
  strided_buffer in(c.from, layout);
  // Choosing codes takes longer than all the rest: a prime number of them, again and again.
  array_case few = c;
  few.in = {1, std::min<std::int64_t>(layout.span(), 251), 251, 1, 0};
  const std::vector<std::uint64_t> content = content_of(few);
  for (std::int64_t i = 0; i < layout.span(); ++i) {
    in.store(i, content[static_cast<std::size_t>(i) % content.size()]);
  }
  return {{"in", buffer_use::given, std::move(in)},
          {.name = "out", .memory = {c.to, c.out}, .over = c.in_place ? 0 : -1}};
}

returned_values convert_case(const array_case& c, const call_site& site) {
  site.target.enqueue(
      [&] { convert(site.views[0], site.views[1], options_of(c), site.target.where(c.threads)); });
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

array_case draw_operation_case(bool native, const word_source& next) {
  array_case c = draw_array_case(next);
  if (native) make_native(c);
  if (c.content >> 63 == 0) {  // what kernels are written for: dense, from an aligned start
    c.in = c.out = dense_layout(c.in.rows, c.in.cols);
  }
  if (storage_bytes(c.from) == storage_bytes(c.to) && below(4, next) == 0) {
    c.in_place = true;
  }
  return c;
}

}  // namespace

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
  c.rule.rounding = any_enumerator<rounding>(next);
  if (below(3, next) == 0) c.rule.rounding = rounding::stochastic;
  c.rule.overflow = any_enumerator<overflow>(next);
  c.rule.nan = any_enumerator<nan_policy>(next);
  c.random = draw_random_stream(next);
  c.threads = static_cast<int>(below(9, next));
  c.content = next();
  return c;
}

std::vector<std::uint64_t> content_of(const array_case& c) {
  const word_source next = words_from(c.content);
  std::vector<std::uint64_t> content(static_cast<std::size_t>(c.in.span()));
  for (std::uint64_t& code : content) code = draw_any_code(c.from, c.to, next);
  return content;
}

convert_options options_of(const array_case& c) {
  return {c.rule.rounding, c.rule.overflow, c.rule.nan, c.random};
}

void describe(array_case& c, case_fields& fields) {
  fields.show("from", c.from, "to", c.to, "rule", c.rule);
  fields.matrices({{"in", c.in}, {"out", c.out}});
  fields.reset("in place", c.in_place, false);
  fields.reset(c.random);
}

operation_of<array_case> conversions(std::string_view backend) {
  const bool native = backend == "cuda-native";
  return {[native](const word_source& next) { return draw_operation_case(native, next); },
          memory_of_conversion, convert_case};
}

array_operation convert_operation(std::string_view backend) {
  return make_operation("convert", conversions(backend));
}

}  // namespace samebits::support
