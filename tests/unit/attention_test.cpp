// Steps of attention against the kernels' expressions, written with the processor's floats.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "numerics/hardware/torch_operators/attention.hpp"
#include "unit/torch_rows.hpp"

namespace samebits {
namespace {

using namespace torch_rows;
using torch::attention_rule;

constexpr float inf = INFINITY;

constexpr float scale = 0.3f, scale_log2 = 0.43280854f;
attention_rule rule_of(attention_kernel kernel) { return {kernel, bits(scale), bits(scale_log2)}; }
const attention_rule flash = rule_of(attention_kernel::flash);
const attention_rule cudnn = rule_of(attention_kernel::cudnn);

float exp2_of(bool is_flash, float x) {
  return number(is_flash ? numerics::hopper::ex2_approx(bits(x))
                         : numerics::hopper::ex2_approx_ftz(bits(x)));
}

/// Scores, some of them far apart or infinite.
class scores {
 public:
  float next() {
    const auto word = static_cast<std::uint32_t>(engine_());
    if (word % 16 == 0) return -inf;
    if (word % 16 == 1) return number((word & 0x807FFFFF) | 0x43800000);
    return static_cast<float>(static_cast<std::int32_t>(word)) * 0x1p-28f;
  }

 private:
  std::mt19937 engine_{7};
};

TEST(Attention, Probabilities) {
  scores draw;
  int subnormal = 0;
  for (int i = 0; i < 20000; ++i) {
    const float s = draw.next(), m = draw.next(), before = draw.next();
    for (const attention_rule& r : {flash, cudnn}) {
      const bool is_flash = r.kernel == attention_kernel::flash;
      ASSERT_EQ(r.is_flash(), is_flash);
      const float now = m == -inf ? 0.0f : m;
      const float p = exp2_of(is_flash, s * scale_log2 - now * scale_log2);
      ASSERT_EQ(torch::probability(r, bits(s), bits(m)), bits(p)) << s << ' ' << m;
      const float change =
          is_flash ? (before - now) * scale_log2 : before * scale_log2 - now * scale_log2;
      ASSERT_EQ(torch::rescaling(r, bits(before), bits(m)), bits(exp2_of(is_flash, change)));
      subnormal += p > 0 && p < 0x1p-126f ? 1 : 0;
      const float b = is_flash ? std::exp2(std::round(before)) : p;
      ASSERT_EQ(torch::first_of_block(r, false, bits(b), bits(0.3f), bits(p)),
                bits(is_flash ? std::fma(b, 0.3f, p) : p));
      ASSERT_EQ(torch::first_of_block(r, true, bits(b), bits(0.3f), bits(p)), bits(p));
      ASSERT_EQ(torch::end_of_block(r, false, bits(b), bits(0.3f), bits(p)),
                bits(is_flash ? p : std::fma(b, 0.3f, p)));
      ASSERT_EQ(torch::end_of_block(r, true, bits(b), bits(0.3f), bits(p)), bits(p));
      const float lse = draw.next() * 0.5f;
      const float x = is_flash ? s * scale_log2 - (lse == -inf ? 0.0f : lse) * number(0x3FB8AA3B)
                               : std::fma(s, scale, -lse) * number(0x3FB8AA3B);
      if (!std::isnan(x)) {
        ASSERT_EQ(torch::backward_probability(r, bits(s), bits(lse)), bits(exp2_of(is_flash, x)));
      }
      const float g = draw.next(), d = 1.5f;
      if (std::isinf(g)) continue;
      const float gradient = p * (g - d);
      if (std::isnan(gradient)) continue;
      ASSERT_EQ(torch::score_gradient(r, bits(p), bits(g), bits(d)),
                bits(is_flash ? gradient : gradient * scale));
      ASSERT_EQ(torch::scaled_gradient(r, bits(g)), bits(is_flash ? g * scale : g));
    }
  }
  EXPECT_GT(subnormal, 10);
}

TEST(Attention, EndsOfQueries) {
  std::mt19937 engine(3);
  for (int i = 0; i < 5000; ++i) {
    float l[4];
    std::uint32_t sums[4];
    for (int t = 0; t < 4; ++t) {
      l[t] = static_cast<float>(engine() >> 8) * 0x1p-20f;
      sums[t] = bits(l[t]);
    }
    const float m = static_cast<float>(engine() >> 8) * 0x1p-20f - 8;
    const auto f = torch::end_of_query(flash, bits(m), sums, 5u);
    const float s = (l[0] + l[2]) + (l[1] + l[3]);
    ASSERT_EQ(f.factor, bits(1 / s));
    const float log = number(numerics::hopper::lg2_approx(bits(s))) * number(0x3F317218);
    ASSERT_EQ(f.lse, bits(std::fma(m, scale, log)));
    const auto c = torch::end_of_query(cudnn, bits(m), sums, 5u);
    const float t = (l[0] + l[1]) + (l[2] + l[3]);
    ASSERT_EQ(c.factor, numerics::hopper::rcp_approx_ftz(bits(t)));
    const float log_t = number(numerics::hopper::lg2_approx_ftz(bits(t))) * number(0x3F317218);
    ASSERT_EQ(c.lse, bits(std::fma(m * scale_log2, number(0x3F317218), log_t)));
  }
  const std::uint32_t none[4] = {}, nan[4] = {bits(1), bits(NAN), 0, 0},
                      one[4] = {bits(1), 0, 0, 0};
  for (const auto* sums : {none, nan}) {
    EXPECT_EQ(torch::end_of_query(flash, bits(-inf), sums, 5u).factor, bits(1));
    EXPECT_EQ(torch::end_of_query(flash, bits(-inf), sums, 5u).lse, 5u);
  }
  const attention_rule steep{attention_kernel::cudnn, bits(4), bits(4)};
  EXPECT_EQ(torch::end_of_query(steep, bits(-inf), one, 5u).lse, 0u);  // -Inf counts as 0
  EXPECT_EQ(torch::query_threads, 4);
}

/// CUDA's combine kernel: a thread holds terms i, i + threads, ...; exchanges over the threads.
float combined(const std::vector<float>& lse, int dimension) {
  std::size_t places = 2;
  while (places < lse.size()) places *= 2;
  const std::size_t threads = std::min<std::size_t>(places, dimension == 128 ? 32 : 16);
  float max = -inf;
  for (const float x : lse) max = std::fmax(max, x);
  if (max == -inf) max = 0;
  std::vector<float> sum(threads);
  for (std::size_t i = 0; i < places; ++i) {
    const float x = (i < lse.size() ? lse[i] : -inf) - max;
    const float e = number(numerics::cuda_13_0::exp(bits(x)));
    sum[i % threads] = i < threads ? e : sum[i % threads] + e;
  }
  for (std::size_t step = threads / 2; step > 0; step /= 2) {
    const std::vector<float> from = sum;
    for (std::size_t t = 0; t < threads; ++t) sum[t] = from[t] + from[t ^ step];
  }
  if (sum[0] == 0 || std::isnan(sum[0])) return inf;
  return number(numerics::cuda_13_0::log(bits(sum[0]))) + max;
}

TEST(Attention, CombinesParts) {
  std::mt19937 engine(5);
  for (int splits = 1; splits <= 128; ++splits) {
    for (const int dimension : {64, 128}) {
      for (int i = 0; i < 6; ++i) {
        std::vector<float> lse;
        std::vector<std::uint32_t> words;
        for (int s = 0; s < splits; ++s) {
          lse.push_back(i == 5 || engine() % 8 == 0 ? -inf
                                                    : static_cast<float>(engine() >> 8) * 0x1p-22f);
          words.push_back(bits(lse.back()));
        }
        const std::uint32_t all = torch::combined_lse(words.data(), splits, dimension);
        ASSERT_EQ(all, bits(combined(lse, dimension))) << splits << ' ' << dimension;
        ASSERT_EQ(torch::split_factor(words[0], all),
                  numerics::cuda_13_0::exp(bits(lse[0] - number(all))));
      }
    }
  }
  const std::uint32_t nan[] = {bits(1), bits(NAN)};
  EXPECT_EQ(torch::combined_lse(nan, 2, 64), bits(inf));
  EXPECT_EQ(torch::max_splits, 128);
}

TEST(Attention, DotsOfNegativeZeros) {
  const row x(128, bits(-0.0f)), y(128, bits(1.0f));
  for (const attention_rule& r : {flash, cudnn}) {
    EXPECT_EQ(torch::output_dot(r, x.data(), y.data(), 128), bits(-0.0f));
  }
}

TEST(Attention, DotsOfOutputs) {
  std::mt19937 engine(9);
  for (int i = 0; i < 400; ++i) {
    for (const int n : {64, 128}) {
      std::vector<float> x, y;
      std::vector<std::uint32_t> a, b;
      for (int d = 0; d < n; ++d) {
        x.push_back(static_cast<float>(static_cast<std::int32_t>(engine()) >> 20) * 0x1p-9f);
        y.push_back(static_cast<float>(static_cast<std::int32_t>(engine()) >> 18) * 0x1.1p-9f);
        a.push_back(bits(x.back()));
        b.push_back(bits(y.back()));
      }
      std::vector<float> of_flash(8), of_cudnn(static_cast<std::size_t>(n / 8));
      for (std::size_t t = 0; t < 8; ++t) {
        float& sum = of_flash[t];
        for (std::size_t base = 0; base < x.size(); base += 64) {
          for (std::size_t d = base + 8 * t; d < base + 8 * t + 8; ++d) {
            sum = d == 8 * t ? x[d] * y[d] : std::fma(x[d], y[d], sum);
          }
        }
      }
      for (std::size_t t = 0; t < of_cudnn.size(); ++t) {
        for (std::size_t d = 8 * t; d < 8 * t + 8; d += 2) {
          const float pair = std::fma(x[d + 1], y[d + 1], x[d] * y[d]);
          of_cudnn[t] = d == 8 * t ? pair : of_cudnn[t] + pair;
        }
      }
      const auto halves = [](std::vector<float> sums) {
        while (sums.size() > 1) {
          const std::size_t h = sums.size() / 2;
          for (std::size_t t = 0; t < h; ++t) sums[t] += sums[t + h];
          sums.resize(h);
        }
        return bits(sums[0]);
      };
      ASSERT_EQ(torch::output_dot(flash, a.data(), b.data(), n), halves(of_flash));
      ASSERT_EQ(torch::output_dot(cudnn, a.data(), b.data(), n), halves(of_cudnn));
    }
  }
}

}  // namespace
}  // namespace samebits
