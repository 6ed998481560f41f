// `fpinspect tensor`: shows what low-precision formats would do to the tensors of a file.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/commands.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text.hpp"
#include "fpinspect/formats/describe.hpp"
#include "fpinspect/output/histogram.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/output/terminal.hpp"
#include "fpinspect/quantize/sqnr.hpp"
#include "fpinspect/tensors/source.hpp"
#include "fpinspect/tensors/tensor_recipes.hpp"
#include "fpinspect/tensors/tensor_stats.hpp"
#include "samebits/core/format.hpp"
#include "samebits/scalar.hpp"
#include "tensor_file/escape.hpp"
#include "tensor_file/tensor.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;
using samebits::tensor_file::tensor_info;
using reader = samebits::tensor_file::tensor_file;

/// Whether statistics for a target format are meaningful: it needs a sign and a zero, and must be
/// narrower than fp64.
bool has_statistics(format_id format) {
  return format != format_id::fp64 && format != format_id::e8m0;
}

std::vector<format_id> target_formats(const tensor_arguments& arguments) {
  std::vector<format_id> formats = format_list_argument("--to", arguments.to);
  for (const format_id format : formats) {
    if (has_statistics(format)) continue;
    throw usage_error("--to: " + std::string(samebits::name(format)) +
                      " is not a target format of `tensor`");
  }
  if (!formats.empty()) return formats;
  if (!arguments.view.json && !arguments.all_formats) {
    return {format_id::fp16, format_id::bf16, format_id::e4m3, format_id::e5m2};
  }
  for (int i = 0; i < samebits::format_count; ++i) {
    if (has_statistics(samebits::format_at(i))) formats.push_back(samebits::format_at(i));
  }
  return formats;
}

/// A tensor of the file and the interpretation of its elements; with a note they are not
/// interpreted.
struct shown_tensor {
  tensor_info info;
  std::optional<element_reading> how;
  std::string note;
};

shown_tensor shown(const reader& file, const tensor_info& info, const std::string& from,
                   from_scope scope) {
  shown_tensor tensor = {info, reading_of(info, "--from", from, scope), {}};
  if (!tensor.how) {
    tensor.note = "elements are neither floating point nor integers";
  } else if (tensor.how->integer_values) {
    if (const auto index = find_inexact_integer(file, info)) {
      tensor.how = std::nullopt;
      tensor.note = cat("integer number ", *index, " has more than 53 significant bits");
    }
  }
  return tensor;
}

std::vector<shown_tensor> tensors_to_show(const reader& file, const tensor_location& where,
                                          const tensor_arguments& arguments) {
  std::vector<tensor_info> chosen;
  if (where.tensor) {
    chosen.push_back(file.find(*where.tensor));
  } else if (!arguments.tensors.empty()) {
    for (const std::string& name : arguments.tensors) chosen.push_back(file.find(name));
  } else {
    chosen = file.tensors();
  }
  const from_scope scope = chosen.size() == 1 ? from_scope::one_tensor : from_scope::integers;
  if (!arguments.from.empty() && scope == from_scope::integers &&
      std::none_of(chosen.begin(), chosen.end(), holds_integers)) {
    throw usage_error("--from: none of the tensors holds integers; leave it out");
  }
  std::vector<shown_tensor> all;
  for (const tensor_info& info : chosen) all.push_back(shown(file, info, arguments.from, scope));
  return all;
}

// --- JSON ------------------------------------------------------------------------------------

/// Writes the value and its code in the elements' format, which holds it exactly. Integers have no
/// code.
void magnitude(json_writer& json, const std::string& name, const element_reading& how,
               const std::optional<double>& value) {
  json.member(name, value);
  std::optional<std::string> code;
  if (value && !how.integer_values) {
    code = code_text(how.format, samebits::convert_code(format_id::fp64, how.format,
                                                        std::bit_cast<std::uint64_t>(*value))
                                     .code);
  }
  json.member(name + "_code", code);
}

void effect_members(json_writer& json, const format_effect& effect, const tensor_stats& stats) {
  const sqnr ratio = sqnr_of(effect, stats);
  json.member("underflow", effect.underflow);
  json.member("subnormal", effect.subnormal);
  json.member("overflow", effect.overflow);
  json.member("to_inf", effect.to_inf);
  json.member("to_nan", effect.to_nan);
  json.member("to_max", effect.to_max);
  json.member("changed", effect.changed);
  json.member("sqnr_db", ratio.db);
  json.member("sqnr_note", ratio.note());
  json.member("signal", effect.signal);
  json.member("noise", effect.noise);
  json.member("saturated_sqnr_db", sqnr_db(effect.saturated_signal, effect.saturated_noise));
  json.member("saturated_signal", effect.saturated_signal);
  json.member("saturated_noise", effect.saturated_noise);
}

void write_format_statistics(json_writer& json, const element_reading& how,
                             const tensor_stats& stats) {
  json.member("zeros", stats.zeros);
  json.member("nan", stats.nan);
  json.member("inf", stats.inf);
  magnitude(json, "amax", how, stats.amax);
  magnitude(json, "min_nonzero", how, stats.min_nonzero);
  json.key("formats");
  json.begin_object();
  for (const format_effect& effect : stats.formats) {
    json.key(samebits::name(effect.format));
    json.begin_object(json_writer::layout::one_line);
    effect_members(json, effect, stats);
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

void write_no_statistics(json_writer& json, const std::string& note) {
  for (const char* name : {"zeros", "nan", "inf", "amax", "min_nonzero"}) {
    json.member(name, std::nullopt);
  }
  json.key("formats");
  json.begin_object();
  json.end_object();
  json.member("fp16_loss_scale_log2", std::nullopt);
  json.member("note", note);
}

void write_json(const reader& file, const std::vector<shown_tensor>& tensors,
                tensor_analyser& analyser, output& out) {
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.key("tensors");
  json.begin_array();
  for (const shown_tensor& tensor : tensors) {
    const tensor_info& info = tensor.info;
    json.begin_object();
    json.member("name", info.name);
    json.member("dtype", samebits::tensor_file::name(info.type));
    json.member("from", tensor.how ? std::optional(type_text(info, *tensor.how)) : std::nullopt);
    json.member("shape", std::span<const std::uint64_t>(info.shape));
    json.member("count", info.count);
    if (tensor.how) {
      write_format_statistics(json, *tensor.how, analyser.analyse(file, info, *tensor.how));
    } else {
      write_no_statistics(json, tensor.note);
    }
    json.end_object();
  }
  json.end_array();
  json.end_object();
  out.write(json.document());
}

// --- terminal --------------------------------------------------------------------------------

/// A percentage. Rounds to 0 or 100 only if the share is exactly 0 or 100.
std::string percent(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  if (part == 0) return "0 %";
  if (part == whole) return "100 %";
  const double share = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  if (share < 0.01) return "< 0.01 %";
  if (share > 99.99) return "> 99.99 %";
  return cat(fixed(share, 2), " %");
}

/// The results of destroyed elements: "0, Inf".
std::string lost_text(const format_effect& effect) {
  std::string text;
  const auto add = [&](std::uint64_t count, const char* what) {
    if (count != 0) text += cat(text.empty() ? "" : ", ", what);
  };
  add(effect.underflow, "0");
  add(effect.to_inf, "Inf");
  add(effect.to_nan, "NaN");
  add(effect.to_max, "max");
  return text;
}

/// A cell of 10 characters. The dash may have more than one byte.
std::string sqnr_cell(const std::optional<double>& db, bool exact, const terminal& term) {
  constexpr std::size_t width = 10;
  if (db || exact) return right(sqnr{db, exact, {}}.text(), width);
  return std::string(width - 1, ' ') + (term.characters() == charset::ascii ? "-" : "–");
}

std::string effect_row(std::string_view format, std::string_view underflow,
                       std::string_view subnormal, std::string_view overflow,
                       std::string_view sqnr) {
  return cat("  ", left(format, 8), "  ", underflow, "  ", subnormal, "  ", overflow, "  ", sqnr,
             "\n");
}

void write_effects(const tensor_stats& stats, const terminal& term, output& out) {
  const auto cell = [](std::string_view text) { return right(text, 10); };
  const bool any_lost = std::any_of(stats.formats.begin(), stats.formats.end(),
                                    [](const format_effect& e) { return e.destroyed() != 0; });
  out.write(term.painted(paint::heading,
                         effect_row("to", cell("underflow"), cell("subnormal"), cell("overflow"),
                                    cat(cell("SQNR"), any_lost ? "  saturating  lost to" : ""))));
  const auto share = [&](std::uint64_t part, paint color) {
    const std::string text = cell(percent(part, stats.nonzero()));
    return part == 0 ? text : term.painted(color, text);
  };
  for (const format_effect& effect : stats.formats) {
    const sqnr ratio = sqnr_of(effect, stats);
    std::string shown = sqnr_cell(ratio.db, ratio.exact, term);
    if (effect.destroyed() != 0) {
      const auto saturated = sqnr_db(effect.saturated_signal, effect.saturated_noise);
      shown += cat("  ", sqnr_cell(saturated, false, term), "  ", lost_text(effect));
    }
    out.write(effect_row(samebits::name(effect.format), share(effect.underflow, paint::bad),
                         share(effect.subnormal, paint::caution),
                         share(effect.overflow, paint::bad), shown));
  }
}

std::string magnitude_text(const std::optional<double>& value) {
  return value ? general(*value, 6) : "-";
}

/// "U8 codes of e4m3", "U8 values", "BF16"
std::string elements_text(const shown_tensor& tensor) {
  std::string type(samebits::tensor_file::name(tensor.info.type));
  if (!tensor.how) return type;
  if (tensor.how->integer_values) return type + " values";
  const bool own = samebits::tensor_file::format_of(tensor.info.type).has_value();
  return own ? type : cat(type, " codes of ", samebits::name(tensor.how->format));
}

void write_heading(const shown_tensor& tensor, const std::string& shown_name, const terminal& term,
                   output& out) {
  out.write(cat(term.painted(paint::heading, shown_name), "  ", elements_text(tensor), " [",
                comma_separated(tensor.info.shape), "]  ", tensor.info.count, " elements\n"));
}

void write_statistics(const tensor_stats& stats, std::span<const format_id> formats,
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

void write_text(const reader& file, const std::vector<shown_tensor>& tensors,
                const tensor_location& where, std::span<const format_id> formats,
                tensor_analyser& analyser, const terminal& term, output& out) {
  bool any_lost = false;
  bool any_exact = false;
  for (const shown_tensor& tensor : tensors) {
    const tensor_info& info = tensor.info;
    const std::string name = info.name.empty() ? samebits::tensor_file::escape_path(where.file)
                                               : samebits::tensor_file::escape(info.name, 256);
    write_heading(tensor, name, term, out);
    if (tensor.how) {
      const tensor_stats stats = analyser.analyse(file, info, *tensor.how);
      write_statistics(stats, formats, term, out);
      for (const format_effect& e : stats.formats) {
        any_lost = any_lost || e.destroyed() != 0;
        any_exact = any_exact || sqnr_of(e, stats).exact;
      }
    } else {
      out.write(cat("  ", tensor.note, "\n"));
    }
    out.write("\n");
    out.flush();
  }
  if (tensors.empty()) {
    out.write("no tensors\n");
    return;
  }
  out.write("shares: of the finite non-zero elements, rounded to nearest even\n");
  if (any_exact) out.write("exact: no element changed; NaN that stays NaN is unchanged\n");
  if (any_lost) {
    out.write(
        "lost to: what lost elements became; there is no SQNR then, but that of the\n"
        "conversion that saturates\n");
  }
  out.write("chart: elements by power of two, its label the share of the fullest column\n");
  out.write(histogram_legend(term));
}

}  // namespace

void run_tensor(const tensor_arguments& arguments, output& out) {
  const terminal term(arguments.view);
  const std::vector<format_id> formats = target_formats(arguments);
  samebits::executor executor = backend_argument("");
  executor.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const tensor_location where = locate(arguments.file);
  if (where.tensor && !arguments.tensors.empty()) {
    throw usage_error("--tensor: FILE names a tensor already, behind its #; leave one of them out");
  }
  const reader file = reader::open(where.file);
  const std::vector<shown_tensor> tensors = tensors_to_show(file, where, arguments);
  if (arguments.recipes) {
    std::vector<recipe_source> sources;
    for (const shown_tensor& tensor : tensors) sources.push_back({tensor.info, tensor.how});
    if (arguments.view.json) return write_tensor_recipes_json(file, sources, executor, out);
    return write_tensor_recipes(file, sources, where.file, executor, term, out);
  }
  tensor_analyser analyser(formats, executor);
  if (arguments.view.json) {
    write_json(file, tensors, analyser, out);
  } else {
    write_text(file, tensors, where, formats, analyser, term, out);
  }
}

}  // namespace fpinspect
