// `fpinspect advise`: precision by GPU, task and aim, and a precision map.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "fpinspect/advice/advice.hpp"
#include "fpinspect/advice/memory_schemes.hpp"
#include "fpinspect/cli/commands.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/files.hpp"
#include "fpinspect/cli/named_argument.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/explore/number_argument.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/output/terminal.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {
namespace {

using samebits::tensor_file::quote;

const gpu_names& gpu_argument(const std::string& text) {
  std::string lower = text;
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (const gpu_names* const gpu = find_gpu(lower)) return *gpu;
  std::string_view model = lower;  // "4090" of "RTX 4090" and "geforce rtx4090"
  for (const std::string_view brand : {"nvidia", "geforce", "rtx"}) {
    if (model.starts_with(brand)) model.remove_prefix(brand.size());
    while (model.starts_with(' ') || model.starts_with('-') || model.starts_with('_')) {
      model.remove_prefix(1);
    }
  }
  if (const gpu_names* const gpu = find_gpu(model)) return *gpu;
  std::string names;
  for (const gpu_names& gpu : known_gpus()) {
    names += cat(names.empty() ? "" : ", ", gpu.name);
    for (const std::string_view other : gpu.others) names += other.empty() ? "" : cat(", ", other);
  }
  throw usage_error(cat("--gpu: ", quote(text), " is not one of ", names,
                        ", nor a compute capability such as 9.0"));
}

struct advise_task {
  advice_question question;
  const gpu_names* gpu;
  const precision_choice* choice;
  std::vector<advice_row> rows;
  precision_map map;
};

constexpr advice_task tasks[] = {advice_task::training, advice_task::inference};
constexpr advice_aim aims[] = {advice_aim::stable, advice_aim::fast, advice_aim::small};

advise_task task_of(const advise_arguments& arguments) {
  advise_task task{};
  task.gpu = &gpu_argument(arguments.gpu);
  task.question.gpu = task.gpu->generation;
  task.question.task = value_argument<advice_task>("--task", arguments.task, tasks);
  task.question.aim = value_argument<advice_aim>("--aim", arguments.aim, aims);
  if (!arguments.parameters.empty()) {
    task.question.parameters = count_argument("--parameters", arguments.parameters);
    if (!(task.question.parameters > 0)) {
      throw usage_error(cat("--parameters: ", quote(arguments.parameters), " is not above 0"));
    }
  }
  task.choice = &choose_precision(task.question);
  task.rows = advice_for(task.question, *task.choice);
  task.map = precision_map_of(*task.choice, arguments.keep);
  return task;
}

double bytes_of_scheme(std::string_view scheme) {
  for (const memory_scheme& known : memory_schemes()) {
    if (known.name == scheme) return bytes_of(known);
  }
  return 0;
}

std::string question_text(const advise_task& task) {
  const advice_question& question = task.question;
  return cat(
      task.gpu->name, ", ", name(question.task), ", aim ", name(question.aim),
      question.parameters > 0 ? cat(", ", shortest(question.parameters), " parameters") : "");
}

void write_advise_json(const advise_task& task, output& out) {
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.member("gpu", task.gpu->name);
  json.member("task", name(task.question.task));
  json.member("aim", name(task.question.aim));
  const bool sized = task.question.parameters > 0;
  json.member("parameters", sized ? std::optional(task.question.parameters) : std::nullopt);
  json.member("format", task.choice->format);
  json.member("recipe",
              task.choice->recipe.empty() ? std::nullopt : std::optional(task.choice->recipe));
  json.member("memory_scheme", task.choice->scheme);
  json.member("bytes_per_parameter", bytes_of_scheme(task.choice->scheme));
  json.key("advice");
  json.begin_array();
  const auto row = [&](std::string_view topic, std::string_view advice, std::string_view source) {
    json.begin_object(json_writer::layout::one_line);
    json.member("topic", topic);
    json.member("advice", advice);
    json.member("source", source);
    json.end_object();
  };
  row("format", task.choice->advice, task.choice->source);
  for (const advice_row& each : task.rows) row(each.topic, each.advice, each.source);
  json.end_array();
  json.key("layers");
  json.begin_object();
  for (const auto& [pattern, precision] : task.map) json.member(pattern, precision);
  json.end_object();
  json.end_object();
  out.write(json.document());
}

/// A text in lines of at most `width` characters, indented from the second line on.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
  std::string lines;
  std::size_t column = indent;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    const std::string_view word = text.substr(start, end - start);
    if (start > 0 && column + 1 + word.size() > width) {
      lines += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (start > 0) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word.size();
    start = end + 1;
  }
  return lines;
}

void write_advise_text(const advise_task& task, const terminal& term, output& out) {
  constexpr std::size_t indent = 12;
  const auto width = static_cast<std::size_t>(term.width());
  const auto row = [&](std::string_view topic, std::string_view advice, std::string_view source) {
    out.write(
        cat(left(topic, indent), wrapped(advice, indent, width), "\n", std::string(indent, ' '),
            term.painted(paint::faint, wrapped(cat("source: ", source), indent, width)), "\n"));
  };
  out.write(term.painted(paint::heading, question_text(task)) + "\n\n");
  row("format", task.choice->advice, task.choice->source);
  for (const advice_row& each : task.rows) row(each.topic, each.advice, each.source);
  if (task.question.task == advice_task::training) {
    const double bytes = bytes_of_scheme(task.choice->scheme);
    out.write(cat("\n", general(bytes, 5), " bytes a parameter",
                  task.question.parameters > 0
                      ? cat(", ", general(bytes * task.question.parameters / 1e9, 4), " GB in all")
                      : "",
                  " without activations (fpinspect memory ", task.choice->scheme, ")\n"));
  }
  out.write("\nlayers of samebits.torch.convert_linears, the first pattern that matches:\n");
  for (const auto& [pattern, precision] : task.map) {
    out.write(cat("  ", left(samebits::tensor_file::escape(pattern), 14), " ", precision, "\n"));
  }
}

}  // namespace

void run_advise(const advise_arguments& arguments, output& out) {
  const terminal term(arguments.view);
  const advise_task task = task_of(arguments);
  const std::string comment = cat("fpinspect advise: ", question_text(task));
  const std::string map = precision_map_text(task.map, comment);
  if (!arguments.map.empty()) output_file("--map", arguments.map, {".json"}).write({map}, out);
  if (arguments.map == "-") return;
  if (arguments.view.json) {
    write_advise_json(task, out);
  } else {
    write_advise_text(task, term, out);
  }
}

}  // namespace fpinspect
