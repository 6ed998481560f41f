// Quantize targets: the executors that the conformance suite of quantization runs over.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "samebits/quantize.hpp"
#include "support/backends.hpp"

namespace samebits::support {

/// An executor under test. `quantize` takes host views, and host pointers to statistics and flag; a
/// device target copies the memory that they span to the device and back, gaps included.
struct quantize_target {
  std::string name;
  std::function<void(const const_matrix_view& in, const quantize_outputs& outputs,
                     const quantize_options& options, int threads)>
      quantize;
  /// Has some quantizations only; what it refuses by name (samebits::unsupported) is passed over.
  bool partial = false;
};

/// Every backend for host memory that this machine can run.
inline std::vector<quantize_target> host_quantizers() {
  std::vector<quantize_target> targets;
  for (const std::string& name : supported_backends()) {
    targets.push_back({name,
                       [name](const const_matrix_view& in, const quantize_outputs& outputs,
                              const quantize_options& options, int threads) {
                         samebits::quantize(in, outputs, options, {name, threads});
                       },
                       false});
  }
  return targets;
}

inline void PrintTo(const quantize_target& target, std::ostream* out) { *out << target.name; }

inline std::string name_of_quantizer(const ::testing::TestParamInfo<quantize_target>& info) {
  return info.param.name;
}

}  // namespace samebits::support
