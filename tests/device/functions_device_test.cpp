// Functions of arrays on the CUDA backends against the widest host backend, by every rule and with
// every gradient: all codes of 16 bits; every 256th of the 2^32 codes of fp32, of rule exact every
// 4096th, or all of them if the environment has SAMEBITS_FUNCTION_OPERANDS=all; arrays of 16 bits so
// large that results come from tables. Functions of rows: every width of engine.functions.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "device/device_test.hpp"

namespace samebits::support {
namespace {

class FunctionsDevice : public DeviceTest {};

TEST_P(FunctionsDevice, EveryOne) { expect_host_bits(every_evaluation(), widest_host()); }

TEST_P(FunctionsDevice, AllCodesOf16Bits) {
  for (const format_id from : {format_id::fp16, format_id::bf16}) {
    for (const bool exact : {false, true}) {
      expect_host_bits(
          evaluations_of_codes(from, exact, by_effort(1 << 16, 1 << 13), 0, by_effort(1u, 7u)),
          widest_host());
    }
  }
}

/// All codes 128 times, so that every thread of the tables' kernels turns more than once, in an order in
/// which neighbours are no neighbours; the last fill no vector.
TEST_P(FunctionsDevice, TablesOf16Bits) {
  for (const format_id from : {format_id::fp16, format_id::bf16}) {
    for (const bool exact : {false, true}) {
      expect_host_bits(
          evaluations_of_codes(from, exact, by_effort(1 << 23, 1 << 13) + 5, 0, 40'503, true),
          widest_host());
    }
  }
}

/// Steps are odd, so that the lowest bits of operands change.
TEST_P(FunctionsDevice, OperandsOfFp32) {
  const char* const asked = std::getenv("SAMEBITS_FUNCTION_OPERANDS");
  const std::int64_t count = by_effort(1 << 24, 1 << 13);
  if (asked != nullptr && std::string_view(asked) == "all") {
    for (std::uint64_t first = 0; first < std::uint64_t{1} << 32 && !HasFailure();
         first += 1 << 24) {
      for (const bool exact : {false, true}) {
        expect_host_bits(evaluations_of_codes(format_id::fp32, exact, 1 << 24,
                                              static_cast<std::uint32_t>(first), 1),
                         widest_host());
      }
    }
    return;
  }
  for (const bool exact : {false, true}) {
    const std::int64_t operands = exact ? count / 16 : count;
    const auto step = static_cast<std::uint32_t>((std::int64_t{1} << 32) / operands - 1);
    expect_host_bits(evaluations_of_codes(format_id::fp32, exact, operands, 1, step),
                     widest_host());
  }
}

TEST_P(FunctionsDevice, RowsOfEveryWidth) {
  expect_host_bits(rows_of_every_width(), widest_host());
  expect_host_bits(norms_of_every_width(), widest_host());
}

INSTANTIATE_TEST_SUITE_P(Backends, FunctionsDevice, cuda_backends(), cuda_backend_name);

}  // namespace
}  // namespace samebits::support
