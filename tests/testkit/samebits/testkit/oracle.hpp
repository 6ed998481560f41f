// The oracle: computes the expected result of a conversion from exact integers and rationals,
// without samebits.
//
//   const auto& e4m3 = oracle::format_named("e4m3");
//   oracle::convert(oracle::format_named("fp32"), e4m3, 0x43E80000, {});  // 464: 0x7E
#pragma once

#include "oracle/convert.hpp"
#include "oracle/exact.hpp"
#include "oracle/format_table.hpp"
#include "oracle/philox.hpp"
#include "oracle/thresholds.hpp"
#include "samebits/testkit/conversion.hpp"
#include "support/conversion_case.hpp"
#include "support/rules.hpp"

namespace samebits::testkit {

/// The oracle's own table of formats, convert, round_exact, make_step_function and random_word.
namespace oracle = samebits::oracle;

/// Returns the oracle's definition of a format.
using support::oracle_of;
/// Returns the code that a conversion_case must give.
using support::expected_code;
/// The code of an element of a conversion at a position, for check_effort::oracle.
std::uint64_t oracle_code(const conversion_under_test& conversion, std::uint64_t code,
                          std::uint64_t position);
/// Returns a code as text with its fields and value.
using support::code_text;

}  // namespace samebits::testkit
