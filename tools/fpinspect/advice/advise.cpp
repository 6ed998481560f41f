// `fpinspect advise`: precision by GPU, task and aim, and a precision map.
#include <iterator>

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
    const bool known =
        std::ranges::any_of(map, [&](const auto& entry) { return entry.first == pattern; });
    if (!known) map.emplace_back(pattern, precision);
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
    const bool other = std::ranges::find(gpu.others, text) != gpu.others.end();
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
      question.gpu.name, ", ", name(question.task), ", aim ", name(question.aim),
      question.parameters > 0 ? cat(", ", shortest(question.parameters), " parameters") : "");
}

json_object layers_json(const precision_map& map) {
  json_object layers;
  for (const auto& [pattern, precision] : map) layers.add(pattern, precision);
  return layers;
}

class advise_command final : public command {
  gpu_row& gpu_ = add.required(
      "--gpu", gpu_argument, "Generation (hopper), GPU (h100), compute capability (9.0) or other");
  advice_task& task_ = add_enumerator<advice_task>(add, "--task", "training");
  advice_aim& aim_ = add_enumerator<advice_aim>(add, "--aim", "stable");
  double& parameters_ =
      add.value("--parameters", count_argument, "Number of parameters, such as 7e9");
  text_list& keep_ = add.list("--keep", "Patterns of layers that stay unquantized");
  std::string& map_file_ = add.text("--map", "Precision map to write: FILE.json, or -");

 public:
  explicit advise_command(option_list& list) : command(list) {
    add.refuse_json_beside("--map", map_file_);
  }

  void run(const session& s) {
    question_ = {gpu_, task_, aim_, parameters_};
    choice_ = choose_precision(question_);
    rows_ = {{{}, "format", choice_.advice, choice_.source}};
    std::ranges::copy_if(advice_rows, std::back_inserter(rows_), [&](const advice_row& row) {
      return applies(row.when, question_, choice_.format);
    });
    map_ = precision_map_of(choice_, keep_);
    if (!map_file_.empty()) {
      // What samebits.torch.load_precision_map reads.
      const json_object file = {{"version", 1},
                                {"comment", cat("fpinspect advise: ", question_text(question_))},
                                {"layers", layers_json(map_)}};
      output_file("--map", map_file_, {".json"}).write({json_text(file)}, s.out);
    }
    if (map_file_ == "-") return;
    s.write(json(), text(s.term));
  }

 private:
  [[nodiscard]] json_object json() const {
    const bool sized = question_.parameters > 0;
    const auto row = [](const advice_row& each) {
      return json_line({{"topic", each.topic}, {"advice", each.advice}, {"source", each.source}});
    };
    return {{"gpu", question_.gpu.name},
            {"task", name(question_.task)},
            {"aim", name(question_.aim)},
            {"parameters", sized ? std::optional(question_.parameters) : std::nullopt},
            {"format", choice_.format},
            {"recipe", choice_.recipe.empty() ? std::nullopt : std::optional(choice_.recipe)},
            {"memory_scheme", choice_.scheme().name},
            {"bytes_per_parameter", bytes_of(choice_.scheme())},
            {"advice", json_rows(rows_, row)},
            {"layers", layers_json(map_)}};
  }

  [[nodiscard]] std::string text(const terminal& term) const {
    const std::string indent(12, ' ');
    const auto width = static_cast<std::size_t>(term.width());
    std::string text = term.painted(paint::heading, question_text(question_)) + "\n\n";
    for (const advice_row& each : rows_) {
      const std::string source = wrapped(cat(indent, "source: ", each.source), indent, width);
      text += cat(wrapped(cat(left(each.topic, indent.size()), each.advice), indent, width), "\n",
                  indent, term.painted(paint::faint, source.substr(indent.size())), "\n");
    }
    if (question_.task == advice_task::training) {
      const double bytes = bytes_of(choice_.scheme());
      const double all = bytes * question_.parameters / 1e9;
      text += cat("\n", general(bytes, 5), " bytes a parameter",
                  all > 0 ? cat(", ", general(all, 4), " GB in all") : "",
                  " without activations (fpinspect memory ", choice_.scheme().name, ")\n");
    }
    text += "\nlayers of samebits.torch.convert_linears, the first pattern that matches:\n";
    for (const auto& [pattern, precision] : map_) {
      text += cat("  ", left(escape(pattern), 14), " ", precision, "\n");
    }
    return text;
  }

  advice_question question_;
  precision_choice choice_;
  std::vector<advice_row> rows_;  ///< the first one is the choice
  precision_map map_;
};

const registered advise_here("advise", "Advise a precision for a GPU, a task and an aim", 250,
                             run_of<advise_command>);

}  // namespace
}  // namespace fpinspect
