// Fused operators, and PyTorch's operators that they consist of.
#include "engine/cases/operations.hpp"

#include <bit>
#include <cmath>
#include <span>
#include <utility>

#include "engine/cases/torch_numbers.hpp"
#include "engine/core/text.hpp"
#include "numerics/bits/random.hpp"
#include "numerics/hardware/evaluate.hpp"
#include "samebits/operators.hpp"

namespace samebits::support {
namespace {

enum class fused_operator : std::uint8_t {
  gated,
  gated_gradient,
  biased,
  biased_gradient,
  rotate,
  rotate_gradient,
  embed,
  dropout,
  clip_fake_quantize,
  clip_fake_quantize_gradient,
};
inline constexpr int fused_operator_count = 10;

struct fused_case {
  fused_operator of = fused_operator::gated;
  function f = function::silu;
  format_id format = format_id::fp32;
  array_layout operands[3] = {};  ///< in the shape of the results
  array_layout out = {}, second_out = {};
  std::int64_t rows_of_tables = 1;  ///< of the bias, of cos and sin, of words
  std::int64_t positions = 0;       ///< of embed; 0: none are added
  std::int64_t each = 1;
  double scale = 1, probability = 0.5;
  int bits = 8;  ///< of clip_fake_quantize
  random_stream random = {};
  bool in_place = false;
  int threads = 1;
  std::uint64_t content = 0;
};

namespace torch = numerics::torch_2_11;
namespace ptx = numerics::ptx;
using of = fused_operator;

constexpr function functions[] = {function::silu, function::gelu, function::gelu_tanh};
constexpr std::size_t at_table = 3, at_second_table = 4, at_indices = 5, at_out = 6,
                      at_second_out = 7;

bool is_rotation(const fused_case& c) { return c.of == of::rotate || c.of == of::rotate_gradient; }
bool is_biased(const fused_case& c) { return c.of == of::biased || c.of == of::biased_gradient; }
bool is_fake(const fused_case& c) {
  return c.of == of::clip_fake_quantize || c.of == of::clip_fake_quantize_gradient;
}
/// Operands in the shape of the results.
std::size_t whole_operands(const fused_case& c) {
  if (c.of == of::gated_gradient) return 3;
  if (c.of == of::gated || c.of == of::biased_gradient || c.of == of::clip_fake_quantize_gradient)
    return 2;
  return c.of == of::embed ? 0 : 1;
}

std::string_view name(fused_operator which) {
  constexpr std::string_view names[] = {"gated",
                                        "gated_gradient",
                                        "biased",
                                        "biased_gradient",
                                        "rotate",
                                        "rotate_gradient",
                                        "embed",
                                        "dropout",
                                        "clip_fake_quantize",
                                        "clip_fake_quantize_gradient"};
  return names[static_cast<int>(which)];
}

void describe(fused_case& c, case_fields& fields) {
  fields.show("operator", c.of, "function", c.f, "format", c.format, "rows of tables",
              c.rows_of_tables, "scale", c.scale, "probability", c.probability, "bits", c.bits);
  fields.matrices({{"first", c.in_place ? c.out : c.operands[0]},
                   {"second", c.operands[1]},
                   {"third", c.operands[2]},
                   {"out", c.out},
                   {"second out", c.second_out}},
                  is_rotation(c) ? 2 : 1);
  if (c.in_place) c.operands[0] = c.out;
  fields.reset("in place", c.in_place, false, "each", c.each, 1, "positions", c.positions, 0);
  fields.reset(c.random);
}

fused_case draw_fused(const word_source& next) {
  fused_case c;
  c.of = static_cast<of>(below(fused_operator_count, next));
  c.f = one_of(functions, next);
  c.format = one_of(torch_formats, next);
  const std::int64_t rows = below(8, next) == 0 ? below(300, next) : below(6, next);
  std::int64_t cols = below(16, next) == 0 ? below(5000, next) : below(70, next);
  if (below(3, next) == 0) cols = cols / 16 * 16;  // vectors
  if (is_rotation(c)) cols *= 2;
  const bool dense = below(2, next) == 0;
  const auto lay = [&](array_side side) {
    return dense ? dense_layout(rows, cols) : draw_layout(rows, cols, side, next);
  };
  for (array_layout& l : c.operands) l = lay(array_side::read);
  c.out = lay(array_side::written);
  c.second_out = lay(array_side::written);
  c.rows_of_tables = is_biased(c) || is_fake(c) ? 1 : 1 + below(9, next);
  c.positions = below(4, next);
  c.each = below(3, next) == 0 ? 1 + below(5, next) : 1;
  constexpr double scales[] = {1, 27.712812921102035, 0.1};
  c.scale = one_of(scales, next);
  constexpr double probabilities[] = {0, 0.1, 0.5, 0.9, 1, 1e-9};
  c.probability = one_of(probabilities, next);
  c.bits = 2 + static_cast<int>(below(15, next));
  c.random = draw_random_stream(next);
  c.in_place = c.of != of::embed && below(4, next) == 0;
  if (c.in_place) c.operands[0] = c.out;
  return c;
}

buffers memory_of_fused(const fused_case& c) {
  const word_source next = words_from(c.content);
  const auto around_one = [&](const array_layout& layout) {
    return numbers(c.format, layout, next, {.rarity = 8, .low = -9, .high = 5});
  };
  buffers all;
  constexpr const char* names[] = {"first", "second", "third"};
  for (std::size_t i = 0; i < 3; ++i) {
    const bool wanted = i < whole_operands(c);
    all.push_back(
        {names[i], buffer_use::given, around_one(wanted ? c.operands[i] : array_layout{})});
  }
  const std::int64_t cols = is_fake(c) ? 1 : is_rotation(c) ? c.out.cols / 2 : c.out.cols;
  const auto table = [&](const char* name, bool wanted, std::int64_t rows) {
    const array_layout layout = wanted ? dense_layout(rows, cols) : array_layout{};
    all.push_back({name, buffer_use::given, around_one(layout)});
  };
  table("table", is_rotation(c) || is_biased(c) || is_fake(c) || c.of == of::embed,
        c.rows_of_tables);
  table("second table", is_rotation(c) || (c.of == of::embed && c.positions > 0),
        is_rotation(c) ? c.rows_of_tables : c.positions);
  strided_buffer indices(format_id::fp64,  // integers of 64 bits
                         c.of == of::embed ? dense_layout(1, c.out.rows) : array_layout{});
  for (std::int64_t i = 0; c.of == of::embed && i < c.out.rows; ++i) {
    indices.store(i, static_cast<std::uint64_t>(below(c.rows_of_tables, next)));
  }
  all.push_back({"indices", buffer_use::fixed, std::move(indices)});
  all.push_back(result_buffer("out", c.format, c.out, !c.in_place));
  all.push_back(
      result_buffer("second out", c.format, c.second_out,
                    c.of == of::gated_gradient || c.of == of::clip_fake_quantize_gradient));
  return all;
}

matrix_view out_of(const fused_case& c, const call_site& site) {
  return site.views[c.in_place ? 0 : at_out];
}

std::span<const std::int64_t> indices_of(const call_site& site) {
  const matrix_view& v = site.views[at_indices];
  return {static_cast<const std::int64_t*>(v.data), static_cast<std::size_t>(v.cols)};
}

returned_values fused_on(const fused_case& c, const call_site& site) {
  const std::vector<matrix_view>& v = site.views;
  const matrix_view out = out_of(c, site);
  const executor where = site.target.where(c.threads);
  constexpr function_rule rule = function_rule::torch_2_11;
  const rotate_options rotation{rule, c.each};
  site.target.enqueue([&] {
    switch (c.of) {
      case of::gated: return gated(c.f, v[0], v[1], out, rule, where);
      case of::gated_gradient:
        return gated_gradient(c.f, v[0], v[1], v[2], out, v[at_second_out], rule, where);
      case of::biased: return biased(c.f, v[0], v[at_table], out, rule, where);
      case of::biased_gradient:
        return biased_gradient(c.f, v[0], v[1], v[at_table], out, rule, where);
      case of::rotate: return rotate(v[0], v[at_table], v[at_second_table], out, rotation, where);
      case of::rotate_gradient:
        return rotate_gradient(v[0], v[at_table], v[at_second_table], out, rotation, where);
      case of::embed:
        return embed(indices_of(site), v[at_table],
                     c.positions > 0 ? v[at_second_table] : matrix_view{}, out, {rule, c.scale},
                     where);
      case of::dropout: return dropout(v[0], out, {c.probability, c.random}, where);
      case of::clip_fake_quantize:
        return clip_fake_quantize(v[0], v[at_table], out, {c.bits}, where);
      case of::clip_fake_quantize_gradient:
        return clip_fake_quantize_gradient(v[0], v[1], v[at_table], out, v[at_second_out], {c.bits},
                                           where);
    }
  });
  return {};
}

std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }

/// PyTorch's operators on numbers of a format, as binary32 bits.
struct operators {
  format_id format;
  numerics::function_plan f;

  [[nodiscard]] std::uint32_t at(const matrix_view& v, std::int64_t row, std::int64_t col) const {
    return value_at(v, row, col);
  }
  [[nodiscard]] std::uint32_t rounded(std::uint32_t x) const { return torch::stored(format, x); }
  [[nodiscard]] std::uint32_t mul(std::uint32_t a, std::uint32_t b) const {
    return rounded(ptx::mul(a, b));
  }
  [[nodiscard]] std::uint32_t add(std::uint32_t a, std::uint32_t b) const {
    return rounded(ptx::add(a, b));
  }
  [[nodiscard]] std::uint32_t apply(std::uint32_t x) const {
    return rounded(numerics::evaluate(f, x));
  }
  [[nodiscard]] std::uint32_t backward(std::uint32_t grad, std::uint32_t x) const {
    return rounded(numerics::evaluate_gradient(f, grad, x));
  }
};

/// An element of x * cos + rotate_half(x) * sin, or of its gradient: that of a slice is added to
/// zeros.
std::uint32_t rotated(const fused_case& c, const operators& of_format, const call_site& site,
                      std::int64_t row, std::int64_t col) {
  const matrix_view& x = site.views[0];
  const matrix_view &cos = site.views[at_table], &sin = site.views[at_second_table];
  const std::int64_t half = cos.cols, position = row / c.each % c.rows_of_tables;
  const std::int64_t other = col < half ? col + half : col - half;
  const bool backward = c.of == of::rotate_gradient, negative = (col < half) != backward;
  const auto table = [&](const matrix_view& v) { return of_format.at(v, position, col % half); };
  const std::uint32_t own = of_format.mul(of_format.at(x, row, col), table(cos));
  std::uint32_t crossed;
  if (!backward) {
    const std::uint32_t moved = of_format.at(x, row, other);
    crossed = of_format.mul(negative ? ptx::neg(moved) : moved, table(sin));
  } else {
    crossed = of_format.mul(of_format.at(x, row, other), table(sin));
    if (negative) crossed = ptx::neg(crossed);
    crossed = of_format.add(crossed, 0);
  }
  return of_format.add(own, crossed);
}

std::uint32_t kept_or_dropped(const fused_case& c, const operators& of_format, std::uint32_t x,
                              std::int64_t row, std::int64_t col) {
  const auto p = static_cast<float>(c.probability);
  const random_stream& r = c.random;
  const std::uint64_t pitch = r.pitch.value_or(static_cast<std::uint64_t>(c.out.cols));
  const std::uint64_t index =
      r.offset + static_cast<std::uint64_t>(row) * pitch + static_cast<std::uint64_t>(col);
  const auto dropped = static_cast<std::uint32_t>(std::floor(static_cast<double>(p) * 0x1p24));
  if (numerics::random_word(r.seed, r.stream, index, 24) < dropped) return 0;
  return of_format.mul(x, bits_of(1.0F / (1.0F - p)));
}

float number(std::uint32_t bits) { return std::bit_cast<float>(bits); }

/// By the processor's binary32 operations.
std::uint32_t fake_quantized(const fused_case& c, std::uint32_t x, std::uint32_t clip) {
  const auto levels = static_cast<float>((1 << (c.bits - 1)) - 1);
  volatile float part = number(x) / number(clip);
  if (part > 1) part = 1;
  if (part < -1) part = -1;
  const volatile float steps = part * levels, whole = std::nearbyint(steps), back = whole / levels;
  return bits_of(back * number(clip));
}

/// What PyTorch's operators leave one after another, each by the library's definition.
returned_values fused_by_definition(const fused_case& c, const call_site& site) {
  const std::vector<matrix_view>& v = site.views;
  const matrix_view out = out_of(c, site);
  const operators o{c.format, numerics::plan_of(function_rule::torch_2_11, c.f, c.format, 0, 0)};
  std::vector<std::uint32_t> first, second;  // all before any is stored
  for_each_element(out, [&](std::int64_t row, std::int64_t col) {
    const auto x = [&](std::size_t i) { return o.at(v[i], row, col); };
    const auto bias = [&] { return o.at(v[at_table], 0, col); };
    switch (c.of) {
      case of::gated: first.push_back(o.mul(o.apply(x(0)), x(1))); break;
      case of::gated_gradient:
        first.push_back(o.backward(o.mul(x(0), x(2)), x(1)));
        second.push_back(o.mul(x(0), o.apply(x(1))));
        break;
      case of::biased: first.push_back(o.apply(o.add(x(0), bias()))); break;
      case of::biased_gradient: first.push_back(o.backward(x(0), o.add(x(1), bias()))); break;
      case of::rotate:
      case of::rotate_gradient: first.push_back(rotated(c, o, site, row, col)); break;
      case of::embed: {
        const std::int64_t word = indices_of(site)[static_cast<std::size_t>(row)];
        const std::uint32_t y =
            o.mul(o.at(v[at_table], word, col), bits_of(static_cast<float>(c.scale)));
        first.push_back(
            c.positions == 0 ? y : o.add(y, o.at(v[at_second_table], row % c.positions, col)));
        break;
      }
      case of::dropout: first.push_back(kept_or_dropped(c, o, x(0), row, col)); break;
      case of::clip_fake_quantize:
        first.push_back(fake_quantized(c, x(0), o.at(v[at_table], 0, 0)));
        break;
      case of::clip_fake_quantize_gradient: {
        const float at = number(x(1)), clip = number(o.at(v[at_table], 0, 0));
        first.push_back(at > clip || at < -clip ? 0 : x(0));
        second.push_back(at > clip ? x(0) : at < -clip ? ptx::neg(x(0)) : 0);
        break;
      }
    }
  });
  std::size_t i = 0;
  for_each_element(out, [&](std::int64_t row, std::int64_t col) {
    put_value(out, row, col, first[i]);
    if (!second.empty()) put_value(v[at_second_out], row, col, second[i]);
    ++i;
  });
  return {};
}

}  // namespace

array_operation fused_operation() {
  return judged(
      "PyTorch's operators", fused_by_definition,
      make_operation<fused_case>("fused operators", {draw_fused, memory_of_fused, fused_on}));
}

}  // namespace samebits::support
