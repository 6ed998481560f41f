// The vendor's FP8 products with scales for tensors, lines and tiles of 128 along K, FP32 output
// and K unsplit, by each algorithm that its heuristic offers, against matmul() on the CPU, bit for
// bit, in every order of the two scales and the sum. Whole results up to 1024^3 multiply-adds, else
// 48 rows by 48 columns.
//
// Needs a Hopper GPU and cuBLASLt (SAMEBITS_CUBLASLT=FILE). SAMEBITS_RECORD=FILE writes some rows
// and columns of results down, SAMEBITS_VERBOSE=1 says every algorithm.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/matmul/cublaslt.hpp"
#include "device/cublaslt_operands.hpp"
#include "device/cublaslt_scaled_problem.hpp"
#include "device/device_copy.hpp"
#include "samebits/samebits.hpp"
#include "support/effort.hpp"

namespace samebits::device_tests {
namespace {

using enum format_id;

// K in tiles and not; few rows; a refusal of the library's is counted
constexpr shape shapes[] = {
    {64, 64, 256},  {128, 128, 1024}, {256, 256, 2048},   {1024, 1024, 1024}, {16, 128, 4096},
    {16, 256, 128}, {64, 4096, 4096}, {4, 512, 1024},     {1, 4096, 4096},    {128, 1024, 1040},
    {512, 512, 80}, {256, 384, 272},  {1000, 1008, 1008}, {2048, 1024, 4096}, {768, 3072, 768},
    {36, 144, 400}, {512, 256, 640},  {3072, 768, 3072},  {200, 512, 1152},   {128, 256, 7168},
};

constexpr mode modes[] = {
    {"e4m3 1x128, e4m3 128x128", e4m3, e4m3, tiling::line_by_128, tiling::square_of_128},
    {"e4m3 1x128, e4m3 1x128", e4m3, e4m3, tiling::line_by_128, tiling::line_by_128},
    {"e4m3 128x128, e4m3 1x128", e4m3, e4m3, tiling::square_of_128, tiling::line_by_128},
    {"e5m2 1x128, e4m3 128x128", e5m2, e4m3, tiling::line_by_128, tiling::square_of_128},
    {"e5m2 1x128, e4m3 1x128", e5m2, e4m3, tiling::line_by_128, tiling::line_by_128},
    {"e4m3 1x128, e5m2 1x128", e4m3, e5m2, tiling::line_by_128, tiling::line_by_128},
    {"e4m3 whole, e4m3 whole", e4m3, e4m3, tiling::whole, tiling::whole},
    {"e4m3 whole, e4m3 whole, fast", e4m3, e4m3, tiling::whole, tiling::whole, true},
    {"e5m2 whole, e4m3 whole", e5m2, e4m3, tiling::whole, tiling::whole},
    {"e4m3 line, e4m3 line", e4m3, e4m3, tiling::line, tiling::line},
    {"e4m3 line, e4m3 line, fast", e4m3, e4m3, tiling::line, tiling::line, true},
    // products of scales and results among the subnormals
    {"e4m3 1x128, e4m3 128x128, tiny", e4m3, e4m3, tiling::line_by_128, tiling::square_of_128,
     false, -70},
    {"e4m3 1x128, e4m3 1x128, tiny", e4m3, e4m3, tiling::line_by_128, tiling::line_by_128, false,
     -70},
    {"e4m3 whole, e4m3 whole, tiny", e4m3, e4m3, tiling::whole, tiling::whole, false, -70},
    {"e4m3 line, e4m3 line, tiny", e4m3, e4m3, tiling::line, tiling::line, false, -70},
};

/// Scales of A, or of W as those of B.
backends::scale_source scales_of(tiling t, const void* data, bool of_a) {
  const tile_shape tile = tile_of(t);
  return {{.data = data}, {}, of_a ? tile : tile_shape{tile.cols, tile.rows}};
}

/// The product of some rows and columns on the CPU.
std::vector<float> expected(const problem& of, const part& p, scale_order order) {
  const auto m = static_cast<std::int64_t>(p.rows.size());
  const auto n = static_cast<std::int64_t>(p.cols.size());
  const auto scales = [](const std::vector<std::byte>& at, const random_scales& s,
                         std::int64_t lines) {
    return view_of_codes(fp32, at.data(), lines, s.along);
  };
  const std::int64_t a_depth = is_along_k(of.how.a_tiles) ? 128 : 0;
  const std::int64_t w_depth = is_along_k(of.how.w_tiles) ? 128 : 0;
  std::vector<float> d(static_cast<std::size_t>(m * n));
  matmul_options options;
  options.scale_order = order;
  options.a_scales = {scales(p.a_scales, of.a_scales, m), {1, a_depth}};
  options.b_scales = {transposed(scales(p.w_scales, of.w_scales, n)), {w_depth, 1}};
  matmul(view_of_codes(of.how.a, p.a.data(), m, of.size.k),
         transposed(view_of_codes(of.how.w, p.w.data(), n, of.size.k)), view_of(d.data(), m, n),
         of.how.sum(), options, {{}, 0});
  return d;
}

using counts = std::array<std::uint64_t, enum_count<scale_order>>;

/// Results that differ, and of them such as differ in the sign of zero alone.
void compare(const std::vector<float>& got, const std::vector<float>& wanted,
             std::uint64_t& differing, std::uint64_t& signs) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::memcmp(&got[i], &wanted[i], sizeof(float)) == 0) continue;
    ++differing;
    if (got[i] == wanted[i]) ++signs;
  }
}

/// Of one shape, all algorithms.
struct verdict {
  std::string refused;
  std::size_t algorithms = 0;
  std::size_t distinct = 0;  ///< results
  std::uint64_t compared = 0;
  counts differing = {};
  counts signs = {};
};

constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

/// A product on the device, by each of its algorithms.
template <class See>
std::string each_result(const cuda::cublaslt& lt, const problem& of, const See& see) {
  const shape& s = of.size;
  const on_gpu a(of.a);
  const on_gpu w(of.w);
  const on_gpu a_scales(bytes_of(of.a_scales.library));
  const on_gpu w_scales(bytes_of(of.w_scales.library));
  const on_gpu workspace(workspace_bytes);
  std::vector<float> d(static_cast<std::size_t>(s.m * s.n));
  const on_gpu d_gpu(d.size() * sizeof(float));
  const device_operands operands = {.m = s.m, .n = s.n, .k = s.k, .a = of.how.a, .b = of.how.w};
  backends::matmul_call call =
      operands.call(a.data(), w.data(), d_gpu.data(), of.how.fast ? 0 : 128);
  call.a_scales = scales_of(of.how.a_tiles, a_scales.data(), true);
  call.b_scales = scales_of(of.how.w_tiles, w_scales.data(), false);
  std::string why;
  try {
    const cuda::lt_product product(lt, call);
    for (const cuda::lt_algorithm& by : product.algorithms(workspace_bytes)) {
      support::check_cuda(cudaMemset(d_gpu.data(), 0xFF, d.size() * sizeof(float)), "cudaMemset");
      try {
        product.run(by.algo, call, workspace.data(), workspace_bytes, nullptr);
      } catch (const cuda_error& e) {
        why = e.what();
        continue;
      }
      support::check_cuda(
          cudaMemcpy(d.data(), d_gpu.data(), d.size() * sizeof(float), cudaMemcpyDeviceToHost),
          "cudaMemcpy");
      see(by, d);
    }
  } catch (const unsupported& e) {
    why = e.what();
  }
  return why;
}

verdict verdict_of(const cuda::cublaslt& lt, const mode& how, const shape& s) {
  const problem of(how, s);
  const bool whole = s.m * s.n * s.k <= std::int64_t{1} << 30;
  const part p = of.sampled(whole ? std::max(s.m, s.n) : 48);
  std::array<std::vector<float>, enum_count<scale_order>> wanted;
  for (int o = 0; o < enum_count<scale_order>; ++o) {
    wanted[static_cast<std::size_t>(o)] = expected(of, p, static_cast<scale_order>(o));
  }
  const char* path = std::getenv("SAMEBITS_RECORD");
  const bool recorded =
      path != nullptr &&
      (s.k == 272 || (s.k == 640 && how.a == how.w && how.scaled_along_k() && how.exponent == 0));
  verdict v;
  std::vector<std::vector<std::byte>> distinct;
  v.refused = each_result(lt, of, [&](const cuda::lt_algorithm& by, const std::vector<float>& d) {
    const std::vector<float> got = gathered(d, p, s.n);
    std::vector<std::byte> bytes = bytes_of(got);
    const bool is_new = std::find(distinct.begin(), distinct.end(), bytes) == distinct.end();
    if (is_new) distinct.push_back(std::move(bytes));
    if (recorded && is_new) record(path, of, by.text, lt.version(), d);
    counts own = {};
    counts signs = {};
    for (std::size_t o = 0; o < own.size(); ++o) compare(got, wanted[o], own[o], signs[o]);
    if (std::getenv("SAMEBITS_VERBOSE") != nullptr) {
      std::printf("  %s%s:", is_new ? "new: " : "", by.text.c_str());
      for (const std::uint64_t n : own) std::printf(" %llu", static_cast<unsigned long long>(n));
      std::printf("\n");
    }
    ++v.algorithms;
    v.compared += got.size();
    for (std::size_t o = 0; o < own.size(); ++o) {
      v.differing[o] += own[o];
      v.signs[o] += signs[o];
    }
  });
  v.distinct = distinct.size();
  return v;
}

std::string text_of(const counts& all) {
  std::string text;
  for (int o = 0; o < enum_count<scale_order>; ++o) {
    text += std::string(o == 0 ? "" : ", ") + std::string(name(static_cast<scale_order>(o))) + " " +
            std::to_string(all[static_cast<std::size_t>(o)]);
  }
  return text;
}

bool is_hopper() {
  cudaDeviceProp device;
  if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
    throw std::runtime_error("no usable GPU");
  }
  return device.major == 9;
}

class CublasLtScales : public ::testing::TestWithParam<mode> {};

TEST_P(CublasLtScales, AreAppliedInOneOrder) {
  if (!is_hopper()) GTEST_SKIP() << "no Hopper";
  static const cuda::cublaslt lt;
  const mode& how = GetParam();
  const auto settled = static_cast<std::size_t>(how.order());
  int refused = 0;
  verdict all;
  for (const shape& s : shapes) {
    if (support::smallest_effort() && s.m * s.n * s.k > 1 << 24) continue;
    const verdict v = verdict_of(lt, how, s);
    std::printf("%s, %lld x %lld x %lld: ", how.name, static_cast<long long>(s.m),
                static_cast<long long>(s.n), static_cast<long long>(s.k));
    if (v.algorithms == 0) {
      ++refused;
      std::printf("refused, %s\n", v.refused.c_str());
      continue;
    }
    std::printf("%zu algorithms, %zu results; %llu compared, differ: %s%s%s\n", v.algorithms,
                v.distinct, static_cast<unsigned long long>(v.compared),
                text_of(v.differing).c_str(), v.refused.empty() ? "" : "; one said ",
                v.refused.c_str());
    EXPECT_EQ(v.differing[settled], 0u) << s.m << " x " << s.n << " x " << s.k;
    all.algorithms += v.algorithms;
    all.compared += v.compared;
    for (std::size_t o = 0; o < all.differing.size(); ++o) {
      all.differing[o] += v.differing[o];
      all.signs[o] += v.signs[o];
    }
  }
  std::printf("%s: cuBLASLt %zu, %d of %zu shapes refused, %zu runs, %llu compared\n  differ: %s\n",
              how.name, lt.version(), refused, std::size(shapes), all.algorithms,
              static_cast<unsigned long long>(all.compared), text_of(all.differing).c_str());
  std::printf("  in the sign of zero alone: %s\n", text_of(all.signs).c_str());
  EXPECT_LE(refused, 2);
  if (support::smallest_effort()) return;  // few results may fit several orders
  EXPECT_EQ(std::count(all.differing.begin(), all.differing.end(), 0u), 1) << "of six orders";
}

INSTANTIATE_TEST_SUITE_P(Modes, CublasLtScales, ::testing::ValuesIn(modes), [](const auto& i) {
  std::string text = i.param.name;
  for (char& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return text;
});

/// What else the library offers: the rest is a line each.
TEST(CublasLtOffers, AreSaid) {
  if (!is_hopper()) GTEST_SKIP() << "no Hopper";
  const cuda::cublaslt lt;
  const on_gpu scales(1 << 20);
  constexpr tiling kinds[] = {tiling::whole, tiling::line, tiling::line_by_128,
                              tiling::square_of_128};
  const auto say = [&](tiling a, tiling w, int how, format_id a_format) {
    const device_operands operands = {.m = 256,
                                      .n = 256,
                                      .k = 256,
                                      .a = a_format,
                                      .b = e4m3,
                                      .a_columns = (how & 2) != 0,
                                      .b_rows = (how & 1) != 0};
    backends::matmul_call call =
        operands.call(scales.data(), scales.data(), scales.data(), (how & 4) != 0 ? 0 : 128);
    call.a_scales = scales_of(a, scales.data(), true);
    call.b_scales = scales_of(w, scales.data(), false);
    std::size_t count = 0;
    std::string refusal;
    try {
      count = cuda::lt_product(lt, call).algorithms(workspace_bytes).size();
    } catch (const unsupported& e) {
      refusal = e.what();
    }
    std::printf("%s, A %s%s, B %s%s%s: %zu algorithms %s\n", std::string(name(a_format)).c_str(),
                name_of(a), operands.a_columns ? " by columns" : "", name_of(w),
                operands.b_rows ? " by rows" : "", (how & 4) != 0 ? ", fast" : "", count,
                refusal.c_str());
    return count;
  };
  for (const tiling a : kinds) {
    for (const tiling w : kinds) {
      for (const format_id f : {e4m3, e5m2}) {
        for (const int fast : {0, 4}) say(a, w, fast, f);
      }
    }
  }
  for (const tiling w : {tiling::line_by_128, tiling::square_of_128}) {
    for (int turned = 1; turned < 4; ++turned) {
      EXPECT_EQ(say(tiling::line_by_128, w, turned, e4m3), 0u);
    }
  }
}

}  // namespace
}  // namespace samebits::device_tests
