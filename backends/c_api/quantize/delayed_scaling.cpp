// Delayed scaling through the C interface.
#include "samebits/delayed_scaling.hpp"

#include <span>
#include <string>

#include "backends/c_api/arguments/arguments.hpp"
#include "backends/c_api/arguments/guarded.hpp"
#include "backends/c_api/arguments/options.hpp"
#include "samebits/c/delayed_scaling.h"
#include "samebits/error.hpp"

namespace api = samebits::c_api;

namespace {

samebits::delayed_settings settings_of(const samebits_delayed_settings* settings) {
  const samebits_delayed_settings s = api::read(settings, "settings");
  if (s.format != SAMEBITS_FORMAT_E4M3 && s.format != SAMEBITS_FORMAT_E5M2) {
    throw samebits::invalid_argument("settings.format: must be e4m3 or e5m2, got " +
                                     std::to_string(s.format));
  }
  return {.to = static_cast<samebits::format_id>(s.format),
          .margin = s.margin,
          .choice = api::enumerator<samebits::history_choice>(s.history_choice,
                                                              "settings.history_choice"),
          .on_zero = api::enumerator<samebits::zero_step>(s.zero_step, "settings.zero_step")};
}

}  // namespace

samebits_status samebits_delayed_observe(float* history, size_t count, float amax) {
  return api::guarded([&] {
    api::check_array(history, count, "history");
    samebits::observe(std::span(history, count), amax);
  });
}

samebits_status samebits_delayed_update(samebits_delayed_scale* state, float* history, size_t count,
                                        const samebits_delayed_settings* settings) {
  return api::guarded([&] {
    samebits_delayed_scale& s = api::required(state, "state");
    api::check_array(history, count, "history");
    const samebits::delayed_scale next =
        samebits::updated({.inverse_scale = s.inverse_scale, .scale = s.scale},
                          std::span(history, count), settings_of(settings));
    s = {.inverse_scale = next.inverse_scale, .scale = next.scale};
  });
}
