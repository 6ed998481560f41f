// `fpinspect show`: one code of one format in every notation, with its neighbours.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/commands.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/explore/show_several.hpp"
#include "fpinspect/formats/describe.hpp"
#include "fpinspect/formats/outcome.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/output/terminal.hpp"
#include "samebits/core/format.hpp"
#include "samebits/scalar.hpp"
#include "samebits/text.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;

/// The code to show, and how the argument was converted to it.
struct shown_code {
  format_id format;
  std::uint64_t code;
  bool inexact;
  std::optional<outcome> what;  ///< nothing if the argument is a code
};

shown_code code_to_show(const show_arguments& arguments) {
  if (!samebits::find_format(arguments.format) && samebits::find_format(arguments.value)) {
    throw usage_error(cat("FORMAT comes first: show ",
                          samebits::tensor_file::escape(arguments.value), " ",
                          samebits::tensor_file::escape(arguments.format)));
  }
  const format_id format = format_argument("FORMAT", arguments.format);
  const std::string& text = arguments.value;
  if (const auto code = code_argument(format, text)) {
    return {format, significant_bits(format, *code), false, std::nullopt};
  }
  const samebits::parse_result parsed = samebits::parse(format, text);
  if (!parsed.ok) {
    throw usage_error(cat("VALUE: ", samebits::tensor_file::quote(text),
                          " is neither a number nor a 0xCODE, from byte ", parsed.error_offset,
                          " on"));
  }
  const outcome what =
      outcome_of(class_of_text(text), format, {parsed.code, parsed.inexact, parsed.overflow});
  return {format, parsed.code, parsed.inexact, what};
}

const char* class_text(samebits::number_class what) {
  switch (what) {
    case samebits::number_class::zero: return "zero";
    case samebits::number_class::subnormal: return "subnormal";
    case samebits::number_class::normal: return "normal";
    case samebits::number_class::infinite: return "infinite";
    case samebits::number_class::nan: return "nan";
  }
  return "?";
}

/// log2 of the spacing of values at this value; below min normal, of the subnormals. Nothing for
/// NaN and infinities.
std::optional<int> ulp_log2(format_id format, std::uint64_t code) {
  const auto value = finite_value(format, code);
  if (!value) return std::nullopt;
  const double floor = samebits::decode_double(format, samebits::min_normal(format));
  return exponent_of(std::max(std::fabs(*value), floor)) - samebits::spec_of(format).mantissa_bits;
}

/// "exact", or how the input was rounded to the format.
std::string input_text(const shown_code& shown) {
  if (!shown.what) return "code";
  if (shown.inexact) {
    const bool said = *shown.what == outcome::rounded;
    return "inexact, rounded to nearest even" + (said ? "" : cat(": ", name(*shown.what)));
  }
  const bool lacking = *shown.what == outcome::overflow || *shown.what == outcome::saturated;
  return lacking ? cat("not in the format: ", name(*shown.what)) : "exact";
}

void write_neighbour(json_writer& json, const char* name, format_id format, std::uint64_t code) {
  json.key(name);
  json.begin_object(json_writer::layout::one_line);
  json.member("code", code_text(format, code));
  json.member("value", samebits::to_shortest(format, code));
  json.member("number", finite_value(format, code));
  json.end_object();
}

void write_json(const shown_code& shown, const std::string& text, output& out) {
  const auto [format, code, inexact, what] = shown;
  const code_fields fields = fields_of(format, code);
  const auto ulp = ulp_log2(format, code);
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.member("format", samebits::name(format));
  json.key("input");
  json.begin_object(json_writer::layout::one_line);
  json.member("text", text);
  json.member("inexact", inexact);
  json.member("outcome", what ? std::optional(name(*what)) : std::nullopt);
  json.end_object();
  json.member("code", code_text(format, code));
  json.key("bits");
  json.begin_object(json_writer::layout::one_line);
  json.member("sign", fields.sign);
  json.member("exponent", fields.exponent);
  json.member("mantissa", fields.mantissa);
  json.end_object();
  json.member("class", class_text(samebits::classify(format, code)));
  json.member("number", finite_value(format, code));
  json.member("value", samebits::to_shortest(format, code));
  json.member("exact", samebits::to_exact_decimal(format, code));
  json.member("hex_float", samebits::to_hex_float(format, code));
  write_neighbour(json, "below", format, samebits::next_down(format, code));
  write_neighbour(json, "above", format, samebits::next_up(format, code));
  json.member("ulp_log2", ulp);
  json.member("ulp", ulp ? std::optional(std::ldexp(1.0, *ulp)) : std::nullopt);
  json.end_object();
  out.write(json.document());
}

void write_text(const shown_code& shown, const std::string& text, const terminal& term,
                output& out) {
  const format_id format = shown.format;
  const std::uint64_t code = shown.code;
  const auto line = [&](const char* what, const std::string& is) {
    out.write(cat(left(what, 12), is, "\n"));
  };
  const auto neighbour = [&](std::uint64_t beside) {
    return cat(code_text(format, beside), "  ", value_text(format, beside));
  };
  out.write(
      term.painted(paint::heading, cat(samebits::name(format), " ", code_text(format, code))) +
      "\n");
  line("input", cat(samebits::tensor_file::escape(text), " (", input_text(shown), ")"));
  line("bits", fields_of(format, code).separated());
  line("class", class_text(samebits::classify(format, code)));
  line("shortest", samebits::to_shortest(format, code));
  line("exact", samebits::to_exact_decimal(format, code));
  line("hex float", samebits::to_hex_float(format, code));
  line("next below", neighbour(samebits::next_down(format, code)));
  line("next above", neighbour(samebits::next_up(format, code)));
  const auto ulp = ulp_log2(format, code);
  line("ulp", ulp ? cat(power_text(*ulp), " = ", shortest(std::ldexp(1.0, *ulp))) : "none");
}

}  // namespace

void run_show(const show_arguments& arguments, output& out) {
  if (shows_several(arguments)) return run_show_several(arguments, out);
  const terminal term(arguments.view);
  const shown_code shown = code_to_show(arguments);
  if (arguments.view.json) {
    write_json(shown, arguments.value, out);
  } else {
    write_text(shown, arguments.value, term, out);
  }
}

}  // namespace fpinspect
