// Tests of the CUDA backends by cases of the engine.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "device/cuda_backends.hpp"
#include "device/device_target.hpp"
#include "engine/cases/operations.hpp"
#include "engine/suites/rapidcheck.hpp"
#include "samebits/self_test.hpp"
#include "support/backends.hpp"
#include "support/effort.hpp"

namespace samebits::support {

class DeviceTest : public ::testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override { initialize(GetParam()); }
  [[nodiscard]] executor here() const { return on_stream(stream_.get(), GetParam()); }

  static std::string widest_host() { return supported_backends().back(); }
  /// So many cases, or all of a list, on this backend and on one of the host.
  static void expect_host_bits(const array_operation& op, const std::string& host = "reference",
                               int cases = 0, const char* file = __builtin_FILE(),
                               int line = __builtin_LINE()) {
    device_target target{std::string(GetParam())};
    expect_same(op, target, *host_target(host), cases, file, line);
  }

  own_stream stream_;
};

}  // namespace samebits::support
