// The loss scaler of a GPU over shards: every report and factor, on 1, 2, 3 and 8 ranks, against
// sum_shards() and decide() on the host and against one GPU that holds the whole tensors.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "device/cuda_backends.hpp"
#include "device/scaler_shards.hpp"
#include "samebits/testkit/ranks.hpp"
#include "support/effort.hpp"

namespace samebits::support {
namespace {

/// What all ranks must report: decide() of what agree() says and of sum_shards().
template <class State, class Settings>
step_report on_host(communicator& ranks, spread_values& values, const Settings& settings,
                    numerics::resident_scaler<State>& resident, double max_norm) {
  const tensor_list mine(values.shards(ranks.rank()));
  const inspect_report seen = inspect(mine);
  const rank_observation all =
      agree(ranks, {.seen = seen.observation(), .first_bad = seen.first_bad});
  const double squares = sum_shards(ranks, values.parts(ranks.rank())).total;
  const double scale = scale_of(resident.policy);
  const step_report report = decide(settings, resident, all, {squares, max_norm});
  if (report.applied) {
    EXPECT_EQ(report.grad_mul, static_cast<float>(1 / scale) * clip_factor(report.norm, max_norm));
  }
  return report;
}

struct scenario {
  int steps;
  double max_norm;
  std::uint64_t seed;
};

/// Steps on n ranks of the device, of ranks of the host, and of one device without ranks.
template <class Settings>
int compared_steps(std::string_view backend, const device_streams& streams,
                   const Settings& settings, const spread_list& list, const scenario& c) {
  const int n = static_cast<int>(list[0].ranks());
  std::vector<step_report> expected;
  testkit::simulate_ranks(n, [&](communicator& ranks) {
    spread_values values(list);
    engine random(c.seed);
    numerics::resident_scaler<decltype(initial_state(settings))> resident = {
        initial_state(settings), 0, 0};
    for (int i = 0; i < c.steps; ++i) {
      values.draw(random, scale_of(resident.policy));
      const step_report r = on_host(ranks, values, settings, resident, c.max_norm);
      if (ranks.rank() == 0) expected.push_back(r);
    }
  });
  const device_scaler_options plain = {.max_norm = c.max_norm, .reports = 16, .backend = backend};
  int clipped = 0;
  {
    spread_values values(list);
    engine random(c.seed);
    const device_shards all(values.whole());
    device_loss_scaler scaler(all.listed(), settings, plain);
    for (const step_report& wanted : expected) {
      values.draw(random, wanted.scale);
      all.upload();
      const step_report got = stepped(scaler);
      EXPECT_EQ(fields(got), without_rank(wanted)) << "one GPU, step " << wanted.step;
      clipped += wanted.applied && wanted.norm > c.max_norm ? 1 : 0;
    }
  }
  simulate_device_ranks(streams, n, [&](communicator& ranks) {
    spread_values values(list);
    engine random(c.seed);
    const device_shards mine(values.shards(ranks.rank()));
    device_scaler_options options = plain;
    options.shards = shard_layout(ranks, mine.listed(), values.first(ranks.rank()));
    device_loss_scaler scaler(mine.listed(), settings, options);
    for (const step_report& wanted : expected) {
      values.draw(random, wanted.scale);
      mine.upload();
      ASSERT_EQ(fields(stepped(scaler, ranks)), fields(wanted))
          << name(Settings::policy) << ", rank " << ranks.rank() << " of " << n << ", step "
          << wanted.step;
      ASSERT_EQ(fields(downloaded(scaler.decision())), fields(wanted));
    }
  });
  EXPECT_TRUE(c.max_norm == inf || clipped > 0 || smallest_effort());
  return n * c.steps;
}

template <class Settings>
void compare_all(std::string_view backend, const device_streams& streams,
                 const Settings& settings) {
  engine random(11);
  int reports = 0;
  for (const int n : {1, 2, 3, 8}) {
    const spread_list list = random_list(few_sizes, n, random);
    reports +=
        compared_steps(backend, streams, settings, list, {by_effort(40, 4), 0x1p-12, random()});
  }
  const spread_list list = random_list(few_sizes, 3, random);
  reports += compared_steps(backend, streams, settings, list, {by_effort(20, 3), inf, random()});
  std::printf("%s, %s: %d reports compared\n", std::string(backend).c_str(),
              std::string(name(Settings::policy)).c_str(), reports);
}

TEST_P(ScalerShards, NativeDecidesAsTheHostAndOneGpuDo) {
  compare_all(GetParam(), streams_, native_scaling{.growth_interval = 10, .recovery_interval = 5});
}
TEST_P(ScalerShards, TorchDecidesAsTheHostAndOneGpuDo) {
  compare_all(GetParam(), streams_, torch_scaling{.growth_interval = 5});
}
TEST_P(ScalerShards, DeepspeedDecidesAsTheHostAndOneGpuDo) {
  compare_all(GetParam(), streams_, deepspeed_scaling{.scale_window = 5});
}

TEST_P(ScalerShards, ClipsOtherNormsThanRanksAlone) {  // or the tests above would prove little
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

TEST_P(ScalerShards, LongTensorsOfManySlots) {
  engine random(13);
  constexpr std::size_t sizes[] = {(2 * 1024 + 300) * 4096 + 5, 77, 1025 * 4096, 33 * 4096};
  for (const int n : {1, 3, 8}) {
    spread_list list = random_list(sizes, n, random);
    if (n == 8) list[0].borders[1] = 0;  // a rank without elements of it
    (void)compared_steps(GetParam(), streams_, native_scaling{}, list,
                         {by_effort(3, 1), 0x1p-12, random()});
  }
}

TEST_P(ScalerShards, ManyTensorsOfOneRankEach) {
  engine random(14);
  std::vector<std::size_t> sizes;
  for (int i = 0; i < 3000; ++i) sizes.push_back(random() % 70);
  spread_list list = random_list(sizes, 3, random);
  for (spread_tensor& t : list) {
    t.borders = {0, 0, 0, t.size()};  // whole, on rank (2 + turn) % 3
  }
  (void)compared_steps(GetParam(), streams_, torch_scaling{}, list, {2, 0x1p-12, 5});
}

TEST_P(ScalerShards, RanksWithoutElements) {
  spread_list list = {spread_tensor{format_id::fp16, {0, 0, 5 * 4096 + 1, 5 * 4096 + 1}, 0},
                      spread_tensor{format_id::fp32, {0, 0, 9, 9}, 0}};
  (void)compared_steps(GetParam(), streams_, native_scaling{}, list, {3, 0x1p-12, 6});
  list = {spread_tensor{format_id::fp16, {0, 0, 0}, 0}};
  simulate_device_ranks(streams_, 2, [&](communicator& ranks) {
    spread_values values(list);
    const device_shards mine(values.shards(ranks.rank()));
    device_loss_scaler scaler(
        mine.listed(), native_scaling{},
        options(1.0, shard_layout(ranks, mine.listed(), values.first(ranks.rank()))));
    const step_report r = stepped(scaler, ranks);
    EXPECT_TRUE(r.applied);
    EXPECT_EQ(r.norm, 0.0);
    EXPECT_EQ(r.grad_mul, 0x1p-16f);
  });
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

TEST_P(ScalerShards, MultipliesAllShardsByTheSameFactor) {
  engine random(16);
  const spread_list list = random_list(few_sizes, 3, random);
  spread_values whole(list);
  engine value_engine(3);
  whole.draw(value_engine, 1);
  const device_shards all(whole.whole());
  device_loss_scaler alone(all.listed(), native_scaling{}, options(0x1p-12));
  ASSERT_TRUE(stepped(alone).applied);
  alone.apply(all.listed(), nullptr);
  check_cuda(cudaStreamSynchronize(nullptr), "apply");
  all.copy_back();
  simulate_device_ranks(streams_, 3, [&](communicator& ranks) {
    spread_values values(list);
    engine again(3);
    values.draw(again, 1);
    const device_shards mine(values.shards(ranks.rank()));
    device_loss_scaler scaler(
        mine.listed(), native_scaling{},
        options(0x1p-12, shard_layout(ranks, mine.listed(), values.first(ranks.rank()))));
    scaler.step(ranks);
    scaler.apply(mine.listed(), ranks.stream());
    check_cuda(cudaStreamSynchronize(static_cast<cudaStream_t>(ranks.stream())), "apply");
    mine.copy_back();
    const std::vector<matrix_view> got = values.shards(ranks.rank());
    const std::vector<matrix_view> wanted = whole.shards(ranks.rank());
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (got[i].cols == 0) continue;
      const auto bytes = static_cast<std::size_t>(got[i].cols * storage_bytes(got[i].format));
      ASSERT_EQ(std::memcmp(got[i].data, wanted[i].data, bytes), 0) << "tensor " << i;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, ScalerShards, cuda_backends(), cuda_backend_name);

}  // namespace
}  // namespace samebits::support
