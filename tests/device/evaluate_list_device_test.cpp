// Functions of tensor lists in device memory against the reference: every function, rule and
// gradient on both CUDA backends; in place; in a graph.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "device/cuda_backends.hpp"
#include "device/device_copy.hpp"
#include "engine/inputs/function_calls.hpp"
#include "engine/inputs/test_list.hpp"
#include "samebits/evaluate.hpp"
#include "samebits/self_test.hpp"

namespace samebits::support {
namespace {

/// 9 tensors of up to 6000 elements.
placed_list list_of(const std::vector<format_id>& formats, list_content content,
                    std::uint64_t seed) {
  return placed_list({9, 6000, formats, content, seed});
}

/// A copy of a list in device memory.
struct device_list {
  explicit device_list(placed_list& host)
      : copy(host.memory.data(), host.memory.size()),
        list(host.shape.listed(static_cast<std::byte*>(copy.data()), memory_space::device)) {}

  guarded_copy copy;
  tensor_list list;
};

class EvaluateListDevice : public ::testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override { initialize(GetParam()); }
  [[nodiscard]] executor here() const { return on_stream(nullptr, GetParam()); }
  executor reference = {"reference", 1};
};

TEST_P(EvaluateListDevice, HasTheBitsOfTheReference) {
  std::uint64_t seed = 0;
  for (const function_case& c : function_cases()) {
    ++seed;
    placed_list in = list_of(c.formats, list_content::any_bits, seed);
    placed_list grad = list_of(c.formats, list_content::ordinary, seed);
    placed_list expected = list_of(c.results, list_content::small, seed);
    placed_list got = expected;
    run_function(c, grad.listed(), in.listed(), expected.listed(), reference);
    const device_list x(in), g(grad), y(got);
    run_function(c, g.list, x.list, y.list, here());
    check_cuda(cudaDeviceSynchronize(), "the functions");
    y.copy.copy_back();
    ASSERT_EQ(got.memory, expected.memory) << text_of(c);
  }
}

TEST_P(EvaluateListDevice, WritesInPlace) {
  std::uint64_t seed = 1000;
  for (const function_case& c : function_cases()) {
    if (c.options.rounding != rounding::nearest_even) continue;
    ++seed;
    for (const bool over_grad : {false, true}) {
      if (over_grad && !c.gradient) continue;
      placed_list in = list_of(c.formats, list_content::any_bits, seed);
      placed_list grad = list_of(c.formats, list_content::ordinary, seed);
      const device_list x(in), g(grad);
      run_function(c, g.list, x.list, over_grad ? g.list : x.list, here());
      check_cuda(cudaDeviceSynchronize(), "the functions");
      placed_list expected = over_grad ? grad : in;
      run_function(c, grad.listed(), in.listed(), expected.listed(), reference);
      (over_grad ? g : x).copy.copy_back();
      ASSERT_EQ((over_grad ? grad : in).memory, expected.memory) << text_of(c);
    }
  }
}

TEST_P(EvaluateListDevice, CanBeCaptured) {
  const function_case c{function::silu, false, {}, {format_id::fp32, format_id::bf16}, {}};
  placed_list in = list_of(c.formats, list_content::ordinary, 3);
  placed_list expected = in;
  run_function(c, expected.listed(), in.listed(), expected.listed(), reference);
  const device_list x(in);
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin capture");
  run_function(c, x.list, x.list, x.list, on_stream(stream, GetParam()));
  check_cuda(cudaStreamEndCapture(stream, &graph), "end capture");
  check_cuda(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
  check_cuda(cudaGraphLaunch(exec, stream), "replay");
  check_cuda(cudaStreamSynchronize(stream), "synchronize");
  x.copy.copy_back();
  EXPECT_EQ(in.memory, expected.memory);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

INSTANTIATE_TEST_SUITE_P(Backends, EvaluateListDevice, cuda_backends(), cuda_backend_name);

}  // namespace
}  // namespace samebits::support
