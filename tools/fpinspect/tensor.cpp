// `fpinspect tensor`: what low-precision formats would do to the tensors of a file.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "fpinspect/arguments.hpp"
#include "fpinspect/commands.hpp"
#include "fpinspect/describe.hpp"
#include "fpinspect/error.hpp"
#include "fpinspect/histogram.hpp"
#include "fpinspect/json_writer.hpp"
#include "fpinspect/tensor_recipes.hpp"
#include "fpinspect/tensor_stats.hpp"
#include "fpinspect/terminal.hpp"
#include "fpinspect/text.hpp"
#include "samebits/format.hpp"
#include "samebits/scalar.hpp"
#include "tensor_file/escape.hpp"
#include "tensor_file/tensor.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;
using samebits::tensor_file::tensor_info;
using reader = samebits::tensor_file::tensor_file;

/// A target format of these figures has a sign and a zero, and something to lose against fp64.
bool is_judged(format_id format) { return format != format_id::fp64 && format != format_id::e8m0; }

std::vector<format_id> formats_to_judge(const tensor_arguments& arguments) {
  std::vector<format_id> formats = format_list_argument("--to", arguments.to);
  for (const format_id format : formats) {
    if (is_judged(format)) continue;
    throw usage_error("--to: " + std::string(samebits::name(format)) +
                      " is not a format to judge a tensor by");
  }
  if (!formats.empty()) return formats;
  if (!arguments.view.json && !arguments.all_formats) {
    return {format_id::fp16, format_id::bf16, format_id::e4m3, format_id::e5m2};
  }
  for (int i = 0; i < samebits::format_count; ++i) {
    if (is_judged(samebits::format_at(i))) formats.push_back(samebits::format_at(i));
  }
  return formats;
}

std::vector<tensor_info> tensors_to_show(const reader& file, const tensor_arguments& arguments) {
  if (arguments.tensors.empty()) return file.tensors();
  std::vector<tensor_info> chosen;
  for (const std::string& name : arguments.tensors) chosen.push_back(file.find(name));
  return chosen;
}

bool is_floating(const tensor_info& info) {
  return samebits::tensor_file::format_of(info.type).has_value();
}

constexpr const char* not_floating = "elements are not floating point";

// --- JSON ------------------------------------------------------------------------------------

/// The value and, since it is exact in the elements' format, its code there.
void magnitude(json_writer& json, const std::string& name, const tensor_info& info,
               const std::optional<double>& value) {
  json.member(name, value);
  std::optional<std::string> code;
  if (value) {
    const format_id format = samebits::tensor_file::format_of(info.type).value();
    code = code_text(
        format,
        samebits::convert_code(format_id::fp64, format, std::bit_cast<std::uint64_t>(*value)).code);
  }
  json.member(name + "_code", code);
}

void figures(json_writer& json, const tensor_info& info, const tensor_stats& stats) {
  json.member("zeros", stats.zeros);
  json.member("nan", stats.nan);
  json.member("inf", stats.inf);
  magnitude(json, "amax", info, stats.amax);
  magnitude(json, "min_nonzero", info, stats.min_nonzero);
  json.key("formats");
  json.begin_object();
  for (const format_effect& effect : stats.formats) {
    json.key(samebits::name(effect.format));
    json.begin_object(json_writer::layout::one_line);
    json.member("underflow", effect.underflow);
    json.member("subnormal", effect.subnormal);
    json.member("overflow", effect.overflow);
    json.member("sqnr_db", sqnr_db(effect.signal, effect.noise));
    json.member("signal", effect.signal);
    json.member("noise", effect.noise);
    json.end_object();
  }
  json.end_object();
  json.member("fp16_loss_scale_log2", fp16_loss_scale_log2(stats));
  json.key("exponents");
  json.begin_object(json_writer::layout::one_line);
  for (const auto& [exponent, count] : stats.exponents) {
    json.member(std::to_string(exponent), count);
  }
  json.end_object();
}

void no_figures(json_writer& json) {
  for (const char* name : {"zeros", "nan", "inf", "amax", "min_nonzero"}) {
    json.member(name, std::nullopt);
  }
  json.key("formats");
  json.begin_object();
  json.end_object();
  json.member("fp16_loss_scale_log2", std::nullopt);
  json.member("note", not_floating);
}

void write_json(const reader& file, const std::vector<tensor_info>& tensors,
                tensor_analyser& analyser, output& out) {
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.key("tensors");
  json.begin_array();
  for (const tensor_info& info : tensors) {
    json.begin_object();
    json.member("name", info.name);
    json.member("dtype", samebits::tensor_file::name(info.type));
    json.member("shape", std::span<const std::uint64_t>(info.shape));
    json.member("count", info.count);
    if (is_floating(info)) {
      figures(json, info, analyser.analyse(file, info));
    } else {
      no_figures(json);
    }
    json.end_object();
  }
  json.end_array();
  json.end_object();
  out.write(json.document());
}

// --- terminal --------------------------------------------------------------------------------

/// A share in per cent that says 0 and 100 only where it is exactly that.
std::string percent(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  if (part == 0) return "0 %";
  if (part == whole) return "100 %";
  const double share = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  if (share < 0.01) return "< 0.01 %";
  if (share > 99.99) return "> 99.99 %";
  return cat(fixed(share, 2), " %");
}

std::string sqnr_text(const format_effect& effect, const tensor_stats& stats) {
  if (stats.nonzero() == 0) return "-";
  if (const auto db = sqnr_db(effect.signal, effect.noise)) return cat(fixed(*db, 1), " dB");
  return effect.noise == 0.0 ? "exact" : "-";
}

std::string effect_row(std::string_view format, std::string_view underflow,
                       std::string_view subnormal, std::string_view overflow,
                       std::string_view sqnr) {
  return cat("  ", left(format, 8), "  ", underflow, "  ", subnormal, "  ", overflow, "  ", sqnr,
             "\n");
}

void write_effects(const tensor_stats& stats, const terminal& term, output& out) {
  const auto cell = [](std::string_view text) { return right(text, 10); };
  out.write(term.painted(paint::heading, effect_row("to", cell("underflow"), cell("subnormal"),
                                                    cell("overflow"), cell("SQNR"))));
  const auto share = [&](std::uint64_t part, paint color) {
    const std::string text = cell(percent(part, stats.nonzero()));
    return part == 0 ? text : term.painted(color, text);
  };
  for (const format_effect& effect : stats.formats) {
    out.write(effect_row(samebits::name(effect.format), share(effect.underflow, paint::bad),
                         share(effect.subnormal, paint::caution),
                         share(effect.overflow, paint::bad), cell(sqnr_text(effect, stats))));
  }
}

std::string magnitude_text(const std::optional<double>& value) {
  return value ? general(*value, 6) : "-";
}

void write_heading(const tensor_info& info, const std::string& shown_name, const terminal& term,
                   output& out) {
  out.write(cat(term.painted(paint::heading, shown_name), "  ",
                samebits::tensor_file::name(info.type), " [", comma_separated(info.shape), "]  ",
                info.count, " elements\n"));
}

void write_figures(const tensor_stats& stats, std::span<const format_id> formats,
                   const terminal& term, output& out) {
  const auto scale = fp16_loss_scale_log2(stats);
  const auto count = [&](const char* what, std::uint64_t number, paint color) {
    const std::string text = cat(what, " ", number);
    return number == 0 ? text : term.painted(color, text);
  };
  out.write(cat("  amax ", magnitude_text(stats.amax), "   smallest non-zero ",
                magnitude_text(stats.min_nonzero), "   fp16 loss scale ",
                scale ? power_text(*scale) : "-", "\n"));
  out.write(cat("  zeros ", stats.zeros, " (", percent(stats.zeros, stats.count), ")   ",
                count("NaN", stats.nan, paint::bad), "   ", count("Inf", stats.inf, paint::bad),
                "\n"));
  write_effects(stats, term, out);
  out.write(histogram(stats.exponents, formats, term));
}

void write_text(const reader& file, const std::vector<tensor_info>& tensors,
                const tensor_arguments& arguments, std::span<const format_id> formats,
                tensor_analyser& analyser, const terminal& term, output& out) {
  for (const tensor_info& info : tensors) {
    const std::string name = info.name.empty() ? samebits::tensor_file::escape_path(arguments.file)
                                               : samebits::tensor_file::escape(info.name, 256);
    write_heading(info, name, term, out);
    if (is_floating(info)) {
      write_figures(analyser.analyse(file, info), formats, term, out);
    } else {
      out.write(cat("  ", not_floating, "\n"));
    }
    out.write("\n");
    out.flush();
  }
  if (tensors.empty()) {
    out.write("no tensors\n");
    return;
  }
  out.write(
      "shares: of the finite non-zero elements, rounded to nearest even\n"
      "chart: elements by power of two, its label the share of the fullest column\n");
  out.write(histogram_legend(term));
}

}  // namespace

void run_tensor(const tensor_arguments& arguments, output& out) {
  const terminal term(arguments.view);
  const std::vector<format_id> formats = formats_to_judge(arguments);
  samebits::executor where = backend_argument("");
  where.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const reader file = reader::open(arguments.file);
  const std::vector<tensor_info> tensors = tensors_to_show(file, arguments);
  if (arguments.recipes) {
    if (arguments.view.json) return write_tensor_recipes_json(file, tensors, where, out);
    return write_tensor_recipes(file, tensors, arguments.file, where, term, out);
  }
  tensor_analyser analyser(formats, where);
  if (arguments.view.json) {
    write_json(file, tensors, analyser, out);
  } else {
    write_text(file, tensors, arguments, formats, analyser, term, out);
  }
}

}  // namespace fpinspect
