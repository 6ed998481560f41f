// Functions of rule `exact` on device memory against the CPU, bit for bit: every function,
// gradient, operand format, destination and rounding on both CUDA backends.
//
// fp16 and bf16: all 65,536 codes. fp32: every 4096th of the 2^32 codes, all of them into fp32 if
// the environment has SAMEBITS_FUNCTION_OPERANDS=all.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "device/device_copy.hpp"
#include "numerics/functions/exact_functions.hpp"
#include "samebits/evaluate.hpp"

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
        << " to " << name(to) << " " << name(c.options.round) << ", byte " << i;
  }
}

std::vector<exact_case> cases() {
  std::vector<exact_case> all;
  for (int i = 0; i < function_count; ++i) {
    for (const bool gradient : {false, true}) {
      if (numerics::real::find_exact(function_at(i), gradient)) {
        all.push_back({function_at(i), gradient, {}});
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
          c.options = {.round = rounding::stochastic,
                       .on_overflow = overflow::saturate,
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
      compare(c, in, grad, format_id::fp32, "cuda-native");
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace samebits
