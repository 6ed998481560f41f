// The suites of conversion, arithmetic and quantization over the CUDA backends.
#include <cstdint>
#include <memory>
#include <vector>

#include "device/device_target.hpp"
#include "engine/suites/compute_suite.hpp"
#include "engine/suites/convert_suite.hpp"
#include "engine/suites/quantize_suite.hpp"
#include "samebits/error.hpp"
#include "support/effort.hpp"

namespace samebits::support {
namespace {

std::uint64_t native_calls = 0;

/// One block for a batch; under the sanitizers, an allocation for each buffer.
placement where_buffers_lie() { return smallest_effort() ? placement::apart : placement::block; }

/// cuda-native; calls that it refuses by name are made by cuda-emulated.
class native_or_emulated final : public device_target {
 public:
  native_or_emulated() : device_target("cuda-native", where_buffers_lie()) {}

  [[nodiscard]] returned_values run(const any_case& c, const call_site& site) const override {
    try {
      returned_values returned = device_target::run(c, site);
      ++native_calls;
      return returned;
    } catch (const unsupported&) {
      return emulated_.run(c, {emulated_, site.views, site.shared});
    }
  }

 private:
  device_target emulated_{"cuda-emulated", where_buffers_lie()};
};

std::vector<suite_target> device_targets() {
  return {{"cuda_emulated",
           [] { return std::make_unique<device_target>("cuda-emulated", where_buffers_lie()); }},
          {"cuda_native", [] { return std::make_unique<native_or_emulated>(); }}};
}

INSTANTIATE_TEST_SUITE_P(Device, ConvertSuite,
                         ::testing::ValuesIn(convert_targets(device_targets())), name_of_target);
INSTANTIATE_TEST_SUITE_P(Device, ArrayArithmeticSuite, ::testing::ValuesIn(device_targets()),
                         name_of_suite_target);
INSTANTIATE_TEST_SUITE_P(Device, QuantizeSuite, ::testing::ValuesIn(device_targets()),
                         name_of_suite_target);

TEST(DeviceSuites, ThisMachineRunsEveryBackend) {
  for (const backend_info& backend : compiled_backends()) {
    EXPECT_TRUE(backend.supported) << backend.name << ": " << backend.why_unsupported;
  }
}

/// A whole run must have made calls of cuda-native, not only of the other backend in its place.
class enough_calls : public ::testing::Environment {
 public:
  void TearDown() override {
    const auto& run = *::testing::UnitTest::GetInstance();
    if (run.test_to_run_count() != run.total_test_count() || smallest_effort()) return;
    EXPECT_GT(native_calls, 15'000u);
  }
};
const auto* const environment = ::testing::AddGlobalTestEnvironment(new enough_calls);

}  // namespace
}  // namespace samebits::support
