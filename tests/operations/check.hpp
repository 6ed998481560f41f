// Checks an operation on a target: cases in batches, each copied there and back once; the first
// that fails is shrunk alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "operations/operation.hpp"

namespace samebits::support {

struct check_effort {
  std::uint64_t cases = 0;
  std::uint64_t seed = 0;  ///< case i is made from seed + i
};

/// What a check showed.
struct check_report {
  std::uint64_t cases = 0;
  std::uint64_t elements = 0;                  ///< of all buffers, compared with the reference's
  std::string failure = {};                    ///< empty if nothing differs
  std::unique_ptr<random_case> smallest = {};  ///< the failing case, shrunk
};

/// Draws cases and compares the target with the reference backend; ends with the first that fails.
/// The failure says which bytes or returned values differ, the smallest failing case with the codes
/// of its buffers, and how to repeat it.
check_report check_operation(const array_operation& op, array_target& target,
                             const check_effort& effort);

/// The same as a GoogleTest expectation, of `cases` cases unless RC_PARAMS says otherwise; prints
/// how many were compared.
void expect_as_reference(const array_operation& op, array_target& target, int cases,
                         const char* file = __builtin_FILE(), int line = __builtin_LINE());

}  // namespace samebits::support
