// `fpinspect update`: a weight under an optimizer, kept in several ways side by side.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/commands.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/named_argument.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/explore/number_argument.hpp"
#include "fpinspect/explore/update/update_result.hpp"
#include "fpinspect/explore/update/weight_modes.hpp"
#include "fpinspect/output/terminal.hpp"
#include "fpinspect/tensors/source/source.hpp"
#include "samebits/error.hpp"
#include "samebits/text.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {
namespace {

using samebits::tensor_file::quote;

float fp32_argument(std::string_view option, std::string_view text) {
  const auto number = static_cast<float>(number_argument(option, text));
  if (std::isfinite(number)) return number;
  throw usage_error(cat(option, ": ", quote(text), " is beyond the numbers of fp32"));
}

samebits::optimizer_settings settings_of(const update_arguments& arguments) {
  samebits::optimizer_settings settings;
  settings.rule = enumerator_argument<samebits::update_rule>("--rule", arguments.rule);
  settings.learning_rate = number_argument("--lr", arguments.learning_rate);
  settings.weight_decay = number_argument("--weight-decay", arguments.weight_decay);
  settings.beta1 = number_argument("--beta1", arguments.beta1);
  settings.beta2 = number_argument("--beta2", arguments.beta2);
  settings.epsilon = number_argument("--epsilon", arguments.epsilon);
  settings.momentum = number_argument("--momentum", arguments.momentum);
  return settings;
}

/// The first `steps` elements of a file, or all if there are fewer.
std::vector<float> gradients_of_file(const std::string& input, std::uint64_t steps) {
  const source_tensor source = open_source("--gradient", input, "--from", "");
  const std::uint64_t count = std::min(source.info.count, steps);
  if (count == 0) throw usage_error(cat("--gradient: ", quote(input), " has no elements"));
  std::vector<std::byte> codes(static_cast<std::size_t>(count) * sizeof(double));
  source.read(0, count, codes.data());
  std::vector<double> values(static_cast<std::size_t>(count));
  decode(source.format(), codes.data(), values);
  return {values.begin(), values.end()};
}

std::vector<float> gradients_of(const std::string& argument, std::uint64_t steps) {
  const bool is_number = samebits::parse(samebits::format_id::fp64, argument).ok;
  if (!is_number && names_a_file(argument)) return gradients_of_file(argument, steps);
  return {fp32_argument("--gradient", argument)};
}

/// 0, 1, 2, 5, 10, 20, 50, ... or 0 and the multiples of `every`; and the last step.
std::vector<std::uint64_t> shown_steps(std::uint64_t steps, std::uint64_t every) {
  std::vector<std::uint64_t> shown = {0};
  if (every != 0) {
    for (std::uint64_t t = every; t < steps; t += every) shown.push_back(t);
  } else {
    for (std::uint64_t decade = 1; decade < steps; decade *= 10) {
      for (const std::uint64_t t : {decade, 2 * decade, 5 * decade}) {
        if (t < steps) shown.push_back(t);
      }
    }
  }
  shown.push_back(steps);
  return shown;
}

update_plan plan_of(const update_arguments& arguments) {
  constexpr std::uint64_t most_steps = 1'000'000;
  update_plan plan;
  plan.settings = settings_of(arguments);
  plan.modes = weight_modes_argument("--modes", arguments.modes);
  plan.start = fp32_argument("--start", arguments.start);
  constexpr float usual_ratio = 3;  // of the largest of 128 weights to a weight
  constexpr float largest = std::numeric_limits<float>::max();
  plan.block_amax = arguments.block_amax.empty()
                        ? std::min(usual_ratio * std::abs(plan.start), largest)
                        : fp32_argument("--block-amax", arguments.block_amax);
  const std::uint64_t steps = unsigned_argument("--steps", arguments.steps, 1, most_steps);
  const std::uint64_t every =
      arguments.every.empty() ? 0 : unsigned_argument("--every", arguments.every, 1, most_steps);
  plan.shown = shown_steps(steps, every);
  plan.gradients = gradients_of(arguments.gradient, steps);
  plan.seed = unsigned_argument("--seed", arguments.seed);
  return plan;
}

/// A refusal by optimizer_step(), "groups[0].learning_rate: ...", with the option's name.
std::string option_message(std::string message) {
  constexpr std::string_view prefix = "groups[0].";
  constexpr std::string_view rate = "learning_rate";
  if (!message.starts_with(prefix)) return message;
  message.erase(0, prefix.size());
  if (message.starts_with(rate)) message.replace(0, rate.size(), "lr");
  std::replace(message.begin(), std::find(message.begin(), message.end(), ':'), '_', '-');
  return "--" + message;
}

}  // namespace

void run_update(const update_arguments& arguments, output& out) try {
  const terminal term(arguments.view);
  const update_plan plan = plan_of(arguments);
  const update_result result{plan, name(plan.settings.rule), arguments.gradient, lives_of(plan),
                             exact_life(plan)};
  out.write(arguments.view.json ? update_json(result) : update_text(result, term));
} catch (const samebits::invalid_argument& error) {
  throw usage_error(option_message(error.what()));
}

}  // namespace fpinspect
