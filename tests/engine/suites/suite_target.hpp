// Executors as parameters of a suite.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "engine/core/target.hpp"
#include "support/backends.hpp"

namespace samebits::support {

/// An executor under test, which each test makes anew.
struct suite_target {
  std::string name;
  std::function<std::unique_ptr<array_target>()> make;
};

/// Every backend for host memory that this machine can run.
inline std::vector<suite_target> host_suite_targets() {
  std::vector<suite_target> targets;
  for (const std::string& name : supported_backends()) {
    targets.push_back({name, [name] { return host_target(name); }});
  }
  return targets;
}

inline void PrintTo(const suite_target& tested, std::ostream* out) { *out << tested.name; }
inline std::string name_of_suite_target(const ::testing::TestParamInfo<suite_target>& info) {
  return info.param.name;
}

}  // namespace samebits::support
