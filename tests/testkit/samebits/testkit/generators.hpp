// RapidCheck generators of codes, rules, options and strided views for tests of low-precision code.
//
//   rc::check("widening is exact", [] {
//     const auto code = *samebits::testkit::codes<samebits::format_id::e4m3>();
//     ...
//   });
#pragma once

#include <rapidcheck.h>

#include "samebits/convert.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"
#include "support/array_generators.hpp"
#include "support/conversion_case.hpp"
#include "support/generators.hpp"
#include "support/property.hpp"
#include "support/strided_buffer.hpp"

namespace samebits::testkit {

/// One conversion with its input, as cases() draws it: formats, code, rule, random bits.
using support::conversion_case;
/// Success, or the failure text with fields and a command that repeats the case.
using support::same_code;
/// What cases() draws from; whole_space() is every format and mode.
using support::case_space;
using support::cases;
using support::whole_space;
/// Codes of a format in view of a destination, whose ties, edges and overflow thresholds they hit:
/// uniform bits, zeros, subnormals, Inf, NaN payloads, extremes, ties and their neighbours. They
/// shrink to few set bits and exponents near that of 1. codes(from, to) gives std::uint64_t.
using support::codes;
/// Shapes with strides, offsets and alignment on both sides; rule, random stream, threads.
using support::array_case;
using support::array_cases;
using support::array_layout;
using support::content_of;
/// Host memory of a layout, with guard bytes wherever no element lies.
using support::strided_buffer;
/// Runs a property inside a GoogleTest test; require() fails its current case.
using support::expect_holds;
using support::require;

/// codes(F, to) as the format's own word.
template <format_id F>
rc::Gen<storage_t<F>> codes(format_id to = F) {
  return rc::gen::map(support::codes(F, to),
                      [](std::uint64_t code) { return static_cast<storage_t<F>>(code); });
}

/// Every mode and policy; shrinks to nearest_even, ieee, canonical.
rc::Gen<cast_rule> rules();

/// Rules with a random stream: seeds, streams, offsets and pitches small, uniform and beside 2^32
/// and 2^64; K in 1..32. Shrinks to {}.
rc::Gen<convert_options> options();

}  // namespace samebits::testkit
