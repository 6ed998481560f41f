// The conformance suite of array arithmetic over the backends that take device memory, and what
// such a call refuses.
//
// A case's host memory, guards and gaps included, is copied to the device, computed there and
// copied back, so that the suite sees what was written and what was not.
#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "device/device_copy.hpp"
#include "engine/suites/compute_suite.hpp"
#include "samebits/error.hpp"
#include "samebits/self_test.hpp"
#include "support/effort.hpp"

namespace samebits::support {
namespace {

std::atomic<std::uint64_t> compared_calls = 0;
std::atomic<std::uint64_t> compared_native_calls = 0;

matrix_view as_view(const flags_view& each, const matrix_view& out) {
  return {each.data, format_id::e4m3, out.rows, out.cols, each.row_stride, each.col_stride};
}

/// A call's views in device memory; an operand that is the result's memory stays that.
class placed_call {
 public:
  placed_call(operation op, const array_operands& in, const matrix_view& out,
              const flags_view& each)
      : to_(out), each_(as_view(each, out)), out_(to_.placed(out)), flags_(each) {
    flags_.data = static_cast<flags*>(each_.data());
    const const_matrix_view operands[] = {in.a, in.b, in.c};
    for (std::size_t i = 0; i < static_cast<std::size_t>(operand_count(op)); ++i) {
      const const_matrix_view& v = operands[i];
      const_matrix_view placed = on_device(v);
      if (v.data == out.data) {
        placed.data = to_.data();
      } else {
        from_[i] = std::make_unique<guarded_copy>(v, edges::exact);
        placed.data = from_[i]->data();
      }
      (i == 0 ? in_.a : i == 1 ? in_.b : in_.c) = placed;
    }
    if (out_.data == nullptr) out_ = on_device(out);
  }
  [[nodiscard]] const array_operands& in() const { return in_; }
  [[nodiscard]] const matrix_view& out() const { return out_; }
  [[nodiscard]] const flags_view& each() const { return flags_; }
  void copy_back() const {
    check_cuda(cudaDeviceSynchronize(), "the computation");
    to_.copy_back();
    each_.copy_back();
    for (const auto& operand : from_) {
      if (operand != nullptr) operand->copy_back();  // the suite sees whether it was written
    }
  }

 private:
  guarded_copy to_, each_;
  matrix_view out_;
  flags_view flags_;
  array_operands in_ = {};
  std::array<std::unique_ptr<guarded_copy>, 3> from_;
};

/// Whether the call is one of those that docs/decisions/0026 proves.
bool native_supports(operation op, const array_operands& in, const matrix_view& out,
                     const compute_options& options, flags_asked asked) {
  if (op == operation::rem || op == operation::rint || asked == flags_asked::each) return false;
  const const_matrix_view operands[] = {in.a, in.b, in.c};
  for (std::size_t i = 0; i < static_cast<std::size_t>(operand_count(op)); ++i) {
    if (operands[i].format != out.format) return false;
  }
  return options.rounding == rounding::nearest_even &&
         options.overflow != overflow::saturate_finite &&
         (options.nan == nan_policy::canonical || out.format != format_id::e4m3);
}

/// cuda-native where it has the call, which the others are refused by; then the default.
flags compute_by_default(operation op, const array_operands& in, const matrix_view& out,
                         const compute_options& options, flags_asked asked, const flags_view& each,
                         int) {
  const placed_call call(op, in, out, each);
  executor where = on_stream(nullptr, "cuda-native");
  const bool native = native_supports(op, in, out, options, asked);
  if (!native) {
    if (asked == flags_asked::each) {
      EXPECT_THROW(compute_with_flags(op, call.in(), call.out(), options, call.each(), where),
                   unsupported);
    } else {
      EXPECT_THROW(compute(op, call.in(), call.out(), options, where), unsupported);
    }
    where.backend = {};
  }
  flags raised = flags::none;
  if (asked == flags_asked::each) {
    raised = compute_with_flags(op, call.in(), call.out(), options, call.each(), where);
  } else {
    compute(op, call.in(), call.out(), options, where);
  }
  call.copy_back();
  ++compared_calls;
  if (native) ++compared_native_calls;
  return raised;
}

flags compute_emulated(operation op, const array_operands& in, const matrix_view& out,
                       const compute_options& options, flags_asked asked, const flags_view& each,
                       int) {
  const placed_call call(op, in, out, each);
  const executor where = on_stream(nullptr, "cuda-emulated");
  flags raised = flags::none;
  if (asked == flags_asked::each) {
    raised = compute_with_flags(op, call.in(), call.out(), options, call.each(), where);
  } else {
    compute(op, call.in(), call.out(), options, where);
  }
  call.copy_back();
  ++compared_calls;
  return raised;
}

INSTANTIATE_TEST_SUITE_P(
    Device, ArrayArithmeticSuite,
    ::testing::Values(array_arithmetic_target{"cuda_emulated", compute_emulated},
                      array_arithmetic_target{"cuda_native", compute_by_default}),
    name_of_backend);

TEST(DeviceConformance, ThisMachineRunsEveryBackend) {
  for (const backend_info& backend : compiled_backends()) {
    EXPECT_TRUE(backend.supported) << backend.name << ": " << backend.why_unsupported;
  }
}

/// A whole run must have computed, not skipped.
class enough_calls : public ::testing::Environment {
 public:
  void TearDown() override {
    const auto& run = *::testing::UnitTest::GetInstance();
    if (run.test_to_run_count() != run.total_test_count() || smallest_effort()) return;
    EXPECT_GT(compared_calls, 50'000u);
    EXPECT_GT(compared_native_calls, 10'000u);
  }
};
const auto* const environment = ::testing::AddGlobalTestEnvironment(new enough_calls);

/// Arrays of bf16 and their sums with flags on the host.
struct sums {
  static constexpr std::int64_t size = 100'003;
  std::vector<bf16> x, y, sum;
  std::vector<flags> each;
  flags raised;

  explicit sums(const compute_options& options)
      : x(size), y(size), sum(size), each(static_cast<std::size_t>(size)) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = bf16::from_bits(static_cast<std::uint16_t>(i * 40'503u >> 3));
      y[i] = bf16::from_bits(static_cast<std::uint16_t>(i * 30'011u >> 1));
    }
    raised = compute_with_flags(operation::add, {view_of(x), view_of(y)}, view_of(sum), options,
                                {each.data(), size, 1}, {"reference", 0});
  }
};

TEST(DeviceCompute, IsCapturedIntoAGraphAndReplayed) {
  initialize();  // an untested backend refuses inside a capture
  for (const compute_options& options :
       {compute_options{}, {.rounding = rounding::stochastic, .random = {.seed = 5}}}) {
    const sums expected(options);
    std::vector<bf16> got(expected.sum.size()), native(expected.sum.size());
    std::vector<flags> each(expected.each.size());
    std::uint32_t raised = 0xFFFFFFFFu;
    const guarded_copy x(view_of(expected.x)), y(view_of(expected.y)), sum(view_of(got)),
        plain(view_of(native)), flags_of_each(each.data(), each.size()),
        union_of(&raised, sizeof raised);
    const array_operands in{on_device(view_of_codes(format_id::bf16, x.data(), 1, sums::size)),
                            on_device(view_of_codes(format_id::bf16, y.data(), 1, sums::size))};
    cudaStream_t stream = nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    check_cuda(cudaStreamCreate(&stream), "cudaStreamCreate");
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin capture");
    compute(operation::add, in, plain.placed(view_of(native)), options, on_stream(stream));
    enqueue_compute_with_flags(
        operation::add, in, sum.placed(view_of(got)), static_cast<std::uint32_t*>(union_of.data()),
        options, {static_cast<flags*>(flags_of_each.data()), sums::size, 1}, on_stream(stream));
    check_cuda(cudaStreamEndCapture(stream, &graph), "end capture");
    check_cuda(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
    for (int replay = 0; replay < 2; ++replay) check_cuda(cudaGraphLaunch(exec, stream), "replay");
    check_cuda(cudaStreamSynchronize(stream), "synchronize");
    for (const guarded_copy* copy : {&sum, &plain, &flags_of_each, &union_of}) copy->copy_back();
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].bits(), expected.sum[i].bits()) << i;
      ASSERT_EQ(native[i].bits(), expected.sum[i].bits()) << i;
      ASSERT_EQ(each[i], expected.each[i]) << i;
    }
    EXPECT_EQ(raised, static_cast<std::uint32_t>(expected.raised));
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
  }
}

TEST(DeviceCompute, RowsOnBordersAndRepeatedOperands) {
  constexpr std::int64_t rows = 5, cols = 1043;
  const array_layout padded{rows, cols, 1056, 1, 0};
  const std::vector<array_layout> readable{padded,
                                           {rows, cols, 1072, 1, 0},
                                           {rows, cols, 0, 1, 0},   // one row for all
                                           {rows, cols, 16, 0, 0},  // one code a row
                                           {rows, cols, 0, 0, 0}};  // one code
  std::vector<array_arithmetic_case> cases;
  for (const format_id f : arithmetic_formats) {
    for (const operation op : {operation::add, operation::mul, operation::div, operation::sqrt,
                               operation::fma, operation::min_num}) {
      for (const overflow policy : {overflow::ieee, overflow::saturate}) {
        for (std::size_t i = 0; i < readable.size() * readable.size(); ++i) {
          array_arithmetic_case c =
              dense_case(op, {f, f, f}, f, rows, cols, {rounding::nearest_even, policy});
          c.content = cases.size();
          const std::size_t a = i % readable.size(), b = i / readable.size();
          c.in = {readable[a], readable[b], readable[(a + 2 * b) % readable.size()]};
          c.out = padded;
          cases.push_back(c);
        }
      }
    }
  }
  expect_computes({"cuda-native", compute_by_default}, std::move(cases), 7);
}

TEST(DeviceCompute, FlagsOfNothing) {
  std::uint32_t raised = 0xFFFFFFFFu;
  const guarded_copy union_of(&raised, sizeof raised);
  void* const nothing = nullptr;
  const matrix_view empty = on_device(view_of_codes(format_id::fp16, nothing, 0, 4));
  enqueue_compute_with_flags(operation::sqrt, {empty}, empty,
                             static_cast<std::uint32_t*>(union_of.data()));
  check_cuda(cudaDeviceSynchronize(), "the computation");
  union_of.copy_back();
  EXPECT_EQ(raised, 0u);
  EXPECT_EQ(compute_with_flags(operation::sqrt, {empty}, empty), flags::none);
}

TEST(DeviceCompute, NativeRefusesByNameWhatItLacks) {
  void* const nothing = nullptr;
  const matrix_view x = on_device(view_of_codes(format_id::fp32, nothing, 0, 4));
  const matrix_view y = on_device(view_of_codes(format_id::bf16, nothing, 0, 4));
  const auto expect_refused = [&](const auto& call, const std::string& text) {
    try {
      call();
      ADD_FAILURE() << "accepted; expected: " << text;
    } catch (const unsupported& e) {
      EXPECT_EQ(e.what(), text);
    }
  };
  const executor where = on_stream(nullptr, "cuda-native");
  expect_refused(
      [&] {
        compute(operation::add, {x, y}, x, {.overflow = overflow::saturate}, where);
      },
      "backend 'cuda-native' has no add of fp32, bf16 into fp32 with nearest_even, saturate, "
      "canonical");
  expect_refused([&] { compute_with_flags(operation::sqrt, {x}, x, {}, {}, where); },
                 "backend 'cuda-native' has no sqrt of fp32 into fp32 with nearest_even, ieee, "
                 "canonical, flags");
  EXPECT_NO_THROW(compute(operation::add, {x, y}, x));
}

TEST(DeviceCompute, MemoryAndBackendMustAgree) {
  float x = 1.0f;
  std::uint32_t raised = 0;
  const matrix_view host = view_of(&x, 1, 1);
  const matrix_view device = on_device(host);
  EXPECT_THROW(compute(operation::sqrt, {host}, host, {}, on_stream(nullptr, "cuda-emulated")),
               invalid_argument);
  EXPECT_THROW(compute(operation::sqrt, {host}, device), invalid_argument);
  EXPECT_THROW(compute(operation::sqrt, {device}, device, {}, find_executor("reference")),
               invalid_argument);
  EXPECT_THROW(enqueue_compute_with_flags(operation::sqrt, {host}, host, &raised),
               invalid_argument);
  EXPECT_THROW(enqueue_compute_with_flags(operation::sqrt, {device}, device, nullptr),
               invalid_argument);
}

}  // namespace
}  // namespace samebits::support
