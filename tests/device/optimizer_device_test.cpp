// Optimizer steps of each CUDA backend against the reference: every byte of every array.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "device/cuda_backends.hpp"
#include "device/optimizer_buffer.hpp"
#include "device/optimizer_plans.hpp"
#include "samebits/samebits.hpp"
#include "support/effort.hpp"

namespace samebits::support {
namespace {

using enum stored_format;
using namespace optimizer_plans;

/// Compares a device's bytes with the reference's. Names up to eight places.
void expect_same(const optimizer_buffer& expected, const device_bytes& device,
                 const std::string& what) {
  const std::vector<std::byte> got = device.download();
  std::string places;
  std::size_t differ = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == expected.bytes()[i] || ++differ > 8) continue;
    places += "\n  byte " + std::to_string(i) + ", " + expected.place_of(i) + ": " +
              std::to_string(static_cast<int>(got[i])) + ", expected " +
              std::to_string(static_cast<int>(expected.bytes()[i]));
  }
  EXPECT_EQ(differ, 0u) << what << ": bytes differ" << places;
}

class OptimizerDevice : public ::testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override { initialize(GetParam()); }
  [[nodiscard]] executor here(void* stream = nullptr) const {
    return on_stream(stream, GetParam());
  }
  static executor reference() { return {.backend = "reference"}; }

  /// Takes steps on the host by the reference and on the device, and compares all bytes.
  void expect_reference(const std::vector<tensor_plan>& plans,
                        const std::vector<optimizer_settings>& groups, std::uint32_t seed,
                        const std::string& what) const {
    optimizer_buffer host(plans, seed);
    const device_bytes device(host.bytes());
    const optimizer_list on_host(host.tensors_at(host.bytes().data()));
    const optimizer_list on_gpu(host.tensors_at(device.data()), memory_space::device);
    for (const std::uint64_t t : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{1000}}) {
      const step_input input = {.applied_steps = t, .grad_mul = 0.37f, .seed = 77 + t};
      optimizer_step(on_host, groups, input, reference());
      optimizer_step(on_gpu, groups, input, here());
      expect_same(host, device, what + ", step " + std::to_string(t));
      if (HasFailure()) return;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, OptimizerDevice, cuda_backends(), cuda_backend_name);

/// Tensors of all weight modes with a gradient's and a state's format.
std::vector<tensor_plan> plans_of(const optimizer_settings& s, stored_format gradient,
                                  stored_format first, stored_format second, int variant) {
  std::vector<tensor_plan> plans;
  const std::int64_t counts[] = {1000, 4104, 777, 256, 1, 2560};
  int i = variant;
  for (const weight_mode& mode : modes) {
    tensor_plan plan = {.mode = mode, .gradient = gradient, .states = {first, second}};
    plan.count = counts[i % 6];
    plan.block = i % 2 == 0 ? 128 : 256;
    plan.gradient_scale = i % 3 == 0;
    plan.shift = i % 5 == 0 ? 1 + i % 7 : 0;
    plan.wild = i % 4 == 3;
    if (suits(plan, s)) plans.push_back(plan);
    ++i;
  }
  return plans;
}

TEST_P(OptimizerDevice, EveryFormat) {
  int variant = 0;
  for (const optimizer_settings& s : all_settings()) {
    for (std::size_t i = 0; i < std::size(states); ++i) {
      const stored_format second = second_state(i, variant);
      const stored_format gradient = gradients[static_cast<std::size_t>(variant) % 5];
      const std::vector<tensor_plan> plans = plans_of(s, gradient, states[i], second, variant);
      const auto seed = static_cast<std::uint32_t>(++variant);
      expect_reference(plans, {s}, seed,
                       text(s) + ", state " + std::to_string(i) + ", gradient " +
                           std::to_string(static_cast<int>(gradient)));
      if (HasFailure()) return;
    }
  }
}

/// The combinations that have kernels of their own, and bare bf16 and fp32 of the torch profiles.
TEST_P(OptimizerDevice, UsualFormats) {
  const struct {
    weight_mode mode;
    stored_format gradient, state;
  } usual[] = {{{fp32}, fp32, fp32},
               {{bf16_nearest, fp32}, bf16_nearest, fp32},
               {{bf16_nearest, fp32}, fp32, fp32},
               {{fp16_nearest, fp32}, fp16_nearest, fp32},
               {{bf16_nearest}, bf16_nearest, bf16_nearest},
               {{bf16_stochastic}, bf16_nearest, bf16_nearest},
               {{bf16_stochastic}, bf16_nearest, bf16_stochastic},
               {{bf16_nearest}, bf16_nearest, e4m3_scaled},
               {{bf16_stochastic}, bf16_nearest, e4m3_scaled},
               {{bf16_nearest}, bf16_nearest, dynamic8_signed}};
  std::uint32_t seed = 1000;
  for (const optimizer_settings& s : all_settings()) {
    std::vector<tensor_plan> plans;
    for (const auto& u : usual) {
      for (const std::int64_t count : {8, 1000, 4096, 12296}) {
        tensor_plan plan = {.mode = u.mode, .gradient = u.gradient, .states = {u.state, u.state}};
        plan.count = count;
        plan.block = count == 1000 ? 256 : 128;
        plan.wild = count == 1000;
        if (suits(plan, s)) plans.push_back(plan);
      }
    }
    expect_reference(plans, {s}, ++seed, text(s));
    if (HasFailure()) return;
  }
}

/// Sizes whose last vector of a warp is incomplete, beside whole vectors of the same warp.
TEST_P(OptimizerDevice, TailsBesideWholeVectors) {
  for (const optimizer_settings& s : all_settings()) {
    std::vector<tensor_plan> plans;
    for (std::int64_t count = 1; count < 300; count += 3) {
      tensor_plan plan = {.mode = {fp32}, .gradient = fp32, .states = {fp32, fp32}};
      plan.count = count;
      plans.push_back(plan);
    }
    expect_reference(plans, {s}, 2000, text(s));
    if (HasFailure()) return;
  }
}

TEST_P(OptimizerDevice, RandomIndicesOfShards) {
  std::vector<tensor_plan> plans;
  for (const stored_format f : {bf16_stochastic, fp16_stochastic}) {
    for (const std::uint64_t first :
         {std::uint64_t{1}, std::uint64_t{8}, std::uint64_t{12345}, (std::uint64_t{1} << 33) + 3}) {
      plans.push_back({.mode = {f},
                       .gradient = bf16_nearest,
                       .states = {bf16_stochastic, bf16_stochastic},
                       .count = 5000,
                       .first_index = first});
    }
  }
  expect_reference(plans, {{}}, 5, "shards");
}

TEST_P(OptimizerDevice, GroupsOfAllRulesInOneCall) {
  const std::vector<optimizer_settings> groups = all_settings();
  std::vector<tensor_plan> plans;
  for (std::uint32_t i = 0; i < 3 * groups.size(); ++i) {
    tensor_plan plan = {.mode = {fp32}, .gradient = fp32, .states = {fp32, fp32}};
    plan.count = i % 4 == 3 ? 0 : 300 + 37 * i;
    plan.group = i % static_cast<std::uint32_t>(groups.size());
    plans.push_back(plan);
  }
  expect_reference(plans, groups, 9, "all rules");
  // Few groups: their constants are kernel arguments.
  for (tensor_plan& plan : plans) plan.group %= 3;
  expect_reference(plans, {groups.begin() + 4, groups.begin() + 7}, 10, "three rules");
}

TEST_P(OptimizerDevice, ManySmallTensors) {
  std::vector<tensor_plan> plans;
  for (int i = 0; i < (smallest_effort() ? 100 : 10'000); ++i) {
    tensor_plan plan = {.mode = modes[i % 15], .gradient = bf16_nearest, .states = {fp32, fp32}};
    plan.count = i % 50;
    plans.push_back(plan);
  }
  expect_reference(plans, {{}}, 11, "many tensors");
}

/// The arrays of a tensor in host or device memory, with the options of a store of each.
std::vector<std::pair<stored_array, store_options>> stores_of(const optimizer_tensor& t) {
  const store_options options = {t.block, t.first_index, 12, (std::uint64_t{7} << 60) + t.stream};
  store_options of_weights = options;
  of_weights.low = t.low;
  of_weights.low_kind = t.low_kind;
  return {
      {t.weights, of_weights}, {t.master, options}, {t.states[0], options}, {t.states[1], options}};
}

/// The gradient of a tensor, in fp32, bf16 or fp16.
matrix_view gradient_of(const optimizer_tensor& t, memory_space space) {
  const format_id format = t.gradient.format == fp32           ? format_id::fp32
                           : t.gradient.format == bf16_nearest ? format_id::bf16
                                                               : format_id::fp16;
  return {const_cast<void*>(t.gradient.codes), format, 1, t.count, t.count, 1, space};
}

TEST_P(OptimizerDevice, StoresAndLoads) {
  std::vector<tensor_plan> plans;
  const std::int64_t counts[] = {1000, 4104, 777, 256, 1, 12296};
  for (std::size_t i = 0; i < 180; ++i) {
    plans.push_back({.mode = modes[i % std::size(modes)],
                     .gradient = gradients[i % 7 % 3],
                     .states = {states[i % std::size(states)], second_state(i + 3)},
                     .count = counts[i % 6],
                     .first_index = i % 2 * 256,
                     .block = i % 4 < 2 ? 128u : 256u,
                     .shift = static_cast<int>(i % 5 == 0 ? 1 + i % 7 : 0),
                     .wild = i % 3 != 0});
  }
  const auto expect_equal = [&](const char* what, const auto& run) {
    optimizer_buffer host(plans, 13);
    const device_bytes device(host.bytes());
    for (const optimizer_tensor& t : host.tensors_at(host.bytes().data())) {
      run(t, memory_space::host, reference());
    }
    for (const optimizer_tensor& t : host.tensors_at(device.data())) {
      run(t, memory_space::device, here());
    }
    expect_same(host, device, what);
  };
  expect_equal("stores", [](const optimizer_tensor& t, memory_space space, const executor& where) {
    for (const auto& [array, options] : stores_of(t)) {
      if (array.format != none) store(gradient_of(t, space), array, options, where);
    }
  });
  for (std::size_t n = 0; n < 4; ++n) {
    expect_equal("loads",
                 [n](const optimizer_tensor& t, memory_space space, const executor& where) {
                   const auto [array, options] = stores_of(t)[n];
                   if (array.format != none) load(array, gradient_of(t, space), options, where);
                 });
  }
}

TEST_P(OptimizerDevice, NoTensors) {
  const optimizer_settings s;
  optimizer_step(optimizer_list({}, memory_space::device), {&s, 1}, {}, here());
  expect_reference({{.mode = {fp32}, .gradient = fp32, .states = {fp32, fp32}, .count = 0}}, {s},
                   12, "an empty tensor");
}

/// Tensors of some modes, for the tests below.
std::vector<tensor_plan> some_plans() {
  std::vector<tensor_plan> plans;
  for (std::size_t i = 0; i < std::size(modes); ++i) {
    plans.push_back({.mode = modes[i],
                     .gradient = bf16_nearest,
                     .states = {states[i % std::size(states)], second_state(i + 3)},
                     .count = static_cast<std::int64_t>(3000 + i),
                     .group = static_cast<std::uint32_t>(i % 2)});
  }
  return plans;
}

std::vector<optimizer_settings> two_groups() {
  return {{.weight_decay = 0.1}, {.rule = update_rule::lamb}};
}

TEST_P(OptimizerDevice, DecisionAndLearningRatesInDeviceMemory) {
  const std::vector<optimizer_settings> groups = two_groups();
  optimizer_buffer host(some_plans(), 21);
  const device_bytes device(host.bytes());
  const optimizer_list on_host(host.tensors_at(host.bytes().data()));
  const optimizer_list on_gpu(host.tensors_at(device.data()), memory_space::device);
  step_report report;
  const std::array<float, 2> rates = {0.02f, 0.3f};
  on_device<step_report> decision(report);
  const on_device<std::array<float, 2>> rates_there(rates);
  for (int i = 0; i < 6; ++i) {
    report.applied = i % 3 != 1;  // skipped steps have a grad_mul of 0
    if (report.applied) ++report.applied_steps;
    report.grad_mul = report.applied ? 0.25f : 0.0f;
    decision.set(report);
    const std::vector<std::byte> before = host.bytes();
    optimizer_step(on_host, groups,
                   {.decision = &report, .learning_rates = rates.data(), .seed = 4}, reference());
    EXPECT_EQ(before == host.bytes(), !report.applied);
    optimizer_step(
        on_gpu, groups,
        {.decision = decision.data(), .learning_rates = rates_there.data()->data(), .seed = 4},
        here());
    expect_same(host, device, "step " + std::to_string(i));
  }
}

/// One launch computes the constants of 32 groups.
TEST_P(OptimizerDevice, FortyGroupsWithLearningRatesInDeviceMemory) {
  constexpr std::size_t count = 40;
  std::array<float, count> rates;
  std::vector<optimizer_settings> groups;
  std::vector<tensor_plan> plans;
  const std::vector<optimizer_settings> all = all_settings();
  for (std::size_t i = 0; i < count; ++i) {
    rates[i] = 0.01f + 0.002f * static_cast<float>(i);
    groups.push_back(all[i % all.size()]);
    plans.push_back({.mode = {fp32},
                     .gradient = fp32,
                     .states = {fp32, fp32},
                     .count = 300 + 37 * static_cast<std::int64_t>(i),
                     .group = static_cast<std::uint32_t>(i)});
  }
  optimizer_buffer host(plans, 25);
  const device_bytes device(host.bytes());
  const optimizer_list on_host(host.tensors_at(host.bytes().data()));
  const optimizer_list on_gpu(host.tensors_at(device.data()), memory_space::device);
  const on_device<std::array<float, count>> rates_there(rates);
  for (const std::uint64_t t : {std::uint64_t{1}, std::uint64_t{2}}) {
    optimizer_step(on_host, groups, {.applied_steps = t, .learning_rates = rates.data(), .seed = 6},
                   reference());
    optimizer_step(on_gpu, groups,
                   {.applied_steps = t, .learning_rates = rates_there.data()->data(), .seed = 6},
                   here());
    expect_same(host, device, "40 groups, step " + std::to_string(t));
  }
}

/// The norms of the tensor are sums of the squares of 257 chunks.
TEST_P(OptimizerDevice, LambOfALargeTensor) {
  expect_reference({{.mode = {bf16_nearest, fp32},
                     .gradient = bf16_nearest,
                     .states = {fp32, fp32},
                     .count = 256 * 4096 + 5}},
                   {{.rule = update_rule::lamb, .weight_decay = 0.1}}, 26, "a large tensor");
}

TEST_P(OptimizerDevice, CheckpointsWaitForNonBlockingStreams) {
  const optimizer_checkpoint numbers = {.groups = two_groups()};
  optimizer_buffer host(some_plans(), 27);
  const device_bytes device(host.bytes());
  const optimizer_list on_host(host.tensors_at(host.bytes().data()));
  const optimizer_list on_gpu(host.tensors_at(device.data()), memory_space::device);
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  const auto enqueue_late_step = [&] {
    const auto sleep = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(200)); };
    check_cuda(cudaLaunchHostFunc(stream, sleep, nullptr), "host function");
    optimizer_step(on_gpu, numbers.groups, {.seed = 3}, here(stream));
  };
  const std::vector<std::byte> before = save(on_host, numbers);

  enqueue_late_step();
  const std::vector<std::byte> after = save(on_gpu, numbers);
  optimizer_step(on_host, numbers.groups, {.seed = 3}, reference());
  EXPECT_TRUE(after == save(on_host, numbers)) << "save() did not wait for the step";

  enqueue_late_step();
  load_optimizer(on_gpu, before);
  EXPECT_TRUE(save(on_gpu, numbers) == before) << "load_optimizer() did not wait for the step";
  cudaStreamDestroy(stream);
}

TEST_P(OptimizerDevice, AGraphReplaysSteps) {
  const std::vector<optimizer_settings> groups = two_groups();
  optimizer_buffer host(some_plans(), 22);
  const device_bytes device(host.bytes());
  const optimizer_list on_host(host.tensors_at(host.bytes().data()));
  const optimizer_list on_gpu(host.tensors_at(device.data()), memory_space::device);
  step_report report;
  on_device<step_report> decision(report);
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replay = nullptr;
  check_cuda(cudaStreamCreate(&stream), "stream");
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
  optimizer_step(on_gpu, groups, {.decision = decision.data(), .seed = 3}, here(stream));
  check_cuda(cudaStreamEndCapture(stream, &graph), "end of capture");
  check_cuda(cudaGraphInstantiate(&replay, graph, 0), "instantiate");
  expect_same(host, device, "a captured step runs nothing");
  for (int i = 0; i < 4; ++i) {
    report.applied = i != 2;
    if (report.applied) ++report.applied_steps;
    report.grad_mul = report.applied ? 0.5f : 0.0f;
    decision.set(report);
    check_cuda(cudaGraphLaunch(replay, stream), "replay");
    check_cuda(cudaStreamSynchronize(stream), "wait");
    optimizer_step(on_host, groups, {.decision = &report, .seed = 3}, reference());
    expect_same(host, device, "replay " + std::to_string(i));
  }
  cudaGraphExecDestroy(replay);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

TEST_P(OptimizerDevice, ShardsHaveTheBitsOfTheWhole) {
  const optimizer_settings s = {.weight_decay = 0.1};
  std::vector<tensor_plan> plans = some_plans();
  for (tensor_plan& plan : plans) plan.group = 0;
  const optimizer_buffer start(plans, 23);
  const device_bytes whole(start.bytes()), parts(start.bytes());
  std::vector<optimizer_tensor> shards;
  for (const optimizer_tensor& t : start.tensors_at(parts.data())) {
    for (const auto& [first, last] :
         {std::array<std::int64_t, 2>{0, 256}, {256, 1792}, {1792, t.count}}) {
      optimizer_tensor shard = t;
      for (stored_array* a : {&shard.weights, &shard.master, &shard.states[0], &shard.states[1]}) {
        if (a->format == none) continue;
        a->codes = static_cast<std::byte*>(a->codes) + first * code_bytes(a->format);
        if (a->scales != nullptr) a->scales += first / t.block;
      }
      shard.gradient.codes =
          static_cast<const std::byte*>(t.gradient.codes) + first * code_bytes(t.gradient.format);
      if (t.low != nullptr) shard.low = static_cast<std::byte*>(t.low) + first * 2;
      shard.count = last - first;
      shard.first_index = static_cast<std::uint64_t>(first);
      shards.push_back(shard);
    }
  }
  const optimizer_list all(start.tensors_at(whole.data()), memory_space::device);
  const optimizer_list cut(shards, memory_space::device);
  for (std::uint64_t t = 1; t < 4; ++t) {
    optimizer_step(all, {&s, 1}, {.applied_steps = t, .seed = 8}, here());
    optimizer_step(cut, {&s, 1}, {.applied_steps = t, .seed = 8}, here());
  }
  EXPECT_TRUE(whole.download() == parts.download());
}

}  // namespace
}  // namespace samebits::support
