// What the tests of the loss scaler of a GPU over shards share.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "device/device_ranks.hpp"
#include "device/scaler_case.hpp"
#include "device/shard_case.hpp"

namespace samebits::support {

inline constexpr double inf = std::numeric_limits<double>::infinity();
using report_fields = decltype(fields(step_report{}));

/// Whole chunks and tails, an empty tensor, and one shorter than a chunk.
inline constexpr std::size_t few_sizes[] = {20 * 4096 + 24, 0, 40 * 4096, 24, 4096,
                                            3 * 4096 + 4095};

/// What does not depend on the number of ranks.
inline report_fields without_rank(step_report r) {
  r.bad_rank = -1;
  return fields(r);
}

class ScalerShards : public ::testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override { initialize(GetParam()); }

  [[nodiscard]] device_scaler_options options(double max_norm,
                                              std::optional<shard_layout> shards = {}) const {
    return {
        .max_norm = max_norm, .reports = 16, .backend = GetParam(), .shards = std::move(shards)};
  }

  device_streams streams_;
};

/// One step of a scaler whose gradients are there, and its report.
inline step_report stepped(device_loss_scaler& scaler, communicator& ranks) {
  scaler.step(ranks);
  check_cuda(cudaStreamSynchronize(static_cast<cudaStream_t>(ranks.stream())), "step");
  const auto report = scaler.poll();
  if (!report || scaler.poll()) throw std::logic_error("one report a step");
  return *report;
}

}  // namespace samebits::support
