// matmul_plan against matmul() on the CPU, bit for bit: 60 products of bf16, fp16 and FP8 with scales,
// whole results up to 2^27 multiply-adds, else 48 rows by 48 columns of them. Prints the time of each
// beside the fastest of all algorithms of cuBLASLt that do not split K, with any workspace. Needs a
// Hopper GPU and cuBLASLt.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "backends/cuda/matmul/cublaslt.hpp"
#include "backends/cuda/matmul/plan.hpp"
#include "device/captured_graph.hpp"
#include "device/cublaslt_product.hpp"
#include "samebits/samebits.hpp"
#include "support/effort.hpp"

namespace samebits::device_tests {
namespace {

using enum format_id;
using enum tiling;

constexpr kind kinds[] = {
    {"bf16", bf16, bf16, bf16},
    {"bf16 into fp32, W by rows of K", bf16, bf16, fp32, false, true},
    {"bf16, A by columns", bf16, bf16, bf16, false, true, true},
    {"fp16", fp16, fp16, fp16},
    {"e4m3", e4m3, e4m3, bf16},
    {"e5m2 x e4m3, fast", e5m2, e4m3, fp32, true},
    {"e4m3, a scale each", e4m3, e4m3, bf16, false, false, false, whole, whole},
    {"e4m3 by rows, fast", e4m3, e4m3, bf16, true, false, false, line, line},
    {"e4m3 1x128, 128x128", e4m3, e4m3, bf16, false, false, false, line_by_128, square_of_128},
    {"e4m3 1x128, 1x128", e4m3, e4m3, fp32, false, false, false, line_by_128, line_by_128},
};

constexpr shape shapes[] = {
    {64, 64, 256},    {16, 4096, 4096}, {1000, 1008, 1040},
    {768, 3072, 768}, {8192, 768, 768}, {4096, 4096, 4096},
};

matmul_plan_options options_of(const product& p) {
  const backends::matmul_call call = p.call();
  matmul_plan_options o;
  o.a_scales = {call.a_scales.values, call.a_scales.tile};
  o.b_scales = {call.b_scales.values, call.b_scales.tile};
  o.fast_accumulation = p.how.fast;
  return o;
}

/// What compare() found of `compared` elements.
struct counted {
  std::uint64_t compared, differing;
};

counted compare(const product& p, const accumulator& rule) {
  const std::int64_t lines = lines_of(p.size, 27);
  const part some(p, lines, lines);
  const std::optional<scale_order> order =
      p.how.a_tiles ? std::optional(p.how.order()) : std::nullopt;
  const bytes wanted = some.expected(rule, order);
  return {some.count(), some.compared(some.gathered(p.result()), wanted).all};
}

/// Work in a CUDA graph, so that its time is the device's alone.
class timed {
 public:
  template <class Enqueue>
  explicit timed(const Enqueue& enqueue) {
    enqueue(stream_.get());
    graph_.emplace(stream_.get(), [&] {
      for (int i = 0; i < calls; ++i) enqueue(stream_.get());
    });
    for (cudaEvent_t& event : events_) support::check_cuda(cudaEventCreate(&event), "event");
    round();
    best_ = 0;
  }
  ~timed() {
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
  }
  timed(const timed&) = delete;
  timed& operator=(const timed&) = delete;

  void round() {
    float milliseconds = 0;
    cudaEventRecord(events_[0], stream_.get());
    graph_->launch();
    cudaEventRecord(events_[1], stream_.get());
    support::check_cuda(cudaEventSynchronize(events_[1]), "cudaEventSynchronize");
    cudaEventElapsedTime(&milliseconds, events_[0], events_[1]);
    const double now = 1e3 * milliseconds / calls;
    if (best_ == 0 || now < best_) best_ = now;
  }
  /// Microseconds of one call, the least of the rounds.
  [[nodiscard]] double best() const { return best_; }

 private:
  static constexpr int calls = 20;
  support::own_stream stream_;
  std::optional<support::captured_graph> graph_;
  cudaEvent_t events_[2] = {};
  double best_ = 0;
};

struct times {
  double own, best;
  std::string by;  ///< the fastest algorithm
};

/// The plan beside the fastest algorithm that does not split K, of 32 MiB of workspace: found by three
/// rounds of each, then both in turn.
times times_of(const product& p, const matmul_plan& plan) {
  constexpr std::size_t workspace_bytes = std::size_t{32} << 20;
  const device_bytes workspace(workspace_bytes);
  const backends::matmul_call call = p.call();
  const matmul_plan_options options = options_of(p);
  const cuda::lt_product by(cuda::library_of_current_device(), call);
  std::optional<cuda::lt_algorithm> fastest;
  const auto timed_by = [&](const cuda::lt_algorithm& algorithm) {
    return timed([&](cudaStream_t stream) {
      by.run(algorithm.algo, call, workspace.data(), workspace_bytes, stream);
    });
  };
  double least = 0;
  for (const cuda::lt_algorithm& algorithm : by.algorithms(workspace_bytes)) {
    try {
      timed one = timed_by(algorithm);
      for (int i = 0; i < 3; ++i) one.round();
      if (fastest && one.best() >= least) continue;
      least = one.best();
      fastest = algorithm;
    } catch (const cuda_error&) {  // offered, and then refused
    }
  }
  timed best = timed_by(fastest.value());
  timed own([&](cudaStream_t stream) {
    plan.run(p.a_view(), p.b_view(), p.d_view(), options, on_stream(stream));
  });
  for (int i = 0; i < 20; ++i) {  // the first of two has a cooler GPU
    timed* const order[] = {i % 2 == 0 ? &own : &best, i % 2 == 0 ? &best : &own};
    for (timed* one : order) one->round();
  }
  return {own.best(), best.best(), fastest->text};
}

class MatmulPlan : public ::testing::TestWithParam<kind> {
 protected:
  void SetUp() override {
    if (!is_hopper()) GTEST_SKIP() << "no Hopper";
  }
};

TEST_P(MatmulPlan, IsItsRule) {
  int refused = 0;
  for (const shape& s : shapes) {
    if (support::smallest_effort() && s.multiplications() > 1 << 24) continue;
    product p(GetParam(), s);
    std::printf("%s, %s: ", p.how.name, s.text().c_str());
    std::optional<matmul_plan> plan;
    try {
      plan.emplace(p.a_view(), p.b_view(), p.d_view(), options_of(p));
    } catch (const unsupported& e) {  // cuBLASLt has rules of its own for widths and alignments
      std::printf("refused, %s\n", e.what());
      EXPECT_NE(std::string(e.what()).find("has no algorithm without split K"), std::string::npos)
          << e.what();
      ++refused;
      continue;
    }
    const auto run = [&] { plan->run(p.a_view(), p.b_view(), p.d_view(), options_of(p)); };
    p.spoil();
    run();
    const counted c = compare(p, plan->rule());
    EXPECT_EQ(c.differing, 0u) << s.text();
    const times t = times_of(p, *plan);
    std::printf("%llu compared, %llu differ; %.2f us, fastest without split K %.2f: %.3f; %s%s\n",
                static_cast<unsigned long long>(c.compared),
                static_cast<unsigned long long>(c.differing), t.own, t.best, t.best / t.own,
                plan->algorithm().c_str(), t.by == plan->algorithm() ? "" : ("; " + t.by).c_str());
  }
  EXPECT_LE(refused, 1);
}

INSTANTIATE_TEST_SUITE_P(Kinds, MatmulPlan, ::testing::ValuesIn(kinds), name_of_kind);

class PlannedProduct : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!is_hopper()) GTEST_SKIP() << "no Hopper";
  }
  product p_{kinds[0], {256, 512, 1024}};
};

/// A rule that no algorithm follows is found out: sums with promotions, and K in two slices.
TEST_F(PlannedProduct, OfAnotherRuleIsRefused) {
  backends::matmul_call call = p_.call();
  EXPECT_NO_THROW(cuda::plan_product(call, nullptr));
  call.sum.promotion = 256;
  EXPECT_THROW(cuda::plan_product(call, nullptr), unsupported);
  call.sum.promotion = 0;
  call.sum.slices = 2;
  EXPECT_THROW(cuda::plan_product(call, nullptr), unsupported);
}

TEST_F(PlannedProduct, IsCapturedOnceItIsChecked) {
  const support::own_stream stream;
  const executor where = on_stream(stream.get());
  const matmul_plan plan(p_.a_view(), p_.b_view(), p_.d_view(), {}, where);
  const support::captured_graph graph(stream.get(), [&] {
    EXPECT_THROW(matmul_plan(p_.a_view(), p_.b_view(), p_.d_view(), {}, where), invalid_argument);
    plan.run(p_.a_view(), p_.b_view(), p_.d_view(), {}, where);
  });
  for (int i = 0; i < 2; ++i) {
    p_.spoil();
    graph.replay();
    EXPECT_EQ(compare(p_, plan.rule()).differing, 0u);
  }
}

TEST_F(PlannedProduct, OfConcatenatedWeightsIsThatOfEach) {
  const matmul_plan whole(p_.a_view(), p_.b_view(), p_.d_view());
  whole.run(p_.a_view(), p_.b_view(), p_.d_view());
  const bytes together = p_.result();
  const std::int64_t n = p_.size.n / 4, row = p_.size.n * storage_bytes(p_.how.d);
  p_.spoil();
  for (std::int64_t part = 0; part < 4; ++part) {
    const_matrix_view b = p_.b_view();
    matrix_view d = p_.d_view();
    b.cols = d.cols = n;
    b.data = static_cast<const std::byte*>(b.data) + part * n * p_.size.k * storage_bytes(b.format);
    d.data = static_cast<std::byte*>(d.data) + part * row / 4;
    matmul_plan(p_.a_view(), b, d).run(p_.a_view(), b, d);
  }
  EXPECT_EQ(p_.result(), together);
}

TEST_F(PlannedProduct, RefusesArgumentsThatAreNotThePlans) {
  const matmul_plan plan(p_.a_view(), p_.b_view(), p_.d_view());
  const_matrix_view narrower = p_.a_view();
  narrower.rows -= 1;
  EXPECT_THROW(plan.run(narrower, p_.b_view(), p_.d_view()), invalid_argument);
  const_matrix_view shifted = p_.a_view();
  shifted.data = static_cast<const std::byte*>(shifted.data) + 2;
  shifted.rows = p_.size.m;
  EXPECT_THROW(plan.run(shifted, p_.b_view(), p_.d_view()), invalid_argument);
  EXPECT_THROW(plan.run(p_.a_view(), p_.b_view(), p_.d_view(), {.fast_accumulation = true}),
               invalid_argument);
  EXPECT_THROW(matmul_plan(view_of_codes(bf16, p_.a.codes.data(), p_.size.m, p_.size.k),
                           p_.b_view(), p_.d_view()),
               invalid_argument);
}

}  // namespace
}  // namespace samebits::device_tests
