// Lines of a loss scaler's checkpoint, and the text form of a scaler in device memory.
#include "backends/loss_scaler/lines.hpp"

#include <optional>
#include <variant>

#include "backends/loss_scaler/checks.hpp"
#include "backends/loss_scaler/fields.hpp"
#include "samebits/device_loss_scaler.hpp"
#include "samebits/options.hpp"

namespace samebits {
namespace backends {

std::string policy_lines(std::string_view heading, const scaling_settings& settings,
                         const scaling_state& state) {
  std::string text(heading);
  text += "\npolicy " + std::string(name(policy_of(settings))) + "\n";
  const auto line = [&](std::string_view word, const auto& value) { add_line(text, word, value); };
  std::visit([&](const auto& s) { for_each_setting(s, line); }, settings);
  text += "state\n";
  std::visit([&](const auto& s) { for_each_field(s, line); }, state);
  return text;
}

policy_text read_policy(line_reader& lines, std::string_view heading) {
  lines.expect(heading);
  const std::optional<scaling_policy> policy =
      find_enumerator<scaling_policy>(lines.after("policy"));
  if (!policy) lines.refuse("that policy is not known");
  policy_text read = {default_settings(*policy), {}};
  const auto value = [&](std::string_view word, auto& field) { lines.read(word, field); };
  std::visit([&](auto& s) { for_each_setting(s, value); }, read.settings);
  check_settings(read.settings);
  lines.expect("state");
  std::visit(
      [&](const auto& settings) {
        auto state = initial_state(settings);
        for_each_field(state, value);
        read.state = state;
      },
      read.settings);
  check_state(read.settings, read.state);
  return read;
}

}  // namespace backends

namespace {
constexpr std::string_view device_heading = "samebits device_scaler 1";
}

std::string save(const device_scaler_checkpoint& checkpoint) {
  check_settings(checkpoint.settings);
  backends::check_state(checkpoint.settings, checkpoint.state.policy);
  std::string text =
      backends::policy_lines(device_heading, checkpoint.settings, checkpoint.state.policy);
  backends::add_line(text, "steps", checkpoint.state.steps);
  backends::add_line(text, "applied_steps", checkpoint.state.applied_steps);
  return text + "end\n";
}

device_scaler_checkpoint load_device_scaler(std::string_view text) {
  backends::line_reader lines(text, "load_device_scaler");
  const backends::policy_text policy = backends::read_policy(lines, device_heading);
  device_scaler_checkpoint read = {policy.settings, {policy.state, 0, 0}};
  lines.read("steps", read.state.steps);
  lines.read("applied_steps", read.state.applied_steps);
  if (read.state.applied_steps > read.state.steps) {
    lines.refuse("applied_steps must not exceed steps");
  }
  lines.expect("end");
  if (!lines.at_end()) lines.refuse("nothing may follow");
  return read;
}

}  // namespace samebits
