// Writes a planned checkpoint: implementation.
//
// The sizes of all outputs follow from the plan, so every band is written at its place in the file
// as soon as it is computed. Bands are cut on tile borders, where codes and scales are those of the
// whole matrix (contract §7).
#include "fpinspect/checkpoint/checkpoint.hpp"

#include <mutex>

#include "fpinspect/cli/parallel.hpp"
#include "fpinspect/formats/describe.hpp"
#include "fpinspect/output/progress.hpp"
#include "tensor_file/codes.hpp"
#include "tensor_file/files/staged_file.hpp"
#include "tensor_file/safetensors/model_json.hpp"
#include "tensor_file/tensor_size.hpp"

namespace fpinspect {
namespace {

constexpr std::uint64_t band_elements = 1 << 19;  // 0.5 MiB of codes, 2 MiB of fp32

/// The outputs of one tensor and their places in the file.
struct placed_tensor {
  const planned_tensor* plan;
  std::vector<tensor_info> stored;  ///< elements or codes, then scales; offsets are in the file
  std::uint64_t first_element = 0;  ///< number of elements before it in the checkpoint
};

/// Memory of one thread.
struct scratch {
  std::vector<std::byte> in;
  std::vector<std::byte> out;
  std::vector<std::byte> scales;
};

/// Elements [first, first + count) of a tensor: in the file, or read into `memory`.
const std::byte* elements(const source_tensor& tensor, std::uint64_t first, std::uint64_t count,
                          std::vector<std::byte>& memory) {
  const std::size_t bytes = bytes_each(tensor.format());
  if (const auto direct = tensor.view()) return direct->data() + first * bytes;
  memory.resize(count * bytes);
  tensor.read(first, count, memory.data());
  return memory.data();
}

matrix_view matrix_in(format_id format, std::vector<std::byte>& memory, std::uint64_t rows,
                      std::uint64_t cols) {
  memory.resize(rows * cols * bytes_each(format));
  return codes_at(format, memory.data(), rows, cols);
}

class file_writer {
 public:
  file_writer(staged_file& file, const checkpoint_writing& how, progress& line)
      : file_(file), how_(how), line_(line), one_thread_(how.where) {
    one_thread_.threads = 1;
    threads_ = static_cast<std::size_t>(std::max(how.where.threads, 1));
    memory_.resize(threads_);
  }

  void write(const placed_tensor& tensor) {
    const planned_tensor& plan = *tensor.plan;
    if (plan.quantized) return dequantize(tensor);
    if (plan.to) return convert(tensor);
    if (plan.rules == nullptr) return copy(tensor);
    if (plan.rules->options.tile == tile_shape{0, 0}) return quantize_by_one_scale(tensor);
    quantize(tensor);
  }

 private:
  /// Calls band(first, size, memory) for the parts of `count` rows or elements, with several threads.
  /// @param step  each part has a multiple of this number, besides the last one
  /// @param bytes  of the input that all parts read
  template <class Band>
  void for_each_band(std::uint64_t count, std::uint64_t step, std::uint64_t bytes,
                     const Band& band) {
    const std::uint64_t bands = count == 0 ? 0 : (count - 1) / step + 1;
    for_each_index(static_cast<std::size_t>(bands), threads_,
                   [&](std::size_t i, std::size_t worker) {
                     const std::uint64_t first = i * step;
                     const std::uint64_t size = std::min(step, count - first);
                     band(first, size, memory_[worker]);
                     const std::lock_guard lock(mutex_);
                     line_.add(bytes / bands);
                   });
  }

  /// The bytes as they are, if the file has them as .safetensors does.
  void copy(const placed_tensor& tensor) {
    const shown_tensor& in = tensor.plan->in;
    const std::uint64_t at = tensor.stored[0].offset;
    if (in.info.strides.empty() && in.info.blocks == tensor_file::block_layout::none &&
        in.info.bytes_order == tensor_file::byte_order::little) {
      const auto bytes = in.file->bytes(in.info);
      return for_each_band(bytes.size(), 4 * band_elements, in.info.bytes,
                           [&](std::uint64_t first, std::uint64_t size, scratch&) {
                             file_.write_at(at + first, bytes.subspan(first, size));
                           });
    }
    const auto each = static_cast<std::size_t>(tensor_file::code_bytes(in.info.type));
    for_each_band(in.info.count, band_elements, in.info.bytes,
                  [&](std::uint64_t first, std::uint64_t size, scratch& memory) {
                    memory.out.resize(size * each);
                    in.file->read_codes(in.info, first, size, memory.out.data());
                    file_.write_at(at + first * each, memory.out);
                  });
  }

  void convert(const placed_tensor& tensor) {
    const shown_tensor& in = tensor.plan->in;
    const format_id to = *tensor.plan->to;
    for_each_band(in.info.count, band_elements, in.info.bytes,
                  [&](std::uint64_t first, std::uint64_t size, scratch& memory) {
                    convert_options rule = how_.rule;
                    rule.random.offset += tensor.first_element + first;
                    const std::byte* const from = elements(in, first, size, memory.in);
                    samebits::convert(codes_at(in.format(), from, 1, size),
                                      matrix_in(to, memory.out, 1, size), rule, one_thread_);
                    file_.write_at(tensor.stored[0].offset + first * bytes_each(to), memory.out);
                  });
  }

  void quantize(const placed_tensor& tensor) {
    const planned_tensor& plan = *tensor.plan;
    const quantization_rules& rules = *plan.rules;
    const auto cols = static_cast<std::uint64_t>(plan.matrix().cols);
    const auto rows = static_cast<std::uint64_t>(plan.matrix().rows);
    const tile_shape tile = rules.options.tile;
    const auto tile_rows = tile.rows == 0 ? rows : static_cast<std::uint64_t>(tile.rows);
    // Four codes of 4 or 6 bits fill whole bytes.
    const std::uint64_t whole_bytes = code_bits(rules.to) == 8 ? 1 : 4;
    const std::uint64_t tiles =
        std::max<std::uint64_t>(1, band_elements / cols / tile_rows / whole_bytes) * whole_bytes;
    if (has_two_levels(rules.options.scale)) write_tensor_scale(tensor);
    for_each_band(
        rows, tiles * tile_rows, plan.in.info.bytes,
        [&](std::uint64_t first, std::uint64_t size, scratch& memory) {
          const std::byte* const from = elements(plan.in, first * cols, size * cols, memory.in);
          const matrix_shape scales =
              scales_shape(static_cast<std::int64_t>(size), static_cast<std::int64_t>(cols), tile);
          const auto scale_cols = static_cast<std::uint64_t>(scales.cols);
          quantize_band(tensor, codes_at(plan.in.format(), from, size, cols), scales, first * cols,
                        size * cols, memory);
          file_.write_at(tensor.stored[1].offset +
                             first / tile_rows * scale_cols * bytes_each(rules.scale_format),
                         memory.scales);
        });
  }

  /// One scale depends on the maximum of the whole matrix. Behind each band stand copies of the
  /// largest element and, if there are any, of an infinity and a NaN: with them, the band has the
  /// scale of the matrix under every rule.
  void quantize_by_one_scale(const placed_tensor& tensor) {
    const shown_tensor& in = tensor.plan->in;
    const std::vector<std::byte> extremes = extremes_of(in);
    const std::uint64_t more = extremes.size() / bytes_each(in.format());
    for_each_band(in.info.count, band_elements, in.info.bytes,
                  [&](std::uint64_t first, std::uint64_t size, scratch& memory) {
                    memory.in.resize(size * bytes_each(in.format()));
                    in.read(first, size, memory.in.data());
                    memory.in.insert(memory.in.end(), extremes.begin(), extremes.end());
                    quantize_band(
                        tensor,
                        codes_at(in.format(), std::as_const(memory.in).data(), 1, size + more),
                        {1, 1}, first, size, memory);
                    if (first == 0) file_.write_at(tensor.stored[1].offset, memory.scales);
                  });
  }

  /// The largest finite element of a tensor and, if there are any, an infinity and a NaN.
  std::vector<std::byte> extremes_of(const shown_tensor& in) {
    const cast_statistics all = statistics_of(in, {}, how_.where);
    line_.add(in.info.bytes);
    std::vector<double> extremes = {all.amax.value_or(0.0)};
    if (all.inf != 0) extremes.push_back(std::numeric_limits<double>::infinity());
    if (all.nan != 0) extremes.push_back(std::numeric_limits<double>::quiet_NaN());
    owned_matrix codes(in.format(), {1, static_cast<std::int64_t>(extremes.size())});
    samebits::convert(view_of(extremes.data(), 1, codes.shape.cols), codes.view(), {}, one_thread_);
    return codes.bytes;
  }

  /// Writes the scale of a tensor with two levels: that of its extremes.
  void write_tensor_scale(const placed_tensor& tensor) {
    const format_id from = tensor.plan->in.format();
    const std::vector<std::byte> extremes = extremes_of(tensor.plan->in);
    const std::uint64_t count = extremes.size() / bytes_each(from);
    scratch memory;
    samebits::quantize(codes_at(from, extremes.data(), 1, count),
                       {.codes = matrix_in(tensor.plan->rules->to, memory.out, 1, count),
                        .scales = matrix_in(format_id::e4m3, memory.scales, 1, 1),
                        .tensor_scale = view_of(&tensor_scale_, 1, 1)},
                       tensor.plan->rules->options, one_thread_);
    file_.write_at(tensor.stored[2].offset, std::as_bytes(std::span(&tensor_scale_, 1)));
  }

  /// Writes the codes of the first `kept` elements of a band.
  /// @param first  index of the band's first element
  void quantize_band(const placed_tensor& tensor, const const_matrix_view& in,
                     const matrix_shape& scales, std::uint64_t first, std::uint64_t kept,
                     scratch& memory) {
    const quantization_rules& rules = *tensor.plan->rules;
    quantize_options options = rules.options;
    options.random.offset += tensor.first_element + first;
    if (has_two_levels(options.scale)) options.tensor_scale = view_of(&tensor_scale_, 1, 1);
    const auto extent = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
    samebits::quantize(in,
                       {.codes = matrix_in(rules.to, memory.out, extent(in.rows), extent(in.cols)),
                        .scales = matrix_in(rules.scale_format, memory.scales, extent(scales.rows),
                                            extent(scales.cols))},
                       options, one_thread_);
    memory.out.resize(kept);
    const auto bits = static_cast<std::uint64_t>(code_bits(rules.to));
    if (bits != 8) memory.out = tensor_file::pack_codes(own_type(rules.to), memory.out);
    file_.write_at(tensor.stored[0].offset + first * bits / 8, memory.out);
  }

  void dequantize(const placed_tensor& tensor) {
    const quantized_tensor& from = *tensor.plan->quantized;
    const format_id to = *tensor.plan->to;
    const quantized_matrix matrix(from);
    const std::uint64_t cols = std::max<std::uint64_t>(matrix.cols(), 1);
    for_each_band(
        matrix.rows(), std::max<std::uint64_t>(1, band_elements / cols), from.codes.info.bytes,
        [&](std::uint64_t first, std::uint64_t size, scratch& memory) {
          matrix.dequantize(first, matrix_in(to, memory.out, size, matrix.cols()), one_thread_);
          file_.write_at(tensor.stored[0].offset + first * cols * bytes_each(to), memory.out);
        });
  }

  staged_file& file_;
  const checkpoint_writing& how_;
  progress& line_;
  executor one_thread_;
  std::size_t threads_ = 1;
  std::vector<scratch> memory_;
  std::mutex mutex_;
  float tensor_scale_ = 1;  ///< of the tensor with two levels that is being written
};

/// What is stored of a planned tensor. Offsets and sizes are set later.
std::vector<tensor_info> stored_as(const planned_tensor& plan, layout names) {
  tensor_info info = {.name = plan.name(), .type = plan.in.info.type, .shape = plan.in.info.shape};
  if (plan.to) info.type = own_type(*plan.to);
  if (plan.rules == nullptr) return {info};
  info.type = own_type(plan.rules->to);
  std::vector<tensor_info> all = {info,
                                  stored_scales(names, info.name, plan.matrix(), *plan.rules)};
  if (has_two_levels(plan.rules->options.scale)) {
    all.push_back(
        {.name = cat(info.name, tensor_scale_suffix), .type = dtype::f32, .shape = {1, 1}});
  }
  return all;
}

/// The tensors of a file in the order of their data, widest elements first so that all are aligned.
std::vector<tensor_info> placed(std::vector<placed_tensor>& tensors) {
  std::vector<tensor_info*> order;
  for (placed_tensor& tensor : tensors) {
    for (tensor_info& info : tensor.stored) order.push_back(&info);
  }
  const auto width = [](const tensor_info* info) { return tensor_file::spec_of(info->type).bits; };
  std::ranges::stable_sort(
      order, [&](const tensor_info* a, const tensor_info* b) { return width(a) > width(b); });
  std::uint64_t at = 0;
  std::vector<tensor_info> all;
  for (tensor_info* info : order) {
    info->bytes = tensor_file::size_of(info->type, info->shape).bytes;
    info->offset = at;
    at += info->bytes;
    all.push_back(*info);
  }
  return all;
}

using metadata_pairs = std::vector<std::pair<std::string, std::string>>;

/// The metadata of an input file without what describes its quantized tensors, with what describes
/// those of the output.
metadata_pairs metadata_of(const std::vector<placed_tensor>& tensors, layout names) {
  const auto& file = *tensors.front().plan->in.file;
  metadata_pairs all;
  for (const auto& [key, text] : file.metadata()) {
    if (!key.starts_with("samebits.")) all.emplace_back(key, text);
  }
  // transformers refuses files without it.
  if (!contains(all, "format", &metadata_pairs::value_type::first))
    all.emplace_back("format", "pt");
  for (const placed_tensor& tensor : tensors) {
    const auto& rules = tensor.plan->rules;
    if (rules == nullptr || names != layout::plain) continue;
    all.emplace_back(cat(block_key, tensor.plan->name()), block_text(rules->options.tile));
    if (!has_two_levels(rules->options.scale)) continue;
    all.emplace_back(cat(rule_key, tensor.plan->name()), name(rules->options.scale));
  }
  return all;
}

/// The name of the output for an input file: that of Hugging Face for a file of PyTorch.
std::string file_name_of(const shown_tensor& tensor) {
  std::filesystem::path name = std::filesystem::path(tensor.file->shown_path()).filename();
  std::string stem = name.replace_extension().string();
  constexpr std::string_view of_torch = "pytorch_model";
  if (stem.starts_with(of_torch)) stem.replace(0, of_torch.size(), "model");
  return stem + ".safetensors";
}

std::vector<std::vector<placed_tensor>> by_file(const std::vector<planned_tensor>& plan,
                                                layout names) {
  std::vector<std::vector<placed_tensor>> files;
  std::map<const void*, std::size_t> numbers;
  std::uint64_t elements = 0;
  for (const planned_tensor& one : plan) {
    const auto [number, is_new] = numbers.emplace(one.in.file.get(), files.size());
    if (is_new) files.emplace_back();
    files[number->second].push_back({&one, stored_as(one, names), elements});
    elements += one.in.info.count;
  }
  return files;
}

std::uint64_t work_of(const std::vector<planned_tensor>& plan) {
  std::uint64_t bytes = 0;
  for (const planned_tensor& one : plan) {
    const bool twice = one.rules != nullptr && (one.rules->options.tile == tile_shape{0, 0} ||
                                                has_two_levels(one.rules->options.scale));
    bytes += one.in.info.bytes * (twice ? 2 : 1);
  }
  return bytes;
}

}  // namespace

written_checkpoint write_tensors(const std::vector<planned_tensor>& plan,
                                 const checkpoint_writing& how, output_checkpoint& out) {
  written_checkpoint result;
  std::uint64_t bytes_read = 0;
  for (const planned_tensor& one : plan) bytes_read += one.in.info.bytes;
  progress line(bytes_read, work_of(plan));
  for (std::vector<placed_tensor>& tensors : by_file(plan, how.names)) {
    const std::string name = file_name_of(tensors.front().plan->in);
    refuse_if(contains(result.files, name), "FILE: several files are called ", quote(name));
    const std::vector<tensor_info> stored = placed(tensors);
    for (const tensor_info& info : stored) {
      result.bytes += info.bytes;
      refuse_if(!result.file_of.emplace(info.name, name).second, "FILE: there is a tensor ",
                quote(info.name), " already; --layout gives scales other names");
    }
    const std::string start =
        tensor_file::safetensors_start(stored, metadata_of(tensors, how.names));
    for (placed_tensor& tensor : tensors) {
      for (tensor_info& info : tensor.stored) info.offset += start.size();
    }
    out.write(name, [&](staged_file& file) {
      file.write_at(0, std::as_bytes(std::span(start)));
      file_writer writer(file, how, line);
      for (const placed_tensor& tensor : tensors) writer.write(tensor);
    });
    result.files.push_back(name);
  }
  if (out.is_folder() && result.files.size() > 1) {
    const std::string index = tensor_file::shard_index_text(result.file_of, result.bytes);
    out.write("model.safetensors.index.json",
              [&](staged_file& file) { file.write(std::as_bytes(std::span(index))); });
  }
  return result;
}

}  // namespace fpinspect
