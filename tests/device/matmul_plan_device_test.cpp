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
#include "device/cublaslt_operands.hpp"
#include "device/cublaslt_scaled_problem.hpp"
#include "samebits/samebits.hpp"
#include "support/effort.hpp"

namespace samebits::device_tests {
namespace {

using enum format_id;

/// A kind of product: formats, scales, layout.
struct kind {
  const char* name;
  format_id a, b, d;
  bool b_rows = false, a_columns = false, fast = false;
  std::optional<tiling> a_tiles = {}, b_tiles = {};
};

constexpr kind kinds[] = {
    {"bf16", bf16, bf16, bf16},
    {"bf16 into fp32, W by rows of K", bf16, bf16, fp32, true},
    {"bf16, A by columns", bf16, bf16, bf16, true, true},
    {"fp16", fp16, fp16, fp16},
    {"e4m3", e4m3, e4m3, bf16},
    {"e5m2 x e4m3, fast", e5m2, e4m3, fp32, false, false, true},
    {"e4m3, a scale each", e4m3, e4m3, bf16, false, false, false, tiling::whole, tiling::whole},
    {"e4m3 by rows, fast", e4m3, e4m3, bf16, false, false, true, tiling::line, tiling::line},
    {"e4m3 1x128, 128x128", e4m3, e4m3, bf16, false, false, false, tiling::line_by_128,
     tiling::square_of_128},
    {"e4m3 1x128, 1x128", e4m3, e4m3, fp32, false, false, false, tiling::line_by_128,
     tiling::line_by_128},
};

constexpr shape shapes[] = {
    {64, 64, 256},    {16, 4096, 4096}, {1000, 1008, 1040},
    {768, 3072, 768}, {8192, 768, 768}, {4096, 4096, 4096},
};

/// Operands of a product with scales as cuBLASLt lays them out; the lines of B are its columns.
struct product {
  product(const kind& h, const shape& s)
      : how(h),
        size(s),
        layout{s.m, s.n, s.k, h.a, h.b, h.d, h.a_columns, h.b_rows},
        a(draw(h.a, s.m * s.k, 1)),
        w(draw(h.b, s.n * s.k, 2)),
        a_gpu(a),
        w_gpu(w),
        d_gpu(static_cast<std::size_t>(s.m * s.n * storage_bytes(h.d))) {
    if (!h.a_tiles) return;
    a_scales = draw_scales(*h.a_tiles, s.m, s.k, 3, true, 0);
    w_scales = draw_scales(*h.b_tiles, s.n, s.k, 4, false, 0);
    a_scales_gpu.emplace(bytes_of(a_scales.library));
    w_scales_gpu.emplace(bytes_of(w_scales.library));
  }

  [[nodiscard]] matmul_plan_options options() const {
    matmul_plan_options o;
    o.fast_accumulation = how.fast;
    if (!how.a_tiles) return o;
    const auto scales = [&](tiling t, std::int64_t lines, const on_gpu& at) {
      const bool square = t == tiling::square_of_128;
      const std::int64_t along = is_along_k(t) ? tiles_of_128(size.k) : 1;
      const std::int64_t rows = t == tiling::whole ? 1 : square ? tiles_of_128(lines) : lines;
      const_matrix_view v = on_device(view_of_codes(fp32, at.data(), rows, along));
      v.row_stride = square ? (along + 3) / 4 * 4 : 1;
      v.col_stride = square ? 1 : rows;
      return v;
    };
    const tile_shape turned = tile_of(*how.b_tiles);
    o.a_scales = {scales(*how.a_tiles, size.m, *a_scales_gpu), tile_of(*how.a_tiles)};
    o.b_scales = {transposed(scales(*how.b_tiles, size.n, *w_scales_gpu)),
                  {turned.cols, turned.rows}};
    return o;
  }
  [[nodiscard]] const_matrix_view a_view() const { return layout.a_view(a_gpu.data()); }
  [[nodiscard]] const_matrix_view b_view() const { return layout.b_view(w_gpu.data()); }
  [[nodiscard]] matrix_view d_view() const { return layout.d_view(d_gpu.data()); }

  [[nodiscard]] std::vector<std::byte> result() const {
    std::vector<std::byte> d(static_cast<std::size_t>(size.m * size.n * storage_bytes(how.d)));
    support::check_cuda(cudaMemcpy(d.data(), d_gpu.data(), d.size(), cudaMemcpyDeviceToHost),
                        "cudaMemcpy");
    return d;
  }

  kind how;
  shape size;
  device_operands layout;
  std::vector<std::byte> a, w;
  on_gpu a_gpu, w_gpu, d_gpu;
  random_scales a_scales, w_scales;
  std::optional<on_gpu> a_scales_gpu, w_scales_gpu;
};

/// The lines of an operand that lies in lines or, turned, by K.
std::vector<std::byte> gathered_lines(const std::vector<std::byte>& all, bool turned,
                                      const std::vector<std::int64_t>& which, std::int64_t lines,
                                      std::int64_t k, std::int64_t bytes) {
  if (!turned) return lines_of(all, which, static_cast<std::size_t>(k * bytes));
  std::vector<std::byte> some;
  for (const std::int64_t line : which) {
    for (std::int64_t i = 0; i < k; ++i) {
      const std::byte* from = &all[static_cast<std::size_t>((i * lines + line) * bytes)];
      some.insert(some.end(), from, from + bytes);
    }
  }
  return some;
}

struct counted {
  std::uint64_t compared = 0, differing = 0;
};

counted compare(const product& p, const accumulator& rule) {
  const shape& s = p.size;
  const std::int64_t most = s.m * s.n * s.k <= std::int64_t{1} << 27 ? std::max(s.m, s.n) : 48;
  const std::vector<std::int64_t> rows = sample(s.m, most), cols = sample(s.n, most);
  const auto m = static_cast<std::int64_t>(rows.size()), n = static_cast<std::int64_t>(cols.size());
  const auto x = gathered_lines(p.a, p.how.a_columns, rows, s.m, s.k, storage_bytes(p.how.a));
  const auto y = gathered_lines(p.w, p.how.b_rows, cols, s.n, s.k, storage_bytes(p.how.b));
  std::vector<std::byte> a_scales, w_scales;
  matmul_options options;
  if (p.how.a_tiles) {
    const auto of_lines = [](const random_scales& all, const std::vector<std::int64_t>& which) {
      return lines_of(bytes_of(all.by_line), which,
                      static_cast<std::size_t>(all.along) * sizeof(float));
    };
    a_scales = of_lines(p.a_scales, rows), w_scales = of_lines(p.w_scales, cols);
    const auto depth = [](tiling t) { return is_along_k(t) ? 128 : 0; };
    const matmul_plan_options planned = p.options();
    options.scale_order = cublaslt_order(planned.a_scales.tile, planned.b_scales.tile);
    options.a_scales = {view_of_codes(fp32, a_scales.data(), m, p.a_scales.along),
                        {1, depth(*p.how.a_tiles)}};
    options.b_scales = {transposed(view_of_codes(fp32, w_scales.data(), n, p.w_scales.along)),
                        {depth(*p.how.b_tiles), 1}};
  }
  const auto bytes = static_cast<std::size_t>(storage_bytes(p.how.d));
  std::vector<std::byte> expected(static_cast<std::size_t>(m * n) * bytes);
  matmul(view_of_codes(p.how.a, x.data(), m, s.k),
         transposed(view_of_codes(p.how.b, y.data(), n, s.k)),
         view_of_codes(p.how.d, expected.data(), m, n), rule, options, {{}, 0});
  const std::vector<std::byte> got = p.result();
  counted c;
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j, ++c.compared) {
      const std::int64_t at =
          rows[static_cast<std::size_t>(i)] * s.n + cols[static_cast<std::size_t>(j)];
      c.differing +=
          std::memcmp(&got[static_cast<std::size_t>(at) * bytes],
                      &expected[static_cast<std::size_t>(i * n + j) * bytes], bytes) != 0;
    }
  }
  return c;
}

/// Work on a stream in a CUDA graph, so that its time is the device's alone.
class timed {
 public:
  template <class Enqueue>
  explicit timed(const Enqueue& enqueue) {
    support::check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream");
    enqueue(stream_);
    cudaGraph_t graph = nullptr;
    support::check_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "begin");
    for (int i = 0; i < calls; ++i) enqueue(stream_);
    support::check_cuda(cudaStreamEndCapture(stream_, &graph), "end");
    support::check_cuda(cudaGraphInstantiate(&replay_, graph, 0), "cudaGraphInstantiate");
    cudaGraphDestroy(graph);
    for (cudaEvent_t& event : events_) support::check_cuda(cudaEventCreate(&event), "event");
    round();
    best_ = 0;
  }
  ~timed() {
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
    cudaGraphExecDestroy(replay_);
    cudaStreamDestroy(stream_);
  }
  timed(const timed&) = delete;
  timed& operator=(const timed&) = delete;

  void round() {
    float milliseconds = 0;
    cudaEventRecord(events_[0], stream_);
    cudaGraphLaunch(replay_, stream_);
    cudaEventRecord(events_[1], stream_);
    support::check_cuda(cudaEventSynchronize(events_[1]), "cudaEventSynchronize");
    cudaEventElapsedTime(&milliseconds, events_[0], events_[1]);
    const double now = 1e3 * milliseconds / calls;
    if (best_ == 0 || now < best_) best_ = now;
  }
  /// Microseconds of one call, the least of the rounds.
  [[nodiscard]] double best() const { return best_; }

 private:
  static constexpr int calls = 20;
  cudaStream_t stream_ = nullptr;
  cudaGraphExec_t replay_ = nullptr;
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
  const on_gpu workspace(workspace_bytes);
  backends::matmul_call call = p.layout.call(p.a_gpu.data(), p.w_gpu.data(), p.d_gpu.data(),
                                             storage_bytes(p.how.a) == 1 && !p.how.fast ? 128 : 0);
  const matmul_plan_options options = p.options();
  call.a_scales = {options.a_scales.values, {}, options.a_scales.tile};
  call.b_scales = {options.b_scales.values, {}, options.b_scales.tile};
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

bool is_hopper() {
  cudaDeviceProp device;
  support::check_cuda(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  return device.major == 9;
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
    if (support::smallest_effort() && s.m * s.n * s.k > 1 << 24) continue;
    const product p(GetParam(), s);
    std::printf("%s, %lld x %lld x %lld: ", p.how.name, static_cast<long long>(s.m),
                static_cast<long long>(s.n), static_cast<long long>(s.k));
    std::optional<matmul_plan> plan;
    try {
      plan.emplace(p.a_view(), p.b_view(), p.d_view(), p.options());
    } catch (const unsupported& e) {  // cuBLASLt has rules of its own for widths and alignments
      std::printf("refused, %s\n", e.what());
      EXPECT_NE(std::string(e.what()).find("has no algorithm without split K"), std::string::npos)
          << e.what();
      ++refused;
      continue;
    }
    const auto run = [&] { plan->run(p.a_view(), p.b_view(), p.d_view(), p.options()); };
    support::check_cuda(cudaMemset(p.d_gpu.data(), 0xFF, p.result().size()), "cudaMemset");
    run();
    const counted c = compare(p, plan->rule());
    EXPECT_EQ(c.differing, 0u) << s.m << " x " << s.n << " x " << s.k;
    const times t = times_of(p, *plan);
    std::printf("%llu compared, %llu differ; %.2f us, fastest without split K %.2f: %.3f; %s%s\n",
                static_cast<unsigned long long>(c.compared),
                static_cast<unsigned long long>(c.differing), t.own, t.best, t.best / t.own,
                plan->algorithm().c_str(), t.by == plan->algorithm() ? "" : ("; " + t.by).c_str());
  }
  EXPECT_LE(refused, 1);
}

INSTANTIATE_TEST_SUITE_P(Kinds, MatmulPlan, ::testing::ValuesIn(kinds), [](const auto& i) {
  std::string text = i.param.name;
  for (char& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return text;
});

class PlannedProduct : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!is_hopper()) GTEST_SKIP() << "no Hopper";
  }
  const product p_{kinds[0], {256, 512, 1024}};
};

/// A rule that no algorithm follows is found out: sums with promotions, and K in two slices.
TEST_F(PlannedProduct, OfAnotherRuleIsRefused) {
  backends::matmul_call call = p_.layout.call(p_.a_gpu.data(), p_.w_gpu.data(), p_.d_gpu.data(), 0);
  EXPECT_NO_THROW(cuda::plan_product(call, nullptr));
  call.sum.promotion = 256;
  EXPECT_THROW(cuda::plan_product(call, nullptr), unsupported);
  call.sum.promotion = 0;
  call.sum.slices = 2;
  EXPECT_THROW(cuda::plan_product(call, nullptr), unsupported);
}

TEST_F(PlannedProduct, IsCapturedOnceItIsChecked) {
  cudaStream_t stream = nullptr;
  support::check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  const matmul_plan plan(p_.a_view(), p_.b_view(), p_.d_view(), {}, on_stream(stream));
  cudaGraph_t graph = nullptr;
  support::check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  EXPECT_THROW(matmul_plan(p_.a_view(), p_.b_view(), p_.d_view(), {}, on_stream(stream)),
               invalid_argument);
  plan.run(p_.a_view(), p_.b_view(), p_.d_view(), {}, on_stream(stream));
  support::check_cuda(cudaStreamEndCapture(stream, &graph), "capture");
  cudaGraphExec_t replay = nullptr;
  support::check_cuda(cudaGraphInstantiate(&replay, graph, 0), "cudaGraphInstantiate");
  for (int i = 0; i < 2; ++i) {
    support::check_cuda(cudaMemset(p_.d_gpu.data(), 0xFF, p_.result().size()), "cudaMemset");
    support::check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    support::check_cuda(cudaGraphLaunch(replay, stream), "cudaGraphLaunch");
    support::check_cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    EXPECT_EQ(compare(p_, plan.rule()).differing, 0u);
  }
  cudaGraphExecDestroy(replay);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

TEST_F(PlannedProduct, OfConcatenatedWeightsIsThatOfEach) {
  const matmul_plan whole(p_.a_view(), p_.b_view(), p_.d_view());
  whole.run(p_.a_view(), p_.b_view(), p_.d_view());
  const std::vector<std::byte> together = p_.result();
  const std::int64_t n = p_.size.n / 4, row = p_.size.n * storage_bytes(p_.how.d);
  support::check_cuda(cudaMemset(p_.d_gpu.data(), 0xFF, together.size()), "cudaMemset");
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
  EXPECT_THROW(
      matmul_plan(view_of_codes(bf16, p_.a.data(), p_.size.m, p_.size.k), p_.b_view(), p_.d_view()),
      invalid_argument);
}

}  // namespace
}  // namespace samebits::device_tests
