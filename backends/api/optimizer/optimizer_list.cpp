// optimizer_list: checks the tensors of an optimizer and splits them into chunks.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/dispatch/calls/optimizer.hpp"
#include "backends/dispatch/device_scope.hpp"
#include "backends/dispatch/overlap.hpp"
#include "backends/dispatch/refuse.hpp"
#include "samebits/optimizer.hpp"

namespace samebits {
namespace backends {
namespace {

using enum stored_format;

/// Sizes of arrays in bytes do not overflow up to this count.
constexpr std::int64_t max_count = std::int64_t{1} << 48;

/// One of a tensor's arrays, for checks and messages.
struct named_array {
  const char* name;
  const void* data;
  std::int64_t bytes;
  std::size_t alignment;  ///< bytes
  bool written;
};

list_item named(const optimizer_tensor& tensor, std::size_t position) {
  return {"tensors", position, tensor.name};
}

std::int64_t blocks_of(const optimizer_tensor& t) { return (t.count + t.block - 1) / t.block; }

/// The arrays of one tensor.
struct tensor_arrays {
  static constexpr std::size_t most = 11;
  std::array<named_array, most> all;
  std::size_t count = 0;

  [[nodiscard]] const named_array* begin() const { return all.data(); }
  [[nodiscard]] const named_array* end() const { return all.data() + count; }
};

/// The arrays of a tensor whose formats are checked.
tensor_arrays arrays_of(const optimizer_tensor& t) {
  tensor_arrays arrays;
  const auto add = [&](const char* name, const void* data, std::int64_t bytes,
                       std::size_t alignment, bool written) {
    arrays.all[arrays.count++] = {name, data, bytes, alignment, written};
  };
  const auto add_stored = [&](const char* name, const char* scales, const stored_array& a) {
    if (a.format == none) return;
    const int bytes = code_bytes(a.format);
    add(name, a.codes, t.count * bytes, static_cast<std::size_t>(bytes), true);
    if (has_block_scales(a.format)) add(scales, a.scales, blocks_of(t) * 4, 4, true);
  };
  add_stored("weights.codes", "weights.scales", t.weights);
  add_stored("master.codes", "master.scales", t.master);
  add_stored("states[0].codes", "states[0].scales", t.states[0]);
  add_stored("states[1].codes", "states[1].scales", t.states[1]);
  if (t.low_kind != low_part::none) add("low", t.low, t.count * 2, 2, true);
  const int bytes = code_bytes(t.gradient.format);
  add("gradient.codes", t.gradient.codes, t.count * bytes, static_cast<std::size_t>(bytes), false);
  if (t.gradient.scale != nullptr) add("gradient.scale", t.gradient.scale, 4, 4, false);
  return arrays;
}

bool is_one_of(stored_format f, std::initializer_list<stored_format> formats) {
  return std::find(formats.begin(), formats.end(), f) != formats.end();
}

/// Requires one of the combinations that optimizer_tensor lists.
void check_combination(const optimizer_tensor& t) {
  const stored_format w = t.weights.format;
  if (t.low_kind != low_part::none) {
    require(w == bf16_nearest && t.master.format == none,
            "low: needs weights in bf16_nearest and no master weights");
  } else if (t.master.format == none) {
    require(is_one_of(w, {fp32, bf16_nearest, fp16_nearest, bf16_stochastic, fp16_stochastic}),
            "weights.format: without master weights must be fp32, bf16_nearest, fp16_nearest, "
            "bf16_stochastic or fp16_stochastic");
  } else {
    require(t.master.format == fp32 || t.master.format == fp16_scaled,
            "master.format: must be fp32 or fp16_scaled");
    require(is_one_of(w, {bf16_nearest, fp16_nearest, e4m3_scaled, e5m2_scaled}),
            "weights.format: with master weights must be bf16_nearest, fp16_nearest, "
            "e4m3_scaled or e5m2_scaled");
  }
}

/// Refuses arrays whose format or kind says that there is no such array.
void check_missing_arrays(const optimizer_tensor& t) {
  const auto is_given = [](const stored_array& a) {
    return a.format == none && (a.codes != nullptr || a.scales != nullptr);
  };
  require(t.low_kind != low_part::none || t.low == nullptr,
          "low: must be null, because low_kind is none");
  require(!is_given(t.master), "master: must be null, because its format is none");
  require(!is_given(t.states[0]), "states[0]: must be null, because its format is none");
  require(!is_given(t.states[1]), "states[1]: must be null, because its format is none");
}

void check_formats(const optimizer_tensor& t) {
  require(static_cast<int>(t.low_kind) < enum_count<low_part>, "low_kind: is no low_part");
  check_missing_arrays(t);
  check_combination(t);
  require(
      is_one_of(t.gradient.format, {fp32, bf16_nearest, fp16_nearest, e4m3_tensor, e5m2_tensor}),
      "gradient.format: must be fp32, bf16_nearest, fp16_nearest, e4m3_tensor or e5m2_tensor");
  for (const stored_array& state : t.states) {
    require(static_cast<int>(state.format) < enum_count<stored_format> &&
                state.format != e4m3_tensor && state.format != e5m2_tensor,
            "states: format must be fp32, bf16_nearest, fp16_nearest, bf16_stochastic, "
            "fp16_stochastic, fp16_scaled, e4m3_scaled, e5m2_scaled, dynamic8_signed or "
            "dynamic8_unsigned");
  }
  require(t.states[0].format != none || t.states[1].format == none, "states[1]: needs states[0]");
  require(!is_one_of(t.states[1].format, {fp16_nearest, fp16_stochastic}),
          "states[1].format: fp16_nearest and fp16_stochastic have no numbers between 0 and 2^-24, "
          "so the step of a small second moment would be divided by eps alone; use fp16_scaled "
          "or bf16_nearest");
}

bool has_scales(const optimizer_tensor& t) {
  return has_block_scales(t.weights.format) || has_block_scales(t.master.format) ||
         has_block_scales(t.states[0].format) || has_block_scales(t.states[1].format);
}

void check_numbers(const optimizer_tensor& t) {
  require(t.count >= 0, "count: must be at least 0");
  require(t.count <= max_count, "count: must be at most 2^48");
  require(t.block == 128 || t.block == 256, "block: must be 128 or 256");
  require(t.stream < (1u << stream_tensor_bits), "stream: must be below 2^24");
  require(!has_scales(t) || t.first_index % t.block == 0,
          "first_index: must be a multiple of block, because an array has scales");
}

void check_memory(const optimizer_tensor& t) {
  if (t.count == 0) return;
  for (const named_array& a : arrays_of(t)) {
    refuse_if(a.data == nullptr, a.name, ": must not be null");
    refuse_if(reinterpret_cast<std::uintptr_t>(a.data) % a.alignment != 0, a.name,
              ": must be aligned to ", a.alignment, " bytes");
  }
}

/// Calls check(tensor). Its errors name the tensor.
void check_tensor(const optimizer_tensor& t, std::size_t position,
                  void (*check)(const optimizer_tensor&)) {
  try {
    check(t);
  } catch (const invalid_argument& error) {
    refuse(named(t, position), ": ", error.what());
  }
}

/// The extents of all arrays that steps write, or that they only read, sorted by address. Array k of
/// tensor i has the position i * tensor_arrays::most + k.
std::vector<extent> extents_of(const std::vector<optimizer_tensor>& tensors, bool written) {
  std::vector<extent> extents;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].count == 0) continue;
    std::size_t position = i * tensor_arrays::most;
    for (const named_array& a : arrays_of(tensors[i])) {
      const auto begin = reinterpret_cast<std::uintptr_t>(a.data);
      if (a.written == written) {
        extents.push_back({begin, begin + static_cast<std::uintptr_t>(a.bytes), position, written});
      }
      ++position;
    }
  }
  std::sort(extents.begin(), extents.end(), begins_before);
  return extents;
}

/// Refuses arrays that share memory, unless both are only read. `written` may have extents of tensors
/// that take no part.
void check_shared_memory(const std::vector<optimizer_tensor>& tensors,
                         const std::vector<extent>& written) {
  const std::vector<extent> read = extents_of(tensors, false);
  std::vector<extent> all;
  all.reserve(written.size() + read.size());
  std::merge(written.begin(), written.end(), read.begin(), read.end(), std::back_inserter(all),
             begins_before);
  const auto tensor_of = [](const extent& e) { return e.position / tensor_arrays::most; };
  std::erase_if(all, [&](const extent& e) { return tensors[tensor_of(e)].count == 0; });
  for_each_touching_pair(all, [&](const extent& a, const extent& b) {
    const auto text = [&](const extent& e) {
      const std::size_t i = tensor_of(e);
      return detail::cat(named(tensors[i], i), ": ",
                         arrays_of(tensors[i]).all[e.position % tensor_arrays::most].name);
    };
    const auto& [first, second] =
        std::minmax(a, b, [](const extent& x, const extent& y) { return x.position < y.position; });
    refuse(text(first), " and ", text(second), " overlap");
  });
}

numerics::update_array array_of(const stored_array& a) {
  return {static_cast<std::byte*>(a.codes),
          has_block_scales(a.format) ? reinterpret_cast<std::uint32_t*>(a.scales) : nullptr};
}

/// The row of a tensor, without what place() sets.
numerics::update_row row_of(const optimizer_tensor& t) {
  return {.weights = array_of(t.weights),
          .master = array_of(t.master),
          .states = {array_of(t.states[0]), array_of(t.states[1])},
          .gradient = nullptr,
          .gradient_scale = reinterpret_cast<const std::uint32_t*>(t.gradient.scale),
          .low = static_cast<std::byte*>(t.low),
          .count = 0,
          .first_index = t.first_index,
          .first_chunk = 0,
          .stream = t.stream,
          .group = t.group,
          .block = t.block,
          .weights_format = t.weights.format,
          .master_format = t.master.format,
          .state_formats = {t.states[0].format, t.states[1].format},
          .gradient_format = t.gradient.format,
          .low_kind = t.low_kind};
}

/// Whether a torch profile can update a tensor: with bare weights, gradient and states must have
/// the format of the weights, fp32 or bf16.
bool suits_torch(const optimizer_tensor& t) {
  if (t.master.format != none || t.low_kind != low_part::none) return true;
  if (is_stochastic(t.weights.format)) return true;
  const stored_format w = t.weights.format;
  const auto same = [&](stored_format f) { return f == none || f == w; };
  return w != fp16_nearest && t.gradient.format == w && same(t.states[0].format) &&
         same(t.states[1].format);
}

void summarize(std::vector<group_summary>& groups, const optimizer_tensor& t,
               std::size_t position) {
  auto found = std::find_if(groups.begin(), groups.end(),
                            [&](const group_summary& g) { return g.group == t.group; });
  if (found == groups.end()) {
    groups.push_back({.group = t.group, .fewest = position});
    found = groups.end() - 1;
  }
  const int states = (t.states[0].format != none ? 1 : 0) + (t.states[1].format != none ? 1 : 0);
  if (states < found->states) {
    found->states = states;
    found->fewest = position;
  }
  const auto at = static_cast<std::int64_t>(position);
  if (found->mixed < 0 && !suits_torch(t)) found->mixed = at;
  if (found->shard < 0 && t.first_index != 0) found->shard = at;
}

/// Whether a tensor has fp32 weights or masters, and fp32 states if any.
bool is_fp32(const optimizer_tensor& t) {
  const auto is_fp32_or_none = [](const stored_array& a) {
    return a.format == stored_format::fp32 || a.format == none;
  };
  return (t.weights.format == stored_format::fp32 || t.master.format == stored_format::fp32) &&
         is_fp32_or_none(t.states[0]) && is_fp32_or_none(t.states[1]);
}

/// Finds the device of the tensors and copies the tables there, in one allocation.
void copy_to_device(optimizer_data& list) {
  device_finder finder(list.space);
  for (std::size_t i = 0; i < list.tensors.size(); ++i) {
    if (list.tensors[i].count == 0) continue;
    for (const named_array& a : arrays_of(list.tensors[i])) {
      finder.add(a.data, [&] { return detail::cat(named(list.tensors[i], i), ": ", a.name); });
    }
  }
  list.upload(finder.device());
}

/// Checks the memory of a list whose formats and numbers are checked, and splits the tensors into
/// chunks.
void place(optimizer_data& list, const std::vector<extent>& written) {
  std::uint64_t chunks = 0;
  for (std::size_t i = 0; i < list.tensors.size(); ++i) {
    const optimizer_tensor& t = list.tensors[i];
    check_tensor(t, i, check_memory);
    list.rows[i].gradient = static_cast<const std::byte*>(t.gradient.codes);
    list.rows[i].count = t.count;
    list.rows[i].first_chunk = chunks;
    list.elements += static_cast<std::uint64_t>(t.count);
    const std::uint64_t of_tensor = numerics::chunks_of(t.count);
    list.row_of_chunk.insert(list.row_of_chunk.end(), of_tensor, static_cast<std::uint32_t>(i));
    chunks += of_tensor;
  }
  check_shared_memory(list.tensors, written);
  device_finder first(list.space);
  if (list.elements != 0) {
    const auto of = std::find_if(list.tensors.begin(), list.tensors.end(),
                                 [](const optimizer_tensor& t) { return t.count != 0; });
    first.add(of->weights.codes, "tensors");
  }
  list.device = first.device();
}

}  // namespace

optimizer_parts describe_without_gradients(std::vector<optimizer_tensor> tensors,
                                           memory_space space) {
  refuse_if(tensors.size() > std::numeric_limits<std::uint32_t>::max(),
            "tensors: must be fewer than 2^32, got ", tensors.size());
  auto list = std::make_shared<optimizer_data>();
  list->tensors = std::move(tensors);
  list->space = space;
  list->rows.reserve(list->tensors.size());
  for (std::size_t i = 0; i < list->tensors.size(); ++i) {
    const optimizer_tensor& t = list->tensors[i];
    check_tensor(t, i, check_formats);
    check_tensor(t, i, check_numbers);
    summarize(list->groups, t, i);
    list->rows.push_back(row_of(t));
    list->only_fp32 = list->only_fp32 && is_fp32(t);
  }
  return {list, extents_of(list->tensors, true)};
}

std::shared_ptr<optimizer_data> with_gradients(const optimizer_parts& parts,
                                               std::span<const void* const> gradients) {
  auto list = std::make_shared<optimizer_data>(*parts.data);
  for (std::size_t i = 0; i < list->tensors.size(); ++i) {
    list->tensors[i].gradient.codes = gradients[i];
    if (gradients[i] == nullptr) list->tensors[i].count = 0;
  }
  place(*list, parts.written);
  return list;
}

namespace {

std::shared_ptr<const optimizer_data> describe(std::vector<optimizer_tensor> tensors,
                                               memory_space space) {
  const optimizer_parts parts = describe_without_gradients(std::move(tensors), space);
  place(*parts.data, parts.written);
  if (space == memory_space::device) copy_to_device(*parts.data);
  return parts.data;
}

}  // namespace
}  // namespace backends

optimizer_list::optimizer_list() : optimizer_list(std::vector<optimizer_tensor>()) {}

optimizer_list::optimizer_list(std::vector<optimizer_tensor> tensors, memory_space space)
    : data_(backends::describe(std::move(tensors), space)) {}

std::size_t optimizer_list::size() const { return data_->tensors.size(); }

const optimizer_tensor& optimizer_list::operator[](std::size_t position) const {
  return data_->tensors[position];
}

std::uint64_t optimizer_list::elements() const { return data_->elements; }

memory_space optimizer_list::space() const { return data_->space; }

}  // namespace samebits
