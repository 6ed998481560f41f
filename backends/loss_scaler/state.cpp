// The loss scaler's checkpoints: its own text, and the state_dict of other libraries.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "backends/api/value_text.hpp"
#include "backends/dispatch/refuse.hpp"
#include "backends/loss_scaler/checks.hpp"
#include "backends/loss_scaler/fields.hpp"
#include "backends/loss_scaler/lines.hpp"
#include "numerics/arithmetic/binary64.hpp"
#include "samebits/loss_scaler.hpp"
#include "samebits/options.hpp"

namespace samebits {
namespace {

using backends::for_each_field;
using backends::for_each_setting;

constexpr std::string_view heading = "samebits loss_scaler 1";

/// Stores an entry's number in a field; returns false if the field cannot hold the number.
template <class T>
bool take(double from, T& field) {
  if constexpr (std::is_same_v<T, double>) {
    field = from;
    return true;
  } else if constexpr (std::is_same_v<T, float>) {
    const std::uint32_t narrow = numerics::binary64::narrow(detail::bits_of(from));
    field = detail::number_of(narrow);
    return numerics::binary64::widen(narrow) == detail::bits_of(from);
  } else if constexpr (std::is_integral_v<T>) {
    constexpr double maximum = std::is_same_v<T, bool> ? 1.0 : 9007199254740992.0;  // 2^53
    if (!(from >= -maximum && from <= maximum)) return false;
    field = static_cast<T>(from);
    return static_cast<double>(field) == from;
  } else {
    return false;  // native policy settings, which no other library has
  }
}

template <class T>
double entry_value(const T& field) {
  if constexpr (std::is_same_v<T, float>) {
    return detail::number_of(numerics::binary64::widen(detail::bits_of(field)));
  } else if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(field);
  } else {
    return 0;
  }
}

[[noreturn]] void refuse_import(scaling_policy from, const std::string& why) {
  refuse("loss_scaler::import_state, policy ", from, ": ", why);
}

/// Reads settings and state of one library from its entries.
template <class Settings>
void import_entries(std::span<const state_entry> entries, Settings& settings,
                    decltype(numerics::initial_state(settings))& state) {
  std::vector<bool> used(entries.size());
  const auto find = [&](std::string_view key, auto& field) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].key != key) continue;
      used[i] = true;
      if (!take(entries[i].value, field)) {
        refuse_import(settings.policy, entries[i].key + ": expected " + backends::expected(field) +
                                           ", got " + backends::value_text(entries[i].value));
      }
      return true;
    }
    return false;
  };
  for_each_setting(settings, find);
  for_each_field(state, [&](std::string_view key, auto& field) {
    if (!find(key, field)) refuse_import(settings.policy, "there is no " + std::string(key));
  });
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!used[i]) refuse_import(settings.policy, entries[i].key + " is not a key of this policy");
  }
}

/// The exponent of a native scaler that continues from another scale.
std::int32_t level_of(double scale, const native_scaling& settings) {
  const std::uint64_t bits = detail::bits_of(scale);
  if (bits == 0) return settings.min_exponent;
  if (bits >= numerics::binary64::inf) return settings.max_exponent;
  const std::int32_t level = numerics::binary64::split(bits).exponent + 52;
  if (level < settings.min_exponent) return settings.min_exponent;
  return level > settings.max_exponent ? settings.max_exponent : level;
}

/// The state of a library's scaler at this scale. Its settings are the defaults, except powers of
/// two.
template <class Settings>
void export_native(const native_state& native, Settings& settings,
                   decltype(numerics::initial_state(settings))& state) {
  state = numerics::initial_state(settings);
  const double scale = scale_of(native);
  state.scale = static_cast<decltype(state.scale)>(scale);  // exact: the scale is >= 2^-126
  const auto good = static_cast<std::int64_t>(native.good);
  if constexpr (requires { settings.scale_window; }) {
    settings.init_scale = scale;
    state.cur_iter = good < settings.scale_window ? good : settings.scale_window - 1;
  } else {
    state.growth_tracker = good < settings.growth_interval ? good : settings.growth_interval - 1;
  }
}

/// The text of a scaler, without its optimizers: a line for each setting and each state field.
std::string text_of(const scaling_settings& settings, const scaling_state& state,
                    std::uint64_t updates) {
  std::string text(heading);
  text += "\npolicy " + std::string(name(policy_of(settings))) + "\n";
  const auto line = [&](std::string_view word, const auto& value) {
    backends::add_line(text, word, value);
  };
  std::visit([&](const auto& s) { for_each_setting(s, line); }, settings);
  text += "state\n";
  std::visit([&](const auto& s) { for_each_field(s, line); }, state);
  line("updates", updates);
  return text;
}

/// Reads the settings that text_of() wrote.
scaling_settings read_settings(backends::line_reader& lines) {
  lines.expect(heading);
  const std::optional<scaling_policy> policy =
      find_enumerator<scaling_policy>(lines.after("policy"));
  if (!policy) lines.refuse("that policy is not known");
  scaling_settings settings = default_settings(*policy);
  std::visit(
      [&](auto& s) {
        for_each_setting(s, [&](std::string_view word, auto& v) { lines.read(word, v); });
      },
      settings);
  check_settings(settings);
  return settings;
}

/// Reads the state that text_of() wrote.
scaling_state read_state(backends::line_reader& lines, const scaling_settings& settings) {
  lines.expect("state");
  const scaling_state read = std::visit(
      [&](const auto& s) -> scaling_state {
        auto state = numerics::initial_state(s);
        for_each_field(state, [&](std::string_view word, auto& v) { lines.read(word, v); });
        return state;
      },
      settings);
  backends::check_state(settings, read);
  return read;
}

}  // namespace

std::string backends::loss_scaler_text(const scaling_settings& settings, const scaling_state& state,
                                       std::uint64_t updates, std::uint64_t applied_steps) {
  return text_of(settings, state, updates) + "applied " + std::to_string(applied_steps) +
         " \nend\n";
}

std::string loss_scaler::save() const {
  require<call_order_error>(between_updates(),
                            "loss_scaler: save(): called between unscale() and update()");
  std::string text = text_of_state();
  for (const auto& [optimizer, r] : optimizers_) {
    text += "applied " + std::to_string(r.applied) + " " + optimizer + "\n";
  }
  return text + "end\n";
}

std::string loss_scaler::text_of_state() const { return text_of(settings_, state_, updates_); }

loss_scaler loss_scaler::load(std::string_view text) {
  backends::line_reader lines(text, "loss_scaler::load");
  loss_scaler scaler(read_settings(lines));
  scaler.state_ = read_state(lines, scaler.settings_);
  lines.read("updates", scaler.updates_);
  while (lines.at("applied ")) {
    const std::string_view rest = lines.after("applied");
    const std::size_t space = rest.find(' ');
    record r;
    if (space == std::string_view::npos ||
        !backends::read_value(rest.substr(0, space), r.applied)) {
      lines.refuse("expected a count and the name of an optimizer");
    }
    if (r.applied > scaler.updates_)
      lines.refuse("more steps were applied than there were updates");
    scaler.optimizers_.insert_or_assign(std::string(rest.substr(space + 1)), r);
  }
  lines.expect("end");
  if (!lines.at_end()) lines.refuse("nothing may follow");
  return scaler;
}

void loss_scaler::import_state(scaling_policy from, std::span<const state_entry> entries) {
  require<call_order_error>(between_updates(),
                            "loss_scaler: import_state(): called between unscale() and update()");
  const scaling_policy own = policy_of(settings_);
  refuse_if(from != own && own != scaling_policy::native,
            "loss_scaler::import_state: a scaler of policy ", own, " cannot continue from policy ",
            from);
  refuse_if(from == scaling_policy::native,
            "loss_scaler::import_state: native states are read by load()");
  scaling_settings settings = own == from ? settings_ : default_settings(from);
  scaling_state state = std::visit(
      [&](auto& s) -> scaling_state {
        auto read = numerics::initial_state(s);
        if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(s)>, native_scaling>) {
          import_entries(entries, s, read);
        }
        return read;
      },
      settings);
  check_settings(settings);
  backends::check_state(settings, state);
  if (own == from) {
    settings_ = settings;
    state_ = state;
    return;
  }
  const double scale = std::visit([](const auto& s) { return scale_of(s); }, state);
  native_state native = numerics::initial_state(std::get<native_scaling>(settings_));
  native.exponent = level_of(scale, std::get<native_scaling>(settings_));
  native.reference = native.exponent;
  state_ = native;
}

std::vector<state_entry> loss_scaler::export_state(scaling_policy to) const {
  const scaling_policy own = policy_of(settings_);
  const bool native = own == scaling_policy::native;
  refuse_if(to == scaling_policy::native || (!native && to != own),
            "loss_scaler::export_state: a scaler of policy ", own, " has no state for policy ", to);
  std::vector<state_entry> entries;
  const auto add = [&](std::string_view key, const auto& value) {
    entries.push_back({std::string(key), entry_value(value)});
  };
  const auto add_all = [&](const auto& settings, const auto& state) {
    // The dictionaries of Megatron and Apex contain no settings. Those of PyTorch and the
    // attributes of DeepSpeed's object contain settings, but not the initial scale.
    const scaling_policy p = settings.policy;
    if (p == scaling_policy::torch || p == scaling_policy::apex || p == scaling_policy::deepspeed) {
      for_each_setting(settings, [&](std::string_view key, const auto& value) {
        if (key != "init_scale" && key != "hysteresis") add(key, value);
      });
    }
    for_each_field(state, add);
  };
  if (!native) {
    std::visit(
        [&](const auto& settings) {
          add_all(settings, std::get<decltype(numerics::initial_state(settings))>(state_));
        },
        settings_);
    return entries;
  }
  scaling_settings settings = default_settings(to);
  std::visit(
      [&](auto& s) {
        auto state = numerics::initial_state(s);
        using type = std::remove_cvref_t<decltype(s)>;
        if constexpr (std::is_same_v<type, torch_scaling> || std::is_same_v<type, apex_scaling> ||
                      std::is_same_v<type, megatron_scaling> ||
                      std::is_same_v<type, deepspeed_scaling>) {
          export_native(std::get<native_state>(state_), s, state);
          add_all(s, state);
        }
      },
      settings);
  return entries;
}

}  // namespace samebits
