// Cases of scalar conversions, and their packaging as RapidCheck generators.
#include "support/generators.hpp"

#include "engine/core/fields.hpp"
#include "oracle/exact.hpp"
#include "support/rules.hpp"

namespace samebits::support {

random_bits draw_random(const word_source& next) {
  const int most = next() % 2 == 0 ? 32 : 4;
  const int k = 1 + static_cast<int>(next() % static_cast<std::uint64_t>(most));
  const std::uint64_t limit = std::uint64_t{1} << k;
  const std::uint64_t r = next() % 8 == 0 ? (next() % 2 == 0 ? 0 : limit - 1) : next() % limit;
  return {static_cast<std::uint32_t>(r), k};
}

random_bits draw_random_at(const oracle::placed_outcome& placed, const word_source& next) {
  random_bits random = draw_random(next);
  if (next() % 2 == 0) return random;
  const std::uint64_t limit = std::uint64_t{1} << random.count;
  random.value =
      static_cast<std::uint32_t>((placed.smallest_away(random.count) - next() % 2) % limit);
  return random;
}

random_bits draw_random_bits(format_id from, format_id to, std::uint64_t code,
                             const word_source& next) {
  return draw_random_at({oracle_of(to), {oracle::decode(oracle_of(from), code)}}, next);
}

case_space whole_space() {
  case_space space{all_formats(), all_formats(), {}};
  for (int i = 0; i < enum_count<rounding>; ++i) space.modes.push_back(static_cast<rounding>(i));
  return space;
}

namespace {

cast_rule draw_rule(const std::vector<rounding>& modes, const word_source& next) {
  return {one_of(modes, next), any_enumerator<overflow>(next), any_enumerator<nan_policy>(next)};
}

conversion_case draw_case(const case_space& space, const word_source& next) {
  conversion_case c;
  c.from = one_of(space.from, next);
  c.to = one_of(space.to, next);
  c.input = draw_any_code(c.from, c.to, next);
  c.rule = draw_rule(space.modes, next);
  if (c.rule.rounding == rounding::stochastic) {
    c.random = draw_random_bits(c.from, c.to, c.input, next);
  }
  return c;
}

/// Simpler inputs; then plainer policies. Formats and mode say what fails and stay.
std::vector<conversion_case> simpler_conversions(const conversion_case& from) {
  return simpler_cases(from, [](conversion_case& c, case_fields& fields) {
    const std::uint64_t input = c.input;
    for (const std::uint64_t code : simpler_codes(c.from, input)) {
      if (fields.change(code != input)) c.input = code;
    }
    fields.reset("overflow", c.rule.overflow, overflow::ieee, "nan", c.rule.nan,
                 nan_policy::canonical);
    if (fields.change(c.random.value != 0)) c.random.value &= c.random.value - 1;
  });
}

}  // namespace

rc::Gen<conversion_case> cases(const case_space& space) {
  return case_generator<conversion_case>(
      [space](const word_source& next) { return draw_case(space, next); }, simpler_conversions);
}

rc::Gen<std::uint64_t> codes(format_id from, format_id to) {
  return case_generator<std::uint64_t>(
      [=](const word_source& next) { return draw_any_code(from, to, next); },
      [=](std::uint64_t code) { return simpler_codes(from, code); });
}

}  // namespace samebits::support
