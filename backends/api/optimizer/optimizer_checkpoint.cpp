// Checkpoints of optimizers: settings, counters and arrays as bytes.
//
//   magic, version                                        16 bytes
//   applied steps, seed, number of groups, of tensors     8 bytes each
//   groups: rule, profile, seven numbers, nesterov        8 bytes each
//   tensors: length of the name, name, nine numbers       8 bytes each
//   arrays of all tensors: codes and scales of master, low, states
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/dispatch/access.hpp"
#include "backends/dispatch/calls/optimizer.hpp"
#include "backends/dispatch/device_scope.hpp"
#include "backends/dispatch/refuse.hpp"
#include "samebits/optimizer.hpp"

namespace samebits {
namespace {

constexpr std::array<char, 16> magic_and_version = {'s', 'a', 'm', 'e', 'b', 'i', 't', 's',
                                                    ' ', 's', 't', 'e', 'p', ' ', '0', '1'};

/// A saved array: its memory and bytes.
struct saved_array {
  void* data;
  std::size_t bytes;
};

/// The saved arrays of a tensor, in order.
std::vector<saved_array> arrays_of(const optimizer_tensor& t) {
  std::vector<saved_array> arrays;
  const auto count = static_cast<std::size_t>(t.count);
  const auto add = [&](const stored_array& a) {
    arrays.push_back({a.codes, count * static_cast<std::size_t>(code_bytes(a.format))});
    if (has_block_scales(a.format))
      arrays.push_back({a.scales, (count + t.block - 1) / t.block * 4});
  };
  add(t.master);
  if (t.low_kind != low_part::none) arrays.push_back({t.low, count * 2});
  for (const stored_array& state : t.states) add(state);
  return arrays;
}

/// The numbers of a tensor that must not change.
std::array<std::uint64_t, 9> numbers_of(const optimizer_tensor& t) {
  const auto number = [](auto value) { return static_cast<std::uint64_t>(value); };
  return {number(t.count),
          t.first_index,
          t.stream,
          t.block,
          number(t.weights.format),
          number(t.master.format),
          number(t.low_kind),
          number(t.states[0].format),
          number(t.states[1].format)};
}

std::array<std::uint64_t, 10> numbers_of(const optimizer_settings& s) {
  const auto bits = [](double x) { return std::bit_cast<std::uint64_t>(x); };
  return {static_cast<std::uint64_t>(s.rule),
          static_cast<std::uint64_t>(s.profile),
          bits(s.learning_rate),
          bits(s.beta1),
          bits(s.beta2),
          bits(s.eps),
          bits(s.weight_decay),
          bits(s.momentum),
          bits(s.dampening),
          static_cast<std::uint64_t>(s.nesterov)};
}

optimizer_settings settings_of(const std::array<std::uint64_t, 10>& n) {
  refuse_if(n[0] >= enum_count<update_rule> || n[1] >= enum_count<update_profile> || n[9] > 1,
            "bytes: a group has settings that no version knows");
  const auto number = [&](std::size_t i) { return std::bit_cast<double>(n[i]); };
  return {static_cast<update_rule>(n[0]),
          static_cast<update_profile>(n[1]),
          number(2),
          number(3),
          number(4),
          number(5),
          number(6),
          number(7),
          number(8),
          n[9] == 1};
}

class writer {
 public:
  void add(const void* data, std::size_t bytes) {
    const auto* const first = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), first, first + bytes);
  }
  void add(std::uint64_t number) { add(&number, sizeof number); }
  /// Adds room for bytes and returns it.
  std::byte* add_room(std::size_t bytes) {
    bytes_.resize(bytes_.size() + bytes);
    return bytes_.data() + bytes_.size() - bytes;
  }
  std::vector<std::byte> bytes() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class reader {
 public:
  explicit reader(std::span<const std::byte> bytes) : left_(bytes) {}
  const std::byte* take(std::size_t bytes) {
    refuse_if(bytes > left_.size(), "bytes: end too early");
    const std::byte* const first = left_.data();
    left_ = left_.subspan(bytes);
    return first;
  }
  std::uint64_t number() {
    std::uint64_t number = 0;
    std::memcpy(&number, take(sizeof number), sizeof number);
    return number;
  }
  template <std::size_t N>
  std::array<std::uint64_t, N> numbers() {
    std::array<std::uint64_t, N> all;
    for (std::uint64_t& n : all) n = number();
    return all;
  }
  [[nodiscard]] std::size_t left() const { return left_.size(); }

 private:
  std::span<const std::byte> left_;
};

/// Copies between host memory and the memory of a list, while it exists.
class memory_of_list {
 public:
  explicit memory_of_list(const backends::optimizer_data& list)
      : on_(list.space, list.device, nullptr) {
    if (list.space == memory_space::host) return;
    memory_ = backends::resolve({}, memory_space::device, [](const backends::backend& b) {
                return b.memory != nullptr;
              }).memory;
    memory_->synchronize();
  }
  void read(void* host, const saved_array& array) const {
    if (array.bytes == 0) return;
    if (memory_ != nullptr) return memory_->download(host, array.data, array.bytes);
    std::memcpy(host, array.data, array.bytes);
  }
  void write(const saved_array& array, const void* host) const {
    if (array.bytes == 0) return;
    if (memory_ != nullptr) return memory_->upload(array.data, host, array.bytes);
    std::memcpy(array.data, host, array.bytes);
  }

 private:
  backends::device_scope on_;
  const backends::device_memory* memory_ = nullptr;
};

void check_host() {
  if constexpr (std::endian::native != std::endian::little) {
    refuse("checkpoints of optimizers need a little-endian host");
  }
}

/// Requires that the list's tensor is the saved one.
void check_tensor(const optimizer_tensor& t, std::size_t position, reader& in) {
  const auto length = static_cast<std::size_t>(in.number());
  const std::string name(reinterpret_cast<const char*>(in.take(length)), length);
  refuse_if(name != t.name, "tensors[", position, "] '", t.name, "': the saved tensor is '", name,
            "'");
  refuse_if(in.numbers<9>() != numbers_of(t), "tensors[", position, "] '", t.name,
            "': sizes, formats, stream or block differ from the saved ones");
}

}  // namespace

std::vector<std::byte> save(const optimizer_list& list, const optimizer_checkpoint& checkpoint) {
  check_host();
  const backends::optimizer_data& data = backends::data_of(list);
  writer out;
  out.add(magic_and_version.data(), magic_and_version.size());
  out.add(checkpoint.applied_steps);
  out.add(checkpoint.seed);
  out.add(checkpoint.groups.size());
  out.add(data.tensors.size());
  for (const optimizer_settings& s : checkpoint.groups) {
    for (const std::uint64_t n : numbers_of(s)) out.add(n);
  }
  for (const optimizer_tensor& t : data.tensors) {
    out.add(t.name.size());
    out.add(t.name.data(), t.name.size());
    for (const std::uint64_t n : numbers_of(t)) out.add(n);
  }
  const memory_of_list memory(data);
  for (const optimizer_tensor& t : data.tensors) {
    for (const saved_array& a : arrays_of(t)) memory.read(out.add_room(a.bytes), a);
  }
  return out.bytes();
}

optimizer_checkpoint load_optimizer(const optimizer_list& list, std::span<const std::byte> bytes) {
  check_host();
  const backends::optimizer_data& data = backends::data_of(list);
  reader in(bytes);
  refuse_if(bytes.size() < magic_and_version.size() ||
                std::memcmp(in.take(magic_and_version.size()), magic_and_version.data(),
                            magic_and_version.size()) != 0,
            "bytes: are no checkpoint of an optimizer, or of an unknown version");
  optimizer_checkpoint checkpoint;
  checkpoint.applied_steps = in.number();
  checkpoint.seed = in.number();
  const std::uint64_t groups = in.number();
  const std::uint64_t tensors = in.number();
  refuse_if(tensors != data.tensors.size(), "list: has ", data.tensors.size(),
            " tensors, the checkpoint ", tensors);
  for (std::uint64_t i = 0; i < groups; ++i) {
    checkpoint.groups.push_back(settings_of(in.numbers<10>()));
  }
  std::size_t expected = 0;
  for (std::size_t i = 0; i < data.tensors.size(); ++i) {
    check_tensor(data.tensors[i], i, in);
    for (const saved_array& a : arrays_of(data.tensors[i])) expected += a.bytes;
  }
  refuse_if(in.left() != expected, "bytes: hold ", in.left(), " bytes of arrays, the tensors need ",
            expected);
  const memory_of_list memory(data);
  for (const optimizer_tensor& t : data.tensors) {
    for (const saved_array& a : arrays_of(t)) memory.write(a, in.take(a.bytes));
  }
  return checkpoint;
}

}  // namespace samebits
