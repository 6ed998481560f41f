// Reductions of matrices.
#include <cstring>

#include "engine/cases/operations.hpp"
#include "engine/inputs/families.hpp"
#include "engine/inputs/operands.hpp"
#include "samebits/quantize.hpp"
#include "samebits/reductions.hpp"

namespace samebits::support {
namespace {

enum class reduced : std::uint8_t { amax, counts, sum, sum_of_squares, dot };
constexpr int reduced_count = 5;

/// What the elements are.
enum class reduction_content : std::uint8_t { families, finite, zeros, minus_zeros };

struct matrix_reduction {
  reduced what = reduced::sum;
  dot_options dots = {};
  format_id x_format = format_id::fp32;
  format_id y_format = format_id::fp32;
  array_layout x = {}, y = {};
  reduction_content kind = reduction_content::families;
  int threads = 1;
  std::uint64_t content = 0;
};

std::string_view name(reduced what) {
  constexpr std::string_view names[] = {"amax", "counts", "sum", "sum_of_squares", "dot"};
  return names[static_cast<int>(what)];
}

void describe(matrix_reduction& c, case_fields& fields) {
  fields.show("of", c.what, "precision", c.dots.precision, "order", c.dots.order, "x", c.x_format,
              "content of kind", c.kind);
  fields.matrices({{"x", c.x}, {"y", c.y}});
  fields.reset("y", c.y_format, c.x_format);
}

/// Small, around a chunk of 4096 elements, and of several chunks.
matrix_shape draw_shape(const word_source& next) {
  switch (below(16, next)) {
    case 0: return {1 + below(3, next), 1300 + below(80, next)};
    case 1: return {1, 4096 * (1 + below(3, next)) - 2 + below(5, next)};
    case 2: return {1 + below(130, next), 1 + below(130, next)};
    default: return {below(5, next), below(200, next)};
  }
}

matrix_reduction draw_reduction_case(const word_source& next) {
  matrix_reduction c;
  c.what = static_cast<reduced>(below(reduced_count, next));
  c.dots = {static_cast<accumulation>(below(2, next)), static_cast<sum_order>(below(2, next))};
  c.x_format = one_of(arithmetic_formats, next);
  c.y_format = below(2, next) == 0 ? c.x_format : one_of(arithmetic_formats, next);
  const matrix_shape s = draw_shape(next);
  c.x = draw_layout(s.rows, s.cols, array_side::read, next);
  c.y = draw_layout(s.rows, s.cols, array_side::read, next);
  if (below(2, next) == 0) c.x = c.y = dense_layout(s.rows, s.cols);
  c.kind = below(3, next) == 0 ? reduction_content::families : reduction_content::finite;
  if (below(16, next) == 0) c.kind = static_cast<reduction_content>(2 + below(2, next));
  return c;
}

strided_buffer matrix_of(const matrix_reduction& c, format_id format, const array_layout& layout,
                         std::uint64_t seed) {
  strided_buffer buffer(format, layout);
  const word_source next = words_from(seed);
  const format_spec f = spec_of(format);
  const int width = f.storage_bits;
  const std::uint64_t sign = std::uint64_t{1} << (width - 1);
  // Exponents of the lower half: sums that round, products that do not overflow.
  const std::uint64_t top_exponent = sign >> 1;
  for (std::int64_t i = 0; i < layout.span(); ++i) {
    std::uint64_t code = next() >> (64 - width);
    switch (c.kind) {
      case reduction_content::families:
        if (i % 16 == 0) {  // seldom: each costs as much as a hundred others
          code = draw_any_code(format, format_id::e4m3, next);
        }
        break;
      case reduction_content::finite: code &= ~top_exponent; break;
      case reduction_content::zeros: code &= next() % 8 == 0 ? sign : 0; break;
      case reduction_content::minus_zeros: code = sign; break;
    }
    buffer.store(i, code);
  }
  return buffer;
}

buffers memory_of_reduction(const matrix_reduction& c) {
  return {{"x", buffer_use::given, matrix_of(c, c.x_format, c.x, c.content)},
          {"y", buffer_use::given, matrix_of(c, c.y_format, c.y, c.content + 1)},
          {"result", buffer_use::result, strided_buffer(format_id::fp64, dense_layout(1, 5))}};
}

template <class T>
void keep(const call_site& site, const T& result) {
  std::memcpy(site.views[2].data, &result, sizeof result);
}

void reduce_on_host(const matrix_reduction& c, const call_site& site, const executor& where) {
  const matrix_view &x = site.views[0], &y = site.views[1];
  switch (c.what) {
    case reduced::amax: return keep(site, amax(x, where));
    case reduced::counts: return keep(site, counts(x, where));
    case reduced::sum: return keep(site, sum(x, where));
    case reduced::sum_of_squares: return keep(site, sum_of_squares(x, where));
    case reduced::dot: return keep(site, dot(x, y, c.dots, where));
  }
}

void reduce_on_device(const matrix_reduction& c, const call_site& site, const executor& where) {
  const matrix_view &x = site.views[0], &y = site.views[1];
  auto* const result = site.pointer<double>(2);
  switch (c.what) {
    case reduced::amax: return enqueue_amax(x, site.pointer<float>(2), where);
    case reduced::counts: return enqueue_counts(x, site.pointer<element_counts>(2), where);
    case reduced::sum: return enqueue_sum(x, result, {}, where);
    case reduced::sum_of_squares: return enqueue_sum_of_squares(x, result, {}, where);
    case reduced::dot: return enqueue_dot(x, y, result, c.dots, {}, where);
  }
}

returned_values reduce_case(const matrix_reduction& c, const call_site& site) {
  const executor where = site.target.where(c.threads);
  site.target.enqueue(
      [&] { (site.on_device() ? reduce_on_device : reduce_on_host)(c, site, where); });
  return {};
}

const operation_of<matrix_reduction> reductions = {draw_reduction_case, memory_of_reduction,
                                                   reduce_case};

}  // namespace

array_operation reduction_operation() { return make_operation("reduction", reductions); }

array_operation large_reductions(std::size_t step) {
  constexpr std::int64_t chunks_of_a_level = std::int64_t{1} << 24;  // 4096 of 4096 elements
  std::vector<matrix_reduction> all;
  for (const std::int64_t n : {chunks_of_a_level + 4097, 3 * chunks_of_a_level - 1}) {
    for (int what = 0; what < reduced_count; ++what) {
      for (const accumulation precision : {accumulation::fp64, accumulation::fp32}) {
        const bool dot = static_cast<reduced>(what) == reduced::dot;
        if (!dot && precision == accumulation::fp32) continue;
        matrix_reduction c{.what = static_cast<reduced>(what), .dots = {precision}};
        c.x_format = c.y_format = arithmetic_formats[all.size() % arithmetic_formats.size()];
        c.x = dense_layout(1, n);
        if (dot) c.y = c.x;
        c.kind = reduction_content::finite;
        c.threads = 0;
        all.push_back(c);
      }
    }
  }
  std::vector<matrix_reduction> some;
  for (std::size_t i = 0; i < all.size(); i += step) some.push_back(all[i]);
  return listed_operation("reduction", reductions, some, 1);
}

}  // namespace samebits::support
