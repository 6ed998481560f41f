// RapidCheck generators of codes, rules, options and strided views for tests of low-precision code.
//
//   rc::check("widening is exact", [] {
//     const auto code = *samebits::testkit::codes<samebits::format_id::e4m3>();
//     ...
//   });
#pragma once

#include <rapidcheck.h>

#include "engine/core/strided_buffer.hpp"
#include "samebits/convert.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"
#include "support/array_generators.hpp"
#include "support/conversion_case.hpp"
#include "support/generators.hpp"
#include "support/property.hpp"

namespace samebits::testkit {

/// One conversion with its input, as cases() generates it: formats, code, rule, random bits.
using support::conversion_case;
/// Returns success, or a failure text with fields and a command that repeats the case.
using support::same_code;
/// Formats and modes that cases() generates from; whole_space() is every format and mode.
using support::case_space;
using support::cases;
using support::whole_space;
/// Generates codes of a format for a conversion to a destination: uniform bits, zeros, subnormals,
/// Inf, NaN payloads, extremes, and the destination's ties, edges and overflow thresholds with
/// their neighbours. Codes shrink to few set bits and exponents near that of 1. codes(from, to)
/// generates std::uint64_t.
using support::codes;
/// Generates array calls: shapes with strides, offsets and alignment on both sides; rule, random
/// stream, threads.
using support::array_case;
using support::array_cases;
using support::array_layout;
using support::content_of;
/// Host memory of a layout, with guard bytes wherever no element lies.
using support::strided_buffer;
/// expect_holds() runs a property inside a GoogleTest test; require() fails the property's current
/// case.
using support::expect_holds;
using support::require;

/// Generates codes(F, to) as storage_t<F>.
template <format_id F>
rc::Gen<storage_t<F>> codes(format_id to = F) {
  return rc::gen::map(support::codes(F, to),
                      [](std::uint64_t code) { return static_cast<storage_t<F>>(code); });
}

/// Generates rules with every mode and policy. They shrink to nearest_even, ieee, canonical.
rc::Gen<cast_rule> rules();

/// Generates rules with a random stream. Seeds, streams, offsets and pitches are small, uniform, or
/// near 2^32 and 2^64; K is in 1..32. Options shrink to {}.
rc::Gen<convert_options> options();

}  // namespace samebits::testkit
