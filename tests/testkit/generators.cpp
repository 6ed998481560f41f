// Generators of rules and options.
#include "samebits/testkit/generators.hpp"

#include "engine/core/choices.hpp"
#include "engine/core/fields.hpp"

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

template <class Rule>  // or options, which have the fields of one
void describe_rule(Rule& r, support::case_fields& fields) {
  const Rule plain;
  fields.reset("rounding", r.rounding, plain.rounding, "overflow", r.overflow, plain.overflow,
               "nan", r.nan, plain.nan);
}

std::vector<cast_rule> simpler_rules(const cast_rule& rule) {
  return support::simpler_cases(rule, describe_rule<cast_rule>);
}

std::vector<convert_options> simpler_options(const convert_options& options) {
  return support::simpler_cases(options, [](convert_options& o, support::case_fields& fields) {
    describe_rule(o, fields);
    fields.reset(o.random);
    fields.reset("K", o.random.bits, random_stream{}.bits);
  });
}

}  // namespace

rc::Gen<cast_rule> rules() { return support::case_generator<cast_rule>(draw_rule, simpler_rules); }

rc::Gen<convert_options> options() {
  return support::case_generator<convert_options>(draw_options, simpler_options);
}

}  // namespace samebits::testkit
