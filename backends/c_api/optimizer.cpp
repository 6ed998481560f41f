// Optimizer steps through the C interface.
#include "samebits/optimizer.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "backends/c_api/arguments/arguments.hpp"
#include "backends/c_api/arguments/guarded.hpp"
#include "backends/c_api/arguments/options.hpp"
#include "backends/optimizer/described_list.hpp"
#include "samebits/c/optimizer.h"
#include "samebits/error.hpp"

struct samebits_optimizer_list {
  samebits::optimizer_list list;
  /// A list whose tables the caller copies to the device; then `list` is a copy of its list.
  std::optional<samebits::backends::described_list> described = std::nullopt;
};

namespace api = samebits::c_api;

namespace {

samebits::stored_format format_of(std::int32_t format, const std::string& which) {
  return api::enumerator<samebits::stored_format>(format, which.c_str(), ".format");
}

samebits::stored_array array_of(const samebits_stored_array& a, const std::string& which) {
  return {.codes = a.codes, .format = format_of(a.format, which), .scales = a.scales};
}

samebits::optimizer_tensor tensor_of(const samebits_optimizer_tensor& t, const std::string& which) {
  return {.weights = array_of(t.weights, which + ".weights"),
          .gradient = {.codes = t.gradient.codes,
                       .format = format_of(t.gradient.format, which + ".gradient"),
                       .scale = t.gradient.scale},
          .master = array_of(t.master, which + ".master"),
          .low = t.low,
          .low_kind = api::enumerator<samebits::low_part>(t.low_kind, which.c_str(), ".low_kind"),
          .states = {array_of(t.states[0], which + ".states[0]"),
                     array_of(t.states[1], which + ".states[1]")},
          .count = t.count,
          .first_index = t.first_index,
          .stream = t.stream,
          .group = t.group,
          .block = t.block,
          .name = std::string(api::text(t.name))};
}

samebits::optimizer_settings settings_of(const samebits_optimizer_settings* settings,
                                         const char* which) {
  const samebits_optimizer_settings s = api::read(settings, which);
  return {.rule = api::enumerator<samebits::update_rule>(s.rule, which, ".rule"),
          .profile = api::enumerator<samebits::update_profile>(s.profile, which, ".profile"),
          .learning_rate = s.learning_rate,
          .beta1 = s.beta1,
          .beta2 = s.beta2,
          .epsilon = s.epsilon,
          .weight_decay = s.weight_decay,
          .momentum = s.momentum,
          .dampening = s.dampening,
          .nesterov = s.nesterov != 0};
}

/// An element of an array of settings. Elements are as far apart as the size of the struct in the
/// caller's version.
template <class Settings>  // samebits_optimizer_settings, const or not
Settings* group_at(Settings* groups, std::size_t i) {
  using byte = std::conditional_t<std::is_const_v<Settings>, const std::byte, std::byte>;
  return reinterpret_cast<Settings*>(reinterpret_cast<byte*>(groups) + i * groups->struct_size);
}

std::string group_text(std::size_t i) { return "groups[" + std::to_string(i) + "]"; }

/// Requires an array of settings whose elements all have one struct_size.
void check_groups(const samebits_optimizer_settings* groups, std::size_t count) {
  api::check_array(groups, count, "groups");
  for (std::size_t i = 0; i < count; ++i) {
    const samebits_optimizer_settings* const group = group_at(groups, i);
    api::check_struct_size(group, group_text(i).c_str());
    if (group->struct_size != groups->struct_size) {
      throw samebits::invalid_argument(group_text(i) + ": struct_size must be that of groups[0]");
    }
  }
}

/// The settings of all groups.
std::vector<samebits::optimizer_settings> groups_of(const samebits_optimizer_settings* groups,
                                                    std::size_t count) {
  check_groups(groups, count);
  std::vector<samebits::optimizer_settings> all;
  all.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back(settings_of(group_at(groups, i), group_text(i).c_str()));
  }
  return all;
}

samebits_optimizer_settings settings_in_c(const samebits::optimizer_settings& s) {
  samebits_optimizer_settings c = SAMEBITS_OPTIMIZER_SETTINGS_INIT;
  c.rule = static_cast<std::int32_t>(s.rule);
  c.profile = static_cast<std::int32_t>(s.profile);
  c.nesterov = s.nesterov ? 1 : 0;
  c.learning_rate = s.learning_rate;
  c.beta1 = s.beta1;
  c.beta2 = s.beta2;
  c.epsilon = s.epsilon;
  c.weight_decay = s.weight_decay;
  c.momentum = s.momentum;
  c.dampening = s.dampening;
  return c;
}

std::vector<samebits::optimizer_tensor> tensors_of(const samebits_optimizer_tensor* tensors,
                                                   std::size_t count) {
  api::check_array(tensors, count, "tensors");
  std::vector<samebits::optimizer_tensor> all;
  all.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back(tensor_of(tensors[i], "tensors[" + std::to_string(i) + "]"));
  }
  return all;
}

/// Bytes of the tables that the caller copies to the device.
std::size_t tables_bytes(const samebits_optimizer_list& list) {
  return list.described ? list.described->tables_bytes() : 0;
}

}  // namespace

samebits_status samebits_random_stream_number(int32_t purpose, uint32_t tensor, uint64_t step,
                                              uint64_t* stream) {
  return api::guarded([&] {
    const auto use = api::enumerator<samebits::stream_purpose>(purpose, "purpose");
    if (tensor >> samebits::stream_tensor_bits != 0) {
      throw samebits::invalid_argument("tensor: must be below 2^24, got " + std::to_string(tensor));
    }
    api::required(stream, "stream") = samebits::random_stream_number(use, tensor, step);
  });
}

samebits_status samebits_optimizer_list_create(const samebits_optimizer_tensor* tensors,
                                               size_t count, int32_t memory,
                                               samebits_optimizer_list** list) {
  return api::guarded([&] {
    const auto space = api::enumerator<samebits::memory_space>(memory, "memory");
    samebits_optimizer_list*& out = api::required(list, "list");
    out = new samebits_optimizer_list{samebits::optimizer_list(tensors_of(tensors, count), space)};
  });
}

samebits_status samebits_optimizer_list_describe(const samebits_optimizer_tensor* tensors,
                                                 size_t count, int32_t memory,
                                                 samebits_optimizer_list** list) {
  if (memory != SAMEBITS_MEMORY_DEVICE) {
    return samebits_optimizer_list_create(tensors, count, memory, list);
  }
  return api::guarded([&] {
    samebits_optimizer_list*& out = api::required(list, "list");
    samebits::backends::described_list described(tensors_of(tensors, count));
    const samebits::optimizer_list all = described.list();
    out = new samebits_optimizer_list{all, std::move(described)};
  });
}

samebits_status samebits_optimizer_list_tables_size(const samebits_optimizer_list* list,
                                                    size_t* bytes) {
  return api::guarded(
      [&] { api::required(bytes, "bytes") = tables_bytes(api::required(list, "list")); });
}

samebits_status samebits_optimizer_list_write_tables(samebits_optimizer_list* list, void* tables,
                                                     size_t size, const void* on_device) {
  return api::guarded([&] {
    samebits_optimizer_list& to = api::required(list, "list");
    const std::size_t bytes = tables_bytes(to);
    if (size != bytes) {
      throw samebits::invalid_argument("size: must be " + std::to_string(bytes) + ", got " +
                                       std::to_string(size));
    }
    if (size == 0) return;
    auto* const into = static_cast<std::byte*>(tables);
    api::check_array(into, size, "tables");
    const auto* const copied_to = static_cast<const std::byte*>(on_device);
    api::check_array(copied_to, size, "on_device");
    if (reinterpret_cast<std::uintptr_t>(copied_to) % 16 != 0) {
      throw samebits::invalid_argument("on_device: must be a multiple of 16");
    }
    to.described->write_tables(into, copied_to);
  });
}

void samebits_optimizer_list_destroy(samebits_optimizer_list* list) { delete list; }

samebits_status samebits_optimizer_list_size(const samebits_optimizer_list* list, size_t* tensors,
                                             uint64_t* elements) {
  return api::guarded([&] {
    const samebits::optimizer_list& all = api::required(list, "list").list;
    api::write(tensors, all.size());
    api::write(elements, all.elements());
  });
}

samebits_status samebits_optimizer_state_count(const samebits_optimizer_settings* settings,
                                               int32_t* count) {
  return api::guarded([&] {
    api::required(count, "count") = samebits::state_count(settings_of(settings, "settings"));
  });
}

samebits_status samebits_optimizer_step(const samebits_optimizer_list* list,
                                        const samebits_optimizer_settings* groups, size_t count,
                                        const samebits_step_input* input,
                                        const samebits_executor* where) {
  return api::guarded([&] {
    const samebits_optimizer_list& handle = api::required(list, "list");
    if (handle.described && !handle.described->has_tables()) {
      throw samebits::invalid_argument(
          "list: has no tables on the device; call samebits_optimizer_list_write_tables()");
    }
    const samebits_step_input in = api::read(input, "input");
    // The structs hold the same bits, so that device code reads either (layout.cpp).
    const auto* const decision = reinterpret_cast<const samebits::step_report*>(in.decision);
    samebits::optimizer_step(handle.list, groups_of(groups, count),
                             {.applied_steps = in.applied_steps,
                              .grad_mul = in.grad_mul,
                              .decision = decision,
                              .learning_rates = in.learning_rates,
                              .seed = in.seed},
                             api::where(where));
  });
}

samebits_status samebits_optimizer_list_save(const samebits_optimizer_list* list,
                                             const samebits_optimizer_settings* groups,
                                             size_t count, uint64_t applied_steps, uint64_t seed,
                                             void* bytes, size_t size, size_t* length) {
  return api::guarded([&] {
    const samebits::optimizer_list& all = api::required(list, "list").list;
    size_t& out = api::required(length, "length");
    auto* const to = static_cast<std::byte*>(bytes);
    api::check_array(to, size, "bytes");
    const std::vector<std::byte> saved =
        samebits::save(all, {groups_of(groups, count), applied_steps, seed});
    if (size != 0 && size < saved.size()) {
      throw samebits::invalid_argument("size: must be 0 or at least " +
                                       std::to_string(saved.size()) + ", got " +
                                       std::to_string(size));
    }
    if (size != 0) std::copy(saved.begin(), saved.end(), to);
    out = saved.size();
  });
}

samebits_status samebits_optimizer_list_load(const samebits_optimizer_list* list, const void* bytes,
                                             size_t size, uint64_t* applied_steps, uint64_t* seed,
                                             samebits_optimizer_settings* groups, size_t capacity,
                                             size_t* count) {
  return api::guarded([&] {
    const samebits::optimizer_list& all = api::required(list, "list").list;
    const auto* const from = static_cast<const std::byte*>(bytes);
    api::check_array(from, size, "bytes");
    check_groups(groups, capacity);
    uint64_t& steps = api::required(applied_steps, "applied_steps");
    uint64_t& of_random_bits = api::required(seed, "seed");
    const samebits::optimizer_checkpoint saved = samebits::load_optimizer(all, {from, size});
    for (std::size_t i = 0; i < std::min(capacity, saved.groups.size()); ++i) {
      api::write_options(group_at(groups, i), settings_in_c(saved.groups[i]), "groups");
    }
    steps = saved.applied_steps;
    of_random_bits = saved.seed;
    api::write(count, saved.groups.size());
  });
}
