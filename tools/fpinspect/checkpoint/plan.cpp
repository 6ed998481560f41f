// What becomes of each tensor of a checkpoint: implementation.
#include "fpinspect/checkpoint/checkpoint.hpp"

#include "fpinspect/cli/files.hpp"
#include "fpinspect/verdict/collect.hpp"
#include "tensor_file/safetensors/model_json.hpp"

namespace fpinspect {
namespace {

using shared_rules = std::shared_ptr<const quantization_rules>;

/// What the layers of a pattern become by a map: rules, or a format, or neither.
struct map_entry {
  std::string pattern;
  shared_rules rules = {};
  std::optional<format_id> format = {};
};

/// A precision map. The first pattern that matches a layer decides.
using precision_map_entries = std::vector<map_entry>;

/// As samebits.torch.linear_recipe: weights get square tiles where activations get 1x128.
quantization_rules rules_of_weights(const std::string& option, const std::string& recipe,
                                    const convert_options& rounding) {
  quantization_rules rules = rules_of(option, *recipe_argument(option, recipe), {}, rounding);
  if (rules.options.tile == tile_shape{1, 128}) rules.options.tile = {128, 128};
  return rules;
}

/// The map in a file; none for an empty path. Layers with equal recipes share their rules.
precision_map_entries read_map(const std::string& path, const convert_options& rounding = {}) {
  if (path.empty()) return {};
  const auto layers = in_context(
      escape_path(path), [&] { return tensor_file::parse_precision_map(read_text_file(path)); });
  precision_map_entries map;
  std::map<std::string_view, shared_rules> known;  // by recipe
  for (const auto& [pattern, precision] : layers) {
    map_entry one = {pattern};
    for (const format_id format : {format_id::bf16, format_id::fp16, format_id::fp32}) {
      if (lower(precision) == name(format)) one.format = format;  // as in Python, bf16 or BF16
    }
    if (!one.format) {
      const auto rules = rules_of_weights(cat("--map: ", quote(pattern)), precision, rounding);
      shared_rules& shared = known[rules.recipe];
      if (shared == nullptr) shared = std::make_shared<quantization_rules>(rules);
      one.rules = shared;
    }
    map.push_back(one);
  }
  return map;
}

/// The entry for a layer; null if no pattern matches.
const map_entry* find(const precision_map_entries& map, const std::string& layer) {
  const auto found = std::ranges::find_if(
      map, [&](const map_entry& one) { return matches_glob(one.pattern, layer); });
  return found == map.end() ? nullptr : &*found;
}

/// Refuses a pattern with a recipe that matches no layer, such as a misspelt one.
void require_matches(const precision_map_entries& map, const std::vector<shown_tensor>& tensors) {
  for (const map_entry& one : map) {
    const bool any = std::ranges::any_of(tensors, [&](const shown_tensor& t) {
      return matches_glob(one.pattern, layer_of(t.plain_name()));
    });
    refuse_if(one.rules != nullptr && !any, "--map: no layer matches ", quote(one.pattern));
  }
}

bool is_float(const shown_tensor& tensor) {
  return tensor.has_numbers() && !tensor.how.integer_values;
}

/// Whether recipes apply to a tensor: a checkpoint may also hold the state of an optimizer.
bool is_weight_matrix(const shown_tensor& tensor, std::span<const role_rule> roles) {
  return is_float(tensor) && is_quantizable(tensor.format()) && tensor.info.shape.size() == 2 &&
         tensor.info.count != 0 && role_of(tensor.plain_name(), roles) == role::weights;
}

bool is_kept(const checkpoint_choices& asked, const std::string& name) {
  return std::ranges::any_of(asked.keep, [&](const std::string& pattern) {
    return matches_glob(pattern, layer_of(name)) || matches_glob(pattern, name);
  });
}

/// The choice of the verdict for each tensor.
/// @param formats_only  the cheapest choice of the role that is no recipe
std::vector<std::optional<choice>> verdict_choices(const checkpoint_choices& asked,
                                                   const std::vector<shown_tensor>& tensors,
                                                   bool formats_only) {
  const std::vector<tensor_evidence> all =
      collect(tensors, names_of(tensors), asked.roles, {}, asked.wanted, all_threads());
  const verdict v = verdict_on(all, asked.wanted);
  std::vector<std::optional<choice>> choices;
  for (const tensor_evidence& tensor : all) {
    choices.push_back(choice_of(v, tensor));
    if (!formats_only || !choices.back() || !is_recipe(*choices.back())) continue;
    const auto role = std::ranges::find(v.roles, tensor.what, &role_verdict::what);
    const auto format = std::ranges::find_if(role->outcomes, [](const choice_outcome& one) {
      return !is_recipe(one.what) && one.failed.empty();
    });
    choices.back().reset();
    if (format != role->outcomes.end() && !stays_as_stored(tensor, format->what)) {
      choices.back() = format->what;
    }
  }
  return choices;
}

void require_layout(layout names, const planned_tensor& tensor) {
  const std::string why = layout_obstacle(names, tensor.name(), tensor.matrix(), *tensor.rules);
  if (why.empty()) return;
  throw usage_error("--layout: ", names, " ", why, ", unlike ", quote(tensor.name()), " (",
                    tensor.rules->text(), "); ",
                    names == layout::plain ? "" : "--layout plain holds it, ",
                    "--keep leaves it as it is");
}

}  // namespace

std::string planned_tensor::outcome() const {
  if (rules != nullptr) return rules->text();
  return to ? std::string(samebits::name(*to)) : "as stored";
}

checkpoint_files::checkpoint_files(option_list& add, const std::string& in_help,
                                   const std::string& out_help)
    : in(add.required("IN", in_help)),
      out(add.text("OUT", out_help)),
      more(add.any_number("FILE", "With -o: further files, an index or a folder")) {}

std::string& checkpoint_files::add_whole(option_list& add,
                                         std::initializer_list<std::string> of_one_tensor) const {
  std::string& whole =
      add.text("-o,--out", "Output for all tensors of FILEs: a folder, or FILE.safetensors");
  add.exclude("-o", of_one_tensor);
  add.refuse([&out = out, &whole] { return out.empty() && whole.empty(); },
             "OUT is required, or -o OUT for all tensors of the files");
  return whole;
}

bool checkpoint_files::is_whole(const std::string& whole) const {
  if (!whole.empty() || more.empty()) return !whole.empty();
  throw usage_error(quote(more.front()),
                    " is one argument too many: a command without -o OUT takes IN, OUT; a "
                    "format stands behind --to");
}

std::vector<std::string> checkpoint_files::all() const {
  std::vector<std::string> files = {in};
  if (!out.empty()) files.push_back(out);
  files.insert(files.end(), more.begin(), more.end());
  return files;
}

checkpoint_choices::checkpoint_choices(option_list& add)
    : map(add.text("--map", "Precision of layers: a file that advise --map writes")),
      by_verdict(add.flag("--by-verdict", "What the verdict of `tensor` chooses for each tensor")),
      keep(add.list("--keep", "Patterns of layers that stay as stored")),
      wanted(add_need(add)),
      roles(add_roles(add)) {
  add.need({"--map", "--by-verdict", "--keep", "--role"}, "-o");
  add.need({"--need"}, "--by-verdict");
  add.exclude("--map", {"--by-verdict"});
}

std::vector<shown_tensor> checkpoint_tensors(const std::vector<std::string>& files) {
  std::vector<shown_tensor> tensors = tensors_to_show({.files = files, .tensors = {}, .from = {}});
  std::set<std::string> names;
  for (const shown_tensor& tensor : tensors) {
    const std::string name = tensor.plain_name();
    refuse_content_if(!tensor.info.unread.empty(), tensor.path, "tensor ", quoted{name}, ": ",
                      tensor.info.unread);
    refuse_if(!names.insert(name).second, "FILE: several tensors are called ", quoted{name});
  }
  return tensors;
}

quantization_rules rules_of(std::string_view option, const recipe_preset& preset,
                            std::optional<format_id> to, const convert_options& rounding) {
  refuse_if(preset.rules.source == scale_source::delayed, option, ": ", preset.name,
            " takes its scales from earlier steps, which a file has not");
  quantize_options options = options_of(preset.rules);
  options.rounding = rounding.rounding;
  options.nan = rounding.nan;
  options.random = rounding.random;
  return {options, to.value_or(preset.rules.code_format), preset.rules.scale_format, preset.name};
}

std::vector<planned_tensor> plan_quantize(const checkpoint_choices& asked,
                                          const std::vector<shown_tensor>& tensors,
                                          const std::optional<quantization_rules>& rules,
                                          layout names, const convert_options& rounding) {
  std::vector<planned_tensor> plan;
  for (const shown_tensor& tensor : tensors) plan.push_back({.in = tensor});
  if (asked.by_verdict) {
    const auto choices = verdict_choices(asked, tensors, false);
    std::map<choice, shared_rules> known;
    for (std::size_t i = 0; i < plan.size(); ++i) {
      if (!choices[i] || is_kept(asked, plan[i].name())) continue;
      const choice_spec& spec = spec_of(*choices[i]);
      if (!is_recipe(*choices[i])) {
        if (*choices[i] != choice::fp16_scaled) plan[i].to = spec.format;
      } else if (is_weight_matrix(tensors[i], asked.roles)) {
        shared_rules& shared = known[*choices[i]];
        const auto& preset = *find_recipe(spec.recipe);
        if (shared == nullptr) {
          shared = std::make_shared<quantization_rules>(
              rules_of("--by-verdict", preset, spec.format, rounding));
        }
        plan[i].rules = shared;
      }
    }
  } else {
    const shared_rules all = rules ? std::make_shared<quantization_rules>(*rules) : nullptr;
    const precision_map_entries map = read_map(asked.map, rounding);
    for (planned_tensor& one : plan) {
      const std::string name = one.name();
      const std::string layer = layer_of(name);
      const map_entry* const entry = find(map, layer);
      const bool by_name = entry != nullptr && entry->pattern == layer;
      if (!is_weight_matrix(one.in, asked.roles) || is_kept(asked, name)) continue;
      if (is_of_unquantized_layer(name) && !by_name) continue;
      if (asked.map.empty()) one.rules = all;
      if (entry != nullptr) one.rules = entry->rules;
    }
    require_matches(map, tensors);
    refuse_if(!is_quantized(plan),
              "FILE: no tensor would be quantized; weights are matrices in fp32, fp16 or bf16 with "
              "names "
              "such as \"layers.0.fc.weight\", or name them: --role PATTERN=weights");
  }
  for (const planned_tensor& one : plan) {
    if (one.rules != nullptr) require_layout(names, one);
  }
  return plan;
}

std::vector<planned_tensor> plan_convert(const checkpoint_choices& asked,
                                         const std::vector<shown_tensor>& tensors,
                                         std::optional<format_id> to) {
  const precision_map_entries map = read_map(asked.map);
  std::vector<std::optional<choice>> choices(tensors.size());
  if (asked.by_verdict) choices = verdict_choices(asked, tensors, true);
  if (const auto quantized = quantized_among(tensors); !quantized.empty()) {
    const shown_tensor& codes = quantized.front().codes;
    refuse_content(codes.path, "tensor ", quote(codes.info.name),
                   " is quantized; `fpinspect dequantize` restores its values");
  }
  std::vector<planned_tensor> plan;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    planned_tensor one = {.in = tensors[i]};
    std::optional<format_id> wanted = to;
    if (choices[i] && *choices[i] != choice::fp16_scaled) wanted = spec_of(*choices[i]).format;
    const std::string name = one.name();
    const map_entry* const entry = find(map, name.substr(0, name.rfind('.')));
    if (entry != nullptr) wanted = entry->format;
    if (is_float(one.in) && !is_kept(asked, name) && wanted != one.in.format()) one.to = wanted;
    plan.push_back(std::move(one));
  }
  return plan;
}

std::vector<planned_tensor> plan_dequantize(const std::vector<shown_tensor>& tensors,
                                            format_id to) {
  const std::vector<quantized_tensor> quantized = quantized_among(tensors);
  refuse_content_if(quantized.empty(), tensors.empty() ? "FILE" : tensors.front().path,
                    "no tensor is quantized: there are no codes with scales beside them");
  std::map<std::string, const quantized_tensor*> by_codes;
  std::set<std::string> scales;
  for (const quantized_tensor& one : quantized) {
    by_codes.emplace(one.codes.info.name, &one);
    scales.insert(one.scales.info.name);
    scales.insert(one.tensor_scale_name);
  }
  std::vector<planned_tensor> plan;
  for (const shown_tensor& tensor : tensors) {
    if (scales.contains(tensor.info.name)) continue;
    plan.push_back({.in = tensor});
    const auto found = by_codes.find(tensor.info.name);
    if (found == by_codes.end()) continue;
    plan.back().quantized = *found->second;
    plan.back().to = to;
  }
  return plan;
}

}  // namespace fpinspect
