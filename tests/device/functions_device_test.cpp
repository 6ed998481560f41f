// Functions of arrays on device memory against the CPU, bit for bit: every function, rule, format
// and gradient on both CUDA backends; layouts; graphs.
//
// fp16 and bf16: all 65,536 codes. fp32: every 256th of the 2^32 codes, all of them if the
// environment has SAMEBITS_FUNCTION_OPERANDS=all.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "device/device_copy.hpp"
#include "numerics/hardware/evaluate.hpp"
#include "samebits/evaluate.hpp"
#include "samebits/self_test.hpp"
#include "support/effort.hpp"

namespace samebits {
namespace {

using support::check_cuda;
using support::guarded_copy;

constexpr format_id formats[] = {format_id::fp32, format_id::fp16, format_id::bf16};
constexpr const char* backends[] = {"cuda-emulated", "cuda-native"};
constexpr std::uint64_t slice = 1u << 24;  // operands of one call

/// A function with its rule and parameter.
struct function_case {
  function of;
  evaluate_options options;
  bool gradient;
};

std::string text_of(const function_case& c, format_id format) {
  std::string text = std::string(name(c.options.rule)) + (c.gradient ? " gradient of " : " ") +
                     std::string(name(c.of)) + " " + std::string(name(format));
  if (c.options.parameter) text += " " + std::to_string(*c.options.parameter);
  return text;
}

/// Parameters that choose each of pow's kernels; one parameter of elu and leaky_relu.
std::vector<std::optional<double>> parameters_of(function f) {
  if (f == function::pow) return {0, 1, 0.5, -0.5, -1, 2, 3, -2, 1.7};
  if (has_parameter(f)) return {0.3};
  return {std::nullopt};
}

/// Every function that a rule of the GPU has in this format, and every gradient.
std::vector<function_case> cases_of(format_id format) {
  std::vector<function_case> cases;
  for (const function_rule rule : {function_rule::cuda_13_0, function_rule::torch_2_11,
                                   function_rule::triton_3_6, function_rule::torch_compile_2_11}) {
    for (int i = 0; i < enum_count<function>; ++i) {
      const function f = static_cast<function>(i);
      if (!numerics::has_function(rule, f, format)) continue;
      for (const auto& parameter : parameters_of(f)) {
        cases.push_back({f, {.rule = rule, .parameter = parameter}, false});
        if (rule == function_rule::torch_2_11) cases.push_back({f, cases.back().options, true});
      }
    }
  }
  return cases;
}

/// Pseudo-random gradients: any code, or in every second element a number near 1.
std::uint32_t gradient_of(std::uint32_t code, format_id format) {
  std::uint32_t x = code * 0x9E3779B1u;
  x = (x ^ (x >> 15)) * 0x85EBCA6Bu;
  x ^= x >> 13;
  const std::uint32_t chosen = (code & 1) != 0 ? x : 0x3F000000u + x % 0x01000000u;
  return format == format_id::fp32 ? chosen : chosen >> 16;
}

/// Codes of one format in host memory.
class host_codes {
 public:
  host_codes(format_id format, std::size_t count)
      : format_(format), words_((count * size() + 3) / 4), count_(count) {}
  [[nodiscard]] std::size_t size() const { return format_ == format_id::fp32 ? 4 : 2; }
  void set(std::size_t i, std::uint32_t code) { std::memcpy(bytes() + i * size(), &code, size()); }
  [[nodiscard]] std::uint32_t get(std::size_t i) const {
    std::uint32_t code = 0;
    std::memcpy(&code, reinterpret_cast<const char*>(words_.data()) + i * size(), size());
    return code;
  }
  [[nodiscard]] matrix_view view() {
    return view_of_codes(format_, static_cast<void*>(words_.data()), 1,
                         static_cast<std::int64_t>(count_));
  }
  /// The first element whose code differs; nothing if all are equal.
  [[nodiscard]] std::optional<std::size_t> first_difference(const host_codes& other) const {
    if (words_ == other.words_) return std::nullopt;
    for (std::size_t i = 0;; ++i) {
      if (get(i) != other.get(i)) return i;
    }
  }

 private:
  char* bytes() { return reinterpret_cast<char*>(words_.data()); }

  format_id format_;
  std::vector<std::uint32_t> words_;
  std::size_t count_;
};

void run(const function_case& c, const const_matrix_view& grad, const const_matrix_view& in,
         const matrix_view& out, const executor& where) {
  if (c.gradient) {
    evaluate_gradient(c.of, grad, in, out, c.options, where);
  } else {
    evaluate(c.of, in, out, c.options, where);
  }
}

/// Operands, gradients and results of many calls on the host and the device.
class operands {
 public:
  operands(format_id format, std::size_t count)
      : format_(format),
        x_(format, count),
        grad_(format, count),
        expected_(format, count),
        got_(format, count),
        device_x_(x_.view()),
        device_grad_(x_.view()),
        device_out_(got_.view()) {}

  /// Operands first + i * stride.
  void fill(std::uint64_t first, std::uint64_t stride) {
    const auto count = static_cast<std::size_t>(x_.view().cols);
    for (std::size_t i = 0; i < count; ++i) {
      const auto code = static_cast<std::uint32_t>(first + i * stride);
      x_.set(i, code);
      grad_.set(i, gradient_of(code, format_));
    }
    const std::size_t bytes = count * x_.size();
    check_cuda(cudaMemcpy(device_x_.data(), x_.view().data, bytes, cudaMemcpyDefault), "copy");
    check_cuda(cudaMemcpy(device_grad_.data(), grad_.view().data, bytes, cudaMemcpyDefault),
               "copy");
  }
  /// Compares a call on every CUDA backend with the CPU; returns the number of comparisons.
  std::uint64_t compare(const function_case& c) {
    const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    run(c, grad_.view(), x_.view(), expected_.view(), {.threads = threads});
    for (const char* const backend : backends) {
      const std::size_t bytes = static_cast<std::size_t>(got_.view().cols) * got_.size();
      check_cuda(cudaMemset(device_out_.data(), 0xA5, bytes), "cudaMemset");
      run(c, device_grad_.placed(grad_.view()), device_x_.placed(x_.view()),
          device_out_.placed(got_.view()), on_stream(nullptr, backend));
      check_cuda(cudaMemcpy(got_.view().data, device_out_.data(), bytes, cudaMemcpyDefault),
                 "results");
      const auto at = got_.first_difference(expected_);
      EXPECT_FALSE(at.has_value())
          << backend << ": " << text_of(c, format_) << " of " << std::hex << x_.get(*at) << " is "
          << got_.get(*at) << " instead of " << expected_.get(*at);
    }
    return static_cast<std::uint64_t>(x_.view().cols) * std::size(backends);
  }

 private:
  format_id format_;
  host_codes x_, grad_, expected_, got_;
  guarded_copy device_x_, device_grad_, device_out_;
};

TEST(DeviceFunctions, AllCodesOf16Bits) {
  std::uint64_t compared = 0;
  for (const format_id format : {format_id::fp16, format_id::bf16}) {
    operands all(format, 1 << 16);
    all.fill(0, 1);
    for (const function_case& c : cases_of(format)) compared += all.compare(c);
  }
  std::printf("fp16 and bf16: %.4g results compared with the CPU's\n",
              static_cast<double>(compared));
}

TEST(DeviceFunctions, Fp32) {
  const char* const asked = std::getenv("SAMEBITS_FUNCTION_OPERANDS");
  const bool all = asked != nullptr && std::string_view(asked) == "all";
  const std::uint64_t count = support::by_effort<std::uint64_t>(slice, 1 << 14);
  const std::uint64_t stride = all ? 1 : (std::uint64_t{1} << 32) / count;
  operands some(format_id::fp32, count);
  std::uint64_t compared = 0;
  for (std::uint64_t first = 0; first < std::uint64_t{1} << 32; first += count * stride) {
    // An odd distance between operands, so that their lowest bits change.
    some.fill(first, all ? 1 : stride - 1);
    for (const function_case& c : cases_of(format_id::fp32)) {
      compared += some.compare(c);
      if (HasFailure()) return;
    }
  }
  std::printf("fp32: %.4g results compared with the CPU's\n", static_cast<double>(compared));
}

/// Rows, columns and strides of three views, and the elements before the first one.
struct layout {
  std::int64_t rows, cols, row_stride, col_stride, offset;
};

/// A view of some elements of an array.
matrix_view placed_view(const guarded_copy& memory, format_id format, const layout& l) {
  const std::int64_t bytes = format == format_id::fp32 ? 4 : 2;
  auto* const data = static_cast<std::byte*>(memory.data()) + l.offset * bytes;
  return {data, format, l.rows, l.cols, l.row_stride, l.col_stride, memory_space::device};
}

TEST(DeviceFunctions, LayoutsAndTails) {
  const layout layouts[] = {
      {1, 1, 1, 1, 0},     {1, 1027, 1027, 1, 0}, {1, 1024, 1024, 1, 1}, {7, 683, 683, 1, 0},
      {7, 683, 700, 1, 0}, {7, 680, 700, 1, 0},   {7, 680, 701, 1, 2},   {7, 68, 1400, 2, 0},
      {683, 7, 1, 683, 0}, {683, 1, 3, 5, 0},     {2, 3, 5, 1, 4},       {1, 4, 4, 1, 3},
      {300, 16, 17, 1, 0},
  };
  constexpr std::size_t size = 12'000;
  for (const format_id format : formats) {
    host_codes x(format, size), grad(format, size), before(format, size);
    for (std::size_t i = 0; i < size; ++i) {
      x.set(i, gradient_of(static_cast<std::uint32_t>(7 * i), format));
      grad.set(i, gradient_of(static_cast<std::uint32_t>(5 * i + 1), format));
      before.set(i, 0xA5A5A5A5u);
    }
    for (const layout& l : layouts) {
      for (const bool gradient : {false, true}) {
        const function_case c{function::silu, {.rule = function_rule::torch_2_11}, gradient};
        for (const char* const backend : backends) {
          host_codes expected = before, got = before;
          const auto on_host = [&](host_codes& codes) {
            matrix_view v = codes.view();
            const auto bytes = static_cast<std::ptrdiff_t>(codes.size());
            v.data = static_cast<std::byte*>(v.data) + l.offset * bytes;
            return matrix_view{v.data, format, l.rows, l.cols, l.row_stride, l.col_stride};
          };
          run(c, on_host(grad), on_host(x), on_host(expected), {"reference", 1});
          const guarded_copy device_x(x.view()), device_grad(grad.view()), device_out(got.view());
          run(c, placed_view(device_grad, format, l), placed_view(device_x, format, l),
              placed_view(device_out, format, l), on_stream(nullptr, backend));
          check_cuda(cudaDeviceSynchronize(), "the functions");
          device_out.copy_back();
          ASSERT_FALSE(got.first_difference(expected).has_value())
              << backend << ": " << text_of(c, format) << ", " << l.rows << " x " << l.cols
              << ", strides " << l.row_stride << ", " << l.col_stride << ", offset " << l.offset;
        }
      }
    }
  }
}

TEST(DeviceFunctions, ViewsOfDifferentLayouts) {
  constexpr std::int64_t rows = 33, cols = 65;
  constexpr std::size_t size = 8'000;
  const layout in{rows, cols, 1, rows, 0}, grad{rows, cols, 0, 1, 3}, out{rows, cols, 70, 1, 1};
  host_codes x(format_id::bf16, size), g(format_id::bf16, size), expected(format_id::bf16, size),
      got(format_id::bf16, size);
  for (std::size_t i = 0; i < size; ++i) {
    x.set(i, gradient_of(static_cast<std::uint32_t>(3 * i), format_id::bf16));
    g.set(i, gradient_of(static_cast<std::uint32_t>(i), format_id::bf16));
  }
  const auto on_host = [&](host_codes& codes, const layout& l) {
    auto* const data = static_cast<std::byte*>(codes.view().data) + 2 * l.offset;
    return matrix_view{data, format_id::bf16, l.rows, l.cols, l.row_stride, l.col_stride};
  };
  const function_case c{function::gelu, {.rule = function_rule::torch_2_11}, true};
  run(c, on_host(g, grad), on_host(x, in), on_host(expected, out), {"reference", 1});
  for (const char* const backend : backends) {
    const guarded_copy device_x(x.view()), device_g(g.view()), device_out(got.view());
    run(c, placed_view(device_g, format_id::bf16, grad), placed_view(device_x, format_id::bf16, in),
        placed_view(device_out, format_id::bf16, out), on_stream(nullptr, backend));
    check_cuda(cudaDeviceSynchronize(), "the function");
    device_out.copy_back();
    EXPECT_FALSE(got.first_difference(expected).has_value()) << backend;
  }
}

TEST(DeviceFunctions, InPlaceInsideAGraph) {
  initialize();  // an untested backend refuses inside a capture
  constexpr std::size_t size = 100'003;
  for (const char* const backend : backends) {
    host_codes x(format_id::fp32, size), expected(format_id::fp32, size);
    for (std::size_t i = 0; i < size; ++i) {
      x.set(i, gradient_of(static_cast<std::uint32_t>(i), format_id::fp32));
    }
    const function_case c{function::tanh, {.rule = function_rule::cuda_13_0}, false};
    run(c, {}, x.view(), expected.view(), {"reference", 1});
    const guarded_copy device_x(x.view());
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin capture");
    const matrix_view both = device_x.placed(x.view());
    run(c, {}, both, both, on_stream(stream, backend));
    check_cuda(cudaStreamEndCapture(stream, &graph), "end capture");
    check_cuda(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
    check_cuda(cudaGraphLaunch(exec, stream), "replay");
    check_cuda(cudaStreamSynchronize(stream), "synchronize");
    device_x.copy_back();
    EXPECT_FALSE(x.first_difference(expected).has_value()) << backend;
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
  }
}

}  // namespace
}  // namespace samebits
