// The registry: names, defaults, SAMEBITS_BACKEND and refusals.
#include "samebits/backend.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "samebits/convert.hpp"
#include "samebits/error.hpp"
#include "support/refusal.hpp"

namespace samebits {
namespace {

class Backend : public ::testing::Test {
 protected:
  void TearDown() override { unsetenv("SAMEBITS_BACKEND"); }
};

TEST_F(Backend, ReferenceIsAlwaysThere) {
  const auto all = compiled_backends();
  const auto it = std::find_if(all.begin(), all.end(),
                               [](const backend_info& b) { return b.name == "reference"; });
  ASSERT_NE(it, all.end());
  EXPECT_TRUE(it->supported);
  EXPECT_FALSE(it->description.empty());
  EXPECT_EQ(
      std::count_if(all.begin(), all.end(), [](const backend_info& b) { return b.is_default; }), 1);
}

TEST_F(Backend, SimdIsThereOnX86AndSaysWhetherItRuns) {
#if defined(__x86_64__)
  for (const char* name : {"avx2", "avx512"}) {
    const auto all = compiled_backends();
    const auto it =
        std::find_if(all.begin(), all.end(), [&](const backend_info& b) { return b.name == name; });
    ASSERT_NE(it, all.end()) << name;
    EXPECT_EQ(it->supported, it->why_unsupported.empty()) << name;
    if (it->supported) {
      EXPECT_EQ(find_executor(name).backend, name);
    } else {
      EXPECT_THROW(find_executor(name), unsupported);
    }
  }
#endif
}

TEST_F(Backend, UnknownNamesAreRefusedWithTheList) {
  const auto find = [] { find_executor("abacus"); };
  for (const char* part : {"'abacus'", "reference"}) support::expect_refusal(part, find);
}

TEST_F(Backend, EnvironmentChoosesTheDefault) {
  setenv("SAMEBITS_BACKEND", "reference", 1);
  EXPECT_EQ(default_executor().backend, "reference");
  setenv("SAMEBITS_BACKEND", "abacus", 1);
  EXPECT_THROW(default_executor(), invalid_argument);
  float x = 1.0f;
  e4m3 y = e4m3::from_bits(0x55);
  EXPECT_THROW(convert(view_of(&x, 1, 1), view_of(&y, 1, 1)), invalid_argument);
  EXPECT_EQ(y.bits(), 0x55);
  convert(view_of(&x, 1, 1), view_of(&y, 1, 1), {}, find_executor("reference"));
  EXPECT_EQ(static_cast<float>(y), 1.0f);
}

/// This program is linked without the CUDA library, as many are on machines with a GPU.
TEST_F(Backend, EnvironmentThatNamesAGpuHasNoSayOnHostMemory) {
  const executor usual = default_executor();
  for (const char* name : {"cuda-native", "cuda-emulated"}) {
    setenv("SAMEBITS_BACKEND", name, 1);
    EXPECT_EQ(default_executor().backend, usual.backend) << name;
    float x = 1.0f;
    e4m3 y;
    EXPECT_NO_THROW(convert(view_of(&x, 1, 1), view_of(&y, 1, 1))) << name;
    EXPECT_EQ(static_cast<float>(y), 1.0f);
    EXPECT_THROW(convert(on_device(view_of(&x, 1, 1)), on_device(view_of(&y, 1, 1))),
                 invalid_argument);
  }
}

}  // namespace
}  // namespace samebits
