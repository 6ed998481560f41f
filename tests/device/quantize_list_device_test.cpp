// Lists on device memory against one call a tensor by the reference: random lists, shapes, strides
// and rules, memory between and around the elements included.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "device/quantize_device_case.hpp"
#include "samebits/samebits.hpp"
#include "support/effort.hpp"

namespace samebits {
namespace {

/// A tensor of a list, in host memory and the same on the device.
class listed_tensor {
 public:
  listed_tensor(engine& random, const quantize_case& shape)
      : case_(shape),
        in_(random_memory(random, shape.in)),
        given_(random_memory(random, shape.inverse_scales)),
        device_in_(in_.size()),
        device_given_(given_.size()) {
    device_in_.upload(in_.data());
    device_given_.upload(given_.data());
    for (const placed* p :
         {&case_.codes, &case_.scales, &case_.codes_transposed, &case_.scales_transposed}) {
      expected_.emplace_back(p->bytes(), std::byte{0x55});
      blocks_.push_back(std::make_unique<device_block>(p->bytes()));
      blocks_.back()->upload(expected_.back().data());
    }
  }
  void quantize_on_host(quantize_options options, std::size_t position) {
    options.random.stream += position;
    options.inverse_scales = case_.inverse_scales.at(given_.data(), memory_space::host);
    std::vector<std::byte*> bases;
    for (auto& memory : expected_) bases.push_back(memory.data());
    bases.push_back(nullptr);
    quantize(case_.in.at(in_.data(), memory_space::host), case_.outputs(bases, memory_space::host),
             options, find_executor("reference"));
  }
  quantize_item item() const {
    std::vector<std::byte*> bases;
    for (const auto& block : blocks_) bases.push_back(block->data());
    bases.push_back(nullptr);
    return {.in = case_.in.at(device_in_.data(), memory_space::device),
            .outputs = case_.outputs(bases, memory_space::device),
            .inverse_scales = case_.inverse_scales.at(device_given_.data(), memory_space::device)};
  }
  /// The first output whose bytes are not the host's, or -1.
  int first_difference() const {
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      std::vector<std::byte> got(expected_[i].size());
      blocks_[i]->download(got.data());
      if (got != expected_[i]) return static_cast<int>(i);
    }
    return -1;
  }
  const quantize_case& chosen() const { return case_; }

 private:
  quantize_case case_;
  std::vector<std::byte> in_, given_;
  device_block device_in_, device_given_;
  std::vector<std::vector<std::byte>> expected_;
  std::vector<std::unique_ptr<device_block>> blocks_;
};

/// Cases of the one rule, input, code and scale format of the first, of shapes of their own.
std::vector<std::unique_ptr<listed_tensor>> random_list(engine& random) {
  quantize_case first = random_case(random);
  first.counts = false;
  const bool transposed = first.codes_transposed.wanted && random() % 2 == 0;
  const bool plain = random() % 2 == 0;
  std::vector<std::unique_ptr<listed_tensor>> list;
  const std::size_t tensors = random() % 9;
  for (std::size_t i = 0; i < tensors; ++i) {
    quantize_case c = first;
    const std::int64_t rows = pick(random, {0, 1, 1, 2, 17, 64, 129, 300});
    const std::int64_t cols = plain ? 16 * pick(random, {1, 2, 7, 8, 9, 16, 40, 140})
                                    : pick(random, {1, 15, 16, 31, 100, 128, 129, 257, 640, 2100});
    const matrix_shape s = scales_shape(rows, cols, c.options.tile);
    const auto placed_at = [&](placed& p, std::int64_t r, std::int64_t k) {
      const bool wanted = p.wanted;
      p = place(random, p.format, r, k, plain);
      p.wanted = wanted;
    };
    placed_at(c.in, rows, cols);
    placed_at(c.codes, rows, cols);
    placed_at(c.scales, s.rows, s.cols);
    placed_at(c.codes_transposed, cols, rows);
    placed_at(c.scales_transposed, s.cols, s.rows);
    placed_at(c.inverse_scales, s.rows, s.cols);
    c.codes_transposed.wanted = transposed;
    c.codes.wanted = !transposed || random() % 2 == 0;
    c.inverse_scales.wanted = c.scales.format == format_id::fp32 && random() % 8 == 0;
    list.push_back(std::make_unique<listed_tensor>(random, c));
  }
  return list;
}

/// Random lists by a backend; returns how many tensors were compared.
std::size_t compare_lists(const char* backend, std::uint64_t seed, int lists) {
  engine random(seed);
  std::size_t tensors = 0;
  for (int n = 0; n < lists; ++n) {
    const auto list = random_list(random);
    if (list.empty()) continue;
    const quantize_options options = list.front()->chosen().options;
    std::vector<quantize_item> items;
    for (std::size_t i = 0; i < list.size(); ++i) {
      list[i]->quantize_on_host(options, i);
      items.push_back(list[i]->item());
    }
    const quantize_list on_list(std::move(items), options);
    quantize(on_list, on_stream(nullptr, backend));
    check(cudaDeviceSynchronize(), "quantize a list");
    for (std::size_t i = 0; i < list.size(); ++i) {
      EXPECT_EQ(list[i]->first_difference(), -1)
          << "tensor " << i << " of list " << n << ": " << describe(list[i]->chosen());
    }
    tensors += list.size();
    if (::testing::Test::HasFailure()) break;
  }
  return tensors;
}

class QuantizeListDevice : public ::testing::TestWithParam<const char*> {};

TEST_P(QuantizeListDevice, IsOneCallATensor) {
  const std::size_t tensors = compare_lists(GetParam(), 29, support::by_effort(600, 40));
  EXPECT_GT(tensors, support::by_effort(1500u, 60u));
}

/// Three thousand small tensors and an empty list: kernel arguments hold no table.
TEST_P(QuantizeListDevice, OfAnyLength) {
  EXPECT_NO_THROW(quantize(quantize_list({}, quantize_options{})));
  engine random(5);
  constexpr std::int64_t tensors = 3000, cols = 72;
  const placed all{format_id::bf16, tensors, cols, cols};
  std::vector<std::byte> in = random_memory(random, all);
  in.resize(tensors * cols * 2);
  device_block device_in(in.size()), codes(tensors * cols), scales(tensors * 3 * 4);
  device_in.upload(in.data());
  std::vector<quantize_item> items;
  const tile_shape tile{1, 32};
  for (std::int64_t i = 0; i < tensors; ++i) {
    items.push_back({.in = {device_in.data() + i * cols * 2, format_id::bf16, 1, cols, cols, 1,
                            memory_space::device},
                     .outputs = {.codes = {codes.data() + i * cols, format_id::e4m3, 1, cols, cols,
                                           1, memory_space::device},
                                 .scales = {scales.data() + i * 12, format_id::fp32, 1, 3, 3, 1,
                                            memory_space::device}}});
  }
  quantize(quantize_list(std::move(items), {.tile = tile}), on_stream(nullptr, GetParam()));
  check(cudaDeviceSynchronize(), "a long list");
  std::vector<std::uint8_t> got(tensors * cols), expected(got.size());
  std::vector<float> got_scales(tensors * 3), expected_scales(got_scales.size());
  codes.download(got.data());
  scales.download(got_scales.data());
  quantize(view_of_codes(format_id::bf16, static_cast<const void*>(in.data()), tensors, cols),
           {.codes = view_of_codes(format_id::e4m3, expected.data(), tensors, cols),
            .scales = view_of(expected_scales.data(), tensors, 3)},
           {.tile = tile}, find_executor("reference"));
  EXPECT_TRUE(got == expected);
  EXPECT_EQ(std::memcmp(got_scales.data(), expected_scales.data(), got_scales.size() * 4), 0);
}

TEST_P(QuantizeListDevice, IsCapturedAndSkippedByTheFlag) {
  initialize(GetParam());
  for (const tile_shape tile : {tile_shape{1, 32}, tile_shape{1, 0}, tile_shape{0, 0}}) {
    constexpr std::int64_t rows = 64, cols = 256, tensors = 3;
    std::vector<bf16> x(tensors * rows * cols, bf16(1.5f));
    device_block in(x.size() * 2), codes(x.size()), flag(4);
    in.upload(x.data());
    std::vector<quantize_item> items;
    for (std::int64_t i = 0; i < tensors; ++i) {
      const std::int64_t at = i * rows * cols;
      items.push_back(
          {.in = {in.data() + at * 2, format_id::bf16, rows, cols, cols, 1, memory_space::device},
           .outputs = {.codes = {codes.data() + at, format_id::e4m3, rows, cols, cols, 1,
                                 memory_space::device}}});
    }
    quantize_options options{.tile = tile};
    options.skip_if_nonzero = reinterpret_cast<const std::uint32_t*>(flag.data());
    const quantize_list list(std::move(items), options);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    check(cudaStreamCreate(&stream), "stream");
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin capture");
    quantize(list, on_stream(stream, GetParam()));
    check(cudaStreamEndCapture(stream, &graph), "end capture");
    check(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
    std::vector<std::uint8_t> got(x.size());
    for (const std::uint32_t skip : {1u, 0u}) {
      std::memset(got.data(), 0x11, got.size());
      codes.upload(got.data());
      flag.upload(&skip);
      check(cudaGraphLaunch(exec, stream), "replay");
      check(cudaStreamSynchronize(stream), "synchronize");
      codes.download(got.data());
      for (const std::uint8_t code : got) ASSERT_EQ(code, skip != 0 ? 0x11 : 0x7E);
    }
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
  }
}

TEST_P(QuantizeListDevice, RefusesStatisticsByName) {
  device_block in(64), codes(32), statistics(sizeof(quantize_statistics));
  const quantize_item item{
      .in = {in.data(), format_id::bf16, 1, 32, 32, 1, memory_space::device},
      .outputs = {.codes = {codes.data(), format_id::e4m3, 1, 32, 32, 1, memory_space::device},
                  .statistics = reinterpret_cast<quantize_statistics*>(statistics.data())}};
  EXPECT_THROW(quantize_list({item}, quantize_options{}), invalid_argument);
  EXPECT_NO_THROW(quantize(quantize_list(), on_stream(nullptr, GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Backends, QuantizeListDevice,
                         ::testing::Values("cuda-emulated", "cuda-native"), [](const auto& tested) {
                           return std::string(tested.param) == "cuda-native" ? "native"
                                                                             : "emulated";
                         });

}  // namespace
}  // namespace samebits
