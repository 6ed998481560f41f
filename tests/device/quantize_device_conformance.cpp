// The conformance suite of quantization over the backends that take device memory.
//
// A case's host memory, guards and gaps included, is copied to the device, quantized there and
// copied back, so that the suite sees what was written and what was not.
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "device/device_copy.hpp"
#include "engine/suites/quantize_suite.hpp"

namespace samebits::support {
namespace {

std::atomic<std::uint64_t> compared_calls = 0;

/// Quantizes a case of host memory on the device.
void quantize_on_device(const std::string& backend, const const_matrix_view& in,
                        const quantize_outputs& outputs, const quantize_options& options) {
  const guarded_copy from(in, edges::exact);
  const guarded_copy codes(outputs.codes), scales(outputs.scales);
  const guarded_copy codes_transposed(outputs.codes_transposed);
  const guarded_copy scales_transposed(outputs.scales_transposed);
  const guarded_copy statistics(outputs.statistics, sizeof(quantize_statistics));
  const guarded_copy flag(options.skip_if_nonzero, sizeof(std::uint32_t), edges::exact);
  const_matrix_view device_in = on_device(in);
  device_in.data = from.data();
  quantize_options device_options = options;
  device_options.skip_if_nonzero = static_cast<const std::uint32_t*>(flag.data());
  quantize(device_in,
           {.codes = codes.placed(outputs.codes),
            .scales = scales.placed(outputs.scales),
            .codes_transposed = codes_transposed.placed(outputs.codes_transposed),
            .scales_transposed = scales_transposed.placed(outputs.scales_transposed),
            .statistics = static_cast<quantize_statistics*>(statistics.data())},
           device_options, on_stream(nullptr, backend));
  check_cuda(cudaDeviceSynchronize(), "the quantization");
  for (const guarded_copy* copy :
       {&codes, &scales, &codes_transposed, &scales_transposed, &statistics}) {
    copy->copy_back();
  }
  ++compared_calls;
}

std::vector<quantize_target> device_quantizers() {
  std::vector<quantize_target> targets;
  for (const backend_info& backend : compiled_backends()) {
    if (backend.space != memory_space::device) continue;
    const std::string name(backend.name);
    std::string identifier = name;
    for (char& c : identifier) c = c == '-' ? '_' : c;
    targets.push_back({identifier,
                       [name](const const_matrix_view& in, const quantize_outputs& outputs,
                              const quantize_options& options,
                              int) { quantize_on_device(name, in, outputs, options); },
                       false});
  }
  return targets;
}

INSTANTIATE_TEST_SUITE_P(Device, QuantizeSuite, ::testing::ValuesIn(device_quantizers()),
                         name_of_quantizer);

TEST(DeviceQuantizeConformance, ThisMachineRunsEveryBackend) {
  EXPECT_EQ(device_quantizers().size(), 2u);
  for (const backend_info& backend : compiled_backends()) {
    EXPECT_TRUE(backend.supported) << backend.name << ": " << backend.why_unsupported;
  }
}

/// A whole run must have quantized, not skipped.
class enough_calls : public ::testing::Environment {
 public:
  void TearDown() override {
    const auto& run = *::testing::UnitTest::GetInstance();
    if (run.test_to_run_count() != run.total_test_count() || smallest_effort()) return;
    EXPECT_GT(compared_calls, 10'000u);
  }
};
const auto* const environment = ::testing::AddGlobalTestEnvironment(new enough_calls);

}  // namespace
}  // namespace samebits::support
