// `fpinspect advise`: precision by GPU, task and aim, and a precision map.
#include "fpinspect/advice/advice.hpp"
#include "fpinspect/cli/command.hpp"
#include "fpinspect/cli/files.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {
namespace {

/// The generation with this name, capability or GPU, in lower case; or nothing.
const gpu_names* find_gpu(std::string_view text) {
  for (const gpu_names& gpu : known_gpus()) {
    const bool other = std::ranges::find(gpu.others, text) != gpu.others.end();
    if (!text.empty() && (text == gpu.name || text == gpu.capability || other)) return &gpu;
  }
  return nullptr;
}

const gpu_names* gpu_argument(std::string_view option, std::string_view text) {
  const std::string name = lower(text);
  if (const gpu_names* const gpu = find_gpu(name)) return gpu;
  std::string_view model = name;  // "4090" of "RTX 4090" and "geforce rtx4090"
  for (const std::string_view brand : {"nvidia", "geforce", "rtx"}) {
    if (model.starts_with(brand)) model.remove_prefix(brand.size());
    model.remove_prefix(std::min(model.find_first_not_of(" -_"), model.size()));
  }
  if (const gpu_names* const gpu = find_gpu(model)) return gpu;
  std::vector<std::string_view> names;
  for (const gpu_names& gpu : known_gpus()) {
    names.push_back(gpu.name);
    for (const std::string_view other : gpu.others) {
      if (!other.empty()) names.push_back(other);
    }
  }
  refuse_name(option, text, cat(joined(names), ", nor a compute capability such as 9.0"));
}

struct advise_task {
  advice_question question;
  const gpu_names* gpu;
  const precision_choice* choice;
  std::vector<advice_row> rows;  ///< the first one is the choice
  precision_map map;
};

double bytes_of_scheme(std::string_view scheme) {
  for (const memory_scheme& known : memory_schemes()) {
    if (known.name == scheme) return bytes_of(known);
  }
  return 0;
}

std::string question_text(const advise_task& task) {
  const advice_question& question = task.question;
  return cat(
      task.gpu->name, ", ", samebits::name(question.task), ", aim ", samebits::name(question.aim),
      question.parameters > 0 ? cat(", ", shortest(question.parameters), " parameters") : "");
}

json_object layers_json(const precision_map& map) {
  json_object layers;
  for (const auto& [pattern, precision] : map) layers.add(pattern, precision);
  return layers;
}

json_object json_of(const advise_task& task) {
  const bool sized = task.question.parameters > 0;
  const precision_choice& choice = *task.choice;
  const auto row = [](const advice_row& each) {
    return json_line({{"topic", each.topic}, {"advice", each.advice}, {"source", each.source}});
  };
  return {{"gpu", task.gpu->name},
          {"task", samebits::name(task.question.task)},
          {"aim", samebits::name(task.question.aim)},
          {"parameters", sized ? std::optional(task.question.parameters) : std::nullopt},
          {"format", choice.format},
          {"recipe", choice.recipe.empty() ? std::nullopt : std::optional(choice.recipe)},
          {"memory_scheme", choice.scheme},
          {"bytes_per_parameter", bytes_of_scheme(choice.scheme)},
          {"advice", json_rows(task.rows, row)},
          {"layers", layers_json(task.map)}};
}

std::string text_of(const advise_task& task, const terminal& term) {
  const std::string indent(12, ' ');
  const auto width = static_cast<std::size_t>(term.width());
  std::string text = term.painted(paint::heading, question_text(task)) + "\n\n";
  for (const advice_row& each : task.rows) {
    const std::string source = wrapped(cat(indent, "source: ", each.source), indent, width);
    text += cat(wrapped(cat(left(each.topic, indent.size()), each.advice), indent, width), "\n",
                indent, term.painted(paint::faint, source.substr(indent.size())), "\n");
  }
  if (task.question.task == advice_task::training) {
    const double bytes = bytes_of_scheme(task.choice->scheme);
    const double all = bytes * task.question.parameters / 1e9;
    text += cat("\n", general(bytes, 5), " bytes a parameter",
                all > 0 ? cat(", ", general(all, 4), " GB in all") : "",
                " without activations (fpinspect memory ", task.choice->scheme, ")\n");
  }
  text += "\nlayers of samebits.torch.convert_linears, the first pattern that matches:\n";
  for (const auto& [pattern, precision] : task.map) {
    text += cat("  ", left(samebits::tensor_file::escape(pattern), 14), " ", precision, "\n");
  }
  return text;
}

class advise_command final : public command {
 public:
  void options(option_list& add) override {
    add.required("--gpu", gpu_, gpu_argument,
                 "Generation (hopper), GPU (h100), compute capability (9.0) or other");
    add_enumerator(add, "--task", question_.task, "training");
    add_enumerator(add, "--aim", question_.aim, "stable");
    add.value("--parameters", question_.parameters, count_argument,
              "Number of parameters, such as 7e9");
    add.list("--keep", keep_, "Patterns of layers that stay unquantized");
    add.text("--map", map_, "Precision map to write: FILE.json, or -");
    add.refuse_json_beside("--map", map_);
  }

  void run(const session& s) override {
    question_.gpu = gpu_->generation;
    const precision_choice& choice = choose_precision(question_);
    advise_task task{question_, gpu_, &choice, advice_for(question_, choice),
                     precision_map_of(choice, keep_)};
    task.rows.insert(task.rows.begin(),
                     {choice.when, choice.format, "format", choice.advice, choice.source});
    if (!map_.empty()) {
      // What samebits.torch.load_precision_map reads.
      const json_object file = {{"version", 1},
                                {"comment", cat("fpinspect advise: ", question_text(task))},
                                {"layers", layers_json(task.map)}};
      output_file("--map", map_, {".json"}).write({json_text(file)}, s.out);
    }
    if (map_ == "-") return;
    if (s.json) return s.write_json(json_of(task));
    s.out.write(text_of(task, s.term));
  }

 private:
  const gpu_names* gpu_ = nullptr;
  advice_question question_;
  std::vector<std::string> keep_;
  std::string map_;
};

const registered<advise_command> advise_here("advise",
                                             "Advise a precision for a GPU, a task and an aim",
                                             250);

}  // namespace
}  // namespace fpinspect
