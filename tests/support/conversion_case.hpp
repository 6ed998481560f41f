// The expected result of a conversion under test, and the text of a failure.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "engine/core/conversion_case.hpp"
#include "engine/core/text.hpp"

namespace samebits::support {

/// The code that must come out, by the oracle.
std::uint64_t expected_code(const conversion_case& c);

/// Success if got == expected; else input, got, expected, formats, options and reproduction().
///
///   EXPECT_TRUE(same_code(c, convert_code(...).code, expected_code(c)));
::testing::AssertionResult same_code(const conversion_case& c, std::uint64_t got,
                                     std::uint64_t expected);

}  // namespace samebits::support
