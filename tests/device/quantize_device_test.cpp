// Quantization on device memory against the reference on the host: random options, shapes, strides
// and data, memory between and around the elements included.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "device/quantize_device_case.hpp"
#include "samebits/samebits.hpp"
#include "support/effort.hpp"

namespace samebits {
namespace {

class QuantizeDevice : public ::testing::TestWithParam<const char*> {};

TEST_P(QuantizeDevice, EqualsTheReference) {
  engine random(20'261'120);
  const int cases = support::by_effort(3000, 150);
  std::uint64_t elements = 0;
  for (int n = 0; n < cases; ++n) {
    const quantize_case c = random_case(random);
    std::vector<std::byte> in = random_memory(random, c.in);
    const std::vector<const placed*> outputs{&c.codes, &c.scales, &c.codes_transposed,
                                             &c.scales_transposed};
    std::vector<std::vector<std::byte>> expected, got;
    std::vector<std::byte*> host;
    for (const placed* p : outputs) expected.emplace_back(p->bytes(), std::byte{0x55});
    expected.emplace_back(sizeof(quantize_statistics), std::byte{0x55});
    got = expected;
    for (auto& memory : expected) host.push_back(memory.data());
    std::vector<std::byte> given = random_memory(random, c.inverse_scales);
    quantize_options options = c.options;
    options.inverse_scales = c.inverse_scales.at(given.data(), memory_space::host);
    quantize(c.in.at(in.data(), memory_space::host), c.outputs(host, memory_space::host), options,
             find_executor("reference"));

    device_block device_in(in.size());
    device_in.upload(in.data());
    std::vector<std::unique_ptr<device_block>> blocks;
    std::vector<std::byte*> bases;
    for (auto& memory : got) {
      blocks.push_back(std::make_unique<device_block>(memory.size()));
      blocks.back()->upload(memory.data());
      bases.push_back(blocks.back()->data());
    }
    const matrix_view from = c.in.at(device_in.data(), memory_space::device);
    const quantize_outputs to = c.outputs(bases, memory_space::device);
    const executor where = on_stream(nullptr, GetParam());
    device_block device_given(given.size());
    device_given.upload(given.data());
    options.inverse_scales = c.inverse_scales.at(device_given.data(), memory_space::device);
    const std::size_t bytes = quantize_workspace(from, to, options, where);
    const device_block workspace(bytes);
    if (c.own_workspace) options.workspace = {workspace.data(), bytes};
    quantize(from, to, options, where);
    check(cudaDeviceSynchronize(), "quantize");
    for (std::size_t i = 0; i < got.size(); ++i) {
      blocks[i]->download(got[i].data());
      ASSERT_EQ(got[i], expected[i]) << "output " << i << " of case " << n << ": " << describe(c);
    }
    elements += static_cast<std::uint64_t>(c.in.rows * c.in.cols);

    if (!c.codes.wanted || !c.scales.wanted || c.in.rows == 0) continue;
    std::vector<float> back(static_cast<std::size_t>(c.in.rows * c.in.cols)), twin(back.size());
    const quantize_outputs o = c.outputs(host, memory_space::host);
    dequantize(o.codes, o.scales, view_of(back.data(), c.in.rows, c.in.cols), c.options.tile,
               find_executor("reference"));
    device_block device_back(back.size() * 4);
    matrix_view out = on_device(view_of(twin.data(), c.in.rows, c.in.cols));
    out.data = device_back.data();
    const quantize_outputs d = c.outputs(bases, memory_space::device);
    dequantize(d.codes, d.scales, out, c.options.tile, on_stream(nullptr, GetParam()));
    check(cudaDeviceSynchronize(), "dequantize");
    device_back.download(twin.data());
    ASSERT_EQ(std::memcmp(back.data(), twin.data(), back.size() * 4), 0) << describe(c);
  }
  EXPECT_GT(elements, support::by_effort(10'000'000u, 100'000u));
}

/// 1 x 128 over many elements: every option that has a kernel of its own.
TEST_P(QuantizeDevice, ManyElements) {
  const std::int64_t rows = support::by_effort(4096, 128), cols = 4096;
  const auto count = static_cast<std::size_t>(rows * cols);
  engine random(7);
  const placed p{format_id::bf16, rows, cols, cols};
  const std::vector<std::byte> in = random_memory(random, p);
  device_block device_in(in.size());
  device_in.upload(in.data());
  std::vector<e4m3> expected(count), got(count);
  std::vector<float> expected_scales(count / 128), got_scales(count / 128);
  device_block codes(expected.size()), scales(expected_scales.size() * 4);
  quantize_statistics expected_statistics, got_statistics;
  device_block statistics(sizeof expected_statistics);
  const_matrix_view from = view_of_codes(format_id::bf16, in.data(), rows, cols);
  const_matrix_view device_from = on_device(from);
  device_from.data = device_in.data();
  for (int m = 0; m < enum_count<scale_rule>; ++m) {
    const auto rule = static_cast<scale_rule>(m);
    for (const int k : {0, 8, 16, 32}) {
      quantize_options options{.scale = rule};
      if (k != 0) options.rounding = rounding::stochastic, options.random = {.seed = 3, .bits = k};
      quantize(from,
               {.codes = view_of(expected.data(), rows, cols),
                .scales = view_of(expected_scales.data(), rows, cols / 128),
                .statistics = &expected_statistics},
               options, find_executor("reference", 0));
      matrix_view device_codes = on_device(view_of(got.data(), rows, cols));
      matrix_view device_scales = on_device(view_of(got_scales.data(), rows, cols / 128));
      device_codes.data = codes.data();
      device_scales.data = scales.data();
      quantize_outputs to{.codes = device_codes, .scales = device_scales};
      quantize(device_from, to, options, on_stream(nullptr, GetParam()));
      check(cudaDeviceSynchronize(), "quantize");
      codes.download(got.data());
      scales.download(got_scales.data());
      ASSERT_EQ(std::memcmp(got.data(), expected.data(), got.size()), 0)
          << "scale rule " << static_cast<int>(rule) << ", K " << k;
      ASSERT_EQ(std::memcmp(got_scales.data(), expected_scales.data(), got_scales.size() * 4), 0);

      to.statistics = reinterpret_cast<quantize_statistics*>(statistics.data());
      quantize(device_from, to, options, on_stream(nullptr, GetParam()));
      check(cudaDeviceSynchronize(), "quantize");
      std::vector<e4m3> again(got.size());
      codes.download(again.data());
      statistics.download(&got_statistics);
      EXPECT_TRUE(got_statistics == expected_statistics)
          << "scale rule " << static_cast<int>(rule) << ", K " << k;
      ASSERT_EQ(std::memcmp(again.data(), expected.data(), again.size()), 0);
    }
  }
}

/// Zeros alone have no smallest magnitude above zero, alone or beside rows of numbers; and what is
/// captured into a graph counts at each replay, in a workspace of the caller's or the stream's.
TEST_P(QuantizeDevice, CountsZerosAndInGraphs) {
  initialize(GetParam());
  constexpr std::int64_t rows = 96, cols = 256;
  cudaStream_t stream;
  check(cudaStreamCreate(&stream), "stream");
  const executor where = on_stream(stream, GetParam());
  for (const format_id from : {format_id::fp32, format_id::fp16, format_id::bf16}) {
    for (const tile_shape tile : {tile_shape{1, 128}, tile_shape{32, 32}, tile_shape{0, 0}}) {
      for (const bool own_workspace : {false, true}) {
        const placed p{from, rows, cols, cols};
        const auto bytes = static_cast<std::size_t>(rows * cols * storage_bytes(from));
        device_block in(bytes), codes(rows * cols), statistics(sizeof(quantize_statistics));
        const matrix_view device_in = p.at(in.data(), memory_space::device);
        quantize_outputs to{
            .codes = {codes.data(), format_id::e4m3, rows, cols, cols, 1, memory_space::device},
            .statistics = reinterpret_cast<quantize_statistics*>(statistics.data())};
        quantize_options options{.tile = tile};
        const std::size_t needed = quantize_workspace(device_in, to, options, where);
        const device_block memory(needed);
        if (own_workspace) options.workspace = {memory.data(), needed};
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin capture");
        quantize(device_in, to, options, where);
        check(cudaStreamEndCapture(stream, &graph), "end capture");
        check(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
        for (const bool zeros : {true, false}) {
          engine random(11);
          std::vector<std::byte> data = random_memory(random, p);
          data.resize(bytes);
          if (zeros)
            std::fill(data.begin(), data.end(), std::byte{});
          else
            std::fill_n(data.begin(), bytes / 2, std::byte{});
          in.upload(data.data());
          check(cudaGraphLaunch(exec, stream), "replay");
          check(cudaStreamSynchronize(stream), "synchronize");
          quantize_statistics got, expected;
          statistics.download(&got);
          std::vector<e4m3> scratch(rows * cols);
          quantize_options plain{.tile = tile};
          quantize(p.at(data.data(), memory_space::host),
                   {.codes = view_of(scratch.data(), rows, cols), .statistics = &expected}, plain,
                   find_executor("reference"));
          EXPECT_TRUE(got == expected)
              << name(from) << " " << tile.rows << " x " << tile.cols << " zeros " << zeros
              << " min_nonzero " << got.min_nonzero << " expected " << expected.min_nonzero;
          if (zeros) {
            EXPECT_EQ(std::bit_cast<std::uint32_t>(got.min_nonzero), 0u);
          }
        }
        cudaGraphExecDestroy(exec);
        cudaGraphDestroy(graph);
      }
    }
  }
  cudaStreamDestroy(stream);
}

TEST_P(QuantizeDevice, RefusesAWorkspaceThatIsTooSmall) {
  device_block in(64 * 128 * 2), codes(64 * 128), statistics(sizeof(quantize_statistics));
  const const_matrix_view from{in.data(), format_id::bf16, 64, 128, 128, 1, memory_space::device};
  const quantize_outputs to{
      .codes = {codes.data(), format_id::e4m3, 64, 128, 128, 1, memory_space::device},
      .statistics = reinterpret_cast<quantize_statistics*>(statistics.data())};
  const executor where = on_stream(nullptr, GetParam());
  const std::size_t bytes = quantize_workspace(from, to, {}, where);
  ASSERT_GT(bytes, 0u);
  EXPECT_THROW(quantize(from, to, {.workspace = {in.data(), bytes - 1}}, where), invalid_argument);
  EXPECT_THROW(quantize(from, to, {.workspace = {in.data() + 8, bytes}}, where), invalid_argument);
}

TEST_P(QuantizeDevice, IsCapturedAndSkippedByTheFlag) {
  initialize(GetParam());
  constexpr std::int64_t rows = 64, cols = 256;
  std::vector<bf16> x(rows * cols, bf16(1.5f));
  std::vector<e4m3> got(rows * cols);
  device_block in(x.size() * 2), codes(got.size()), flag(4);
  in.upload(x.data());
  const_matrix_view from = on_device(view_of(x.data(), rows, cols));
  matrix_view to = on_device(view_of(got.data(), rows, cols));
  from.data = in.data();
  to.data = codes.data();
  quantize_options options;
  options.skip_if_nonzero = reinterpret_cast<const std::uint32_t*>(flag.data());
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  check(cudaStreamCreate(&stream), "stream");
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin capture");
  quantize(from, {.codes = to}, options, on_stream(stream, GetParam()));
  check(cudaStreamEndCapture(stream, &graph), "end capture");
  check(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
  for (const std::uint32_t skip : {1u, 0u}) {
    std::memset(static_cast<void*>(got.data()), 0x11, got.size());
    codes.upload(got.data());
    flag.upload(&skip);
    check(cudaGraphLaunch(exec, stream), "replay");
    check(cudaStreamSynchronize(stream), "synchronize");
    codes.download(got.data());
    for (const e4m3 code : got) ASSERT_EQ(code.bits(), skip != 0 ? 0x11 : 0x7E);
  }
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

INSTANTIATE_TEST_SUITE_P(Backends, QuantizeDevice,
                         ::testing::Values("cuda-emulated", "cuda-native"), [](const auto& tested) {
                           return std::string(tested.param) == "cuda-native" ? "native"
                                                                             : "emulated";
                         });

}  // namespace
}  // namespace samebits
