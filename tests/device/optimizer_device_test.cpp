// Optimizer steps on each CUDA backend where random cases do not reach: a tensor of many chunks,
// and checkpoints of a list whose steps are under way.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "device/device_test.hpp"
#include "samebits/samebits.hpp"

namespace samebits::support {
namespace {

class OptimizerDevice : public DeviceTest {};

/// The norms of the tensor are sums of the squares of 257 chunks.
TEST_P(OptimizerDevice, LambOfALargeTensor) { expect_host_bits(large_optimizer_steps()); }

/// A tensor with masters: weights, gradient and states behind each other.
class trained_tensor {
 public:
  static constexpr std::int64_t count = 3000;

  static std::vector<float> numbers() {
    std::vector<float> all(5 * count);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = 0.001f * static_cast<float>(1 + i % 997);
    return all;
  }
  static optimizer_list listed(float* data, memory_space space) {
    const auto part = [&](int i) { return data + i * count; };
    const optimizer_tensor tensor = {
        .weights = {part(0), stored_format::bf16_nearest},
        .gradient = {part(1), stored_format::fp32},
        .master = {part(2), stored_format::fp32},
        .states = {{{part(3), stored_format::fp32}, {part(4), stored_format::fp32}}},
        .count = count};
    return optimizer_list({tensor}, space);
  }
};

TEST_P(OptimizerDevice, CheckpointsWaitForNonBlockingStreams) {
  const optimizer_checkpoint numbers = {.groups = {{.weight_decay = 0.1}}};
  std::vector<float> host = trained_tensor::numbers();
  const guarded_copy device(host.data(), host.size() * sizeof(float));
  const optimizer_list on_host = trained_tensor::listed(host.data(), memory_space::host);
  const optimizer_list on_gpu =
      trained_tensor::listed(static_cast<float*>(device.data()), memory_space::device);
  const own_stream stream;
  check_cuda(cudaDeviceSynchronize(), "copies");
  const auto enqueue_late_step = [&] {
    const auto sleep = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(200)); };
    check_cuda(cudaLaunchHostFunc(stream.get(), sleep, nullptr), "host function");
    optimizer_step(on_gpu, numbers.groups, {.seed = 3}, on_stream(stream.get(), GetParam()));
  };
  const std::vector<std::byte> before = save(on_host, numbers);

  enqueue_late_step();
  const std::vector<std::byte> after = save(on_gpu, numbers);
  optimizer_step(on_host, numbers.groups, {.seed = 3}, {"reference"});
  EXPECT_TRUE(after == save(on_host, numbers)) << "save() did not wait for the step";
  EXPECT_FALSE(after == before);

  enqueue_late_step();
  load_optimizer(on_gpu, before);
  EXPECT_TRUE(save(on_gpu, numbers) == before) << "load_optimizer() did not wait for the step";
}

INSTANTIATE_TEST_SUITE_P(Backends, OptimizerDevice, cuda_backends(), cuda_backend_name);

}  // namespace
}  // namespace samebits::support
