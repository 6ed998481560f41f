// Casts over tensor lists on each CUDA backend, against the reference: every byte, and what is
// launched.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/cuda_backends.hpp"
#include "device/device_copy.hpp"
#include "device/random_tensors.hpp"
#include "samebits/samebits.hpp"
#include "support/effort.hpp"

namespace samebits::support {
namespace {

constexpr std::array formats = {format_id::fp32, format_id::fp16, format_id::bf16, format_id::e4m3,
                                format_id::e5m2};

class ListCastDevice : public ::testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override { initialize(GetParam()); }
  [[nodiscard]] executor here() const { return on_stream(nullptr, GetParam()); }

  /// Casts a list on the host and a copy of it on the device, and compares the results' bytes.
  void expect_reference(tensors& in, const tensors::on_device& device_in, const tensors& out,
                        const convert_options& options) const {
    tensors host = out;
    expect_same_bytes(
        host, out,
        [&](const tensor_list& to, const executor& where) {
          cast(where.backend == "reference" ? in.listed() : device_in.listed(), to, options, where);
        },
        here());
  }
};

/// Every rule there is; stochastic ones with K random bits.
std::vector<convert_options> all_rules(int k) {
  std::vector<convert_options> all;
  for (int round = 0; round < enum_count<rounding>; ++round) {
    for (int policy = 0; policy < enum_count<overflow>; ++policy) {
      for (int nan = 0; nan < enum_count<nan_policy>; ++nan) {
        all.push_back({.rounding = static_cast<rounding>(round),
                       .overflow = static_cast<overflow>(policy),
                       .nan = static_cast<nan_policy>(nan),
                       .random = {.seed = 5, .stream = 7, .bits = k}});
      }
    }
  }
  return all;
}

std::string text(const convert_options& o) {
  return std::string(name(o.rounding)) + ", " + std::string(name(o.overflow)) + ", " +
         std::string(name(o.nan)) + ", K " + std::to_string(o.random.bits);
}

/// All codes of 8 and 16 bits; of 32 bits all upper halves with lower ones on both sides of what
/// rounds otherwise into shorter formats.
std::vector<std::uint32_t> patterns(format_id f) {
  const std::vector<std::uint32_t> low =
      f == format_id::fp32 ? std::vector<std::uint32_t>{0,      1,      0x0FFF, 0x1000, 0x1001,
                                                        0x2FFF, 0x3000, 0x7FFF, 0x8000, 0x8001}
                           : std::vector<std::uint32_t>{0};
  const std::uint32_t upper = storage_bytes(f) == 1 ? 0x100 : 0x10000;
  const std::uint32_t step = upper == 0x100 ? 1 : by_effort(1u, 61u);
  std::vector<std::uint32_t> codes;
  for (std::uint32_t high = 0; high < upper; high += step) {
    for (const std::uint32_t bits : low) {
      codes.push_back(f == format_id::fp32 ? high << 16 | bits : high);
    }
  }
  return codes;
}

TEST_P(ListCastDevice, CastsEveryPatternByEveryRule) {
  engine random(1);
  thinned_cases cases(5);
  for (const format_id from : formats) {
    const std::vector<std::uint32_t> codes = patterns(from);
    const auto size = static_cast<std::int64_t>(codes.size());
    tensors in(random, 1, {from}, size, content::zeros, false);
    for (std::size_t i = 0; i < codes.size(); ++i) in.set(0, i, codes[i]);
    const tensors::on_device device_in(in);
    for (const format_id to : formats) {
      const tensors out(random, 1, {to}, size, content::zeros, false);
      for (const convert_options& options : all_rules(12)) {
        if (cases.leaves_out()) continue;
        expect_reference(in, device_in, out, options);
        ASSERT_FALSE(HasFatalFailure())
            << name(from) << " to " << name(to) << ", " << text(options);
      }
    }
  }
}

/// Sizes around those of packs and chunks, with and without strides and alignment.
TEST_P(ListCastDevice, CastsListsOfOnePair) {
  engine random(2);
  for (const format_id from : formats) {
    for (const format_id to : formats) {
      for (const bool odd : {false, true}) {
        tensors in(random, 30, {from}, 0, content::any_bits, odd);
        const tensors::on_device device_in(in);
        const tensors out(random, 30, {to}, 0, content::zeros, odd);
        for (const rounding round :
             {rounding::nearest_even, rounding::downward, rounding::stochastic}) {
          expect_reference(in, device_in, out,
                           {.rounding = round, .random = {.seed = 3, .bits = 16}});
          ASSERT_FALSE(HasFatalFailure())
              << name(from) << " to " << name(to) << ", " << name(round) << ", odd " << odd;
        }
      }
    }
  }
}

TEST_P(ListCastDevice, CastsMixedListsByEveryRule) {
  engine random(3);
  const std::vector<format_id> any(formats.begin(), formats.end());
  for (const bool odd : {false, true}) {
    tensors in(random, 100, any, 300, content::any_bits, odd);
    const tensors::on_device device_in(in);
    const tensors out(random, 100, any, 300, content::zeros, odd);
    for (const convert_options& options : all_rules(32)) {
      expect_reference(in, device_in, out, options);
      ASSERT_FALSE(HasFatalFailure()) << text(options) << ", odd " << odd;
    }
  }
}

TEST_P(ListCastDevice, CastsListsOfAnyLength) {
  engine random(4);
  const std::vector<format_id> any(formats.begin(), formats.end());
  for (const auto& [count, size] : {std::pair<std::size_t, std::int64_t>{0, 0},
                                    {1, 0},
                                    {1, 1'000'003},
                                    {423, 100},
                                    {424, 0},
                                    {425, 33},
                                    {by_effort<std::size_t>(10'000, 1000), 1000}}) {
    for (const bool mixed : {false, true}) {
      for (const bool odd : {false, true}) {
        const bool many = count >= 1000;  // allocations take their time
        if (many && !odd) continue;
        tensors in(random, count, mixed ? any : std::vector{format_id::fp32}, size,
                   content::any_bits, odd);
        const tensors::on_device device_in(in);
        const tensors out(random, count, mixed ? any : std::vector{format_id::bf16}, size,
                          content::zeros, odd);
        for (const rounding round : {rounding::nearest_even, rounding::stochastic}) {
          if (many && round == rounding::stochastic) continue;
          expect_reference(in, device_in, out,
                           {.rounding = round, .random = {.seed = 9, .bits = 8}});
          ASSERT_FALSE(HasFatalFailure())
              << count << " tensors, mixed " << mixed << ", odd " << odd;
        }
      }
    }
  }
}

/// Streams, offsets and pitches, that wrap around as well, of tensors of several rows.
TEST_P(ListCastDevice, DrawsTheRandomBitsOfEachElement) {
  engine random(5);
  const std::vector<format_id> any(formats.begin(), formats.end());
  constexpr std::uint64_t last = ~std::uint64_t{0};
  thinned_cases cases(7);
  for (const bool mixed : {false, true}) {
    tensors in(random, 25, mixed ? any : std::vector{format_id::fp32}, 0, content::finite, true);
    const tensors::on_device device_in(in);
    const tensors out(random, 25, mixed ? any : std::vector{format_id::bf16}, 0, content::zeros,
                      true);
    for (const int k : {1, 8, 13, 16, 32}) {
      for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{48}, std::uint64_t{5},
                                         std::uint64_t{1} << 32, last - 15, last - 6}) {
        for (const std::optional<std::uint64_t> pitch :
             {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(4095),
              std::optional<std::uint64_t>(0), std::optional<std::uint64_t>(last)}) {
          if (cases.leaves_out()) continue;
          const random_stream stream = {
              .seed = 11, .stream = last - 20, .offset = offset, .pitch = pitch, .bits = k};
          expect_reference(in, device_in, out,
                           {.rounding = rounding::stochastic, .random = stream});
          ASSERT_FALSE(HasFatalFailure())
              << "K " << k << ", offset " << offset << ", pitch " << pitch.value_or(1);
        }
      }
    }
  }
}

/// Elements may be written over themselves where both formats are as wide.
TEST_P(ListCastDevice, CastsInPlace) {
  engine random(6);
  for (const auto& [from, to] :
       {std::pair{format_id::fp16, format_id::bf16}, std::pair{format_id::e5m2, format_id::e4m3},
        std::pair{format_id::fp32, format_id::fp32}}) {
    for (const bool odd : {false, true}) {
      const tensors list(random, 50, {from}, 0, content::any_bits, odd);
      tensors host = list;
      const format_id target = to;
      expect_same_bytes(
          host, list,
          [&](const tensor_list& given, const executor& where) {
            std::vector<matrix_view> over;
            for (std::size_t i = 0; i < given.size(); ++i) {
              over.push_back(given[i].view);
              over.back().format = target;
            }
            cast(given, tensor_list(std::span<const matrix_view>(over)), {}, where);
          },
          here());
      ASSERT_FALSE(HasFatalFailure()) << name(from) << " to " << name(to) << ", odd " << odd;
    }
  }
}

/// Whatever a list holds, it is one launch; replayed it does the same again.
TEST_P(ListCastDevice, IsOneLaunchThatReplays) {
  engine random(7);
  const std::vector<format_id> any(formats.begin(), formats.end());
  cudaStream_t stream;
  check_cuda(cudaStreamCreate(&stream), "stream");
  for (const bool mixed : {false, true}) {
    for (const rounding round : {rounding::nearest_even, rounding::upward, rounding::stochastic}) {
      tensors in(random, 60, mixed ? any : std::vector{format_id::fp32}, 0, content::any_bits,
                 mixed);
      tensors out(random, 60, mixed ? any : std::vector{format_id::e4m3}, 0, content::zeros, mixed);
      const convert_options options = {.rounding = round, .random = {.seed = 1, .bits = 16}};
      tensors host = out;
      cast(in.listed(), host.listed(), options, executor{"reference", 0});
      const tensors::on_device from(in), to(out);
      cudaGraph_t graph;
      cudaGraphExec_t exec;
      check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin capture");
      cast(from.listed(), to.listed(), options, on_stream(stream, GetParam()));
      check_cuda(cudaStreamEndCapture(stream, &graph), "end capture");
      std::size_t nodes = 0;
      check_cuda(cudaGraphGetNodes(graph, nullptr, &nodes), "nodes");
      EXPECT_EQ(nodes, 1u) << "mixed " << mixed << ", " << name(round);
      check_cuda(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
      for (int i = 0; i < 2; ++i) check_cuda(cudaGraphLaunch(exec, stream), "replay");
      check_cuda(cudaStreamSynchronize(stream), "replays");
      to.download();
      EXPECT_TRUE(out.memory() == host.memory()) << "mixed " << mixed << ", " << name(round);
      cudaGraphExecDestroy(exec);
      cudaGraphDestroy(graph);
    }
  }
  cudaStreamDestroy(stream);
}

INSTANTIATE_TEST_SUITE_P(Backends, ListCastDevice, cuda_backends(), cuda_backend_name);

}  // namespace
}  // namespace samebits::support
