// `fpinspect formats`: one row per format, derived from its parameters.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "fpinspect/cli/commands.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/formats/describe.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/output/terminal.hpp"
#include "samebits/core/format.hpp"
#include "samebits/scalar.hpp"
#include "samebits/text.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;
using samebits::specials;

/// Properties of a format that are derived from its parameters.
struct format_facts {
  int bits;  ///< sign, exponent and mantissa
  int sign_bits;
  std::uint64_t codes_log2;                    ///< the format has 2^codes_log2 codes
  std::uint64_t finite;                        ///< distinct finite values; +0 and -0 count once
  std::uint64_t nans;                          ///< number of codes
  std::uint64_t infs;                          ///< number of codes
  std::optional<std::uint64_t> min_normal;     ///< as a code
  std::optional<std::uint64_t> min_subnormal;  ///< as a code
  double decades;                              ///< log10(max / smallest positive)
};

format_facts facts_of(format_id format) {
  const samebits::format_spec spec = samebits::spec_of(format);
  const bool is_scale = spec.special == specials::scale;
  format_facts facts{};
  facts.sign_bits = is_scale ? 0 : 1;
  facts.bits = facts.sign_bits + spec.exponent_bits + spec.mantissa_bits;
  facts.codes_log2 = static_cast<std::uint64_t>(facts.bits);
  const std::uint64_t max = samebits::max_finite(format) >> spec.padding_bits;
  facts.finite = is_scale ? max + 1 : 2 * max + 1;
  if (spec.special == specials::ieee) facts.infs = 2;
  if (spec.special == specials::ieee)
    facts.nans = 2 * ((std::uint64_t{1} << spec.mantissa_bits) - 1);
  if (spec.special == specials::fn) facts.nans = 2;
  if (spec.special == specials::fnuz || is_scale) facts.nans = 1;
  facts.min_normal = samebits::min_normal(format);
  if (!is_scale) facts.min_subnormal = samebits::min_positive(format);
  facts.decades = std::log10(samebits::decode_double(format, samebits::max_finite(format))) -
                  std::log10(samebits::decode_double(format, samebits::min_positive(format)));
  return facts;
}

const char* specials_text(specials special) {
  switch (special) {
    case specials::ieee: return "ieee";
    case specials::fn: return "fn";
    case specials::none: return "none";
    case specials::fnuz: return "fnuz";
    case specials::scale: return "scale";
  }
  return "?";
}

void code_and_value(json_writer& json, const std::string& what, format_id format,
                    std::optional<std::uint64_t> code) {
  if (code) {
    json.member(what, samebits::decode_double(format, *code));
    json.member(what + "_code", code_text(format, *code));
  } else {
    json.member(what, std::nullopt);
    json.member(what + "_code", std::nullopt);
  }
}

void write_json(output& out) {
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.key("formats");
  json.begin_array();
  for (int i = 0; i < samebits::format_count; ++i) {
    const format_id format = samebits::format_at(i);
    const samebits::format_spec spec = samebits::spec_of(format);
    const format_facts facts = facts_of(format);
    json.begin_object();
    json.member("name", spec.name);
    json.member("bits", facts.bits);
    json.member("sign_bits", facts.sign_bits);
    json.member("exponent_bits", spec.exponent_bits);
    json.member("mantissa_bits", spec.mantissa_bits);
    json.member("storage_bits", spec.storage_bits);
    json.member("bias", spec.bias);
    json.member("specials", specials_text(spec.special));
    code_and_value(json, "max", format, samebits::max_finite(format));
    code_and_value(json, "min_normal", format, facts.min_normal);
    code_and_value(json, "min_subnormal", format, facts.min_subnormal);
    json.member("epsilon", std::ldexp(1.0, -spec.mantissa_bits));
    json.member("decades", facts.decades);
    json.member("values", facts.finite);
    json.member("inf_codes", facts.infs);
    json.member("nan_codes", facts.nans);
    json.member("bytes_per_million", packed_bits(format) * 1'000'000 / 8);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  out.write(json.document());
}

/// A code's value in at most 8 characters: exact, or with three digits.
std::string short_value(format_id format, std::uint64_t code) {
  const std::string text = samebits::to_exact_decimal(format, code);
  return text.size() <= 8 ? text : scientific(samebits::decode_double(format, code), 2);
}

std::string short_count(std::uint64_t count) {
  return count < 100'000'000 ? std::to_string(count) : scientific(static_cast<double>(count), 2);
}

std::string power_of(format_id format, std::optional<std::uint64_t> code) {
  return code ? power_text(exponent_of(samebits::decode_double(format, *code))) : "-";
}

/// Joins cells to a line. The first cell is left-aligned, the others are right-aligned.
std::string row(const std::array<std::string, 11>& cells) {
  constexpr std::array<std::size_t, 11> widths = {8, 5, 8, 5, 10, 8, 8, 6, 8, 9, 5};
  std::string line = left(cells[0], widths[0]);
  for (std::size_t i = 1; i < cells.size(); ++i) line += right(cells[i], widths[i]);
  return line + "\n";
}

std::string format_row(format_id format) {
  const samebits::format_spec spec = samebits::spec_of(format);
  const format_facts facts = facts_of(format);
  return row({spec.name, std::to_string(facts.bits),
              cat(facts.sign_bits, "/", spec.exponent_bits, "/", spec.mantissa_bits),
              std::to_string(spec.bias), short_value(format, samebits::max_finite(format)),
              power_of(format, facts.min_normal), power_of(format, facts.min_subnormal),
              power_text(-spec.mantissa_bits), fixed(facts.decades, 1), short_count(facts.finite),
              shortest(packed_bits(format) / 8.0)});
}

void write_table(const terminal& term, output& out) {
  // Two heading lines, because "min normal" and "min subn." are wider than their columns.
  out.write(term.painted(paint::heading, row({"format", "bits", "s/e/m", "bias", "max", "min",
                                              "min", "eps", "decades", "values", "MB"})));
  out.write(term.painted(paint::heading, right("normal", 44) + right("subn.", 8) + "\n"));
  for (int i = 0; i < samebits::format_count; ++i) out.write(format_row(samebits::format_at(i)));
  out.write(
      "\nmin: smallest positive values; e8m0 has powers of two only, no zero and no sign\n"
      "decades: log10(max / smallest positive)   values: finite ones, both zeros as one\n"
      "MB: 10^6 bytes per million elements, packed\n");
}

}  // namespace

void run_formats(const formats_arguments& arguments, output& out) {
  const terminal term(arguments.view);
  if (arguments.view.json) {
    write_json(out);
  } else {
    write_table(term, out);
  }
}

}  // namespace fpinspect
