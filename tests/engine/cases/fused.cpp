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

struct fused_operator;

struct fused_case {
  const fused_operator* of = nullptr;
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

constexpr function_rule rule = function_rule::torch_2_11;
constexpr function functions[] = {function::silu, function::gelu, function::gelu_tanh};
constexpr std::size_t at_table = 3, at_second_table = 4, at_indices = 5, at_out = 6,
                      at_second_out = 7;

std::span<const std::int64_t> indices_of(const std::vector<matrix_view>& v) {
  return {static_cast<const std::int64_t*>(v[at_indices].data),
          static_cast<std::size_t>(v[at_indices].cols)};
}

/// A case, the views of its buffers, the one that the result goes to, and who computes.
struct fused_call {
  const fused_case& c;
  const std::vector<matrix_view>& v;
  matrix_view out;
  executor where = {};
};

std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }

/// PyTorch's operators on an element of a case, as binary32 bits.
struct fused_element {
  const fused_case& c;
  const std::vector<matrix_view>& v;
  const numerics::function_plan& f;
  std::int64_t row, col;

  [[nodiscard]] std::uint32_t x(std::size_t operand) const {
    return value_at(v[operand], row, col);
  }
  [[nodiscard]] std::uint32_t bias() const { return value_at(v[at_table], 0, col); }
  [[nodiscard]] std::uint32_t clip() const { return value_at(v[at_table], 0, 0); }
  [[nodiscard]] std::uint32_t rounded(std::uint32_t y) const { return torch::stored(c.format, y); }
  [[nodiscard]] std::uint32_t mul(std::uint32_t a, std::uint32_t b) const {
    return rounded(ptx::mul(a, b));
  }
  [[nodiscard]] std::uint32_t add(std::uint32_t a, std::uint32_t b) const {
    return rounded(ptx::add(a, b));
  }
  [[nodiscard]] std::uint32_t apply(std::uint32_t y) const {
    return rounded(numerics::evaluate(f, y));
  }
  [[nodiscard]] std::uint32_t backward(std::uint32_t grad, std::uint32_t y) const {
    return rounded(numerics::evaluate_gradient(f, grad, y));
  }
};

/// An element of x * cos + rotate_half(x) * sin, or of its gradient: that of a slice is added to
/// zeros.
std::uint32_t rotated(const fused_element& e, bool backward) {
  const std::int64_t half = e.v[at_table].cols, position = e.row / e.c.each % e.c.rows_of_tables;
  const bool negative = (e.col < half) != backward;
  const auto table = [&](std::size_t at) { return value_at(e.v[at], position, e.col % half); };
  const std::uint32_t own = e.mul(e.x(0), table(at_table));
  const std::uint32_t moved = value_at(e.v[0], e.row, e.col < half ? e.col + half : e.col - half);
  if (!backward) {
    return e.add(own, e.mul(negative ? ptx::neg(moved) : moved, table(at_second_table)));
  }
  const std::uint32_t crossed = e.mul(moved, table(at_second_table));
  return e.add(own, e.add(negative ? ptx::neg(crossed) : crossed, 0));
}

std::uint32_t embedded(const fused_element& e) {
  const std::int64_t word = indices_of(e.v)[static_cast<std::size_t>(e.row)];
  const std::uint32_t y =
      e.mul(value_at(e.v[at_table], word, e.col), bits_of(static_cast<float>(e.c.scale)));
  if (e.c.positions == 0) return y;
  return e.add(y, value_at(e.v[at_second_table], e.row % e.c.positions, e.col));
}

std::uint32_t kept_or_dropped(const fused_element& e) {
  const auto p = static_cast<float>(e.c.probability);
  const random_stream& r = e.c.random;
  const std::uint64_t pitch = r.pitch.value_or(static_cast<std::uint64_t>(e.c.out.cols));
  const std::uint64_t index =
      r.offset + static_cast<std::uint64_t>(e.row) * pitch + static_cast<std::uint64_t>(e.col);
  const auto dropped = static_cast<std::uint32_t>(std::floor(static_cast<double>(p) * 0x1p24));
  if (numerics::random_word(r.seed, r.stream, index, 24) < dropped) return 0;
  return e.mul(e.x(0), bits_of(1.0F / (1.0F - p)));
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

struct results {
  std::uint32_t first, second = 0;
};

/// What stands beside the operands: nothing, a bias, a clip, cos and sin, words and positions.
enum class tables : std::uint8_t { none, bias, clip, angles, words };

struct fused_operator {
  std::string_view name;
  std::size_t operands;  ///< in the shape of the results
  tables beside;
  bool has_second_out;
  void (*call)(const fused_call& of);
  results (*element)(
      const fused_element& of);  ///< what PyTorch's operators leave one after another
};

constexpr fused_operator fused_operators[] = {
    {"gated", 2, tables::none, false,
     [](const fused_call& k) { gated(k.c.f, k.v[0], k.v[1], k.out, rule, k.where); },
     [](const fused_element& e) { return results{e.mul(e.apply(e.x(0)), e.x(1))}; }},
    {"gated_gradient", 3, tables::none, true,
     [](const fused_call& k) {
       gated_gradient(k.c.f, k.v[0], k.v[1], k.v[2], k.out, k.v[at_second_out], rule, k.where);
     },
     [](const fused_element& e) {
       return results{e.backward(e.mul(e.x(0), e.x(2)), e.x(1)), e.mul(e.x(0), e.apply(e.x(1)))};
     }},
    {"biased", 1, tables::bias, false,
     [](const fused_call& k) { biased(k.c.f, k.v[0], k.v[at_table], k.out, rule, k.where); },
     [](const fused_element& e) { return results{e.apply(e.add(e.x(0), e.bias()))}; }},
    {"biased_gradient", 2, tables::bias, false,
     [](const fused_call& k) {
       biased_gradient(k.c.f, k.v[0], k.v[1], k.v[at_table], k.out, rule, k.where);
     },
     [](const fused_element& e) { return results{e.backward(e.x(0), e.add(e.x(1), e.bias()))}; }},
    {"rotate", 1, tables::angles, false,
     [](const fused_call& k) {
       rotate(k.v[0], k.v[at_table], k.v[at_second_table], k.out, {rule, k.c.each}, k.where);
     },
     [](const fused_element& e) { return results{rotated(e, false)}; }},
    {"rotate_gradient", 1, tables::angles, false,
     [](const fused_call& k) {
       rotate_gradient(k.v[0], k.v[at_table], k.v[at_second_table], k.out, {rule, k.c.each},
                       k.where);
     },
     [](const fused_element& e) { return results{rotated(e, true)}; }},
    {"embed", 0, tables::words, false,
     [](const fused_call& k) {
       embed(indices_of(k.v), k.v[at_table], k.v[at_second_table], k.out, {rule, k.c.scale},
             k.where);
     },
     [](const fused_element& e) { return results{embedded(e)}; }},
    {"dropout", 1, tables::none, false,
     [](const fused_call& k) {
       dropout(k.v[0], k.out, {k.c.probability, k.c.random}, k.where);
     },
     [](const fused_element& e) { return results{kept_or_dropped(e)}; }},
    {"clip_fake_quantize", 1, tables::clip, false,
     [](const fused_call& k) {
       clip_fake_quantize(k.v[0], k.v[at_table], k.out, {k.c.bits}, k.where);
     },
     [](const fused_element& e) { return results{fake_quantized(e.c, e.x(0), e.clip())}; }},
    {"clip_fake_quantize_gradient", 2, tables::clip, true,
     [](const fused_call& k) {
       clip_fake_quantize_gradient(k.v[0], k.v[1], k.v[at_table], k.out, k.v[at_second_out],
                                   {k.c.bits}, k.where);
     },
     [](const fused_element& e) {
       const float at = number(e.x(1)), clip = number(e.clip());
       const bool above = at > clip, below = at < -clip;
       return results{above || below ? 0 : e.x(0), above ? e.x(0) : below ? ptx::neg(e.x(0)) : 0};
     }},
};

void describe(fused_case& c, case_fields& fields) {
  fields.show("operator", c.of->name, "function", c.f, "format", c.format, "rows of tables",
              c.rows_of_tables, "scale", c.scale, "probability", c.probability, "bits", c.bits);
  fields.matrices({{"first", c.operands[0]},
                   {"second", c.operands[1]},
                   {"third", c.operands[2]},
                   {"out", c.out},
                   {"second out", c.second_out}},
                  c.of->beside == tables::angles ? 2 : 1);
  fields.reset("in place", c.in_place, false, "each", c.each, 1, "positions", c.positions, 0);
  fields.reset(c.random);
}

fused_case draw_fused(const word_source& next) {
  fused_case c;
  c.of = &fused_operators[next() % std::size(fused_operators)];
  c.f = one_of(functions, next);
  c.format = one_of(torch_formats, next);
  const std::int64_t rows = below(8, next) == 0 ? below(300, next) : below(6, next);
  std::int64_t cols = below(16, next) == 0 ? below(5000, next) : below(70, next);
  if (below(3, next) == 0) cols = cols / 16 * 16;  // vectors
  if (c.of->beside == tables::angles) cols *= 2;
  const bool dense = below(2, next) == 0;
  const auto lay = [&](array_side side) {
    return dense ? dense_layout(rows, cols) : draw_layout(rows, cols, side, next);
  };
  for (array_layout& l : c.operands) l = lay(array_side::read);
  c.out = lay(array_side::written);
  c.second_out = lay(array_side::written);
  c.rows_of_tables =
      c.of->beside == tables::bias || c.of->beside == tables::clip ? 1 : 1 + below(9, next);
  c.positions = below(4, next);
  c.each = below(3, next) == 0 ? 1 + below(5, next) : 1;
  constexpr double scales[] = {1, 27.712812921102035, 0.1};
  c.scale = one_of(scales, next);
  constexpr double probabilities[] = {0, 0.1, 0.5, 0.9, 1, 1e-9};
  c.probability = one_of(probabilities, next);
  c.bits = 2 + static_cast<int>(below(15, next));
  c.random = draw_random_stream(next);
  c.in_place = c.of->operands != 0 && below(4, next) == 0;
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
    const array_layout& layout = c.in_place && i == 0 ? c.out : c.operands[i];
    all.push_back(
        {names[i], buffer_use::given, around_one(i < c.of->operands ? layout : array_layout{})});
  }
  const tables beside = c.of->beside;
  const bool angles = beside == tables::angles, words = beside == tables::words;
  const std::int64_t cols = beside == tables::clip ? 1 : angles ? c.out.cols / 2 : c.out.cols;
  const auto table = [&](const char* name, bool wanted, std::int64_t rows) {
    const array_layout layout = wanted ? dense_layout(rows, cols) : array_layout{};
    all.push_back({name, buffer_use::given, around_one(layout), !wanted});
  };
  table("table", beside != tables::none, c.rows_of_tables);
  table("second table", angles || (words && c.positions > 0),
        angles ? c.rows_of_tables : c.positions);
  strided_buffer indices(format_id::fp64,  // integers of 64 bits
                         words ? dense_layout(1, c.out.rows) : array_layout{});
  for (std::int64_t i = 0; words && i < c.out.rows; ++i) {
    indices.store(i, static_cast<std::uint64_t>(below(c.rows_of_tables, next)));
  }
  all.push_back({"indices", buffer_use::fixed, std::move(indices)});
  all.push_back({.name = "out", .memory = {c.format, c.out}, .over = c.in_place ? 0 : -1});
  all.push_back(result_buffer("second out", c.format, c.second_out, c.of->has_second_out));
  return all;
}

returned_values fused_on(const fused_case& c, const call_site& site) {
  const fused_call call{c, site.views, site.views[at_out], site.target.where(c.threads)};
  site.target.enqueue([&] { c.of->call(call); });
  return {};
}

/// What PyTorch's operators leave one after another, each by the library's definition.
returned_values fused_by_definition(const fused_case& c, const call_site& site) {
  const matrix_view& out = site.views[at_out];
  const numerics::function_plan f = numerics::plan_of(rule, c.f, c.format, 0, 0);
  std::vector<results> all;  // before any is stored
  for_each_element(out, [&](std::int64_t row, std::int64_t col) {
    all.push_back(c.of->element({c, site.views, f, row, col}));
  });
  std::size_t i = 0;
  for_each_element(out, [&](std::int64_t row, std::int64_t col) {
    put_value(out, row, col, all[i].first);
    if (c.of->has_second_out) put_value(site.views[at_second_out], row, col, all[i].second);
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
