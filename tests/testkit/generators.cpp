// Generators of rules and options.
#include "samebits/testkit/generators.hpp"

#include <utility>
#include <vector>

namespace samebits::testkit {
namespace {

template <class Enum>
Enum any(int count, rc::Random& random) {
  return static_cast<Enum>(random.next() % static_cast<std::uint64_t>(count));
}

cast_rule draw_rule(rc::Random& random) {
  return {any<rounding>(enum_count<rounding>, random), any<overflow>(enum_count<overflow>, random),
          any<nan_policy>(enum_count<nan_policy>, random)};
}

/// Returns copies of `value`, each with one of the members reset to its default.
template <class T, class... Member>
std::vector<T> reset(const T& value, Member T::*... members) {
  const T plain{};
  std::vector<T> simpler;
  const auto set_back = [&](auto member) {
    if (value.*member == plain.*member) return;
    T other = value;
    other.*member = plain.*member;
    simpler.push_back(std::move(other));
  };
  (set_back(members), ...);
  return simpler;
}

std::vector<convert_options> simpler_options(const convert_options& o) {
  std::vector<convert_options> simpler =
      reset(o, &convert_options::rounding, &convert_options::overflow, &convert_options::nan);
  for (const random_stream& stream :
       reset(o.random, &random_stream::seed, &random_stream::stream, &random_stream::offset,
             &random_stream::pitch, &random_stream::bits)) {
    simpler.push_back(o);
    simpler.back().random = stream;
  }
  return simpler;
}

}  // namespace

rc::Gen<cast_rule> rules() {
  return [](const rc::Random& random, int) {
    rc::Random state = random;
    return rc::shrinkable::shrinkRecur(draw_rule(state), [](const cast_rule& rule) {
      return rc::seq::fromContainer(
          reset(rule, &cast_rule::rounding, &cast_rule::overflow, &cast_rule::nan));
    });
  };
}

rc::Gen<convert_options> options() {
  return [](const rc::Random& random, int) {
    rc::Random state = random;
    const support::word_source next = [&state] { return state.next(); };
    const cast_rule rule = draw_rule(state);
    random_stream stream;
    stream.seed = support::draw_number(next);
    stream.stream = support::draw_number(next);
    stream.offset = support::draw_number(next);
    if (next() % 2 == 0) stream.pitch = support::draw_number(next);
    stream.bits = 1 + static_cast<int>(next() % 32);
    return rc::shrinkable::shrinkRecur(
        convert_options{rule.rounding, rule.overflow, rule.nan, stream},
        [](const convert_options& o) { return rc::seq::fromContainer(simpler_options(o)); });
  };
}

}  // namespace samebits::testkit
