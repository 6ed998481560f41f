// The vendor's FP8 products with scales for tiles of 128 along K and FP32 output, K unsplit, each
// algorithm that its heuristic offers, against matmul() on the CPU, bit for bit, in every order of
// the two scales and the sum. Whole results up to 1024^3 multiply-adds, else 48 rows by 48 columns.
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

#include "device/cublaslt.hpp"
#include "device/cublaslt_operands.hpp"
#include "device/device_copy.hpp"
#include "samebits/samebits.hpp"

namespace samebits::device_tests {
namespace {

using enum format_id;

constexpr std::int64_t tile = 128;

struct shape {
  std::int64_t m, n, k;
};

// K in tiles and not; few rows; a refusal of the library's is counted
constexpr shape shapes[] = {
    {64, 64, 256},  {128, 128, 1024}, {256, 256, 2048},   {1024, 1024, 1024}, {16, 128, 4096},
    {16, 256, 128}, {64, 4096, 4096}, {4, 512, 1024},     {1, 4096, 4096},    {128, 1024, 1040},
    {512, 512, 80}, {256, 384, 272},  {1000, 1008, 1008}, {2048, 1024, 4096}, {768, 3072, 768},
    {36, 144, 400}, {512, 256, 640},  {3072, 768, 3072},  {200, 512, 1152},   {128, 256, 7168},
};

/// How an operand [lines, K] is scaled: a tile's lines.
enum class tiling : std::uint8_t { line, square };

struct mode {
  const char* name;
  format_id a, w;
  cudaDataType_t a_type, w_type;
  tiling a_tiles, w_tiles;
};

constexpr auto e4 = CUDA_R_8F_E4M3;
constexpr auto e5 = CUDA_R_8F_E5M2;
constexpr mode modes[] = {
    {"e4m3 1x128, e4m3 128x128", e4m3, e4m3, e4, e4, tiling::line, tiling::square},
    {"e4m3 1x128, e4m3 1x128", e4m3, e4m3, e4, e4, tiling::line, tiling::line},
    {"e4m3 128x128, e4m3 1x128", e4m3, e4m3, e4, e4, tiling::square, tiling::line},
    {"e5m2 1x128, e4m3 128x128", e5m2, e4m3, e5, e4, tiling::line, tiling::square},
    {"e5m2 1x128, e4m3 1x128", e5m2, e4m3, e5, e4, tiling::line, tiling::line},
    {"e4m3 1x128, e5m2 1x128", e4m3, e5m2, e4, e5, tiling::line, tiling::line},
};

constexpr std::int64_t tiles_along(std::int64_t k) { return (k + tile - 1) / tile; }

/// Scales of an operand, as the library lays them out, and one for each line and tile of K.
struct drawn_scales {
  std::vector<float> library;
  std::vector<float> by_line;  ///< [lines, tiles along K]
};

/// 24 bits of significand, 2^-3 to 2^4; where `signs`, an eighth is negative, and the last line.
drawn_scales draw_scales(tiling tiles, std::int64_t lines, std::int64_t k, std::uint64_t seed,
                         bool signs) {
  const std::int64_t along = tiles_along(k);
  const bool square = tiles == tiling::square;
  // single lines: [tile of K][line]; squares: [tile of lines][tile of K, in fours]
  const std::int64_t stride = square ? (along + 3) / 4 * 4 : lines;
  drawn_scales s;
  s.library.resize(static_cast<std::size_t>(square ? tiles_along(lines) * stride : along * lines));
  s.by_line.resize(static_cast<std::size_t>(lines * along));
  for (std::int64_t line = 0; line < lines; ++line) {
    for (std::int64_t t = 0; t < along; ++t) {
      const std::int64_t group = square ? line / tile : line;
      const std::uint32_t word =
          random_word(seed, 7, static_cast<std::uint64_t>(group * along + t));
      const bool last = group == (square ? (lines - 1) / tile : lines - 1);
      const bool negative = signs && (last || (word >> 23 & 7) == 0);
      const std::uint32_t bits =
          (word & 0x7FFFFFu) | (124 + (word >> 26) % 7) << 23 | (negative ? 1u << 31 : 0u);
      float value = 0;
      std::memcpy(&value, &bits, sizeof value);
      s.by_line[static_cast<std::size_t>(line * along + t)] = value;
      s.library[static_cast<std::size_t>(square ? group * stride + t : t * stride + line)] = value;
    }
  }
  return s;
}

std::vector<std::byte> bytes_of(const std::vector<float>& x) {
  std::vector<std::byte> bytes(x.size() * sizeof(float));
  std::memcpy(bytes.data(), x.data(), bytes.size());
  return bytes;
}

/// Some rows and columns of a product, with scales for every line.
struct part {
  std::vector<std::int64_t> rows, cols;
  std::vector<std::byte> a, w;
  std::vector<std::byte> a_scales, w_scales;  ///< fp32 [lines, tiles along K]
};

/// Operands and scales of a product.
struct problem {
  problem(const mode& h, const shape& s) : how(h), size(s) {
    a = draw(h.a, s.m * s.k, 1);
    w = draw(h.w, s.n * s.k, 2);
    // zeros under negative scales: what the first tile's sum is added to shows in their sign
    if (s.m >= 16) std::memset(a.data() + (s.m - 1) * s.k, 0, static_cast<std::size_t>(s.k));
    a_scales = draw_scales(h.a_tiles, s.m, s.k, 3, true);
    w_scales = draw_scales(h.w_tiles, s.n, s.k, 4, false);
  }

  [[nodiscard]] part sampled(std::int64_t most) const {
    part p;
    p.rows = sample(size.m, most);
    p.cols = sample(size.n, most);
    const auto line = static_cast<std::size_t>(size.k);
    const auto scale_line = static_cast<std::size_t>(tiles_along(size.k)) * sizeof(float);
    p.a = lines_of(a, p.rows, line);
    p.w = lines_of(w, p.cols, line);
    p.a_scales = lines_of(bytes_of(a_scales.by_line), p.rows, scale_line);
    p.w_scales = lines_of(bytes_of(w_scales.by_line), p.cols, scale_line);
    return p;
  }

  mode how;
  shape size;
  std::vector<std::byte> a, w;
  drawn_scales a_scales, w_scales;
};

std::vector<float> expected(const problem& of, const part& p, scale_order order) {
  const auto m = static_cast<std::int64_t>(p.rows.size());
  const auto n = static_cast<std::int64_t>(p.cols.size());
  const std::int64_t along = tiles_along(of.size.k);
  std::vector<float> d(static_cast<std::size_t>(m * n));
  matmul_options options;
  options.order = order;
  options.a_scales = {view_of_codes(fp32, p.a_scales.data(), m, along), {1, tile}};
  options.b_scales = {transposed(view_of_codes(fp32, p.w_scales.data(), n, along)), {tile, 1}};
  matmul(view_of_codes(of.how.a, p.a.data(), m, of.size.k),
         transposed(view_of_codes(of.how.w, p.w.data(), n, of.size.k)), view_of(d.data(), m, n),
         accumulator::tensor_core(tensor_unit::hopper_wgmma, tile), options, {{}, 0});
  return d;
}

std::vector<float> gathered(const std::vector<float>& d, const part& p, std::int64_t n) {
  std::vector<float> some;
  for (const std::int64_t i : p.rows) {
    for (const std::int64_t j : p.cols) some.push_back(d[static_cast<std::size_t>(i * n + j)]);
  }
  return some;
}

using counts = std::array<std::uint64_t, scale_order_count>;

/// Results that differ, and of them such as differ in the sign of zero alone.
void compare(const std::vector<float>& got, const std::vector<float>& wanted,
             std::uint64_t& differing, std::uint64_t& signs) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::memcmp(&got[i], &wanted[i], sizeof(float)) == 0) continue;
    ++differing;
    if (got[i] == wanted[i]) ++signs;
  }
}

void write_lines(std::FILE* file, char key, const std::vector<std::byte>& all, std::size_t lines,
                 std::size_t unit) {
  const std::size_t bytes = all.size() / lines;
  for (std::size_t l = 0; l < lines; ++l) {
    std::fprintf(file, "%c", key);
    for (std::size_t i = 0; i < bytes; i += unit) {
      std::uint32_t word = 0;
      std::memcpy(&word, all.data() + l * bytes + i, unit);
      std::fprintf(file, unit == 1 ? (i == 0 ? " %02X" : "%02X") : " %08X", word);
    }
    std::fprintf(file, "\n");
  }
}

/// Eight rows and columns of a result (tests/golden/README.md has the format).
void record(const char* path, const problem& of, const std::string& by,
            const std::vector<float>& d) {
  std::FILE* file = std::fopen(path, "a");
  if (file == nullptr) throw std::runtime_error("cannot write the recording");
  const part p = of.sampled(8);
  const auto text = [](auto x) { return std::string(name(x)); };
  std::fprintf(file, "# %s, %lld x %lld x %lld, %s\nproduct %s %s %zu %zu %lld\n", of.how.name,
               static_cast<long long>(of.size.m), static_cast<long long>(of.size.n),
               static_cast<long long>(of.size.k), by.c_str(), text(of.how.a).c_str(),
               text(of.how.w).c_str(), p.rows.size(), p.cols.size(),
               static_cast<long long>(of.size.k));
  write_lines(file, 'a', p.a, p.rows.size(), 1);
  write_lines(file, 'w', p.w, p.cols.size(), 1);
  write_lines(file, 's', p.a_scales, p.rows.size(), 4);
  write_lines(file, 't', p.w_scales, p.cols.size(), 4);
  write_lines(file, 'd', bytes_of(gathered(d, p, of.size.n)), p.rows.size(), 4);
  std::fclose(file);
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
std::string each_result(const cublaslt& lt, const problem& of, const See& see) {
  const shape& s = of.size;
  const on_gpu a(of.a);
  const on_gpu w(of.w);
  const on_gpu a_scales(bytes_of(of.a_scales.library));
  const on_gpu w_scales(bytes_of(of.w_scales.library));
  const on_gpu workspace(workspace_bytes);
  std::vector<float> d(static_cast<std::size_t>(s.m * s.n));
  const on_gpu d_gpu(d.size() * sizeof(float));
  const auto scales = [](tiling t, const on_gpu& at) {
    return lt_scales{t == tiling::line ? CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F
                                       : CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F,
                     static_cast<const float*>(at.data())};
  };
  const lt_call call(lt,
                     {s.m, s.n, s.k, of.how.a_type, of.how.w_type, false, false,
                      scales(of.how.a_tiles, a_scales), scales(of.how.w_tiles, w_scales)},
                     workspace_bytes);
  std::string why = call.refusal();
  for (const lt_algorithm& by : call.algorithms()) {
    support::check_cuda(cudaMemset(d_gpu.data(), 0xFF, d.size() * sizeof(float)), "cudaMemset");
    const std::string refused =
        call.run(by, a.data(), w.data(), static_cast<float*>(d_gpu.data()), workspace.data());
    if (!refused.empty()) {
      why = refused;
      continue;
    }
    support::check_cuda(
        cudaMemcpy(d.data(), d_gpu.data(), d.size() * sizeof(float), cudaMemcpyDeviceToHost),
        "cudaMemcpy");
    see(by, d);
  }
  return why;
}

verdict judge(const cublaslt& lt, const mode& how, const shape& s) {
  const problem of(how, s);
  const bool whole = s.m * s.n * s.k <= std::int64_t{1} << 30;
  const part p = of.sampled(whole ? std::max(s.m, s.n) : 48);
  std::array<std::vector<float>, scale_order_count> wanted;
  for (int o = 0; o < scale_order_count; ++o) {
    wanted[static_cast<std::size_t>(o)] = expected(of, p, static_cast<scale_order>(o));
  }
  const char* path = std::getenv("SAMEBITS_RECORD");
  const bool recorded = path != nullptr && (s.k == 272 || (s.k == 1008 && how.a == how.w));
  verdict v;
  std::vector<std::vector<std::byte>> distinct;
  v.refused = each_result(lt, of, [&](const lt_algorithm& by, const std::vector<float>& d) {
    const std::vector<float> got = gathered(d, p, s.n);
    std::vector<std::byte> bytes = bytes_of(got);
    const bool is_new = std::find(distinct.begin(), distinct.end(), bytes) == distinct.end();
    if (is_new) distinct.push_back(std::move(bytes));
    if (recorded && is_new) record(path, of, by.text, d);
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
  for (int o = 0; o < scale_order_count; ++o) {
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
  static const cublaslt lt;
  const mode& how = GetParam();
  int refused = 0;
  verdict all;
  for (const shape& s : shapes) {
    const verdict v = judge(lt, how, s);
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
    EXPECT_EQ(v.differing[0], 0u) << s.m << " x " << s.n << " x " << s.k;
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
  for (std::size_t o = 1; o < all.differing.size(); ++o) {
    EXPECT_NE(all.differing[o], 0u) << name(static_cast<scale_order>(o));
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, CublasLtScales, ::testing::ValuesIn(modes), [](const auto& i) {
  std::string text = i.param.name;
  for (char& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return text;
});

/// What the library does not offer with these scales: other transposes, fast accumulation.
TEST(CublasLtOffers, AreSaid) {
  if (!is_hopper()) GTEST_SKIP() << "no Hopper";
  const cublaslt lt;
  const on_gpu scales(1 << 20);
  const auto* data = static_cast<const float*>(scales.data());
  const lt_scales line = {CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F, data};
  const lt_scales square = {CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F, data};
  for (const lt_scales& w : {square, line}) {
    for (int i = 0; i < 8; ++i) {
      const lt_product p = {256,          256,          256,  e4, e4,
                            (i & 1) != 0, (i & 4) != 0, line, w,  (i & 2) != 0};
      const lt_call call(lt, p, workspace_bytes);
      std::printf("A 1x128 %s, B %s %s%s: %zu algorithms %s\n",
                  p.a_columns ? "by columns" : "by rows",
                  w.mode == square.mode ? "128x128" : "128x1", p.b_rows ? "by rows" : "by columns",
                  p.fast ? ", fast" : "", call.algorithms().size(), call.refusal().c_str());
    }
  }
  const lt_call squares(lt, {256, 256, 256, e4, e4, false, false, square, square}, workspace_bytes);
  std::printf("A and B 128x128: %zu algorithms %s\n", squares.algorithms().size(),
              squares.refusal().c_str());
}

}  // namespace
}  // namespace samebits::device_tests
