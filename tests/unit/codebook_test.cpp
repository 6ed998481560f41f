// Codebooks and int8 rows against the libraries' own search trees and loops in double and float, with
// tables typed from bitsandbytes' functional.py; every border from both sides; special blocks.
#include "samebits/codebook.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "numerics/quantize/codebook.hpp"
#include "samebits/types.hpp"
#include "support/refusal.hpp"

namespace samebits {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

constexpr float nf4_numbers[16] = {-1.0f,
                                   -0.6961928009986877f,
                                   -0.5250730514526367f,
                                   -0.39491748809814453f,
                                   -0.28444138169288635f,
                                   -0.18477343022823334f,
                                   -0.09105003625154495f,
                                   0.0f,
                                   0.07958029955625534f,
                                   0.16093020141124725f,
                                   0.24611230194568634f,
                                   0.33791524171829224f,
                                   0.44070982933044434f,
                                   0.5626170039176941f,
                                   0.7229568362236023f,
                                   1.0f};

/// The numbers of fp4: the first eight divided by 12, the others negative.
float fp4_number(int code) {
  constexpr float numerators[8] = {0.0f, 0.0625f, 8.0f, 12.0f, 4.0f, 6.0f, 2.0f, 3.0f};
  const float magnitude = numerators[code & 7] / 12.0f;
  return code < 8 ? magnitude : -magnitude;
}

/// The nearest number, ties down; a NaN lies above all.
int nearest_nf4(float y) {
  int code = 0;
  while (code < 15 && !(y <= (nf4_numbers[code] + nf4_numbers[code + 1]) / 2)) ++code;
  return code;
}

int fp4_of_cuda(float y) {
  constexpr float thresholds[7] = {0.00260417f, 0.0859375f, 0.20833333f, 0.29166667f,
                                   0.4166667f,  0.583333f,  0.8333333f};
  constexpr int codes[8] = {0, 1, 6, 7, 4, 5, 2, 3};
  int i = 0;
  while (i < 7 && std::fabs(y) > thresholds[i]) ++i;
  return codes[i] + (y < 0 ? 8 : 0);
}

int fp4_of_cpu(float y) {
  constexpr int order[16] = {11, 10, 13, 12, 15, 14, 9, 0, 8, 1, 6, 7, 4, 5, 2, 3};
  int i = 0;
  while (i < 15 && !(y <= (fp4_number(order[i]) + fp4_number(order[i + 1])) / 2)) ++i;
  return order[i];
}

float number_of(int code) { return std::bit_cast<float>(numerics::dynamic_signed_values[code]); }

/// dQuantize: a search from code 127, then the nearer of two.
int dynamic8_of_cuda(float x) {
  int pivot = 127, upper = 255, lower = 0;
  for (int step = 64; step > 0; step /= 2) {
    if (x > number_of(pivot)) {
      lower = pivot;
      pivot += step;
    } else {
      upper = pivot;
      pivot -= step;
    }
  }
  if (x > number_of(pivot)) {
    return x > (number_of(upper) + number_of(pivot)) * 0.5f ? upper : pivot;
  }
  return x < (number_of(lower) + number_of(pivot)) * 0.5f ? lower : pivot;
}

int dynamic8_of_cpu(float y) {
  const auto bin = static_cast<int>((std::clamp(y, -1.0f, 1.0f) + 1.0f) * 0.5f * 65535.0f + 0.5f);
  const float middle = -1.0f + 2.0f * static_cast<float>(bin) / 65535.0f;
  int code = 0;
  while (code < 255 && (number_of(code) + number_of(code + 1)) * 0.5f < middle) ++code;
  return code;
}

int code_by_model(codebook book, codebook_steps steps, float y) {
  const bool cuda = steps == codebook_steps::cuda;
  if (std::isnan(y)) return cuda ? 0 : book == codebook::fp4 ? 3 : 15;
  if (book == codebook::nf4) return nearest_nf4(y);
  if (book == codebook::fp4) return cuda ? fp4_of_cuda(y) : fp4_of_cpu(y);
  return cuda ? dynamic8_of_cuda(y) : dynamic8_of_cpu(y);
}

/// Quantizes by loops.
struct model {
  std::vector<int> codes;
  std::vector<float> absmax;

  model(const std::vector<float>& x, const codebook_options& o) {
    const bool torch = o.steps == codebook_steps::cpu && o.book != codebook::dynamic8;
    for (std::size_t first = 0; first < x.size(); first += static_cast<std::size_t>(o.block)) {
      const std::size_t end = std::min(x.size(), first + static_cast<std::size_t>(o.block));
      float a = 0;
      for (std::size_t i = first; i < end; ++i) {
        if (torch && std::isnan(x[i])) a = nan;
        if (!std::isnan(a) && std::fabs(x[i]) > a) a = std::fabs(x[i]);
      }
      const bool whole = end - first == static_cast<std::size_t>(o.block);
      const float raised = torch && a < 1e-38f ? 1e-38f : a;
      absmax.push_back(torch && !whole ? raised : a);
      for (std::size_t i = first; i < end; ++i) {
        const bool divides = torch && !whole;
        const bool zeros = o.book == codebook::dynamic8 && o.steps == codebook_steps::cpu && a == 0;
        const float y = divides ? x[i] / raised : x[i] * (1.0f / raised);
        codes.push_back(zeros ? 0 : code_by_model(o.book, o.steps, y));
      }
    }
  }
};

std::vector<int> unpacked(codebook book, const std::vector<std::uint8_t>& codes,
                          std::size_t count) {
  std::vector<int> all;
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back(book == codebook::dynamic8 ? codes[i]
                  : i % 2 == 0               ? codes[i / 2] >> 4
                                             : codes[i / 2] & 15);
  }
  return all;
}

std::vector<std::uint32_t> bits_of(const std::vector<float>& x) {
  std::vector<std::uint32_t> all;
  for (const float v : x)
    all.push_back(std::isnan(v) ? 0x7FFFFFFF : std::bit_cast<std::uint32_t>(v));
  return all;
}

void expect_as_model(const std::vector<float>& x, const codebook_options& o) {
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(codebook_bytes(o.book, n)), 0xA5);
  std::vector<float> absmax(static_cast<std::size_t>(block_count(o, n)));
  quantize_blocks(view_of(x.data(), 1, n), o, codes, absmax);
  const model expected(x, o);
  const std::string what = std::string(name(o.book)) + " " + std::string(name(o.steps)) +
                           " block " + std::to_string(o.block);
  EXPECT_EQ(bits_of(absmax), bits_of(expected.absmax)) << what;
  const std::vector<int> got = unpacked(o.book, codes, x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(got[i], expected.codes[i]) << what << ", element " << i << ": " << x[i];
  }
  std::vector<float> out(x.size());
  dequantize_blocks(codes, absmax, o, view_of(out.data(), 1, n));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float number = o.book == codebook::nf4   ? nf4_numbers[got[i]]
                         : o.book == codebook::fp4 ? fp4_number(got[i])
                                                   : number_of(got[i]);
    const float wanted = number * absmax[i / static_cast<std::size_t>(o.block)];
    if (std::isnan(wanted) && std::isnan(out[i])) continue;
    ASSERT_EQ(std::fabs(out[i]), std::fabs(wanted)) << what << ", element " << i;
    if (o.book != codebook::fp4 || o.steps == codebook_steps::cuda) {
      ASSERT_EQ(std::signbit(out[i]), std::signbit(wanted)) << what << ", element " << i;
    }
  }
}

template <class Function>
void for_each_book(const Function& f) {
  for (const codebook book : {codebook::nf4, codebook::fp4, codebook::dynamic8}) {
    for (const codebook_steps steps : {codebook_steps::cuda, codebook_steps::cpu}) f(book, steps);
  }
}

TEST(Codebook, RandomBlocks) {
  std::mt19937 engine(3);
  std::normal_distribution<float> normal;
  for_each_book([&](codebook book, codebook_steps steps) {
    for (const std::int64_t block : {1, 3, 32, 64, 4096}) {
      for (const std::size_t size : {std::size_t{1}, std::size_t{63}, std::size_t{8192 + 17}}) {
        std::vector<float> x(size);
        for (float& v : x) v = normal(engine);
        expect_as_model(x, {book, block, steps});
        for (float& v : x) v = std::ldexp(v, static_cast<int>(engine() % 60) - 30);
        expect_as_model(x, {book, block, steps});
      }
    }
  });
}

/// A block whose absmax is 1, so that y is the element.
TEST(Codebook, BordersFromBothSides) {
  for_each_book([&](codebook book, codebook_steps steps) {
    std::vector<float> x = {1.0f};
    const auto around = [&](float v) {
      for (const float sign : {1.0f, -1.0f}) {
        float at = sign * v;
        for (int i = 0; i < 4; ++i) at = std::nextafter(at, -2.0f);
        for (int i = 0; i < 9; ++i) x.push_back(at), at = std::nextafter(at, 2.0f);
      }
    };
    for (const float t : {0.00260417f, 0.0859375f, 0.20833333f, 0.29166667f, 0.4166667f, 0.583333f,
                          0.8333333f, 0.0f, 0.0026041667f}) {
      around(t);
    }
    for (int i = 0; i < 15; ++i) around((nf4_numbers[i] + nf4_numbers[i + 1]) / 2);
    for (int i = 0; i < 255; ++i) around((number_of(i) + number_of(i + 1)) / 2);
    std::erase_if(x, [](float v) { return std::fabs(v) > 1; });
    expect_as_model(x, {book, static_cast<std::int64_t>(x.size()), steps});
  });
}

TEST(Codebook, SpecialBlocks) {
  std::vector<float> x(6 * 64, 0.0f);
  x[64] = -0.0f;
  x[128 + 5] = 1e-30f;                                                      // one outlier
  for (int i = 192; i < 256; ++i) x[static_cast<std::size_t>(i)] = 1e-40f;  // subnormal numbers
  x[256 + 1] = inf, x[256 + 2] = 1;
  x[320 + 1] = 1, x[320 + 2] = nan;
  for_each_book([&](codebook book, codebook_steps steps) {
    // bins of a NaN are not defined on a CPU
    const bool bins = book == codebook::dynamic8 && steps == codebook_steps::cpu;
    expect_as_model(bins ? std::vector(x.begin(), x.begin() + 192) : x, {book, 64, steps});
  });
}

TEST(Codebook, TheLastHalfByteOfAnOddNumberIsTheCodeOfZero) {
  const std::vector<float> x = {1.0f, -1.0f, 0.5f};
  for_each_book([&](codebook book, codebook_steps steps) {
    std::vector<std::uint8_t> codes(4, 0xA5);
    std::vector<float> absmax(1);
    const auto bytes = static_cast<std::size_t>(codebook_bytes(book, 3));
    quantize_blocks(view_of(x.data(), 1, 3), {book, 64, steps}, std::span(codes).first(bytes),
                    absmax);
    if (book != codebook::dynamic8) {
      EXPECT_EQ(codes[1] & 15, code_by_model(book, steps, 0.0f));
    }
    EXPECT_EQ(codes[bytes], 0xA5);  // nothing behind the codes
  });
}

TEST(Codebook, DoubleQuantizationIsTwoCalls) {
  std::mt19937 engine(7);
  std::normal_distribution<float> normal;
  std::vector<float> x(40'003);
  for (float& v : x) v = normal(engine);
  const auto n = static_cast<std::int64_t>(x.size());
  const codebook_options o, dynamic8 = {codebook::dynamic8, 256};
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(codebook_bytes(o.book, n)));
  std::vector<float> absmax(static_cast<std::size_t>(block_count(o, n)));
  quantize_blocks(view_of(x.data(), 1, n), o, codes, absmax);
  const float offset = 2.5f;
  std::vector<float> centred(absmax);
  for (float& a : centred) a -= offset;
  const auto blocks = static_cast<std::int64_t>(absmax.size());
  std::vector<std::uint8_t> absmax_codes(absmax.size());
  std::vector<float> outer(static_cast<std::size_t>(block_count(dynamic8, blocks)));
  quantize_blocks(view_of(centred.data(), 1, blocks), dynamic8, absmax_codes, outer);
  std::vector<float> restored(absmax.size()), expected(x.size()), got(x.size());
  dequantize_blocks(absmax_codes, outer, dynamic8, view_of(restored.data(), 1, blocks));
  for (float& a : restored) a += offset;
  dequantize_blocks(codes, restored, o, view_of(expected.data(), 1, n));
  dequantize_blocks(codes, quantized_absmax{absmax_codes, outer, offset}, o,
                    view_of(got.data(), 1, n));
  EXPECT_EQ(bits_of(got), bits_of(expected));
}

/// A NaN has no bin in bitsandbytes; here it has that of 1, whatever its sign.
TEST(Codebook, BinOfNaN) {
  const std::vector<float> x = {nan, -nan, inf, 1.0f};
  std::vector<std::uint8_t> codes(4);
  std::vector<float> absmax(1);
  quantize_blocks(view_of(x.data(), 1, 4), {codebook::dynamic8, 4, codebook_steps::cpu}, codes,
                  absmax);
  EXPECT_EQ(codes, (std::vector<std::uint8_t>{255, 255, 255, 131}));
}

TEST(Codebook, SixteenBitOutputsAreRoundedOnce) {
  std::vector<float> x(256);
  std::mt19937 engine(9);
  std::normal_distribution<float> normal;
  for (float& v : x) v = normal(engine);
  const codebook_options o;
  std::vector<std::uint8_t> codes(128);
  std::vector<float> absmax(4), wide(256);
  quantize_blocks(view_of(x.data(), 4, 64), o, codes, absmax);
  dequantize_blocks(codes, absmax, o, view_of(wide.data(), 4, 64));
  std::vector<bf16> narrow(256);
  dequantize_blocks(codes, absmax, o, view_of(narrow.data(), 4, 64), {.threads = 2});
  for (std::size_t i = 0; i < 256; ++i) EXPECT_EQ(narrow[i].bits(), bf16(wide[i]).bits());
}

TEST(Int8Rows, AsLoops) {
  std::mt19937 engine(4);
  std::normal_distribution<float> normal;
  constexpr std::int64_t rows = 50, cols = 300;
  std::vector<float> x(rows * cols);
  for (float& v : x) v = normal(engine);
  for (std::size_t i = 0; i < cols; ++i) x[i] = i % 2 == 0 ? 0.0f : -0.0f;  // a row of zeros
  x[cols + 3] = nan;
  for (std::size_t i = 0; i < 255; ++i) {  // ties of a row whose absmax is 127
    x[2 * cols + i] = static_cast<float>(static_cast<int>(i) - 127) + (i == 254 ? 0.0f : 0.5f);
  }
  std::vector<std::int8_t> codes(x.size());
  std::vector<float> absmax(rows), out(x.size());
  quantize_int8_rows(view_of(x.data(), rows, cols), codebook_steps::cpu, codes, absmax);
  dequantize_int8_rows(codes, absmax, view_of(out.data(), rows, cols));
  for (std::size_t r = 0; r < rows; ++r) {
    float a = 0;
    for (std::size_t c = 0; c < cols; ++c) a = std::fmax(a, std::fabs(x[r * cols + c]));
    EXPECT_EQ(absmax[r], a);
    for (std::size_t c = 0; c < cols; ++c) {
      const float y = x[r * cols + c] * (1.0f / a * 127.0f);
      const auto code = std::isnan(y) ? 0 : static_cast<int>(std::nearbyint(y));
      ASSERT_EQ(codes[r * cols + c], code) << r << " " << c;
      ASSERT_EQ(out[r * cols + c], static_cast<float>(code) * a * (1.0f / 127.0f));
    }
  }
}

TEST(Int8Rows, CudaDividesByTheUnit) {
  // 127 * rcp.approx(1.75) is one unit in the last place away from 127 / 1.75 or equal: both are told
  // apart on enough rows.
  std::vector<float> x;
  for (int i = 1; i < 5000; ++i) x.push_back(static_cast<float>(i) / 512.0f);
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<std::int8_t> codes(x.size());
  std::vector<float> absmax(x.size());
  quantize_int8_rows(view_of(x.data(), n, 1), codebook_steps::cuda, codes, absmax);
  for (const std::int8_t code : codes) EXPECT_EQ(code, 127);
}

TEST(Codebook, Refusals) {
  std::vector<float> x(8);
  std::vector<std::uint8_t> codes(4);
  std::vector<float> absmax(1);
  const auto refused = [&](const auto& call, const std::string& expected) {
    support::expect_refusal(expected, call);
  };
  const matrix_view in = view_of(x.data(), 2, 4);
  refused([&] { quantize_blocks(in, {.block = 0}, codes, absmax); }, "options.block");
  refused([&] { quantize_blocks(in, {.block = 4}, codes, absmax); }, "absmax: must have 2");
  refused([&] { quantize_blocks(in, {}, std::span(codes).first(3), absmax); },
          "codes: must have 4");
  matrix_view gaps = in;
  gaps.cols = 3;
  refused([&] { quantize_blocks(gaps, {}, std::span(codes).first(3), absmax); },
          "in: the elements");
  refused([&] { dequantize_blocks(codes, std::span(x).first(1), {}, in); }, "overlaps absmax");
  const std::span one = std::span(absmax), none = one.first(0);
  const std::span byte = std::span(codes).first(1);
  const auto nested = [&](const quantized_absmax& a) {
    return [&, a] { dequantize_blocks(codes, a, {}, in); };
  };
  refused(nested({byte, none}), "absmax.absmax: must have 1");
  refused(nested({codes, one}), "absmax.codes: must have 1");
  refused(nested({byte, one, 0, 0}), "absmax.block");
  refused(nested({byte, one}), "codes: overlaps absmax.codes");
}

}  // namespace
}  // namespace samebits
