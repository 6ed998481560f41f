// `fpinspect advise`: precision by GPU, task and aim, and a precision map.

#include "fpinspect/advice/guides.hpp"
#include "fpinspect/cli/files.hpp"
#include "fpinspect/verdict/roles.hpp"

namespace fpinspect {
namespace {

/// Patterns of layer names with the precision of each, in the order in which they are tried.
using precision_map = std::vector<std::pair<std::string, std::string>>;

/// The map for samebits.torch.convert_linears.
/// @param keep  patterns of layers that stay unquantized besides the usual ones
precision_map precision_map_of(const precision_choice& choice, std::span<const std::string> keep) {
  precision_map map;
  const auto add = [&](std::string_view pattern, std::string_view precision) {
    if (!contains(map, pattern, &precision_map::value_type::first)) {
      map.emplace_back(pattern, precision);
    }
  };
  const bool quantized = !choice.recipe.empty();
  for (const std::string& pattern : keep) add(pattern, quantized ? "bf16" : choice.format);
  for (const std::string_view pattern : unquantized_layers) {
    if (quantized) add(pattern, "bf16");
  }
  add("*", quantized ? choice.recipe : choice.format);
  return map;
}

/// The generation with this name, capability or GPU, in lower case; or nothing.
const gpu_row* find_gpu(std::string_view text) {
  for (const gpu_row& gpu : gpus) {
    const bool other = contains(gpu.others, text);
    if (!text.empty() && (text == gpu.name || text == gpu.capability || other)) return &gpu;
  }
  return nullptr;
}

gpu_row gpu_argument(std::string_view option, std::string_view text) {
  const std::string name = lower(text);
  if (const gpu_row* const gpu = find_gpu(name)) return *gpu;
  std::string_view model = name;  // "4090" of "RTX 4090" and "geforce rtx4090"
  for (const std::string_view brand : {"nvidia", "geforce", "rtx"}) {
    if (model.starts_with(brand)) model.remove_prefix(brand.size());
    model.remove_prefix(std::min(model.find_first_not_of(" -_"), model.size()));
  }
  if (const gpu_row* const gpu = find_gpu(model)) return *gpu;
  std::vector<std::string_view> names;
  for (const gpu_row& gpu : gpus) {
    names.push_back(gpu.name);
    std::ranges::copy_if(gpu.others, std::back_inserter(names),
                         [](std::string_view other) { return !other.empty(); });
  }
  refuse_name(option, text, cat(joined(names), ", nor a compute capability such as 9.0"));
}

std::string question_text(const advice_question& question) {
  return cat(
      question.gpu.name, ", ", question.task, ", aim ", question.aim,
      question.parameters > 0 ? cat(", ", shortest(question.parameters), " parameters") : "");
}

json_object layers_json(const precision_map& map) {
  json_object layers;
  for (const auto& [pattern, precision] : map) layers.add(pattern, precision);
  return layers;
}

struct advice {
  advice_question question;
  precision_choice choice;
  std::vector<advice_row> rows;  ///< the first one is the choice
  precision_map map;
};

json_object json_of(const advice& a) {
  const bool sized = a.question.parameters > 0;
  const auto row = [](const advice_row& each) {
    return json_line({{"topic", each.topic}, {"advice", each.advice}, {"source", each.source}});
  };
  return {{"gpu", a.question.gpu.name},
          {"task", name(a.question.task)},
          {"aim", name(a.question.aim)},
          {"parameters", sized ? std::optional(a.question.parameters) : std::nullopt},
          {"format", a.choice.format},
          {"recipe", a.choice.recipe.empty() ? std::nullopt : std::optional(a.choice.recipe)},
          {"memory_scheme", a.choice.scheme().name},
          {"bytes_per_parameter", bytes_of(a.choice.scheme())},
          {"advice", json_rows(a.rows, row)},
          {"layers", layers_json(a.map)}};
}

std::string text_of(const advice& a, const terminal& term) {
  const std::string indent(12, ' ');
  const auto width = static_cast<std::size_t>(term.width());
  std::string text = term.painted(paint::heading, question_text(a.question)) + "\n\n";
  for (const advice_row& each : a.rows) {
    const std::string source = wrapped(cat(indent, "source: ", each.source), indent, width);
    text += cat(wrapped(cat(left(each.topic, indent.size()), each.advice), indent, width), "\n",
                indent, term.painted(paint::faint, source.substr(indent.size())), "\n");
  }
  if (a.question.task == advice_task::training) {
    const double bytes = bytes_of(a.choice.scheme());
    const double all = bytes * a.question.parameters / 1e9;
    text += cat("\n", general(bytes, 5), " bytes a parameter",
                all > 0 ? cat(", ", general(all, 4), " GB in all") : "",
                " without activations (fpinspect memory ", a.choice.scheme().name, ")\n");
  }
  text += "\nlayers of samebits.torch.convert_linears, the first pattern that matches:\n";
  for (const auto& [pattern, precision] : a.map) {
    text += cat("  ", left(escape(pattern), 14), " ", precision, "\n");
  }
  return text;
}

run_function advise_command(option_list& add) {
  auto& gpu = add.required("--gpu", gpu_argument,
                           "Generation (hopper), GPU (h100), compute capability (9.0) or other");
  auto& task = add_enumerator<advice_task>(add, "--task", "training");
  auto& aim = add_enumerator<advice_aim>(add, "--aim", "stable");
  auto& parameters = add.value("--parameters", count_argument, "Number of parameters, such as 7e9");
  auto& keep = add.list("--keep", "Patterns of layers that stay unquantized");
  auto& map_file = add.text("--map", "Precision map to write: FILE.json, or -");
  add.refuse_json_beside("--map", map_file);
  return [&](const session& s) {
    const advice_question question = {gpu, task, aim, parameters};
    const precision_choice choice = choose_precision(question);
    advice a = {question,
                choice,
                {{{}, "format", choice.advice, choice.source}},
                precision_map_of(choice, keep)};
    std::ranges::copy_if(advice_rows, std::back_inserter(a.rows), [&](const advice_row& row) {
      return applies(row.when, question, choice.format);
    });
    if (!map_file.empty()) {
      // What samebits.torch.load_precision_map reads.
      const json_object file = {{"version", 1},
                                {"comment", cat("fpinspect advise: ", question_text(question))},
                                {"layers", layers_json(a.map)}};
      output_file("--map", map_file, {".json"}).write({json_text(file)}, s.out);
    }
    if (map_file != "-") s.write(json_of(a), text_of(a, s.term));
  };
}

const registered advise_here("advise", "Advise a precision for a GPU, a task and an aim", 250,
                             advise_command);

}  // namespace
}  // namespace fpinspect
