// Writes a whole checkpoint, and says what became of its tensors: implementation.
#include "fpinspect/checkpoint/checkpoint.hpp"

#include "fpinspect/cli/files.hpp"
#include "fpinspect/output/progress.hpp"
#include "tensor_file/files/staged_file.hpp"
#include "tensor_file/safetensors/model_json.hpp"

namespace fpinspect {
namespace {

using tensor_file::json_change;

/// The format of all values that the plan writes, if there is one: that of the model.
std::optional<format_id> common_format(const std::vector<planned_tensor>& plan) {
  std::optional<format_id> common;
  for (const planned_tensor& one : plan) {
    if (one.rules != nullptr) return std::nullopt;
    if (!one.to) continue;
    if (common && *common != *one.to) return std::nullopt;
    common = one.to;
  }
  return common;
}

/// What becomes of config.json.
std::vector<json_change> config_changes(const std::vector<planned_tensor>& plan, layout names) {
  std::vector<json_change> changes;
  if (is_quantized(plan)) {
    std::vector<quantized_layer> layers;
    for (const planned_tensor& one : plan) {
      const std::string layer = layer_of(one.name());
      if (one.in.info.shape.size() == 2 && layer != one.name()) {
        layers.emplace_back(layer, one.rules.get());
      }
    }
    const json_value config = quantization_config(names, layers);
    if (names != layout::plain) changes.push_back({"quantization_config", json_text(config)});
  }
  const bool restored = std::ranges::any_of(
      plan, [](const planned_tensor& one) { return one.quantized.has_value(); });
  if (restored) changes.push_back({"quantization_config", std::nullopt});
  const auto format = common_format(plan);
  for (const std::string_view key : {"torch_dtype", "dtype"}) {
    if (format == format_id::fp32) changes.push_back({key, "\"float32\"", true});
    if (format == format_id::fp16) changes.push_back({key, "\"float16\"", true});
    if (format == format_id::bf16) changes.push_back({key, "\"bfloat16\"", true});
  }
  return changes;
}

/// The files beside the tensors of the input folders and indices.
std::vector<std::filesystem::path> texts_beside(const std::vector<std::string>& files) {
  std::vector<std::filesystem::path> texts;
  for (const std::string& file : files) {
    const bool is_index = tensor_file::is_shard_index(file);
    const auto folder =
        is_index ? "." / std::filesystem::path(file).parent_path() : std::filesystem::path(file);
    for (const std::filesystem::path& text : model_texts_in(folder)) {
      note_input(text);
      texts.push_back(text);
    }
  }
  return texts;
}

void write_texts(const std::vector<std::filesystem::path>& texts,
                 const std::vector<json_change>& changes, output_checkpoint& out) {
  bool has_config = false;
  const auto write = [&](const std::string& name, const std::string& text) {
    out.write(name, [&](staged_file& file) { file.write(std::as_bytes(std::span(text))); });
  };
  for (const std::filesystem::path& path : texts) {
    std::string text = read_text_file(path.string());
    if (path.filename() == "config.json") {
      has_config = true;
      if (!changes.empty()) {
        text = in_context(escape_path(path),
                          [&] { return tensor_file::changed_config(text, changes); });
      }
    }
    write(path.filename().string(), text);
  }
  const bool any_new = std::ranges::any_of(
      changes, [](const json_change& one) { return one.value && !one.only_existing; });
  if (!has_config && any_new) {
    write("config.json", tensor_file::changed_config("{}", changes));
  }
}

/// The number of tensors with each outcome, in the order of the tensors.
std::vector<std::pair<std::string, std::uint64_t>> outcomes(
    const std::vector<planned_tensor>& plan) {
  std::vector<std::pair<std::string, std::uint64_t>> counts;
  for (const planned_tensor& one : plan) {
    const std::string outcome = one.outcome();
    auto known = std::ranges::find_if(counts, [&](const auto& c) { return c.first == outcome; });
    if (known == counts.end()) known = counts.insert(known, {outcome, 0});
    ++known->second;
  }
  return counts;
}

json_value tensor_json(const planned_tensor& one, const written_checkpoint& written) {
  json_value to = std::nullopt, block = std::nullopt, recipe = std::nullopt;
  const auto block_of = [](const tile_shape& t) { return extents_of({t.rows, t.cols}); };
  if (one.to) to = name(*one.to);
  if (one.quantized) block = block_of(one.quantized->tile);
  if (const quantization_rules* rules = one.rules.get()) {
    to = name(rules->to);
    block = block_of(rules->options.tile);
    if (!rules->recipe.empty()) recipe = rules->recipe;
  }
  return json_line({{"name", one.name()},
                    {"file", written.file_of.at(one.name())},
                    {"from", tensor_file::name(one.in.info.type)},
                    {"to", to},
                    {"block", block},
                    {"recipe", recipe}});
}

std::uint64_t bytes_of(const std::vector<planned_tensor>& plan) {
  std::uint64_t bytes = 0;
  for (const planned_tensor& one : plan) {
    bytes += one.in.info.bytes;
    if (!one.quantized) continue;
    bytes += one.quantized->scales.info.bytes;
    if (has_two_levels(one.quantized->scale)) bytes += sizeof(float);
  }
  return bytes;
}

}  // namespace

void require_unquantized(const std::vector<std::string>& files) {
  for (const std::filesystem::path& text : texts_beside(files)) {
    if (text.filename() != "config.json") continue;
    const bool quantized = in_context(escape_path(text), [&] {
      return tensor_file::has_quantization_config(read_text_file(text.string()));
    });
    refuse_content_if(quantized, text,
                      "has a quantization_config; `fpinspect dequantize` restores the model");
  }
}

void run_checkpoint(const std::string& output, const std::vector<std::string>& files,
                    const std::vector<planned_tensor>& plan, const checkpoint_writing& how,
                    const session& s) {
  std::set<const void*> inputs;
  for (const planned_tensor& one : plan) inputs.insert(one.in.file.get());
  const std::vector<std::filesystem::path> texts = texts_beside(files);
  output_checkpoint out("-o", output, inputs.size() == 1);
  const written_checkpoint written = write_tensors(plan, how, out);
  if (out.is_folder()) write_texts(texts, config_changes(plan, how.names), out);
  out.commit();
  const std::uint64_t before = bytes_of(plan);
  std::string text =
      cat(out.shown(), ": ", number_of(written.files.size(), "file"), ", ",
          number_of(plan.size(), "tensor"), ", ", bytes_text(static_cast<double>(before)), " -> ",
          bytes_text(static_cast<double>(written.bytes)), "\n");
  for (const auto& [outcome, count] : outcomes(plan)) {
    text += cat("  ", right(std::to_string(count), 6), "  ", outcome, "\n");
  }
  const auto tensor = [&](const planned_tensor& one) { return tensor_json(one, written); };
  s.write({{"output", output},
           {"layout", is_quantized(plan) ? std::optional(name(how.names)) : std::nullopt},
           {"files", json_list(written.files)},
           {"bytes_before", before},
           {"bytes_after", written.bytes},
           {"tensors", json_rows(plan, tensor)}},
          text);
}

}  // namespace fpinspect
