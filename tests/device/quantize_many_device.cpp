// 2^30 elements quantized on each CUDA backend, against the widest host backend, every byte. Every
// tile by every rule and rounding.
//
// SAMEBITS_QUANTIZE_ELEMENTS in the environment makes it another number of elements, in matrices of
// other sizes and, above 2^32, in more of them.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "device/device_test.hpp"
#include "device/quantize_batches.hpp"

namespace samebits::support {
namespace {

class QuantizeMany : public DeviceTest {};

TEST_P(QuantizeMany, EveryByteOf2To30Elements) {
  const char* const asked = std::getenv("SAMEBITS_QUANTIZE_ELEMENTS");
  const std::uint64_t wanted =
      asked != nullptr ? std::stoull(asked) : by_effort(std::uint64_t{1} << 30, 1 << 24);
  const std::uint64_t rounds = 1 + wanted / (std::uint64_t{1} << 32);
  const std::uint64_t count = rounds * quantize_batches::round;
  quantize_batches draws;
  std::vector<quantize_case> cases;
  for (std::uint64_t n = 0; n < count; ++n) {
    cases.push_back(draws.next(static_cast<std::int64_t>(1 + wanted / count)));
    const array_layout shape = cases.back().in;
    lay_out(cases.back(), shape.rows, shape.cols, [] { return std::uint64_t{1}; });
  }
  expect_host_bits(listed_operation("quantize", quantizations(), std::move(cases), 16),
                   widest_host());
}

INSTANTIATE_TEST_SUITE_P(Backends, QuantizeMany, cuda_backends(), cuda_backend_name);

}  // namespace
}  // namespace samebits::support
