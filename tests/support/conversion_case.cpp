// The expected results of conversions by the oracle, and texts of failures.
#include "support/conversion_case.hpp"

#include "oracle/convert.hpp"
#include "support/rules.hpp"

namespace samebits::support {

std::uint64_t expected_code(const conversion_case& c) {
  return oracle::convert(oracle_of(c.from), oracle_of(c.to), c.input, c.rule, c.random);
}

::testing::AssertionResult same_code(const conversion_case& c, std::uint64_t got,
                                     std::uint64_t expected) {
  if (got == expected) return ::testing::AssertionSuccess();
  ::testing::AssertionResult failure = ::testing::AssertionFailure();
  failure << name(c.from) << " to " << name(c.to) << ", " << text_of(c.rule) << ", by " << c.where;
  if (c.rule.rounding == rounding::stochastic) {
    failure << "\n  random bits " << hex(c.random.value, 32) << " of K = " << c.random.count;
    if (c.origin) {
      failure << " (seed " << c.origin->seed << ", stream " << c.origin->stream << ", index "
              << c.origin->index << ")";
    }
  }
  return failure << "\n  input    " << code_text(c.from, c.input) << "\n  got      "
                 << code_text(c.to, got) << "\n  expected " << code_text(c.to, expected)
                 << "\n  repeat with: " << reproduction(c);
}

}  // namespace samebits::support
