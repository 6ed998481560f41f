// The CUDA backends as parameters of a test suite:
//
//   INSTANTIATE_TEST_SUITE_P(Backends, Suite, cuda_backends(), cuda_backend_name);
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace samebits::support {

inline auto cuda_backends() {
  return testing::Values(std::string_view("cuda-emulated"), std::string_view("cuda-native"));
}

inline std::string cuda_backend_name(const testing::TestParamInfo<std::string_view>& tested) {
  return tested.param == "cuda-native" ? "Native" : "Emulated";
}

}  // namespace samebits::support
