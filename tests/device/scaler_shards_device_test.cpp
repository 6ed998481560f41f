// The loss scaler of a GPU over shards: what one rank's elements and losses decide for all. Every
// report and factor: device.property_shardedlossscaler and device.property_largeshards.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "device/cuda_backends.hpp"
#include "device/scaler_shards.hpp"

namespace samebits::support {
namespace {

TEST_P(ScalerShards, ClipsOtherNormsThanRanksAlone) {  // or the properties would prove little
  engine random(12);
  const spread_list list = random_list(few_sizes, 3, random);
  int differ = 0;
  simulate_device_ranks(streams_, 3, [&](communicator& ranks) {
    spread_values values(list);
    engine value_engine(1);
    values.draw(value_engine, 1);
    const device_shards mine(values.shards(ranks.rank()));
    device_loss_scaler sharded(
        mine.listed(), native_scaling{},
        options(0x1p-12, shard_layout(ranks, mine.listed(), values.first(ranks.rank()))));
    device_loss_scaler alone(mine.listed(), native_scaling{}, options(0x1p-12));
    const step_report all = stepped(sharded, ranks);
    alone.step(ranks.stream());
    check_cuda(cudaStreamSynchronize(static_cast<cudaStream_t>(ranks.stream())), "step");
    ASSERT_TRUE(all.applied);
    if (ranks.rank() == 0) differ = all.grad_mul != alone.poll().value().grad_mul ? 1 : 0;
  });
  EXPECT_EQ(differ, 1);
}

TEST_P(ScalerShards, NonFiniteElementsOfOneShardStopEveryRank) {
  engine random(15);
  const spread_list list = random_list(few_sizes, 3, random);
  for (const std::uint16_t bad : std::array<std::uint16_t, 3>{0x7C00, 0xFC00, 0x7FFF}) {
    for (int where = 0; where < 3; ++where) {
      const std::size_t element = list[2].begin(where);
      if (element == list[2].end(where)) continue;
      simulate_device_ranks(streams_, 3, [&](communicator& ranks) {
        spread_values values(list);
        engine value_engine(2);
        values.draw(value_engine, 1);
        values.put(2, element, bad);
        const device_shards mine(values.shards(ranks.rank()));
        device_loss_scaler scaler(
            mine.listed(), native_scaling{},
            options(1.0, shard_layout(ranks, mine.listed(), values.first(ranks.rank()))));
        const step_report r = stepped(scaler, ranks);
        EXPECT_FALSE(r.applied);
        EXPECT_EQ(r.grad_mul, 0.0f);
        EXPECT_EQ(r.first_bad, 2);
        EXPECT_EQ(r.bad_rank, where);
        EXPECT_EQ(r.cause, bad == 0x7FFF ? step_cause::nan : step_cause::overflow);
        EXPECT_FALSE(std::isfinite(r.norm));
        // It is forgotten in the next step.
        values.put(2, element, 0x3C00);
        mine.upload();
        EXPECT_TRUE(stepped(scaler, ranks).applied);
      });
    }
  }
}

TEST_P(ScalerShards, ALossOfOneRankExplainsTheStepToAll) {
  engine random(20);
  const spread_list list = random_list(few_sizes, 3, random);
  const float values_of_loss[] = {1.0f, std::numeric_limits<float>::quiet_NaN()};
  const guarded_copy loss(values_of_loss, sizeof(values_of_loss));
  simulate_device_ranks(streams_, 3, [&](communicator& ranks) {
    spread_values values(list);
    values.fill(2, 7);
    values.put(2, 0, 0x7C00);
    const device_shards mine(values.shards(ranks.rank()));
    device_loss_scaler scaler(
        mine.listed(), native_scaling{},
        options(1.0, shard_layout(ranks, mine.listed(), values.first(ranks.rank()))));
    if (ranks.rank() == 1) {
      scaler.observe_losses(static_cast<const float*>(loss.data()), 2, ranks.stream());
    }
    const step_report first = stepped(scaler, ranks);
    EXPECT_EQ(first.cause, step_cause::loss);
    EXPECT_EQ(first.bad_rank, 1);
    EXPECT_EQ(first.first_bad, 2);
    EXPECT_EQ(stepped(scaler, ranks).cause, step_cause::overflow);  // the loss is forgotten
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, ScalerShards, cuda_backends(), cuda_backend_name);

}  // namespace
}  // namespace samebits::support
