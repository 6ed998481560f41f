// `fpinspect show` with several formats or rounding modes: the bits of each result below each other.
#include "fpinspect/explore/show_several.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/formats/describe.hpp"
#include "fpinspect/formats/outcome.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/output/terminal.hpp"
#include "samebits/scalar.hpp"
#include "samebits/text.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;
using samebits::rounding;

constexpr int random_word_bits = 32;
constexpr std::uint64_t random_words = std::uint64_t{1} << random_word_bits;

void add_result(std::vector<rounded_code>& results, std::size_t first, format_id format,
                const samebits::parse_result& rounded, mode_share mode) {
  for (std::size_t i = first; i < results.size(); ++i) {
    if (results[i].code == rounded.code) {
      results[i].modes.push_back(mode);
      return;
    }
  }
  results.push_back({format, rounded.code, rounded.inexact, rounded.overflow, {mode}});
}

void add_stochastic(std::vector<rounded_code>& results, std::size_t first, format_id format,
                    std::string_view text) {
  const auto with_word = [&](std::uint64_t word) {
    return samebits::parse(format, text, {.rounding = rounding::stochastic},
                           {static_cast<std::uint32_t>(word), random_word_bits});
  };
  const samebits::parse_result toward_zero = with_word(0);
  std::uint64_t low = 0;  // the smallest word that rounds away from zero is in (low, high]
  std::uint64_t high = random_words;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (with_word(middle).code == toward_zero.code ? low : high) = middle;
  }
  const auto share = [](std::uint64_t words) {
    return static_cast<double>(words) / static_cast<double>(random_words);
  };
  add_result(results, first, format, toward_zero, {rounding::stochastic, share(high)});
  if (high == random_words) return;
  add_result(results, first, format, with_word(high),
             {rounding::stochastic, share(random_words - high)});
}

}  // namespace

std::vector<rounded_code> round_by_all(std::string_view text, std::span<const format_id> formats,
                                       std::span<const rounding> modes) {
  std::vector<rounded_code> results;
  for (const format_id format : formats) {
    const std::size_t first = results.size();
    for (const rounding mode : modes) {
      if (mode == rounding::stochastic) {
        add_stochastic(results, first, format, text);
      } else {
        add_result(results, first, format, samebits::parse(format, text, {.rounding = mode}),
                   {mode, 1.0});
      }
    }
  }
  return results;
}

namespace {

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  for (std::size_t comma = 0; comma != std::string::npos; start = comma + 1) {
    comma = text.find(',', start);
    parts.push_back(text.substr(start, comma - start));
  }
  return parts;
}

std::vector<format_id> formats_of(const std::string& text) {
  if (text != "all") return format_list_argument("FORMAT", split_at_commas(text));
  std::vector<format_id> formats;
  for (int i = 0; i < samebits::format_count; ++i) formats.push_back(samebits::format_at(i));
  return formats;
}

std::vector<rounding> modes_of(const std::vector<std::string>& texts) {
  std::vector<rounding> all;
  std::string names;
  for (int i = 0; i < samebits::enum_count<samebits::rounding>; ++i) {
    all.push_back(static_cast<rounding>(i));
    names += cat(i == 0 ? "" : ", ", samebits::name(all.back()));
  }
  if (texts.empty()) return {rounding::nearest_even};
  if (texts.size() == 1 && texts.front() == "all") return all;
  std::vector<rounding> modes;
  for (const std::string& text : texts) {
    const auto found = samebits::find_enumerator<samebits::rounding>(text);
    if (!found) {
      throw usage_error(
          cat("--round: ", samebits::tensor_file::quote(text), " is not one of all, ", names));
    }
    if (std::find(modes.begin(), modes.end(), *found) == modes.end()) modes.push_back(*found);
  }
  return modes;
}

std::optional<double> error_of(const rounded_code& result, const std::string& text) {
  const auto value = finite_value(result.format, result.code);
  const samebits::parse_result parsed = samebits::parse(format_id::fp64, text);
  const double x = samebits::decode_double(format_id::fp64, parsed.code);
  const bool in_range = x - x == 0 && (x != 0 || !parsed.inexact);  // neither beyond fp64 nor below
  const bool known = value && result.format != format_id::fp64 && in_range;
  return known ? std::optional(*value - x) : std::nullopt;
}

outcome outcome_of_text(const rounded_code& result, const std::string& text) {
  return outcome_of(class_of_text(text), result.format,
                    {result.code, result.inexact, result.overflow});
}

void write_several_json(std::span<const rounded_code> results, const std::string& text,
                        output& out) {
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.member("input", text);
  json.key("results");
  json.begin_array();
  for (const rounded_code& result : results) {
    const code_fields fields = fields_of(result.format, result.code);
    json.begin_object(json_writer::layout::one_line);
    json.member("format", samebits::name(result.format));
    json.member("code", code_text(result.format, result.code));
    json.member("sign", fields.sign);
    json.member("exponent", fields.exponent);
    json.member("mantissa", fields.mantissa);
    json.member("value", samebits::to_shortest(result.format, result.code));
    json.member("number", finite_value(result.format, result.code));
    json.member("error", error_of(result, text));
    json.member("outcome", name(outcome_of_text(result, text)));
    json.key("round");
    json.begin_object();
    for (const mode_share& mode : result.modes) json.member(samebits::name(mode.mode), mode.share);
    json.end_object();
    json.end_object();
  }
  json.end_array();
  json.end_object();
  out.write(json.document());
}

/// "nearest_even, upward, stochastic 40 %"
std::string modes_text(std::span<const mode_share> modes) {
  std::string text;
  for (const mode_share& mode : modes) {
    text += cat(text.empty() ? "" : ", ", samebits::name(mode.mode));
    if (mode.mode == rounding::stochastic) text += cat(" ", general(100 * mode.share, 4), " %");
  }
  return text;
}

/// Widths of the bit fields: exponents end in one column, mantissas begin in one column.
void write_bits(std::span<const rounded_code> results, const terminal& term, output& out) {
  std::size_t exponent_bits = 8;
  for (const rounded_code& result : results) {
    const auto bits = samebits::spec_of(result.format).exponent_bits;
    exponent_bits = std::max(exponent_bits, static_cast<std::size_t>(bits));
  }
  const auto row = [&](std::string_view format, std::string_view sign, std::string_view exponent,
                       std::string_view mantissa) {
    std::string line =
        cat(left(format, 10), right(sign, 4), " ", right(exponent, exponent_bits), " ", mantissa);
    return line.substr(0, line.find_last_not_of(' ') + 1);
  };
  out.write(term.painted(paint::heading, row("format", "sign", "exponent", "mantissa")) + "\n");
  for (const rounded_code& result : results) {
    const code_fields fields = fields_of(result.format, result.code);
    out.write(row(samebits::name(result.format), fields.sign, fields.exponent, fields.mantissa) +
              "\n");
  }
}

void write_values(std::span<const rounded_code> results, const std::string& text,
                  const terminal& term, output& out) {
  const auto row = [](std::string_view format, std::string_view code, std::string_view value,
                      std::string_view error, std::string_view modes) {
    return cat(left(format, 10), left(code, 20), left(value, 24), left(error, 11), modes);
  };
  out.write("\n" +
            term.painted(paint::heading, row("format", "code", "value", "error", "rounding")) +
            "\n");
  for (const rounded_code& result : results) {
    const auto error = error_of(result, text);
    const outcome what = outcome_of_text(result, text);
    const std::string sign = error && *error > 0 ? "+" : "";
    out.write(row(samebits::name(result.format), code_text(result.format, result.code),
                  value_text(result.format, result.code),
                  error ? sign + general(*error, 3) : std::string(name(what)),
                  modes_text(result.modes)) +
              "\n");
  }
}

}  // namespace

bool shows_several(const show_arguments& arguments) {
  return !arguments.rounding.empty() || arguments.format == "all" ||
         arguments.format.find(',') != std::string::npos;
}

void run_show_several(const show_arguments& arguments, output& out) {
  const terminal term(arguments.view);
  const std::vector<format_id> formats = formats_of(arguments.format);
  const std::vector<rounding> modes = modes_of(arguments.rounding);
  const std::string& text = arguments.value;
  if (!samebits::parse(format_id::fp64, text).ok || code_argument(format_id::fp64, text)) {
    throw usage_error(cat("VALUE: ", samebits::tensor_file::quote(text),
                          " is not a number; a code needs one format and no --round"));
  }
  const std::vector<rounded_code> results = round_by_all(text, formats, modes);
  if (arguments.view.json) {
    write_several_json(results, text, out);
  } else {
    out.write(term.painted(paint::heading, samebits::tensor_file::escape(text)) + "\n");
    write_bits(results, term, out);
    write_values(results, text, term, out);
  }
}

}  // namespace fpinspect
