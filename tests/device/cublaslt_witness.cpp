// The vendor's matrix products, K unsplit, against matmul() on the CPU, bit for bit: FP8 with fast
// accumulation and without, mixed FP8, BF16, FP16. Whole results up to 1024^3 multiply-adds, else
// 48 rows by 48 columns of them. Needs a Hopper GPU and cuBLASLt (SAMEBITS_CUBLASLT=FILE).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "backends/cuda/matmul/cublaslt.hpp"
#include "device/cublaslt_operands.hpp"
#include "device/device_copy.hpp"
#include "samebits/samebits.hpp"
#include "support/effort.hpp"

namespace samebits::device_tests {
namespace {

struct shape {
  std::int64_t m, n, k;
};

constexpr shape shapes[] = {
    {64, 64, 256},       {128, 128, 1024},    {256, 256, 2048},   {1024, 1024, 1024},
    {16, 128, 4096},     {16, 128, 16384},    {16, 4096, 4096},   {64, 4096, 4096},
    {1, 4096, 4096},     {128, 4096, 1040},   {512, 512, 80},     {256, 384, 272},
    {1000, 1008, 1008},  {2048, 1024, 4096},  {4096, 4096, 4096}, {8192, 4096, 4096},
    {4096, 4096, 14336}, {4096, 14336, 4096}, {2048, 2048, 208},  {768, 3072, 768},
    {3072, 768, 3072},   {32, 256, 65536},
};

struct mode {
  const char* name;
  format_id a, b;
  bool b_rows;
  std::int64_t promotion;
};

using enum format_id;
constexpr mode modes[] = {
    {"e4m3 x e4m3, fast", e4m3, e4m3, false, 0},
    {"e4m3 x e4m3, accurate", e4m3, e4m3, false, 128},
    {"e5m2 x e4m3, fast", e5m2, e4m3, false, 0},
    {"e5m2 x e4m3, accurate", e5m2, e4m3, false, 128},
    {"bf16", bf16, bf16, false, 0},
    {"bf16, B by rows of K", bf16, bf16, true, 0},
    {"fp16", fp16, fp16, false, 0},
};

struct verdict {
  std::string refused;
  std::uint64_t compared = 0;
  std::uint64_t differing = 0;
};

verdict verdict_of(const cuda::cublaslt& lt, const mode& how, const shape& s) {
  constexpr std::size_t workspace_bytes = std::size_t{32} << 20;
  const std::vector<std::byte> a = draw(how.a, s.m * s.k, 1);
  const std::vector<std::byte> w = draw(how.b, s.n * s.k, 2);  // [n, k], or [k, n]
  std::vector<float> d(static_cast<std::size_t>(s.m * s.n));
  const on_gpu a_gpu(a);
  const on_gpu w_gpu(w);
  const on_gpu d_gpu(d.size() * sizeof(float));
  const on_gpu workspace(workspace_bytes);
  verdict v;
  const device_operands of = {
      .m = s.m, .n = s.n, .k = s.k, .a = how.a, .b = how.b, .b_rows = how.b_rows};
  try {
    const backends::matmul_call call =
        of.call(a_gpu.data(), w_gpu.data(), d_gpu.data(), how.promotion);
    const cuda::lt_product product(lt, call);
    const cuda::lt_algorithm first = product.algorithms(workspace_bytes).front();
    product.run(first.algo, call, workspace.data(), workspace_bytes, nullptr);
  } catch (const std::runtime_error& e) {
    v.refused = e.what();
  }
  if (!v.refused.empty()) return v;
  support::check_cuda(
      cudaMemcpy(d.data(), d_gpu.data(), d.size() * sizeof(float), cudaMemcpyDeviceToHost),
      "cudaMemcpy");
  const bool whole = s.m * s.n * s.k <= std::int64_t{1} << 30;
  const std::vector<std::int64_t> rows = sample(s.m, whole ? s.m : 48);
  const std::vector<std::int64_t> cols = sample(s.n, whole || how.b_rows ? s.n : 48);
  const auto line = static_cast<std::size_t>(s.k * storage_bytes(how.a));
  const std::vector<std::byte> x = lines_of(a, rows, line);
  const std::vector<std::byte> y = how.b_rows ? w : lines_of(w, cols, line);
  const auto m = static_cast<std::int64_t>(rows.size());
  const auto n = static_cast<std::int64_t>(cols.size());
  std::vector<float> expected(static_cast<std::size_t>(m * n));
  const const_matrix_view b = how.b_rows ? view_of_codes(how.b, y.data(), s.k, s.n)
                                         : transposed(view_of_codes(how.b, y.data(), n, s.k));
  matmul(view_of_codes(how.a, x.data(), m, s.k), b, view_of(expected.data(), m, n),
         accumulator::tensor_core(tensor_unit::hopper_wgmma, how.promotion), {}, {{}, 0});
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      const float* got = &d[static_cast<std::size_t>(rows[static_cast<std::size_t>(i)] * s.n +
                                                     cols[static_cast<std::size_t>(j)])];
      v.differing += std::memcmp(got, &expected[static_cast<std::size_t>(i * n + j)], 4) != 0;
      ++v.compared;
    }
  }
  return v;
}

class CublasLt : public ::testing::TestWithParam<mode> {};

TEST_P(CublasLt, WithoutSplitKIsTheModel) {
  cudaDeviceProp device;
  if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) FAIL() << "no usable GPU";
  if (device.major != 9) GTEST_SKIP() << device.name << " is no Hopper";
  static const cuda::cublaslt lt;
  int refused = 0;
  for (const shape& s : shapes) {
    if (support::smallest_effort() && s.m * s.n * s.k > 1 << 24) continue;
    const verdict v = verdict_of(lt, GetParam(), s);
    std::printf("%s, %lld x %lld x %lld: ", GetParam().name, static_cast<long long>(s.m),
                static_cast<long long>(s.n), static_cast<long long>(s.k));
    if (!v.refused.empty()) {
      ++refused;
      std::printf("refused, %s\n", v.refused.c_str());
      continue;
    }
    std::printf("%llu compared, %llu differ\n", static_cast<unsigned long long>(v.compared),
                static_cast<unsigned long long>(v.differing));
    EXPECT_EQ(v.differing, 0u) << s.m << " x " << s.n << " x " << s.k;
  }
  std::printf("%s: %d of %zu shapes refused; cuBLASLt %zu\n", GetParam().name, refused,
              std::size(shapes), lt.version());
  EXPECT_LE(refused, 2);
}

INSTANTIATE_TEST_SUITE_P(Modes, CublasLt, ::testing::ValuesIn(modes), [](const auto& i) {
  std::string text = i.param.name;
  for (char& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return text;
});

}  // namespace
}  // namespace samebits::device_tests
