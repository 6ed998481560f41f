// Texts of failures: fields and values of a case, its neighbours, explanation and repetition.
#include "engine/kit/report.hpp"

#include <cmath>

#include "engine/core/conversion_case.hpp"
#include "samebits/scalar.hpp"

namespace samebits::testkit {
namespace {

using support::code_text;

std::string count_text(std::size_t wrong, std::size_t all) {
  return std::to_string(wrong) + " of " + std::to_string(all) +
         (wrong == 1 ? " elements is" : " elements are") + " wrong";
}

// ---- Conversions ----

std::string call_text(const trial& t) {
  return "a call of " + std::to_string(t.codes.size()) + " elements, in[0] and out[0] " +
         std::to_string(t.in_offset) + " and " + std::to_string(t.out_offset) +
         " elements behind a 256-byte border";
}

std::string heading(const conversion_under_test& c, const verdict& v) {
  const std::string nan = c.nan == nan_result::any ? "any NaN" : std::string(name(c.rule.nan));
  return std::string(name(c.from)) + " to " + std::string(name(c.to)) + ", " +
         std::string(name(c.rule.rounding)) + " " + std::string(name(c.rule.overflow)) + ", " +
         nan +
         ", by the function under test: " + count_text(v.wrong_counts[0], v.call.in.codes.size()) +
         " (smallest case found)";
}

support::conversion_case wrong_case(const conversion_under_test& c, const failed_call& failure) {
  const std::size_t i = failure.found.wrong->element;
  support::conversion_case wrong{c.from, c.to, failure.in.codes[i], c.rule, random_at(c, i)};
  if (c.rule.rounding == rounding::stochastic) {
    wrong.origin = {c.random.seed, c.random.stream, c.random.offset + i};
  }
  return wrong;
}

/// The random bits of a stochastic case.
std::string random_text(const support::conversion_case& c) {
  if (c.rule.rounding != rounding::stochastic) return {};
  return "\n  random bits R = " + support::hex(c.random.value, 32) +
         " of K = " + std::to_string(c.random.count) + " (seed " + std::to_string(c.origin->seed) +
         ", stream " + std::to_string(c.origin->stream) + ", index " +
         std::to_string(c.origin->index) + ")";
}

std::string neighbours_text(const conversion_under_test& c, std::uint64_t input) {
  const auto beside = neighbours_of(c, input);
  if (!beside) return {};
  const std::string between =
      short_code_text(c.to, beside->lower) + " and " + short_code_text(c.to, beside->upper);
  if (c.rule.rounding == rounding::stochastic) {
    const double scaled = std::floor(std::ldexp(beside->part, c.random.bits));
    return "\n  the input lies between " + between +
           ": v * 2^K = " + std::to_string(static_cast<std::uint64_t>(scaled)) +
           ", and v * 2^K + R >= 2^K rounds away from zero";
  }
  return beside->part == 0.5 ? "\n  the input is a tie: halfway between " + between
                             : "\n  the input lies between " + between;
}

std::string repeat_text(const support::conversion_case& c) {
  const std::string code = code_text(c.from, c.input);
  return "\n  repeat with: " + support::reproduction(c) +
         "\n  or in this check with .domain = {.codes = {" + code.substr(0, code.find(' ')) + "}}";
}

// ---- Quantizers ----

std::string shape_text(std::int64_t rows, std::int64_t cols) {
  return "[" + std::to_string(rows) + ", " + std::to_string(cols) + "]";
}

std::string quantizer_text(const quantizer_under_test& q) {
  const quantize_options& o = q.options;
  const std::string nan = q.nan == nan_result::any ? "any NaN" : std::string(name(o.nan));
  return std::string(name(q.from)) + " to " + std::string(name(q.to)) + " with scales in " +
         std::string(name(q.scale_format)) + ", tile " + std::to_string(o.tile.rows) + " x " +
         std::to_string(o.tile.cols) + ", rule " + std::string(name(o.scale)) + ", " +
         std::string(name(o.rounding)) + " " + std::string(name(o.overflow)) + ", " + nan;
}

std::string count_text(const verdict& v) {
  return std::to_string(v.wrong_counts[0]) + " of " + std::to_string(v.call.expected[0].size()) +
         " scales and " + std::to_string(v.wrong_counts[1]) + " of " +
         std::to_string(v.call.expected[1].size()) + " codes are wrong (smallest case found)";
}

/// The position and the value of the wrong element.
std::string wrong_text(const quantizer_under_test& q, const verdict& v) {
  const quantize_counterexample w = wrong_of(q, v);
  const bool is_scale = w.part == quantized_part::scale;
  const format_id format = is_scale ? q.scale_format : q.to;
  const auto tile_cols = scales_shape(w.rows, w.cols, q.options.tile).cols;
  const auto tile = static_cast<std::size_t>(w.tile_row * tile_cols + w.tile_col);
  std::string text = "\n  matrix   " + shape_text(w.rows, w.cols) + ", tile " +
                     shape_text(w.tile_row, w.tile_col) + ", ";
  text += is_scale ? "scale; the tile starts at element " : "code of element ";
  text += shape_text(w.row, w.col) + "\n  input    " + code_text(q.from, w.input);
  if (!is_scale) {
    text += "\n  scale    " + short_code_text(q.scale_format, v.call.expected[0][tile]) + ", right";
  }
  return text + "\n  got      " + code_text(format, w.got) + "\n  expected " +
         code_text(format, w.expected);
}

/// The elements that are not 0, if there are few.
std::string elements_text(const quantizer_under_test& q, const trial& in) {
  std::string text;
  std::size_t shown = 0;
  for (std::size_t i = 0; i < in.codes.size(); ++i) {
    if (in.codes[i] == 0) continue;
    if (++shown > 4) return "\n  elements more than 4 are not 0";
    const auto n = static_cast<std::int64_t>(i);
    text += std::string(shown == 1 ? "" : ", ") + shape_text(n / in.cols, n % in.cols) + " " +
            short_code_text(q.from, in.codes[i]);
  }
  if (shown == 0) return "\n  elements all are 0";
  return "\n  elements " + text + (shown == in.codes.size() ? "" : "; all others are 0");
}

}  // namespace

std::optional<neighbours> neighbours_of(const conversion_under_test& c, std::uint64_t input) {
  if (!is_finite(c.from, input)) return std::nullopt;
  const double x = decode_double(c.from, input);
  const auto rounded = [&](rounding mode) {
    return convert_code(c.from, c.to, input, {mode, overflow::ieee}).code;
  };
  const std::uint64_t lower = rounded(rounding::toward_zero);
  const std::uint64_t upper = rounded(x < 0 ? rounding::downward : rounding::upward);
  if (lower == upper || !is_finite(c.to, lower) || !is_finite(c.to, upper)) return std::nullopt;
  const double from = decode_double(c.to, lower);  // exact, as are the differences of neighbours
  return neighbours{lower, upper, (x - from) / (decode_double(c.to, upper) - from)};
}

std::string case_text(const conversion_under_test& c, const failed_call& failure) {
  const verdict& v = failure.found;
  const std::size_t i = v.wrong->element;
  const support::conversion_case wrong = wrong_case(c, failure);
  return heading(c, v) + random_text(wrong) + "\n  input    " + code_text(c.from, wrong.input) +
         neighbours_text(c, wrong.input) + "\n  got      " + code_text(c.to, v.call.got[0][i]) +
         "\n  expected " + code_text(c.to, v.call.expected[0][i]) + "\n  " + failure.why.text();
}

std::string failure_text(const conversion_under_test& c, const failed_call& failure) {
  const verdict& v = failure.found;
  if (!v.wrong) {
    return "the function under test " + (v.thrown.empty() ? v.trouble : v.thrown) + "\n  in " +
           call_text(failure.in) + ", " + failure.how;
  }
  return case_text(c, failure) + repeat_text(wrong_case(c, failure)) + "\n  element " +
         std::to_string(v.wrong->element) + " of " + call_text(failure.in) + ", " + failure.how;
}

std::string case_text(const quantizer_under_test& q, const failed_call& failure) {
  const verdict& v = failure.found;
  return quantizer_text(q) + ", by the quantizer under test: " + count_text(v) + wrong_text(q, v) +
         elements_text(q, failure.in) + "\n  " + failure.why.text();
}

std::string failure_text(const quantizer_under_test& q, const failed_call& failure) {
  const verdict& v = failure.found;
  if (!v.wrong) {
    return "the quantizer under test " + (v.thrown.empty() ? v.trouble : v.thrown) +
           "\n  for a matrix " + shape_text(failure.in.rows, failure.in.cols) + failure.how;
  }
  return case_text(q, failure) + failure.how;
}

std::string case_text(const function_under_test& f, const failed_call& failure) {
  const verdict& v = failure.found;
  const std::size_t i = v.wrong->element, count = failure.in.codes.size();
  const std::uint64_t expected = v.call.expected[0][i];
  std::string text = count_text(v.wrong_counts[0], count) + " (smallest case found)";
  if (count > 1) {
    text += "\n  element   " + std::to_string(i) + " of a call of " + std::to_string(count) +
            " elements";
  }
  text += "\n  input     " + short_code_text(f.format, failure.in.codes[i]) + "\n  got       " +
          short_code_text(f.format, v.call.got[0][i]) + "   expected " +
          short_code_text(f.format, expected);
  if (f.nan == nan_result::any && is_nan(f.format, expected)) text += " or another NaN";
  if (failure.why.distance) {
    text += "\n  distance  at most " + std::to_string(*failure.why.distance) +
            " codes from the right one; " + count_text(failure.why.wrong, failure.why.results);
  }
  return text + "\n  " + failure.why.text();
}

quantize_counterexample wrong_of(const quantizer_under_test& q, const verdict& v) {
  const trial& in = v.call.in;
  const matrix_shape tile = tile_extent(in, q.options.tile);
  const auto n = static_cast<std::int64_t>(v.wrong->element);
  const auto part = static_cast<std::size_t>(v.wrong->result);
  quantize_counterexample w{static_cast<quantized_part>(part), in.rows, in.cols};
  if (w.part == quantized_part::scale) {
    const std::int64_t tiles_in_row = (in.cols + tile.cols - 1) / tile.cols;
    w.row = n / tiles_in_row * tile.rows;
    w.col = n % tiles_in_row * tile.cols;
  } else {
    w.row = n / in.cols;
    w.col = n % in.cols;
  }
  w.tile_row = w.row / tile.rows;
  w.tile_col = w.col / tile.cols;
  w.input = in.codes[static_cast<std::size_t>(w.row * in.cols + w.col)];
  w.got = v.call.got[part][v.wrong->element];
  w.expected = v.call.expected[part][v.wrong->element];
  return w;
}

}  // namespace samebits::testkit
