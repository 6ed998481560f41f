// Statistics of quantizations by the native kernels against those by definition, on the device:
// codes, scales and every statistic, for matrices of one block tile to several of each block.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "device/device_copy.hpp"
#include "samebits/samebits.hpp"
#include "support/effort.hpp"

namespace samebits::support {
namespace {

enum class content : std::uint8_t { normal, half_zeros, small, finite, any_bits, rare_others };
constexpr int content_count = 6;

struct generator {
  std::uint64_t state;
  std::uint64_t operator()() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x9E3779B97F4A7C15u;
  }
};

/// A code of `from`.
std::uint32_t random_code(generator& random, format_id from, content kind) {
  const format_spec& f = spec_of(from);
  const std::uint64_t r = random();
  const auto any = static_cast<std::uint32_t>(r >> 32) >> (32 - f.storage_bits);
  const std::uint32_t sign = std::uint32_t{1} << (f.storage_bits - 1);
  const std::uint32_t one = std::uint32_t{1} << f.mantissa_bits;
  const std::uint32_t fields = sign / one;  // of the exponent
  const std::uint32_t kept = any & (sign | (one - 1));
  const auto chance = static_cast<std::uint32_t>(r);
  switch (kind) {
    case content::half_zeros:
      if (chance % 2 == 0) return any & sign;
      [[fallthrough]];
    case content::normal: return kept | (fields / 2 - 8 + chance / 2 % 10) * one;
    case content::small: return kept | chance % (fields / 2) * one;
    case content::finite: return kept | chance % (fields - 1) * one;
    case content::any_bits: return any;
    case content::rare_others:
      return chance % 65536 == 0 ? any : kept | (fields / 2 - 8 + chance / 65536 % 10) * one;
  }
  return 0;
}

std::vector<std::byte> matrix_of(format_id from, content kind, std::int64_t elements) {
  generator random{0x1234567u + static_cast<std::uint64_t>(kind)};
  const auto width = static_cast<std::size_t>(storage_bytes(from));
  std::vector<std::byte> matrix(static_cast<std::size_t>(elements) * width);
  for (std::size_t at = 0; at < matrix.size(); at += width) {
    const std::uint32_t code = random_code(random, from, kind);
    std::memcpy(matrix.data() + at, &code, width);
  }
  return matrix;
}

struct outcome {
  std::vector<std::byte> codes, scales;
  quantize_statistics statistics;
};

outcome quantized(const std::string& backend, const const_matrix_view& in, format_id to,
                  const quantize_options& options) {
  const matrix_shape grid = scales_shape(in.rows, in.cols, options.tile);
  outcome result;
  result.codes.assign(static_cast<std::size_t>(in.rows * in.cols), std::byte{0x55});
  result.scales.assign(static_cast<std::size_t>(grid.rows * grid.cols * 4), std::byte{0x55});
  std::memset(static_cast<void*>(&result.statistics), 0x55, sizeof result.statistics);
  const guarded_copy codes(result.codes.data(), result.codes.size()),
      scales(result.scales.data(), result.scales.size()),
      statistics(&result.statistics, sizeof result.statistics);
  const auto placed = [](void* data, format_id f, std::int64_t rows, std::int64_t cols) {
    return matrix_view{data, f, rows, cols, cols, 1, memory_space::device};
  };
  quantize(in,
           {.codes = placed(codes.data(), to, in.rows, in.cols),
            .scales = placed(scales.data(), format_id::fp32, grid.rows, grid.cols),
            .statistics = static_cast<quantize_statistics*>(statistics.data())},
           options, on_stream(nullptr, backend));
  check_cuda(cudaDeviceSynchronize(), "the quantization");
  for (const guarded_copy* copy : {&codes, &scales, &statistics}) copy->copy_back();
  return result;
}

void expect_same(const const_matrix_view& in, format_id to, const quantize_options& options,
                 const std::string& what) {
  const outcome native = quantized("cuda-native", in, to, options);
  const outcome defined = quantized("cuda-emulated", in, to, options);
  EXPECT_TRUE(native.codes == defined.codes) << "codes, " << what;
  EXPECT_TRUE(native.scales == defined.scales) << "scales, " << what;
  const quantize_statistics &n = native.statistics, &d = defined.statistics;
  EXPECT_TRUE(n == d) << what << ": zeros " << n.zeros << " for " << d.zeros << ", underflowed "
                      << n.underflowed << " for " << d.underflowed << ", saturated " << n.saturated
                      << " for " << d.saturated << ", NaN " << n.nan << " for " << d.nan << ", Inf "
                      << n.inf << " for " << d.inf << ", amax " << n.amax << " for " << d.amax
                      << ", min_nonzero " << n.min_nonzero << " for " << d.min_nonzero
                      << ", signal " << n.signal << " for " << d.signal << ", noise " << n.noise
                      << " for " << d.noise;
}

class QuantizeCounted : public testing::TestWithParam<format_id> {
 protected:
  void compare(std::int64_t rows, std::int64_t cols, const std::vector<tile_shape>& tiles,
               int contents = content_count) {
    for (int kind = 0; kind < contents; ++kind) {
      const std::vector<std::byte> data =
          matrix_of(GetParam(), static_cast<content>(kind), rows * cols);
      const guarded_copy copy(data.data(), data.size());
      const const_matrix_view in{copy.data(), GetParam(),          rows, cols, cols,
                                 1,           memory_space::device};
      for (const tile_shape tile : tiles) {
        const scale_rule rule = scale_rules_[cases_++ % std::size(scale_rules_)];
        if (thinned.leaves_out()) continue;
        const format_id to = cases_ % 4 == 0 ? format_id::e5m2 : format_id::e4m3;
        expect_same(in, to, {.tile = tile, .scale = rule},
                    std::to_string(rows) + " x " + std::to_string(cols) + ", tile " +
                        std::to_string(tile.rows) + " x " + std::to_string(tile.cols) +
                        ", content " + std::to_string(kind) + ", scale rule " +
                        std::to_string(static_cast<int>(rule)));
      }
    }
  }

  thinned_cases thinned{1};

 private:
  static constexpr scale_rule scale_rules_[] = {scale_rule::te, scale_rule::te, scale_rule::pow2,
                                                scale_rule::rcp, scale_rule::te};
  std::size_t cases_ = 0;
};

TEST_P(QuantizeCounted, OfOnePatchOfABlock) {
  thinned = thinned_cases(7);
  const std::vector<tile_shape> tiles = {{1, 16},  {1, 32},  {1, 64},  {1, 128},  {1, 256},
                                         {16, 16}, {32, 32}, {64, 64}, {128, 128}};
  constexpr std::int64_t shapes[][2] = {{7, 128},   {3, 2048},   {200, 384},
                                        {136, 768}, {1040, 512}, {300, 4096}};
  for (const auto& [rows, cols] : shapes) compare(rows, cols, tiles);
}

TEST_P(QuantizeCounted, OfManyPatchesOfABlock) {
  if (smallest_effort()) GTEST_SKIP() << "two block tiles of a block take the same path";
  compare(2501, 16384, {{1, 128}, {128, 128}});
  compare(40003, 768, {{1, 32}, {32, 32}});
}

/// Small enough for the sanitizer; a GPU has fewer blocks than the first matrix has block tiles.
TEST_P(QuantizeCounted, OfTwoPatchesOfABlock) {
  compare(525, 16384, {{1, 128}, {128, 128}}, 1);
  compare(37, 384, {{1, 128}, {16, 16}});
  compare(260, 2048, {{1, 16}, {32, 32}}, 1);
}

INSTANTIATE_TEST_SUITE_P(Sources, QuantizeCounted,
                         testing::Values(format_id::bf16, format_id::fp16, format_id::fp32),
                         [](const auto& of) { return std::string(name(of.param)); });

}  // namespace
}  // namespace samebits::support
