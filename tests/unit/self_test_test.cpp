// The self-test of this build, and its rules on hand-made backends: repeat, remember, per device.
#include "backends/self_test/self_test.hpp"
#include "backends/dispatch/device_scope.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "samebits/error.hpp"
#include "samebits/reductions.hpp"
#include "samebits/self_test.hpp"
#include "support/backends.hpp"
#include "support/refusal.hpp"

namespace samebits {
namespace {

using backends::probe;
using backends::probe_count;
using backends::probe_names;
using backends::probe_report;
using backends::require_tested;

TEST(SelfTest, EveryHostBackendPassesEveryCheck) {
  for (const std::string& backend : support::supported_backends()) {
    std::set<std::string> checks;
    for (const self_test_result& r : self_test(backend)) {
      EXPECT_EQ(r.backend, backend);
      EXPECT_TRUE(r.passed) << r.backend << ' ' << r.check << ": " << r.detail;
      EXPECT_TRUE(r.detail.empty()) << r.detail;
      checks.emplace(r.check);
    }
    std::set<std::string> expected = {"control_register"};
    for (const char* name : probe_names) expected.insert(name);
    EXPECT_EQ(checks, expected);
    EXPECT_EQ(checks.size(), std::size_t{probe_count} + 1);
    EXPECT_NO_THROW(initialize(backend));
  }
}

TEST(SelfTest, WithoutANameEverySupportedBackendIsTested) {
  std::set<std::string> tested;
  for (const self_test_result& r : self_test()) tested.emplace(r.backend);
  std::set<std::string> expected;
  for (const backend_info& b : compiled_backends()) {
    if (b.supported) expected.emplace(b.name);
  }
  EXPECT_EQ(tested, expected);
  EXPECT_NO_THROW(initialize());
}

TEST(SelfTest, UnknownNamesAreRefused) {
  EXPECT_THROW(self_test("abacus"), invalid_argument);
  EXPECT_THROW(initialize("abacus"), invalid_argument);
}

TEST(SelfTest, FirstCallsMayComeFromSeveralThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([] {
      tree_sum sum;
      for (int n = 0; n < 1000; ++n) sum.add(1.0);
      EXPECT_EQ(sum.value(), 1000.0);
    });
  }
  for (std::thread& t : threads) t.join();
}

// A hand-made device: what its probes report, and what it says of itself.
bool broken = false;
bool capturing = false;
int device = 0;
int runs = 0;

/// What kernels give whose instructions were not compiled.
bool zeros = false;

void run_fake_codes(backends::code_report& report) {
  report = {};
  if (zeros) report.conversion = {0x00, 0x7E, 8};
}

void run_fake(probe_report& report) {
  ++runs;
  report = {};
  if (broken) report.of[static_cast<int>(probe::contraction)] = {0x32800000, 0, 32};
}

class FakeDevice : public ::testing::Test {
 protected:
  FakeDevice() {
    broken = capturing = zeros = false;
    device = runs = 0;
  }
  std::string refusal() {
    return support::refusal_of<environment_error>([&] { require_tested(backend_, nullptr); });
  }

  backends::self_test_entry entry_ = {run_fake, run_fake_codes};
  const backends::device_runtime runtime_ = {.is_available = [] { return true; },
                                             .current_device = [] { return device; },
                                             .make_current = nullptr,
                                             .memory_of = nullptr,
                                             .device_of_stream = nullptr,
                                             .is_capturing = [](void*) { return capturing; }};
  backends::backend backend_ = {.name = "fake",
                                .description = "",
                                .space = memory_space::device,
                                .why_unsupported = [] { return std::string(); },
                                .self_test = &entry_,
                                .runtime = &runtime_};
};

TEST_F(FakeDevice, KernelsOfAnotherArchitectureAreRefused) {
  zeros = true;
  const std::string text = refusal();
  EXPECT_NE(text.find("conversion: codes of a conversion are not those of the definition (8 bits: "
                      "got 00, expected 7E); compile samebits for this GPU's architecture"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("quantization:"), std::string::npos) << text;
  zeros = false;
  require_tested(backend_);
}

TEST_F(FakeDevice, IsTestedOncePerDevice) {
  for (const int d : {0, 1, 0, 63, 1, 63}) {
    device = d;
    require_tested(backend_);
  }
  EXPECT_EQ(runs, 3);
}

TEST_F(FakeDevice, IsTestedAgainAfterAFailureAndNotAfterSuccess) {
  broken = true;
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(refusal(),
              "backend 'fake' cannot promise its bits here, its self-test failed:\n"
              "  contraction: a * b + c was rounded once instead of twice (binary32: got 32800000, "
              "expected 00000000); compile samebits with --fmad=false");
    EXPECT_EQ(runs, i);
  }
  broken = false;
  require_tested(backend_);
  broken = true;
  require_tested(backend_);
  EXPECT_EQ(runs, 4);
}

TEST_F(FakeDevice, IsRefusedInACaptureUntilItHasPassed) {
  capturing = true;
  EXPECT_NE(refusal().find("initialize()"), std::string::npos);
  EXPECT_EQ(runs, 0);
  capturing = false;
  require_tested(backend_);
  capturing = true;
  require_tested(backend_);
  EXPECT_EQ(runs, 1);
  device = 1;
  EXPECT_NE(refusal().find("device 1"), std::string::npos);
}

}  // namespace
}  // namespace samebits
