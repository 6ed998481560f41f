// The vendor's matrix products, K unsplit, against matmul() on the CPU, bit for bit. FP8 with fast
// accumulation and without, mixed FP8, BF16 and FP16 by the best algorithm; FP8 with scales for
// tensors, lines and tiles of 128 along K by each algorithm that the heuristic offers, in every order
// of the two scales and the sum. Whole results up to 1024^3 multiply-adds, else 48 rows by 48 columns.
//
// Needs a Hopper GPU and cuBLASLt (SAMEBITS_CUBLASLT=FILE). SAMEBITS_RECORD=FILE writes some rows
// and columns of results of scaled products down, SAMEBITS_VERBOSE=1 says every algorithm.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/matmul/cublaslt.hpp"
#include "device/cublaslt_product.hpp"
#include "samebits/samebits.hpp"
#include "support/effort.hpp"

namespace samebits::device_tests {
namespace {

using enum format_id;
using enum tiling;

constexpr shape plain_shapes[] = {
    {64, 64, 256},       {128, 128, 1024},    {256, 256, 2048},   {1024, 1024, 1024},
    {16, 128, 4096},     {16, 128, 16384},    {16, 4096, 4096},   {64, 4096, 4096},
    {1, 4096, 4096},     {128, 4096, 1040},   {512, 512, 80},     {256, 384, 272},
    {1000, 1008, 1008},  {2048, 1024, 4096},  {4096, 4096, 4096}, {8192, 4096, 4096},
    {4096, 4096, 14336}, {4096, 14336, 4096}, {2048, 2048, 208},  {768, 3072, 768},
    {3072, 768, 3072},   {32, 256, 65536},
};
// K that is a multiple of 128, and other K; few rows. What cuBLASLt refuses is counted, not a failure.
constexpr shape scaled_shapes[] = {
    {64, 64, 256},  {128, 128, 1024}, {256, 256, 2048},   {1024, 1024, 1024}, {16, 128, 4096},
    {16, 256, 128}, {64, 4096, 4096}, {4, 512, 1024},     {1, 4096, 4096},    {128, 1024, 1040},
    {512, 512, 80}, {256, 384, 272},  {1000, 1008, 1008}, {2048, 1024, 4096}, {768, 3072, 768},
    {36, 144, 400}, {512, 256, 640},  {3072, 768, 3072},  {200, 512, 1152},   {128, 256, 7168},
};

constexpr kind plain_kinds[] = {
    {.name = "e4m3 x e4m3, fast", .a = e4m3, .b = e4m3, .fast = true},
    {.name = "e4m3 x e4m3, accurate", .a = e4m3, .b = e4m3},
    {.name = "e5m2 x e4m3, fast", .a = e5m2, .b = e4m3, .fast = true},
    {.name = "e5m2 x e4m3, accurate", .a = e5m2, .b = e4m3},
    {.name = "bf16", .a = bf16, .b = bf16},
    {.name = "bf16, B by rows of K", .a = bf16, .b = bf16, .b_rows = true},
    {.name = "fp16", .a = fp16, .b = fp16},
};

/// Into fp32.
constexpr kind scaled(const char* name, format_id a, format_id b, tiling a_tiles, tiling b_tiles,
                      bool fast = false, int exponent = 0) {
  return {.name = name,
          .a = a,
          .b = b,
          .fast = fast,
          .a_tiles = a_tiles,
          .b_tiles = b_tiles,
          .exponent = exponent};
}
constexpr kind scaled_kinds[] = {
    scaled("e4m3 1x128, e4m3 128x128", e4m3, e4m3, line_by_128, square_of_128),
    scaled("e4m3 1x128, e4m3 1x128", e4m3, e4m3, line_by_128, line_by_128),
    scaled("e4m3 128x128, e4m3 1x128", e4m3, e4m3, square_of_128, line_by_128),
    scaled("e5m2 1x128, e4m3 128x128", e5m2, e4m3, line_by_128, square_of_128),
    scaled("e5m2 1x128, e4m3 1x128", e5m2, e4m3, line_by_128, line_by_128),
    scaled("e4m3 1x128, e5m2 1x128", e4m3, e5m2, line_by_128, line_by_128),
    scaled("e4m3 whole, e4m3 whole", e4m3, e4m3, whole, whole),
    scaled("e4m3 whole, e4m3 whole, fast", e4m3, e4m3, whole, whole, true),
    scaled("e5m2 whole, e4m3 whole", e5m2, e4m3, whole, whole),
    scaled("e4m3 line, e4m3 line", e4m3, e4m3, line, line),
    scaled("e4m3 line, e4m3 line, fast", e4m3, e4m3, line, line, true),
    // products of scales and results among the subnormals
    scaled("e4m3 1x128, e4m3 128x128, tiny", e4m3, e4m3, line_by_128, square_of_128, false, -70),
    scaled("e4m3 1x128, e4m3 1x128, tiny", e4m3, e4m3, line_by_128, line_by_128, false, -70),
    scaled("e4m3 whole, e4m3 whole, tiny", e4m3, e4m3, whole, whole, false, -70),
    scaled("e4m3 line, e4m3 line, tiny", e4m3, e4m3, line, line, false, -70),
};

void write_lines(std::FILE* file, char key, const bytes& all, std::size_t lines, std::size_t unit) {
  const std::size_t width = all.size() / lines;
  for (std::size_t l = 0; l < lines; ++l) {
    std::fprintf(file, "%c", key);
    for (std::size_t i = 0; i < width; i += unit) {
      std::uint32_t word = 0;
      std::memcpy(&word, all.data() + l * width + i, unit);
      std::fprintf(file, unit == 1 ? (i == 0 ? " %02X" : "%02X") : " %08X", word);
    }
    std::fprintf(file, "\n");
  }
}

/// Eight rows and columns of a result; tests/golden/README.md describes the lines.
void record(const char* path, const product& of, const std::string& by, std::size_t version,
            const bytes& d) {
  std::FILE* file = std::fopen(path, "a");
  if (file == nullptr) throw std::runtime_error("cannot write the recording");
  const part p(of, 8, 8);
  const std::string text = "# cuBLASLt " + std::to_string(version) + ": " + of.how.name + ", " +
                           of.size.text() + ", " + by + "\nproduct " + std::string(name(of.how.a)) +
                           " " + std::string(name(of.how.b)) + " " + std::to_string(p.rows.size()) +
                           " " + std::to_string(p.cols.size()) + " " + std::to_string(of.size.k) +
                           " " + std::to_string(of.how.sum().promotion) + " " +
                           name_of(*of.how.a_tiles) + " " + name_of(*of.how.b_tiles) + "\n";
  std::fputs(text.c_str(), file);
  write_lines(file, 'a', p.a.codes, p.rows.size(), 1);
  write_lines(file, 'w', p.b.codes, p.cols.size(), 1);
  write_lines(file, 's', p.a.scales, p.rows.size(), 4);
  write_lines(file, 't', p.b.scales, p.cols.size(), 4);
  write_lines(file, 'd', p.gathered(d), p.rows.size(), 4);
  std::fclose(file);
}

constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

/// Calls see(algorithm, result) for the algorithms of a product, of plain ones for the best alone.
/// Returns what the library refused last.
template <class See>
std::string each_result(const cuda::cublaslt& lt, product& of, const See& see) {
  const device_bytes workspace(workspace_bytes);
  const backends::matmul_call call = of.call();
  std::string why;
  try {
    const cuda::lt_product planned(lt, call);
    for (const cuda::lt_algorithm& by : planned.algorithms(workspace_bytes)) {
      of.spoil();
      try {
        planned.run(by.algo, call, workspace.data(), workspace_bytes, nullptr);
        see(by, of.result());
      } catch (const cuda_error& e) {
        why = e.what();
      }
      if (!of.how.a_tiles) break;
    }
  } catch (const unsupported& e) {
    why = e.what();
  }
  return why;
}

/// By order of scales, results that differ; of plain products in the first alone.
using counts = std::vector<std::uint64_t>;

/// What all algorithms of cuBLASLt returned for the shapes compared so far.
struct verdict {
  std::string refused;
  std::size_t algorithms = 0, distinct = 0;  ///< results
  std::uint64_t compared = 0;
  counts differing = counts(enum_count<scale_order>), signs = differing;  ///< of zeros alone

  void add(const verdict& one) {
    algorithms += one.algorithms;
    compared += one.compared;
    for (std::size_t o = 0; o < differing.size(); ++o) {
      differing[o] += one.differing[o];
      signs[o] += one.signs[o];
    }
  }
};

verdict verdict_of(const cuda::cublaslt& lt, const kind& how, const shape& s) {
  product of(how, s);
  const std::int64_t lines = lines_of(s, 30);
  const part p(of, lines, how.b_rows ? s.n : lines);
  const int orders = how.a_tiles ? enum_count<scale_order> : 1;
  std::vector<bytes> wanted, distinct;
  for (int o = 0; o < orders; ++o) {
    wanted.push_back(p.expected(how.sum(), static_cast<scale_order>(o)));
  }
  const char* path = std::getenv("SAMEBITS_RECORD");
  const bool recorded =
      path != nullptr && how.a_tiles &&
      (s.k == 272 || (s.k == 640 && how.a == how.b && how.scaled_along_k() && how.exponent == 0));
  verdict all;
  all.refused = each_result(lt, of, [&](const cuda::lt_algorithm& by, const bytes& d) {
    bytes got = p.gathered(d);
    const bool is_new = std::find(distinct.begin(), distinct.end(), got) == distinct.end();
    if (recorded && is_new) record(path, of, by.text, lt.version(), d);
    verdict own;
    own.algorithms = 1;
    own.compared = p.count();
    for (std::size_t o = 0; o < wanted.size(); ++o) {
      const differences found = p.compared(got, wanted[o]);
      own.differing[o] = found.all;
      own.signs[o] = found.signs;
    }
    if (std::getenv("SAMEBITS_VERBOSE") != nullptr) {
      std::printf("  %s%s:", is_new ? "new: " : "", by.text.c_str());
      for (const std::uint64_t n : own.differing) {
        std::printf(" %llu", static_cast<unsigned long long>(n));
      }
      std::printf("\n");
    }
    all.add(own);
    if (is_new) distinct.push_back(std::move(got));
  });
  all.distinct = distinct.size();
  return all;
}

std::string text_of(const counts& all, bool of_orders) {
  if (!of_orders) return std::to_string(all[0]);
  std::string text;
  for (int o = 0; o < enum_count<scale_order>; ++o) {
    text += std::string(o == 0 ? "" : ", ") + std::string(name(static_cast<scale_order>(o))) + " " +
            std::to_string(all[static_cast<std::size_t>(o)]);
  }
  return text;
}

class CublasLt : public ::testing::TestWithParam<kind> {};

/// Scales are applied in one order of six.
TEST_P(CublasLt, WithoutSplitKIsTheModel) {
  if (!is_hopper()) GTEST_SKIP() << "no Hopper";
  static const cuda::cublaslt lt;
  const kind& how = GetParam();
  const bool is_scaled = how.a_tiles.has_value();
  const std::span<const shape> shapes =
      is_scaled ? std::span<const shape>(scaled_shapes) : std::span<const shape>(plain_shapes);
  const auto settled = static_cast<std::size_t>(is_scaled ? how.order() : scale_order{});
  int refused = 0;
  verdict all;
  for (const shape& s : shapes) {
    if (support::smallest_effort() && s.multiplications() > 1 << 24) continue;
    const verdict v = verdict_of(lt, how, s);
    std::printf("%s, %s: ", how.name, s.text().c_str());
    if (v.algorithms == 0) {
      ++refused;
      std::printf("refused, %s\n", v.refused.c_str());
      continue;
    }
    std::printf("%zu algorithms, %zu results; %llu compared, differ: %s%s%s\n", v.algorithms,
                v.distinct, static_cast<unsigned long long>(v.compared),
                text_of(v.differing, is_scaled).c_str(), v.refused.empty() ? "" : "; one said ",
                v.refused.c_str());
    EXPECT_EQ(v.differing[settled], 0u) << s.text();
    all.add(v);
  }
  std::printf("%s: cuBLASLt %zu, %d of %zu shapes refused, %zu runs, %llu compared\n  differ: %s\n",
              how.name, lt.version(), refused, shapes.size(), all.algorithms,
              static_cast<unsigned long long>(all.compared),
              text_of(all.differing, is_scaled).c_str());
  std::printf("  in the sign of zero alone: %s\n", text_of(all.signs, is_scaled).c_str());
  EXPECT_LE(refused, 2);
  if (support::smallest_effort() || !is_scaled) return;  // few results may fit several orders
  EXPECT_EQ(std::count(all.differing.begin(), all.differing.end(), 0u), 1) << "of six orders";
}

INSTANTIATE_TEST_SUITE_P(Plain, CublasLt, ::testing::ValuesIn(plain_kinds), name_of_kind);
INSTANTIATE_TEST_SUITE_P(Scaled, CublasLt, ::testing::ValuesIn(scaled_kinds), name_of_kind);

/// Prints, a line each, for which other kinds of scaled products cuBLASLt has algorithms.
TEST(CublasLtOffers, AreSaid) {
  if (!is_hopper()) GTEST_SKIP() << "no Hopper";
  const cuda::cublaslt lt;
  const auto say = [&](const kind& how) {
    const product of(how, {256, 256, 256});
    std::size_t count = 0;
    std::string refusal;
    try {
      count = cuda::lt_product(lt, of.call()).algorithms(workspace_bytes).size();
    } catch (const unsupported& e) {
      refusal = e.what();
    }
    std::printf("%s, A %s%s, B %s%s%s: %zu algorithms %s\n", std::string(name(how.a)).c_str(),
                name_of(*how.a_tiles), how.a_columns ? " by columns" : "", name_of(*how.b_tiles),
                how.b_rows ? " by rows" : "", how.fast ? ", fast" : "", count, refusal.c_str());
    return count;
  };
  constexpr tiling kinds[] = {whole, line, line_by_128, square_of_128};
  for (const tiling a : kinds) {
    for (const tiling b : kinds) {
      for (const format_id f : {e4m3, e5m2}) {
        for (const bool fast : {false, true}) say(scaled("offered", f, e4m3, a, b, fast));
      }
    }
  }
  for (const tiling b : {line_by_128, square_of_128}) {
    for (const auto& [b_rows, a_columns] :
         {std::pair{true, false}, std::pair{false, true}, std::pair{true, true}}) {
      kind turned_in_memory = scaled("offered", e4m3, e4m3, line_by_128, b);
      turned_in_memory.b_rows = b_rows;
      turned_in_memory.a_columns = a_columns;
      EXPECT_EQ(say(turned_in_memory), 0u);
    }
  }
}

}  // namespace
}  // namespace samebits::device_tests
