// Gradients for tests of the loss scaler of a GPU: whole tensors on the host and the device, of which
// each rank has a part.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "device/cuda_backends.hpp"
#include "device/device_copy.hpp"
#include "device/device_ranks.hpp"
#include "engine/cases/scaler_cases.hpp"
#include "samebits/device_loss_scaler.hpp"
#include "samebits/scalar.hpp"
#include "samebits/self_test.hpp"

namespace samebits::support {

using scenario_tensors = std::vector<scenario_tensor>;

/// Whole chunks and tails, an empty tensor, and one shorter than a chunk, cut for ranks on chunks at
/// random.
inline scenario_tensors few_tensors(int ranks, const word_source& next) {
  constexpr format_id formats[] = {format_id::fp16, format_id::fp32, format_id::bf16};
  scenario_tensors all;
  for (const std::int64_t size : {20 * 4096 + 24, 0, 40 * 4096, 24, 4096, 3 * 4096 + 4095}) {
    all.push_back(cut_tensor(formats[all.size() % 3], size, ranks, next));
    all.back().turn = static_cast<int>(below(8, next));
  }
  return all;
}

/// Finite gradients, until they are drawn or put.
class spread_gradients {
 public:
  spread_gradients(scenario_tensors tensors, std::uint64_t seed)
      : tensors_(std::move(tensors)), random_(seed) {
    fill();
    upload();
  }

  /// Other elements. In one of 30 steps one of them is Inf or NaN, as the scale grows more often.
  void draw(double scale) {
    fill();
    if (random_() % 30 != 0 && !(scale > 0x1p18 && random_() % 2 == 0)) return upload();
    const std::size_t tensor = random_() % 3 == 0 ? 0 : 2;  // which have elements
    const auto count = static_cast<std::uint64_t>(tensors_[tensor].layout.cols);
    put(tensor, static_cast<std::int64_t>(random_() % count), random_() % 4 == 0 ? 0x7FFF : 0xFC00);
  }
  /// An element by its value in fp16.
  void put(std::size_t tensor, std::int64_t element, std::uint16_t half) {
    host_[tensor].store(element, convert_code(format_id::fp16, tensors_[tensor].format, half).code);
    upload();
  }

  /// The shards of the gradients that a rank holds, in device memory.
  [[nodiscard]] tensor_list shards(int rank) {
    std::vector<matrix_view> views;
    for (std::size_t i = 0; i < host_.size(); ++i) {
      const scenario_tensor& t = tensors_[i];
      matrix_view v = host_[i].view();
      v.data = device_[i].data();
      views.push_back(on_device(block_of(v, 0, 1, t.begin(rank), t.end(rank) - t.begin(rank))));
    }
    return tensor_list(views);
  }
  [[nodiscard]] shard_layout layout(communicator& ranks) {
    std::vector<std::uint64_t> first;
    for (const scenario_tensor& t : tensors_) {
      first.push_back(static_cast<std::uint64_t>(t.begin(ranks.rank())));
    }
    return shard_layout(ranks, shards(ranks.rank()), first);
  }

 private:
  void fill() {
    host_.clear();
    for (const scenario_tensor& t : tensors_) {
      host_.push_back(random_gradients(t.format, t.layout, list_content::ordinary, random_()));
    }
  }
  void upload() {
    device_.resize(host_.size());
    for (std::size_t i = 0; i < host_.size(); ++i) {
      const matrix_view v = host_[i].view();
      const std::size_t bytes = spanned_bytes(v);
      if (device_[i].size() != bytes) device_[i] = device_bytes(bytes);
      check_cuda(cudaMemcpy(device_[i].data(), v.data, bytes, cudaMemcpyHostToDevice),
                 "gradients to the device");
    }
    check_cuda(cudaStreamSynchronize(nullptr), "gradients to the device");
  }

  scenario_tensors tensors_;
  std::mt19937_64 random_;
  std::vector<strided_buffer> host_;
  std::vector<device_bytes> device_;
};

/// The fields of a report, as values that are compared.
inline returned_values fields(const step_report& r) {
  returned_values all;
  add_report(all, r);
  return all;
}

/// The report of the only step that has not been polled.
inline step_report polled(device_loss_scaler& scaler) {
  const auto report = scaler.poll();
  if (!report || scaler.poll()) throw std::logic_error("one report a step");
  return *report;
}

class ScalerTest : public ::testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override { initialize(GetParam()); }

  [[nodiscard]] device_scaler_options options(double max_norm = 1.0,
                                              std::optional<shard_layout> shards = {}) const {
    return {
        .max_norm = max_norm, .reports = 16, .backend = GetParam(), .shards = std::move(shards)};
  }

  device_streams streams_;
};

}  // namespace samebits::support
