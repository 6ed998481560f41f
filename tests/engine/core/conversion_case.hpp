// One conversion of a code: what goes in and how, and commands that repeat it.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::support {

/// Which element of which stream the random bits of an array call belong to.
struct random_origin {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  std::uint64_t index = 0;  ///< offset + row * pitch + column (mod 2^64)
};

struct conversion_case {
  format_id from = format_id::fp32;
  format_id to = format_id::fp32;
  std::uint64_t input = 0;  ///< the source code
  cast_rule rule = {};
  random_bits random = {};                             ///< stochastic only
  std::optional<random_origin> origin = std::nullopt;  ///< of `random`, where it comes from
  std::string where = "convert_code";  ///< which door: a function, or a backend and its threads
};

/// A command line that repeats the case outside the tests: `fpinspect cast`, or where the value
/// alone does not say everything (random bits, NaN payloads, ignored bits) `fpinspect convert` on
/// a file of one code. Random bits without an origin have no command; there it is a C++ call.
std::string reproduction(const conversion_case& c);

/// The case on one line, as RapidCheck shows it.
std::ostream& operator<<(std::ostream& out, const conversion_case& c);

}  // namespace samebits::support
