// Loss scaling in the caller's memory: checks, the work on host memory, and the choice of the
// device backend.
#include "backends/loss_scaler/resident.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <variant>

#include "backends/api/lists/list_checks.hpp"
#include "backends/api/value_text.hpp"
#include "backends/dispatch/access.hpp"
#include "backends/dispatch/device_scope.hpp"
#include "backends/dispatch/refuse.hpp"
#include "backends/loss_scaler/fields.hpp"
#include "backends/loss_scaler/lines.hpp"
#include "backends/loss_scaler/report_ring.hpp"
#include "backends/ranks/ranks.hpp"
#include "samebits/options.hpp"

namespace samebits::backends {
namespace {

/// Calls f(settings, resident scaler of the policy's type) with the state in host memory.
template <class Function>
auto with_resident(const scaling_settings& settings, const Function& f) {
  return std::visit(
      [&](const auto& s) {
        using state = decltype(numerics::initial_state(s));
        return f(s, numerics::resident_scaler<state>{});
      },
      settings);
}

const backend& device_backend(const executor& where = {}) {
  const backend& chosen =
      resolve(where, memory_space::device, [](const backend& b) { return b.scaler != nullptr; });
  check_memory(chosen, memory_space::device);
  return chosen;
}

numerics::gradient_report unscaled_on_host(const tensor_list& gradients,
                                           const numerics::unscale_rule& rule,
                                           const numerics::scaler_words& words,
                                           const executor& where) {
  if (rule.rewrites && !rule.only_clips && rule.max_norm == numerics::binary64::inf) {
    const unscale_report seen =
        samebits::unscale(gradients, std::bit_cast<float>(words.inverse), where);
    return numerics::report_of_unscaling(words, rule, seen.nonfinite, seen.overflowed,
                                         seen.amax_bits, seen.first_bad);
  }
  const inspect_report seen = samebits::inspect(gradients, {}, where);
  const numerics::gradient_report report =
      numerics::report_of_inspection(words, rule, std::bit_cast<std::uint64_t>(seen.total.squares),
                                     seen.total.amax_bits, seen.first_bad);
  if (report.writes != 0) samebits::scale(gradients, std::bit_cast<float>(report.factor), where);
  return report;
}

}  // namespace

gradient_list::gradient_list(std::vector<list_tensor> tensors) {
  if (tensors.empty() || tensors.front().view.space == memory_space::host) {
    host_.emplace(std::move(tensors));
    check_list(*host_, "gradients", number_formats);
    described_ = std::shared_ptr<const list_data>(std::shared_ptr<void>(), &data_of(*host_));
    return;
  }
  const auto list = describe_list(std::move(tensors), "gradients");
  for (std::size_t i = 0; i < list->tensors.size(); ++i) {
    const format_id f = list->tensors[i].view.format;
    require(is_among(f, number_formats), list_item{"gradients", i, list->tensors[i].name},
            ": format must be fp32, fp16 or bf16, got ", f);
  }
  list->device = device_of(*list, "gradients");
  described_ = list;
}

std::size_t gradient_list::workspace_bytes() const {
  return space() == memory_space::host ? 0 : device_backend().scaler->workspace(*described_);
}

void unscale(const gradient_list& gradients, const numerics::unscale_rule& rule,
             const unscale_memory& memory, const executor& where) {
  refuse_if(rule.max_norm > numerics::binary64::inf, "options.max_norm: must be a number >= 0");
  if (gradients.space() == memory_space::host) {
    *memory.report = unscaled_on_host(gradients.host(), rule, *memory.words, where);
    return;
  }
  const list_data& list = gradients.described();
  const device_scope on(memory_space::device, list.device, where.stream);
  const backend& chosen = device_backend(where);
  chosen.scaler->unscale(list, rule, memory, where.stream);
}

void update(const scaling_settings& settings, memory_space space, const update_memory& memory,
            void* stream) {
  refuse_if(memory.capacity == 0, "capacity: must be 1 or more");
  if (space == memory_space::device) {
    const device_scope on(memory_space::device, {{memory.state, "state"}}, stream);
    device_backend().scaler->update(settings, memory, stream);
    return;
  }
  with_resident(settings, [&](const auto& s, auto resident) {
    std::memcpy(&resident, memory.state, sizeof resident);
    const step_report report =
        numerics::end_step(s, resident, *memory.words, memory.reports, memory.count);
    std::memcpy(memory.state, &resident, sizeof resident);
    put_report({memory.ring, memory.capacity}, report);
  });
}

std::size_t resident_bytes(const scaling_settings& settings) {
  return with_resident(settings, [](const auto&, auto resident) { return sizeof resident; });
}

std::uint32_t settings_word(const scaling_settings& settings) {
  fingerprint print;
  std::visit(
      [&](const auto& s) {
        print.add(name(s.policy));
        for_each_setting(
            s, [&](std::string_view, const auto& value) { print.add(value_text(value) + " "); });
      },
      settings);
  return print.folded();
}

void store_resident(const loss_scaler& from, std::byte* state, numerics::scaler_words* words) {
  with_resident(from.settings(), [&](const auto&, auto resident) {
    using type = decltype(resident);
    resident = type{std::get<decltype(resident.policy)>(from.state()), from.updates(),
                    from.applied_steps()};
    std::memset(state, 0, sizeof resident);
    std::memcpy(state, &resident, sizeof resident);
    const std::uint64_t scale = numerics::scale_bits(resident.policy);
    *words = {.scale = numerics::binary64::narrow(scale),
              .inverse = numerics::inverse_scale(scale)};
  });
}

loss_scaler load_resident(const scaling_settings& settings, const std::byte* state) {
  return with_resident(settings, [&](const auto&, auto resident) {
    std::memcpy(&resident, state, sizeof resident);
    return loss_scaler::load(
        loss_scaler_text(settings, resident.policy, resident.steps, resident.applied_steps));
  });
}

}  // namespace samebits::backends
