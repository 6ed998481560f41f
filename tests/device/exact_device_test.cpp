// Functions of rule `exact` on device memory against the CPU, bit for bit: every function,
// gradient, operand format, destination and rounding on both CUDA backends.
//
// fp16 and bf16: all 65,536 codes, once and in large arrays. fp32: every 4096th of the 2^32 codes,
// all of them into fp32, bf16 and fp16 if the environment has SAMEBITS_FUNCTION_OPERANDS=all.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "device/device_copy.hpp"
#include "numerics/functions/exact_functions.hpp"
#include "samebits/evaluate.hpp"
#include "samebits/self_test.hpp"
#include "support/effort.hpp"

namespace samebits {
namespace {

using support::check_cuda;
using support::guarded_copy;

constexpr format_id operands[] = {format_id::fp32, format_id::fp16, format_id::bf16};
constexpr format_id destinations[] = {format_id::fp32, format_id::fp16, format_id::bf16,
                                      format_id::e4m3, format_id::e5m2};
constexpr std::int64_t count = 1 << 20;

struct codes {
  codes(format_id f, std::int64_t n)
      : format(f),
        elements(n),
        bytes(static_cast<std::size_t>(n) * static_cast<std::size_t>(spec_of(f).storage_bits / 8)) {
  }
  [[nodiscard]] matrix_view view() {
    return view_of_codes(format, static_cast<void*>(bytes.data()), 1, elements);
  }
  void set(std::int64_t i, std::uint32_t code) {
    const auto size = static_cast<std::size_t>(spec_of(format).storage_bits / 8);
    std::memcpy(&bytes[static_cast<std::size_t>(i) * size], &code, size);
  }
  format_id format;
  std::int64_t elements;
  std::vector<std::uint8_t> bytes;
};

struct exact_case {
  function of;
  bool gradient;
  evaluate_options options;
};

void run(const exact_case& c, const const_matrix_view& in, const const_matrix_view& grad,
         const matrix_view& out, const executor& where) {
  if (c.gradient) {
    evaluate_gradient(c.of, grad, in, out, c.options, where);
  } else {
    evaluate(c.of, in, out, c.options, where);
  }
}

void compare(const exact_case& c, codes& in, codes& grad, format_id to, const char* backend) {
  codes expected(to, in.elements), got(to, in.elements);
  run(c, in.view(), grad.view(), expected.view(), {"", 16});
  const guarded_copy x(in.view()), g(grad.view()), y(got.view());
  run(c, x.placed(in.view()), g.placed(grad.view()), y.placed(got.view()), {backend});
  check_cuda(cudaDeviceSynchronize(), "synchronize");
  y.copy_back();
  for (std::size_t i = 0; i < got.bytes.size(); ++i) {
    ASSERT_EQ(got.bytes[i], expected.bytes[i])
        << backend << (c.gradient ? " gradient of " : " ") << name(c.of) << " " << name(in.format)
        << " to " << name(to) << " " << name(c.options.rounding) << ", byte " << i;
  }
}

std::vector<exact_case> cases() {
  std::vector<exact_case> all;
  for (int i = 0; i < enum_count<function>; ++i) {
    for (const bool gradient : {false, true}) {
      if (numerics::real::find_exact(static_cast<function>(i), gradient)) {
        all.push_back({static_cast<function>(i), gradient, {}});
      }
    }
  }
  return all;
}

codes operands_of(format_id format, std::uint32_t first, std::uint32_t step) {
  codes x(format, format == format_id::fp32 ? count : 65536);
  for (std::int64_t i = 0; i < x.elements; ++i) {
    x.set(i, first + static_cast<std::uint32_t>(i) * step);
  }
  return x;
}

TEST(ExactFunctions, HaveTheBitsOfTheCpu) {
  for (const char* backend : {"cuda-native", "cuda-emulated"}) {
    for (exact_case c : cases()) {
      for (const format_id from : operands) {
        codes in = operands_of(from, 1, from == format_id::fp32 ? 4096 : 1);
        codes grad = operands_of(from, 7, from == format_id::fp32 ? 0x9E3779B1u : 40503u);
        for (const format_id to : destinations) {
          c.options = {};
          compare(c, in, grad, to, backend);
          if (from != format_id::fp32 || to == format_id::fp32) continue;
          c.options = {.rounding = rounding::stochastic,
                       .overflow = overflow::saturate,
                       .random = {.seed = 5, .offset = 3, .bits = 16}};
          compare(c, in, grad, to, backend);
        }
      }
    }
  }
}

TEST(ExactFunctions, AllOperandsHaveTheBitsOfTheCpu) {
  const char* const wanted = std::getenv("SAMEBITS_FUNCTION_OPERANDS");
  if (wanted == nullptr || std::string_view(wanted) != "all") {
    GTEST_SKIP() << "on demand: SAMEBITS_FUNCTION_OPERANDS=all";
  }
  for (const exact_case& c : cases()) {
    for (std::uint64_t first = 0; first < (std::uint64_t{1} << 32); first += count) {
      codes in = operands_of(format_id::fp32, static_cast<std::uint32_t>(first), 1);
      codes grad(format_id::fp32, count);
      if (c.gradient) {
        for (std::int64_t i = 0; i < count; ++i) grad.set(i, 0x3F800000);
      }
      for (const format_id to : {format_id::fp32, format_id::bf16, format_id::fp16}) {
        compare(c, in, grad, to, "cuda-native");
        if (HasFatalFailure()) return;
      }
    }
  }
}

/// Large arrays of 16-bit operands take their results from a table. Every operand is in every part
/// of the array, and the last elements fill no vector.
constexpr std::int64_t table_elements = (std::int64_t{1} << 24) + 5;
std::uint32_t table_operand(std::int64_t i) {
  constexpr std::uint32_t multiplier = 40503;  // odd: 65,536 elements in a row have all operands
  return static_cast<std::uint32_t>(i) * multiplier & 0xFFFFu;
}

/// Compares results of table_operand() with those of all operands in order.
void compare_table(const exact_case& c, const codes& got, const codes& table, format_id from) {
  const auto size = static_cast<std::size_t>(spec_of(got.format).storage_bits / 8);
  for (std::int64_t i = 0; i < got.elements; ++i) {
    const std::uint8_t* const expected = &table.bytes[table_operand(i) * size];
    if (std::memcmp(&got.bytes[static_cast<std::size_t>(i) * size], expected, size) == 0) continue;
    FAIL() << name(c.of) << " " << name(from) << " to " << name(got.format) << " "
           << name(c.options.overflow) << ", element " << i;
  }
}

void run_table(const exact_case& c, codes& in, codes& one_each, format_id to) {
  codes table(to, 65536), got(to, table_elements);
  run(c, one_each.view(), {}, table.view(), {"", 16});
  const guarded_copy x(in.view()), y(got.view());
  run(c, x.placed(in.view()), {}, y.placed(got.view()), {"cuda-native"});
  check_cuda(cudaDeviceSynchronize(), "synchronize");
  y.copy_back();
  compare_table(c, got, table, in.format);
  if (to != in.format) return;
  codes in_place = in;
  const guarded_copy z(in_place.view());
  run(c, z.placed(in_place.view()), {}, z.placed(in_place.view()), {"cuda-native"});
  check_cuda(cudaDeviceSynchronize(), "synchronize");
  z.copy_back();
  compare_table(c, in_place, table, in.format);
}

TEST(ExactFunctions, TablesHaveTheBitsOfTheCpu) {
  const std::vector<exact_case> all = cases();
  for (const format_id from : {format_id::fp16, format_id::bf16}) {
    codes one_each = operands_of(from, 0, 1);
    codes in(from, table_elements);
    for (std::int64_t i = 0; i < in.elements; ++i) in.set(i, table_operand(i));
    for (std::size_t i = 0; i < all.size(); i += support::by_effort<std::size_t>(1, 7)) {
      exact_case c = all[i];
      if (c.gradient) continue;
      for (const format_id to :
           {format_id::fp16, format_id::bf16, format_id::e4m3, format_id::e5m2}) {
        for (const overflow policy : {overflow::ieee, overflow::saturate}) {
          c.options = {.overflow = policy};
          run_table(c, in, one_each, to);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

/// The first call that needs a table may be captured: the table is computed beside the capture.
TEST(ExactFunctions, FirstCallsWithATableAreCapturedAndReplayed) {
  initialize("cuda-native");
  const exact_case c{function::exp2, false, {.overflow = overflow::saturate_finite}};
  codes one_each = operands_of(format_id::bf16, 0, 1);
  codes in(format_id::bf16, table_elements), table(format_id::bf16, 65536);
  codes got(format_id::bf16, table_elements);
  for (std::int64_t i = 0; i < in.elements; ++i) in.set(i, table_operand(i));
  run(c, one_each.view(), {}, table.view(), {"", 16});
  const guarded_copy x(in.view()), y(got.view());
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  check_cuda(cudaStreamCreate(&stream), "stream");
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin capture");
  run(c, x.placed(in.view()), {}, y.placed(got.view()), on_stream(stream, "cuda-native"));
  check_cuda(cudaStreamEndCapture(stream, &graph), "end capture");
  check_cuda(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
  for (int replay = 0; replay < 2; ++replay) {
    check_cuda(cudaMemset(y.data(), 0, got.bytes.size()), "cudaMemset");
    check_cuda(cudaGraphLaunch(exec, stream), "replay");
    check_cuda(cudaStreamSynchronize(stream), "synchronize");
    y.copy_back();
    compare_table(c, got, table, in.format);
  }
  check_cuda(cudaGraphExecDestroy(exec), "destroy");
  check_cuda(cudaGraphDestroy(graph), "destroy");
  check_cuda(cudaStreamDestroy(stream), "destroy");
}

/// Rows, columns and strides of a view, and the elements before its first one.
struct layout {
  std::int64_t rows, cols, row_stride, col_stride, offset;
};
constexpr std::int64_t layout_elements = 12'000;  // enough for every layout below

/// The elements of a layout in memory of the host or of the device.
matrix_view placed_view(void* data, format_id format, const layout& l, memory_space space) {
  auto* const first = static_cast<std::byte*>(data) +
                      l.offset * static_cast<std::int64_t>(spec_of(format).storage_bits / 8);
  return {first, format, l.rows, l.cols, l.row_stride, l.col_stride, space};
}

/// Pseudo-random codes. Those of fp32 have magnitudes from 2^-7 to 2.
codes random_codes(format_id format, std::uint32_t seed) {
  codes x(format, layout_elements);
  for (std::int64_t i = 0; i < x.elements; ++i) {
    const std::uint32_t h = (static_cast<std::uint32_t>(i) + seed) * 0x9E3779B1u;
    x.set(i, format == format_id::fp32 ? ((h & 1) << 31) | (0x3C000000u + (h >> 6)) : h >> 8);
  }
  return x;
}

/// A matrix of the tests of layouts: its memory, and which elements of it a call gets.
struct placed_codes {
  codes memory;
  layout at;
};

/// Which matrix a call writes.
enum class result : std::uint8_t { apart, over_in, over_grad };

/// Compares a call on the device with the reference backend: elements, gaps and the bytes around.
void compare_layouts(const exact_case& c, const placed_codes& in, const placed_codes& grad,
                     const placed_codes& out, result where, const char* backend) {
  const auto view_in = [](void* data, const placed_codes& p, memory_space space) {
    return placed_view(data, p.memory.format, p.at, space);
  };
  placed_codes x = in, g = grad, expected = out, y = out, host_x = in, host_g = grad;
  const auto chosen = [&](placed_codes& a, placed_codes& b, placed_codes& o) -> placed_codes& {
    if (where == result::apart) return o;
    return where == result::over_in ? a : b;
  };
  const auto on_host = [&](placed_codes& p) {
    return view_in(p.memory.bytes.data(), p, memory_space::host);
  };
  placed_codes& host_out = chosen(host_x, host_g, expected);
  run(c, on_host(host_x), on_host(host_g), on_host(host_out), {"reference", 1});

  const guarded_copy copy_x(x.memory.view()), copy_g(g.memory.view()), copy_y(y.memory.view());
  const matrix_view dx = view_in(copy_x.data(), x, memory_space::device);
  const matrix_view dg = view_in(copy_g.data(), g, memory_space::device);
  const matrix_view dy = view_in(copy_y.data(), y, memory_space::device);
  run(c, dx, dg, where == result::apart ? dy : where == result::over_in ? dx : dg, {backend});
  check_cuda(cudaDeviceSynchronize(), "synchronize");
  copy_x.copy_back();
  copy_g.copy_back();
  copy_y.copy_back();
  const codes& got = chosen(x, g, y).memory;
  const layout& l = host_out.at;
  ASSERT_EQ(got.bytes, host_out.memory.bytes)
      << backend << (c.gradient ? " gradient, " : " ") << name(in.memory.format) << " to "
      << name(got.format) << " " << name(c.options.rounding) << ", [" << l.rows << ", " << l.cols
      << "] strides " << l.row_stride << ", " << l.col_stride << " offset " << l.offset;
}

/// The options of both roundings; the random bits have a pitch of their own.
exact_case silu_case(bool gradient, rounding round) {
  return {function::silu,
          gradient,
          {.rounding = round,
           .random = {.seed = 5, .stream = 2, .offset = 11, .pitch = 1'500, .bits = 16}}};
}

TEST(ExactFunctions, LayoutsAndTailsHaveTheBitsOfTheCpu) {
  constexpr layout layouts[] = {
      {1, 1, 1, 1, 0},     {1, 1'027, 1'027, 1, 0}, {1, 1'024, 1'024, 1, 1}, {7, 683, 683, 1, 0},
      {7, 683, 700, 1, 0}, {7, 680, 700, 1, 0},     {7, 680, 701, 1, 2},     {7, 68, 1'400, 2, 0},
      {683, 7, 1, 683, 0}, {683, 1, 3, 5, 0},       {2, 3, 5, 1, 4},         {1, 4, 4, 1, 3},
      {300, 16, 17, 1, 0},
  };
  for (const layout& l : layouts) {
    for (const format_id from : operands) {
      const placed_codes in{random_codes(from, 1), l}, grad{random_codes(from, 2), l};
      for (const format_id to : destinations) {
        const placed_codes out{random_codes(to, 3), l};
        for (const bool gradient : {false, true}) {
          for (const rounding round : {rounding::nearest_even, rounding::stochastic}) {
            if (round == rounding::stochastic && to == format_id::fp32) continue;
            const exact_case c = silu_case(gradient, round);
            for (const char* const backend : {"cuda-native", "cuda-emulated"}) {
              compare_layouts(c, in, grad, out, result::apart, backend);
              if (HasFatalFailure()) return;
            }
          }
        }
      }
    }
  }
}

TEST(ExactFunctions, ViewsOfDifferentLayoutsAndFormatsHaveTheBitsOfTheCpu) {
  constexpr std::int64_t rows = 33, cols = 65;
  const placed_codes in{random_codes(format_id::bf16, 1), {rows, cols, 1, rows, 0}};
  const placed_codes grad{random_codes(format_id::fp32, 2), {rows, cols, 0, 1, 3}};
  const placed_codes out{random_codes(format_id::fp16, 3), {rows, cols, 70, 1, 1}};
  for (const rounding round : {rounding::nearest_even, rounding::stochastic}) {
    for (const char* const backend : {"cuda-native", "cuda-emulated"}) {
      compare_layouts(silu_case(true, round), in, grad, out, result::apart, backend);
    }
  }
}

TEST(ExactFunctions, InPlaceHasTheBitsOfTheCpu) {
  for (const layout& l : {layout{7, 683, 683, 1, 0}, layout{7, 683, 700, 1, 1},
                          layout{68, 7, 1, 150, 0}, layout{1, 1'027, 1'027, 1, 2}}) {
    for (const format_id format : operands) {
      const placed_codes x{random_codes(format, 1), l}, grad{random_codes(format, 2), l};
      for (const char* const backend : {"cuda-native", "cuda-emulated"}) {
        const auto nearest = rounding::nearest_even;
        compare_layouts(silu_case(false, nearest), x, grad, x, result::over_in, backend);
        compare_layouts(silu_case(true, nearest), x, grad, x, result::over_in, backend);
        compare_layouts(silu_case(true, nearest), x, grad, x, result::over_grad, backend);
        if (format == format_id::fp32) continue;
        const auto stochastic = rounding::stochastic;
        compare_layouts(silu_case(true, stochastic), x, grad, x, result::over_grad, backend);
      }
    }
  }
}

}  // namespace
}  // namespace samebits
