// The checks of deterministic rounding, the list of all checks of conversions, and headings.
#include "backends/verify/checks.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "backends/verify/conversion.hpp"

namespace samebits::backends::verification {
namespace {

using enum format_id;

constexpr std::array common_targets{fp16, bf16, e4m3, e5m2};

std::vector<cast_rule> deterministic_rules() {
  std::vector<cast_rule> rules;
  for (int mode = 0; mode < enum_count<rounding>; ++mode) {
    if (static_cast<rounding>(mode) == rounding::stochastic) continue;
    for (int policy = 0; policy < enum_count<overflow>; ++policy) {
      for (int nan = 0; nan < enum_count<nan_policy>; ++nan) {
        rules.push_back({static_cast<rounding>(mode), static_cast<overflow>(policy),
                         static_cast<nan_policy>(nan)});
      }
    }
  }
  return rules;
}

/// Compares the conversions of one row of inputs to one format under every deterministic rule.
void compare_rules(comparer& backends, const code_buffer& input, format_id to, heading& h) {
  static const std::vector<cast_rule> rules = deterministic_rules();
  const placement row = placement::dense(1, static_cast<std::int64_t>(input.count()));
  for (const cast_rule& rule : rules) {
    backends.compare(call_of(conversion{to, rule, row, row}, input), h.per_backend);
  }
}

void add_all_codes(comparer& backends, format_id from, heading& h) {
  const code_buffer input = all_codes(from);
  backends.set_input(input);
  for (int to = 0; to < format_count; ++to) compare_rules(backends, input, format_at(to), h);
}

void check_narrow(comparer& backends, const done_function& done) {
  for (const format_id from : {fp16, bf16}) {
    heading h = make_heading(backends, "all 65536 codes");
    add_all_codes(backends, from, h);
    done(h);
  }
  heading bytes = make_heading(backends, "all 256 codes");
  for (int i = 0; i < format_count; ++i) {
    if (storage_bytes(format_at(i)) == 1) add_all_codes(backends, format_at(i), bytes);
  }
  done(bytes);
}

/// Checks conversions from fp32 to the training formats. The sweep is generated and uploaded once
/// for all of them.
void check_fp32(comparer& backends, const effort& much, const done_function& done) {
  constexpr std::uint64_t all = std::uint64_t{1} << 32;
  const std::string sweep =
      much.fp32_stride == 1
          ? "all 2^32 codes"
          : "every threshold and every " + std::to_string(much.fp32_stride) + "th code";
  std::vector<heading> headings;
  for (const format_id to : common_targets) {
    headings.push_back(make_heading(backends, sweep));
    if (much.fp32_stride == 1) continue;
    std::vector<std::uint64_t> codes = threshold_codes(fp32, to, much.grid_limit);
    const std::vector<std::uint64_t> specials = special_codes(fp32);
    codes.insert(codes.end(), specials.begin(), specials.end());
    const code_buffer input = to_buffer(fp32, codes);
    backends.set_input(input);
    compare_rules(backends, input, to, headings.back());
  }
  const std::uint64_t total = (all + much.fp32_stride - 1) / much.fp32_stride;
  for (std::uint64_t first = 0; first < total; first += much.slice) {
    const code_buffer input = fp32_sweep(first * much.fp32_stride, much.fp32_stride,
                                         std::min(much.slice, total - first), backends.threads());
    backends.set_input(input);
    for (std::size_t i = 0; i < common_targets.size(); ++i) {
      compare_rules(backends, input, common_targets[i], headings[i]);
    }
  }
  for (const heading& h : headings) done(h);
}

/// Checks conversions from 32-bit and 64-bit formats that no other check covers.
void check_wide(comparer& backends, const effort& much, const done_function& done) {
  std::uint64_t sequence = 100;
  for (const format_id from : {fp32, tf32, fp64}) {
    heading h = make_heading(backends, "thresholds and random bits");
    for (int i = 0; i < format_count; ++i) {
      const format_id to = format_at(i);
      const bool done_above =
          from == fp32 &&
          std::find(common_targets.begin(), common_targets.end(), to) != common_targets.end();
      if (done_above) continue;
      std::vector<std::uint64_t> codes = threshold_codes(from, to, much.grid_limit);
      for (const std::uint64_t code : special_codes(from)) codes.push_back(code);
      const code_buffer random =
          random_codes(from, std::span(&to, 1), ++sequence, much.patterns, backends.threads());
      for (const code_buffer& input : {to_buffer(from, codes), random}) {
        backends.set_input(input);
        compare_rules(backends, input, to, h);
      }
    }
    done(h);
  }
}

std::string formats_text(const std::bitset<format_count>& formats) {
  if (formats.count() > 4) return std::to_string(formats.count()) + " formats";
  std::string text;
  for (int i = 0; i < format_count; ++i) {
    if (!formats.test(static_cast<std::size_t>(i))) continue;
    text += (text.empty() ? "" : ", ") + std::string(name(format_at(i)));
  }
  return text;
}

std::string count_text(std::size_t count, const char* what) {
  return ", " + std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace

heading make_heading(const comparer& backends, std::string inputs, std::string rules,
                     std::string operation) {
  return {std::move(operation), std::move(inputs), std::move(rules),
          std::vector<tally>(backends.count())};
}

std::string heading::text(const tally& t) const {
  const coverage& c = t.covers;
  std::string text = operation + formats_text(c.sources) + " to " + formats_text(c.targets);
  if (c.tiles.any()) text += count_text(c.tiles.count(), "tile");
  if (c.scale_rules.any()) text += count_text(c.scale_rules.count(), "scale rule");
  text += ", " + inputs;
  if (!rules.empty()) return text + ", " + rules;
  return c.rules.any() ? text + count_text(c.rules.count(), "rule") : text;
}

void check_conversions(comparer& backends, const effort& much, const done_function& done) {
  check_narrow(backends, done);
  check_wide(backends, much, done);
  check_views(backends, done);
  check_stochastic(backends, much, done);
  check_fp32(backends, much, done);
}

}  // namespace samebits::backends::verification
