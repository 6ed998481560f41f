// Generators of rules and options.
#include "samebits/testkit/generators.hpp"

#include <functional>

#include "engine/core/choices.hpp"
#include "engine/core/simpler.hpp"

namespace samebits::testkit {
namespace {

cast_rule draw_rule(const support::word_source& next) {
  return {support::any_enumerator<rounding>(next), support::any_enumerator<overflow>(next),
          support::any_enumerator<nan_policy>(next)};
}

convert_options draw_options(const support::word_source& next) {
  const cast_rule rule = draw_rule(next);
  return {rule.rounding, rule.overflow, rule.nan, support::draw_random_stream(next)};
}

std::vector<cast_rule> simpler_rules(const cast_rule& rule) {
  support::simpler_cases<cast_rule> all(rule);
  all.reset(std::identity{}, cast_rule{}, &cast_rule::rounding, &cast_rule::overflow,
            &cast_rule::nan);
  return all.all();
}

std::vector<convert_options> simpler_options(const convert_options& options) {
  support::simpler_cases<convert_options> all(options);
  all.reset(std::identity{}, convert_options{}, &convert_options::rounding,
            &convert_options::overflow, &convert_options::nan);
  all.reset_random(&convert_options::random);
  all.reset(&convert_options::random, random_stream{}, &random_stream::bits);
  return all.all();
}

}  // namespace

rc::Gen<cast_rule> rules() { return support::case_generator<cast_rule>(draw_rule, simpler_rules); }

rc::Gen<convert_options> options() {
  return support::case_generator<convert_options>(draw_options, simpler_options);
}

}  // namespace samebits::testkit
