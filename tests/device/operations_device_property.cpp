// Every array operation on both CUDA backends against the reference on the host: 50 000 cases each
// by default, as many as RC_PARAMS="max_success=N" says otherwise. A failing case is shrunk. Fewer
// cases with an allocation for each buffer, in managed memory, and captured into graphs.

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/device_test.hpp"
#include "engine/cases/scaler_scenario.hpp"
#include "samebits/device_loss_scaler.hpp"
#include "samebits/distributed.hpp"

namespace samebits::support {
namespace {

const int max_cases = by_effort(50'000, 64);

/// Adds the reports of the last steps, which have been waited for.
void add_reports(returned_values& all, device_loss_scaler& scaler, std::size_t steps) {
  for (std::size_t i = 0; i < steps; ++i) {
    const auto report = scaler.poll();
    if (!report) throw std::logic_error("a step left no report");
    add_report(all, *report);
  }
}

/// Adds the decision and the scale, which kernels of the caller read on the device.
void add_outcome_of(returned_values& all, device_loss_scaler& scaler, void* stream) {
  const double scale = scaler.on_host(stream).get_scale();
  if (downloaded(scaler.scale()) != static_cast<float>(scale)) {
    throw std::logic_error("another scale on the device");
  }
  add_outcome(all, downloaded(scaler.decision()), scale);
}

device_scaler_options options_of(const scaler_scenario& c, const call_site& site) {
  return {.max_norm = c.max_norm, .reports = 16, .backend = site.target.backend()};
}

returned_values scenario_on_device(const scaler_scenario& c, const call_site& site) {
  void* const stream = site.target.where(1).stream;
  const tensor_list gradients = gradients_of(c, site);
  device_loss_scaler scaler(gradients, c.settings, options_of(c, site));
  returned_values all;
  for (std::size_t s = 0; s < c.steps.size(); ++s) {
    draw_gradients(c, site, s);
    scaler.observe_losses(losses_of(c, site, s), scenario_losses, stream);
    scaler.step(stream);
    scaler.apply(gradients, stream);
    if (s % 8 != 7 && s + 1 != c.steps.size()) continue;
    check_cuda(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "steps");
    add_reports(all, scaler, s % 8 + 1);  // of which the scaler keeps 16
  }
  add_outcome_of(all, scaler, stream);
  return all;
}

/// What a rank of the device takes a scenario to be.
returned_values shards_on_device(const scaler_scenario& c, const call_site& site,
                                 communicator& ranks) {
  const tensor_list mine = shards_of(c, site, ranks.rank());
  device_scaler_options options = options_of(c, site);
  if (!c.apart) options.shards = shard_layout(ranks, mine, first_elements(c, ranks.rank()));
  device_loss_scaler scaler(mine, c.settings, options);
  for (std::size_t s = 0; s < c.steps.size(); ++s) {
    scaler.observe_losses(losses_of_rank(c, site, s, ranks.rank()), scenario_losses,
                          ranks.stream());
    scaler.step(ranks);
  }
  scaler.apply(mine, ranks.stream());
  returned_values all;
  check_cuda(cudaStreamSynchronize(static_cast<cudaStream_t>(ranks.stream())), "steps");
  add_reports(all, scaler, c.steps.size());
  add_outcome_of(all, scaler, ranks.stream());
  return all;
}

returned_values sharded_on_device(const scaler_scenario& c, const call_site& site) {
  std::vector<returned_values> of_ranks(static_cast<std::size_t>(c.ranks));
  site.target.simulate_ranks(c.ranks, [&](communicator& ranks) {
    of_ranks[static_cast<std::size_t>(ranks.rank())] = shards_on_device(c, site, ranks);
  });
  returned_values all;
  for (const returned_values& f : of_ranks) all.insert(all.end(), f.begin(), f.end());
  return all;
}

/// A backend, and where the memory of its batches lies.
struct device_kind {
  const char* name;
  std::string_view backend;
  placement where = placement::block;
};
constexpr device_kind device_kinds[] = {{"Emulated", "cuda-emulated"},
                                        {"Native", "cuda-native"},
                                        {"EmulatedApart", "cuda-emulated", placement::apart},
                                        {"NativeApart", "cuda-native", placement::apart},
                                        {"EmulatedManaged", "cuda-emulated", placement::managed},
                                        {"NativeManaged", "cuda-native", placement::managed}};

class DeviceProperty : public ::testing::TestWithParam<device_kind> {
 protected:
  void SetUp() override { initialize(GetParam().backend); }

  /// Fewer cases where the memory alone is another.
  static void expect_host_bits(const array_operation& op, int cases = max_cases) {
    device_target target{std::string(GetParam().backend), GetParam().where};
    const bool all = GetParam().where == placement::block;
    expect_as_reference(op, target, all ? cases : by_effort(cases / 25, cases / 4));
  }
};

TEST_P(DeviceProperty, Convert) { expect_host_bits(convert_operation(GetParam().backend)); }
TEST_P(DeviceProperty, Compute) { expect_host_bits(compute_operation(GetParam().backend)); }
TEST_P(DeviceProperty, Reduction) { expect_host_bits(reduction_operation()); }
TEST_P(DeviceProperty, Quantize) { expect_host_bits(quantize_operation()); }
TEST_P(DeviceProperty, Presets) {
  for (const recipe_preset* preset : presets_of_current_scales()) {
    expect_host_bits(recipe_operation(*preset), max_cases / 25);
  }
}
TEST_P(DeviceProperty, Dequantize) { expect_host_bits(dequantize_operation()); }
TEST_P(DeviceProperty, Codebooks) { expect_host_bits(codebook_operation()); }
TEST_P(DeviceProperty, QuantizeList) { expect_host_bits(quantize_list_operation()); }
TEST_P(DeviceProperty, Inspect) { expect_host_bits(list_operation(list_call::inspect)); }
TEST_P(DeviceProperty, L2Norm) { expect_host_bits(list_operation(list_call::l2norm)); }
TEST_P(DeviceProperty, Unscale) { expect_host_bits(list_operation(list_call::unscale)); }
TEST_P(DeviceProperty, Scale) { expect_host_bits(list_operation(list_call::scale)); }
TEST_P(DeviceProperty, Clip) { expect_host_bits(list_operation(list_call::clip)); }
TEST_P(DeviceProperty, Accumulate) { expect_host_bits(list_operation(list_call::accumulate)); }
TEST_P(DeviceProperty, Axpby) { expect_host_bits(list_operation(list_call::axpby)); }
TEST_P(DeviceProperty, Cast) { expect_host_bits(list_operation(list_call::cast)); }
TEST_P(DeviceProperty, Evaluate) { expect_host_bits(evaluate_operation()); }
TEST_P(DeviceProperty, FunctionsOfRows) { expect_host_bits(row_operation(), max_cases / 4); }
TEST_P(DeviceProperty, FusedOperators) { expect_host_bits(fused_operation()); }
TEST_P(DeviceProperty, GatedAndQuantized) {
  expect_host_bits(gated_quantize_operation(), max_cases / 4);
}
TEST_P(DeviceProperty, NormsAndQuantized) {
  expect_host_bits(norm_quantize_operation(), max_cases / 4);
}
TEST_P(DeviceProperty, Norms) { expect_host_bits(norm_operation(), max_cases / 4); }
TEST_P(DeviceProperty, TrainingFunctions) {
  expect_host_bits(training_operation_on_device(), max_cases / 16);
}
TEST_P(DeviceProperty, OptimizerStep) { expect_host_bits(optimizer_operation()); }
TEST_P(DeviceProperty, StoreAndLoad) { expect_host_bits(store_operation()); }

INSTANTIATE_TEST_SUITE_P(Backends, DeviceProperty, ::testing::ValuesIn(device_kinds),
                         [](const auto& tested) { return std::string(tested.param.name); });

/// What takes the host long, in one block of memory alone.
class ScenarioDeviceProperty : public DeviceTest {
 protected:
  static void expect_cases(const array_operation& op) {
    expect_host_bits(op, "reference", max_cases);
  }
};

TEST_P(ScenarioDeviceProperty, ReduceGradients) { expect_cases(gradient_reduction_operation()); }
TEST_P(ScenarioDeviceProperty, LossScaler) { expect_cases(scaler_operation(scenario_on_device)); }
TEST_P(ScenarioDeviceProperty, LongTracesOfLossScalers) {
  expect_cases(long_scaler_operation(scenario_on_device));
}
TEST_P(ScenarioDeviceProperty, ShardedLossScaler) {
  expect_cases(sharded_scaler_operation(sharded_on_device));
}
TEST_P(ScenarioDeviceProperty, LargeShards) {
  expect_cases(large_shards_operation(sharded_on_device));
}

INSTANTIATE_TEST_SUITE_P(Backends, ScenarioDeviceProperty, cuda_backends(), cuda_backend_name);

/// What does not wait, captured into graphs, each of which is replayed twice.
class CapturedProperty : public DeviceTest {
 protected:
  static void expect_host_bits(array_operation op) {
    captured_target target{std::string(GetParam())};
    op.batch = 64;  // graphs of a batch live together
    expect_as_reference(op, target, by_effort(4000, 32));
  }
};

TEST_P(CapturedProperty, Convert) { expect_host_bits(convert_operation(GetParam())); }
TEST_P(CapturedProperty, Compute) { expect_host_bits(compute_operation(GetParam())); }
TEST_P(CapturedProperty, Reduction) { expect_host_bits(reduction_operation()); }
TEST_P(CapturedProperty, Quantize) { expect_host_bits(quantize_operation()); }
TEST_P(CapturedProperty, Dequantize) { expect_host_bits(dequantize_operation()); }
TEST_P(CapturedProperty, Codebooks) { expect_host_bits(codebook_operation()); }
TEST_P(CapturedProperty, QuantizeList) { expect_host_bits(quantize_list_operation()); }
TEST_P(CapturedProperty, Scale) { expect_host_bits(list_operation(list_call::scale)); }
TEST_P(CapturedProperty, Accumulate) { expect_host_bits(list_operation(list_call::accumulate)); }
TEST_P(CapturedProperty, Axpby) { expect_host_bits(list_operation(list_call::axpby)); }
TEST_P(CapturedProperty, Cast) { expect_host_bits(list_operation(list_call::cast)); }
TEST_P(CapturedProperty, Evaluate) { expect_host_bits(evaluate_operation()); }
TEST_P(CapturedProperty, FunctionsOfRows) { expect_host_bits(row_operation()); }
TEST_P(CapturedProperty, FusedOperators) { expect_host_bits(fused_operation()); }
TEST_P(CapturedProperty, GatedAndQuantized) { expect_host_bits(gated_quantize_operation()); }
TEST_P(CapturedProperty, NormsAndQuantized) { expect_host_bits(norm_quantize_operation()); }
TEST_P(CapturedProperty, Norms) { expect_host_bits(norm_operation()); }
TEST_P(CapturedProperty, TrainingFunctions) { expect_host_bits(training_operation_on_device()); }
TEST_P(CapturedProperty, OptimizerStep) { expect_host_bits(optimizer_operation()); }
TEST_P(CapturedProperty, StoreAndLoad) { expect_host_bits(store_operation()); }

INSTANTIATE_TEST_SUITE_P(Backends, CapturedProperty, cuda_backends(), cuda_backend_name);

}  // namespace
}  // namespace samebits::support
