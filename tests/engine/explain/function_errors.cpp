// The usual errors of kernels of functions: other rules and functions, flushed subnormals.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "engine/explain/errors.hpp"
#include "samebits/error.hpp"
#include "samebits/scalar.hpp"

namespace samebits::testkit {
namespace {

/// Functions that one is taken for.
std::vector<function> related(function f) {
  switch (f) {
    case function::gelu: return {function::gelu_tanh};
    case function::gelu_tanh: return {function::gelu};
    case function::exp: return {function::fast_exp};
    case function::fast_exp: return {function::exp};
    case function::log: return {function::fast_log};
    case function::fast_log: return {function::log};
    default: return {};
  }
}

code_list results_of(const function_under_test& tested, code_list codes) {
  const specification what = specification_of(tested);
  return what.results_of(what.reference, row_of(std::move(codes)))[0];
}

code_list flushed(format_id format, code_list codes) {
  const std::uint64_t sign = std::uint64_t{1} << (spec_of(format).storage_bits - 1);
  for (std::uint64_t& code : codes) {
    if (classify(format, code) == number_class::subnormal) code &= sign;
  }
  return codes;
}

bool is_supported(const function_under_test& tested) {
  try {
    results_of(tested, {});
  } catch (const unsupported&) {
    return false;
  }
  return true;
}

std::optional<std::uint64_t> largest_distance(format_id f, const std::vector<seen_call>& calls) {
  const auto place = [f](std::uint64_t code) {
    const auto size =
        static_cast<std::int64_t>(code & ~(std::uint64_t{1} << (spec_of(f).storage_bits - 1)));
    return is_negative(f, code) ? -size : size;
  };
  std::optional<std::uint64_t> largest;
  for (const seen_call& call : calls) {
    for (std::size_t i = 0; i < call.got[0].size(); ++i) {
      const std::uint64_t got = call.got[0][i], expected = call.expected[0][i];
      if (got == expected || is_nan(f, got) || is_nan(f, expected)) continue;
      const auto distance = static_cast<std::uint64_t>(std::abs(place(got) - place(expected)));
      largest = std::max(largest.value_or(0), distance);
    }
  }
  return largest;
}

std::vector<candidate> function_errors(const function_under_test& tested) {
  std::vector<candidate> rows;
  const auto add = [&rows](std::string sentence, auto results) {
    rows.push_back({std::move(sentence), [results](const seen_call& call) {
                      return std::optional(predict({results(call)}));
                    }});
  };
  std::vector<function> functions = related(tested.of);
  functions.insert(functions.begin(), tested.of);
  for (const auto& rule : table_of<function_rule>) {
    for (const function f : functions) {
      function_under_test other = tested;
      other.of = f;
      other.options.rule = rule.value;
      const bool same = f == tested.of && rule.value == tested.options.rule;
      if (same || !is_supported(other)) continue;
      std::string sentence = std::string(name(f)) + " by rule " + std::string(rule.name);
      if (rule.value == function_rule::exact) sentence += ", as computed in fp64 and rounded once";
      add(std::move(sentence),
          [other](const seen_call& call) { return results_of(other, call.in.codes); });
    }
  }
  const format_id format = tested.format;
  const auto of_flushed = [tested, format](const seen_call& call) {
    return results_of(tested, flushed(format, call.in.codes));
  };
  add("subnormal inputs read as zeros", of_flushed);
  add("subnormal results flushed to zeros",
      [format](const seen_call& call) { return flushed(format, call.expected[0]); });
  add("subnormal inputs and results flushed to zeros",
      [format, of_flushed](const seen_call& call) { return flushed(format, of_flushed(call)); });
  return rows;
}

}  // namespace

explanation explained(const function_under_test& tested, const runner& calls) {
  explanation why = explain(calls.what(), calls.seen(), function_errors(tested));
  why.distance = largest_distance(tested.format, calls.seen());
  return why;
}

}  // namespace samebits::testkit
