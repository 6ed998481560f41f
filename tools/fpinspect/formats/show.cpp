// `fpinspect show` and `cast`: numbers as codes of formats, and how they were rounded.

#include "fpinspect/cli/command.hpp"
#include "fpinspect/formats/describe.hpp"
#include "samebits/text.hpp"

namespace fpinspect {
namespace {

// --- show FORMAT VALUE -------------------------------------------------------------------------

/// One code, and how the argument was converted to it.
struct shown_code {
  std::string text;  ///< the argument
  format_id format;
  std::uint64_t code;
  bool inexact = false;
  std::optional<outcome> what = std::nullopt;  ///< nothing if the argument is a code
};

shown_code code_to_show(const std::string& format_text, const std::string& text) {
  refuse_if(!find_format(format_text) && find_format(text), "FORMAT comes first: show ",
            escape(text), " ", escape(format_text));
  const format_id format = format_argument("FORMAT", format_text);
  if (const auto code = code_argument(format, text)) {
    return {text, format, significant_bits(format, *code)};
  }
  const parse_result parsed = parse(format, text);
  refuse_value_if(!parsed.ok, "VALUE", text, "is neither a number nor a 0xCODE, from byte ",
                  parsed.error_offset, " on");
  const outcome what =
      outcome_of(class_of_text(text), format, {parsed.code, parsed.inexact, parsed.overflow});
  return {text, format, parsed.code, parsed.inexact, what};
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

json_object json_of(const shown_code& shown) {
  const format_id format = shown.format;
  const std::uint64_t code = shown.code;
  const code_fields fields = fields_of(format, code);
  const auto ulp = ulp_log2(format, code);
  return {{"format", name(format)},
          {"input",
           json_line({{"text", shown.text},
                      {"inexact", shown.inexact},
                      {"outcome", shown.what ? std::optional(name(*shown.what)) : std::nullopt}})},
          {"code", code_text(format, code)},
          {"bits", json_line({{"sign", fields.sign},
                              {"exponent", fields.exponent},
                              {"mantissa", fields.mantissa}})},
          {"class", name(classify(format, code))},
          {"number", finite_value(format, code)},
          {"value", to_shortest(format, code)},
          {"exact", to_exact_decimal(format, code)},
          {"hex_float", to_hex_float(format, code)},
          {"below", code_json(format, next_down(format, code)).on_one_line()},
          {"above", code_json(format, next_up(format, code)).on_one_line()},
          {"ulp_log2", ulp},
          {"ulp", ulp ? std::optional(std::ldexp(1.0, *ulp)) : std::nullopt}};
}

std::string text_of(const shown_code& shown, const terminal& term) {
  const format_id format = shown.format;
  const std::uint64_t code = shown.code;
  const auto neighbour = [&](std::uint64_t beside) {
    return cat(code_text(format, beside), "  ", value_text(format, beside));
  };
  const auto ulp = ulp_log2(format, code);
  const std::pair<const char*, std::string> lines[] = {
      {"input", cat(escape(shown.text), " (", input_text(shown), ")")},
      {"bits", fields_of(format, code).separated()},
      {"class", std::string(name(classify(format, code)))},
      {"shortest", to_shortest(format, code)},
      {"exact", to_exact_decimal(format, code)},
      {"hex float", to_hex_float(format, code)},
      {"next below", neighbour(next_down(format, code))},
      {"next above", neighbour(next_up(format, code))},
      {"ulp", ulp ? cat(power_text(*ulp), " = ", shortest(std::ldexp(1.0, *ulp))) : "none"}};
  std::string text = term.painted(paint::heading, format, " ", code_text(format, code)) + "\n";
  for (const auto& [what, is] : lines) text += cat(left(what, 12), is, "\n");
  return text;
}

// --- show FORMATS VALUE --rounding MODES -------------------------------------------------------

std::vector<rounding> modes_of(const std::vector<std::string>& texts) {
  if (texts.empty()) return {rounding::nearest_even};
  std::vector<rounding> modes;
  if (texts.size() == 1 && texts.front() == "all") {
    for (const auto& row : table_of<rounding>) modes.push_back(row.value);
    return modes;
  }
  for (const std::string& text : texts) {
    const auto found = find_enumerator<rounding>(text);
    if (!found) refuse_name("--rounding", text, cat("all, ", names_of<rounding>()));
    add_once(modes, *found);
  }
  return modes;
}

/// A row of the tables.
struct rounded_number {
  rounded_code is;
  std::string text;  ///< the number
  code_fields fields = fields_of(is.format, is.code);

  [[nodiscard]] std::optional<double> error() const {
    const auto value = finite_value(is.format, is.code);
    const parse_result parsed = parse(format_id::fp64, text);
    const double x = decode_double(format_id::fp64, parsed.code);
    const bool in_range =
        x - x == 0 && (x != 0 || !parsed.inexact);  // neither beyond fp64 nor below
    const bool known = value && is.format != format_id::fp64 && in_range;
    return known ? std::optional(*value - x) : std::nullopt;
  }
  [[nodiscard]] std::string_view outcome() const {
    return name(outcome_of(class_of_text(text), is.format, {is.code, is.inexact, is.overflow}));
  }
};

json_object modes_json(const rounded_code& code) {
  json_object modes;
  for (const mode_share& mode : code.modes) modes.add(name(mode.mode), mode.share);
  return modes;
}

/// "nearest_even, upward, stochastic 40 %"
std::string modes_text(const rounded_code& code) {
  return joined(code.modes, [](const mode_share& mode) {
    const bool random = mode.mode == rounding::stochastic;
    return cat(mode.mode, random ? cat(" ", general(100 * mode.share, 4), " %") : "");
  });
}

std::string error_text(const rounded_number& n) {
  const auto error = n.error();
  if (!error) return std::string(n.outcome());
  return (*error > 0 ? "+" : "") + general(*error, 3);
}

constexpr column<rounded_number> rounded_columns[] = {
    {"format", "format", 10, [](auto& n) { return name(n.is.format); }},
    {"code", "code", 20, [](auto& n) { return code_text(n.is.format, n.is.code); }},
    {"sign", "", 0, [](auto& n) { return n.fields.sign; }},
    {"exponent", "", 0, [](auto& n) { return n.fields.exponent; }},
    {"mantissa", "", 0, [](auto& n) { return n.fields.mantissa; }},
    {"value", "value", 24, [](auto& n) { return to_shortest(n.is.format, n.is.code); },
     [](auto& n) { return value_text(n.is.format, n.is.code); }},
    {"number", "", 0, [](auto& n) { return finite_value(n.is.format, n.is.code); }},
    {"error", "error", 11, [](auto& n) { return n.error(); },
     [](auto& n) { return error_text(n); }},
    {"outcome", "", 0, [](auto& n) { return n.outcome(); }},
    {"round", "rounding", 0, [](auto& n) { return modes_json(n.is); },
     [](auto& n) { return modes_text(n.is); }},
};

/// The bits below each other: exponents end in one column, mantissas begin in one column.
std::string bits_text(const std::vector<rounded_number>& numbers, const terminal& term) {
  std::size_t exponent_bits = 8;
  for (const rounded_number& n : numbers) {
    exponent_bits = std::max(exponent_bits, n.fields.exponent.size());
  }
  const auto row = [&](std::string_view format, const code_fields& fields) {
    return without_end_blanks(cat(left(format, 10), right(fields.sign, 4), " ",
                                  right(fields.exponent, exponent_bits), " ", fields.mantissa));
  };
  std::string text =
      term.painted(paint::heading, row("format", {"sign", "exponent", "mantissa"})) + "\n";
  for (const rounded_number& n : numbers) text += row(name(n.is.format), n.fields) + "\n";
  return text;
}

void show_in_several(const std::string& format, const std::string& value,
                     const std::vector<std::string>& rounding_modes, const session& s) {
  const auto names = split(format, ',');
  const std::vector<format_id> formats =
      format == "all" ? all_formats()
                      : format_list_argument("FORMAT", {names.begin(), names.end()});
  const std::vector<rounding> modes = modes_of(rounding_modes);
  refuse_value_if(!parse(format_id::fp64, value).ok || code_argument(format_id::fp64, value),
                  "VALUE", value, "is not a number; a code needs one format and no --rounding");
  std::vector<rounded_number> numbers;
  for (const rounded_code& code : round_by_all(value, formats, modes)) {
    numbers.push_back({code, value});
  }
  std::string heading = table_heading(rounded_columns);
  heading.pop_back();  // the line break is not painted
  s.write(
      {{"input", value}, {"results", table_json(rounded_columns, numbers, true)}},
      cat(s.term.painted(paint::heading, escape(value)), "\n", bits_text(numbers, s.term), "\n",
          s.term.painted(paint::heading, heading), "\n", table_lines(rounded_columns, numbers)));
}

run_function show_command(option_list& add) {
  auto& format = add.required("FORMAT", "Name of the format, names with commas, or all");
  auto& value = add.required("VALUE|0xCODE", "A number, or a code in hexadecimal");
  auto& modes = add.list("--rounding", "Rounding modes, separated by commas, or all");
  return [&](const session& s) {
    const bool several = !modes.empty() || format == "all" || format.find(',') != format.npos;
    if (several) return show_in_several(format, value, modes, s);
    const shown_code shown = code_to_show(format, value);
    s.write(json_of(shown), text_of(shown, s.term));
  };
}

// --- cast --------------------------------------------------------------------------------------

/// One value rounded to one format.
struct cast_result {
  format_id format;
  converted is;
  outcome what;
  const terminal& term;
};

std::string painted_outcome(const cast_result& r) {
  const bool caution = r.what == outcome::rounded || r.what == outcome::subnormal;
  const paint color = r.what == outcome::exact ? paint::good
                      : caution                ? paint::caution
                                               : paint::bad;
  const bool exact_subnormal = r.what == outcome::subnormal && !r.is.inexact;
  return cat(r.term.painted(color, name(r.what)), exact_subnormal ? ", exact" : "");
}

constexpr column<cast_result> cast_columns[] = {
    {"format", "format", 10, [](auto& r) { return name(r.format); }},
    {"code", "code", 20, [](auto& r) { return code_text(r.format, r.is.code); }},
    {"value", "value", 26, [](auto& r) { return to_shortest(r.format, r.is.code); },
     [](auto& r) { return value_text(r.format, r.is.code); }},
    {"number", "", 0, [](auto& r) { return finite_value(r.format, r.is.code); }},
    {"inexact", "", 0, [](auto& r) { return r.is.inexact; }},
    {"outcome", "what happened", 0, [](auto& r) { return name(r.what); },
     [](auto& r) { return painted_outcome(r); }},
};

[[noreturn]] void refuse_text(const std::string& text, std::size_t offset) {
  const bool is_name = find_format(text).has_value();
  refuse_value("VALUE", text, "is not a number, from byte ", offset, " on",
               is_name ? "; formats stand behind --to" : "");
}

/// Casts a number, or a code of `from`.
cast_result cast_value(const std::string& text, std::optional<format_id> from, format_id to,
                       const cast_rule& rule, random_bits random, const terminal& term) {
  if (from) {
    const auto code = code_argument(*from, text);
    if (!code) refuse_value("VALUE", text, "is not a 0xCODE, which --from asks for");
    const converted result = convert_code(*from, to, *code, rule, random);
    return {to, result, outcome_of(classify(*from, *code), to, result), term};
  }
  const parse_result parsed = parse(to, text, rule, random);
  if (!parsed.ok) refuse_text(text, parsed.error_offset);
  const converted result = {parsed.code, parsed.inexact, parsed.overflow};
  return {to, result, outcome_of(class_of_text(text), to, result), term};
}

run_function cast_command(option_list& add) {
  auto& values = add.one_or_more("VALUE", "Numbers, or codes with --from");
  auto& to = add.list("--to", "Formats, separated by commas (default: all)");
  auto& from =
      add.optional_value("--from", format_argument, "VALUEs are codes (0x...) of this format");
  auto& rule = add_rounding_rule(add);
  return [&](const session& s) {
    // In `cast 1.5 --to fp16 e4m3` the parser leaves e4m3 among the values. Format names among the
    // values belong to --to.
    const bool given = !to.empty();
    const auto is_name = [&](const std::string& value) {
      return given && find_format(value).has_value();
    };
    std::ranges::copy_if(values, std::back_inserter(to), is_name);
    std::erase_if(values, is_name);
    if (values.empty()) throw usage_error("VALUE is required");
    const std::vector<format_id> formats = given ? format_list_argument("--to", to) : all_formats();
    std::string text;
    json_array casts;
    std::uint64_t offset = rule.random.offset;  // of the random stream
    for (const std::string& value : values) {
      const random_stream& stream = rule.random;
      const random_bits random{random_word(stream.seed, stream.stream, offset++, stream.bits),
                               stream.bits};
      std::vector<cast_result> results;
      for (const format_id each : formats) {
        results.push_back(cast_value(value, from, each, {rule.rounding, rule.overflow, rule.nan},
                                     random, s.term));
      }
      json_object one = {{"input", value}};
      if (from) one.add("from", name(*from));
      casts.add(one.add("results", table_json(cast_columns, results, true)));
      text += cat(text.empty() ? "" : "\n",
                  s.term.painted(paint::heading, from ? cat(*from, " ") : "", escape(value)), "\n",
                  table_heading(cast_columns), table_lines(cast_columns, results));
    }
    s.write({{"round", name(rule.rounding)},
             {"overflow", name(rule.overflow)},
             {"nan", name(rule.nan)},
             {"casts", casts}},
            text);
  };
}

const registered show_here("show", "Show one value of a format, or a number in several formats", 20,
                           show_command);
const registered cast_here("cast", "Round numbers into formats", 30, cast_command);

}  // namespace
}  // namespace fpinspect
