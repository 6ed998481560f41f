// Arrays of more than 2^31 elements converted, and tables of functions of 16 bits that are made during a
// capture, and for more parameters than have tables: repeated_arrays.cuh. What all tables hold:
// device.functions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "samebits/samebits.hpp"
#include "tests/device/captured_graph.hpp"
#include "tests/device/repeated_arrays.cuh"
#include "tests/support/effort.hpp"

namespace samebits::support {
namespace {

using enum format_id;

TEST(LargeArrays, ConvertMoreThan2To31Elements) {
  constexpr std::int64_t period = 1'048'573;  // a prime
  const std::vector<std::int64_t> size = {by_effort(std::int64_t{1} << 31, 4 * period) + 4'099};
  chunk_codes in = random_codes(bf16, period, 1, false), out(e4m3, period);
  const repeated_arrays from(in, size), to(out, size);
  for (const char* const backend : {"cuda-emulated", "cuda-native"}) {
    check_cuda(cudaMemset(to[0].data, 0x55, static_cast<std::size_t>(size[0])), "cudaMemset");
    convert(from[0], to[0], {}, on_stream(nullptr, backend));
    convert(in.view(), out.view(), {}, {"reference", 0});
    to.expect(out);
  }
  const random_stream random = {.seed = 9, .bits = 16};
  convert(from[0], to[0], {.rounding = rounding::stochastic, .random = random},
          on_stream(nullptr, "cuda-emulated"));
  to.expect_stochastic(in, random);
}

/// Results of all 65,536 operands, in an order in which neighbours are no neighbours; an array that
/// repeats them, the last elements of which fill no vector.
class table {
 public:
  explicit table(format_id from) : operands_(from, 65536) {
    for (std::uint32_t i = 0; i < 65536; ++i) {
      const auto code = static_cast<std::uint16_t>(i * 40'503u);  // odd: every one is there
      std::memcpy(operands_.bytes.data() + i * 2, &code, 2);
    }
  }
  [[nodiscard]] repeated_arrays array() const { return {operands_, size}; }
  [[nodiscard]] chunk_codes results(function f, format_id to, const evaluate_options& options) {
    chunk_codes expected(to, 65536);
    evaluate(f, operands_.view(), expected.view(), options, {"", 16});
    return expected;
  }
  inline static const std::vector<std::int64_t> size = {(std::int64_t{1} << 24) + 5};

 private:
  chunk_codes operands_;
};

/// The first call that needs a table may be captured: the table is computed beside the capture.
TEST(ExactFunctions, FirstCallsWithATableAreCapturedAndReplayed) {
  initialize("cuda-native");
  const evaluate_options options{.overflow = overflow::saturate_finite};
  table of(bf16);
  const repeated_arrays x = of.array(), y(chunk_codes(bf16, 65536), table::size);
  const own_stream stream;
  const captured_graph graph(stream.get(), [&] {
    evaluate(function::exp2, x[0], y[0], options, on_stream(stream.get(), "cuda-native"));
  });
  for (int turn = 0; turn < 2; ++turn) {
    check_cuda(cudaMemset(y[0].data, 0, static_cast<std::size_t>(table::size[0]) * 2),
               "cudaMemset");
    graph.replay();
    y.expect(of.results(function::exp2, bf16, options));
  }
}

/// More parameters than have tables.
TEST(FunctionTables, OfManyParametersHaveTheBitsOfTheCpu) {
  table of(bf16);
  const repeated_arrays x = of.array(), y(chunk_codes(bf16, 65536), table::size);
  for (int i = 0; i < by_effort(300, 8) && !HasFailure(); ++i) {
    const evaluate_options options{.rule = function_rule::torch_2_11, .parameter = 0.01 * (i + 1)};
    for (const function f : {function::leaky_relu, function::pow}) {
      evaluate(f, x[0], y[0], options, on_stream(nullptr, "cuda-native"));
      y.expect(of.results(f, bf16, options));
    }
  }
}

}  // namespace
}  // namespace samebits::support
