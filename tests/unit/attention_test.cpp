// Steps of attention. The sums are those of a program that has the kernels' expressions in the processor's
// floats and shares no code with the library. python.attention compares with what PyTorch returned.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>

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

/// The sum of all steps of blocks on random scores.
std::uint64_t sum_of_steps(const attention_rule& r) {
  scores draw;
  word_sum sum;
  for (int i = 0; i < 20000; ++i) {
    const float s = draw.next(), m = draw.next(), before = draw.next(), lse = draw.next() * 0.5f;
    const std::uint32_t p = torch::probability(r, bits(s), bits(m));
    const std::uint32_t b = bits(r.is_flash() ? std::exp2(std::round(before)) : number(p));
    sum.add({p, torch::rescaling(r, bits(before), bits(m))});
    for (const bool first : {false, true}) {
      sum.add({torch::first_of_block(r, first, b, bits(0.3f), p),
               torch::end_of_block(r, first, b, bits(0.3f), p)});
    }
    const bool has_backward = r.is_flash() || s != -inf || lse != -inf;
    if (has_backward) sum.add(torch::backward_probability(r, bits(s), bits(lse)));
    const float g = draw.next();
    if (std::isinf(g)) continue;
    sum.add({torch::score_gradient(r, p, bits(g), bits(1.5f)), torch::scaled_gradient(r, bits(g))});
  }
  return sum.value();
}

TEST(Attention, StepsOfBlocks) {
  EXPECT_TRUE(flash.is_flash() && !cudnn.is_flash());
  EXPECT_EQ(sum_of_steps(flash), 0x2CBBB2A2A32027B1u);
  EXPECT_EQ(sum_of_steps(cudnn), 0xC4DD4804A2EFE460u);
}

std::uint64_t sum_of_ends(const attention_rule& r) {
  std::mt19937 engine(3);
  word_sum sum;
  for (int i = 0; i < 5000; ++i) {
    const auto next = [&] { return static_cast<float>(engine() >> 8) * 0x1p-20f; };
    std::uint32_t sums[4];
    for (std::uint32_t& one : sums) one = bits(next());
    const torch::query_end end = torch::end_of_query(r, bits(next() - 8), sums, 5u);
    sum.add({end.factor, end.lse});
  }
  return sum.value();
}

TEST(Attention, EndsOfQueries) {
  EXPECT_EQ(sum_of_ends(flash), 0xD79D20B4A7A67043u);
  EXPECT_EQ(sum_of_ends(cudnn), 0xA4B3DC6A2A76EC4Fu);
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

TEST(Attention, CombinesParts) {
  std::mt19937 engine(5);
  word_sum sum;
  for (int splits = 1; splits <= 128; ++splits) {
    for (const int dimension : {64, 128}) {
      for (int i = 0; i < 6; ++i) {
        row lse;
        for (int s = 0; s < splits; ++s) {
          const bool hidden = i == 5 || engine() % 8 == 0;
          lse.push_back(bits(hidden ? -inf : static_cast<float>(engine() >> 8) * 0x1p-22f));
        }
        const std::uint32_t all = torch::combined_lse(lse.data(), splits, dimension);
        sum.add({all, torch::split_factor(lse[0], all)});
      }
    }
  }
  EXPECT_EQ(sum.value(), 0x2738B2818E0F8341u);
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

std::uint64_t sum_of_dots(const attention_rule& r) {
  std::mt19937 engine(9);
  word_sum sum;
  for (int i = 0; i < 400; ++i) {
    for (const int n : {64, 128}) {
      row x, y;
      for (int d = 0; d < n; ++d) {
        const auto next = [&] { return static_cast<std::int32_t>(engine()); };
        x.push_back(bits(static_cast<float>(next() >> 20) * 0x1p-9f));
        y.push_back(bits(static_cast<float>(next() >> 18) * 0x1.1p-9f));
      }
      sum.add(torch::output_dot(r, x.data(), y.data(), n));
    }
  }
  return sum.value();
}

TEST(Attention, DotsOfOutputs) {
  EXPECT_EQ(sum_of_dots(flash), 0xA6EE07E1BF26DC3Bu);
  EXPECT_EQ(sum_of_dots(cudnn), 0x12B9482D9D0F0F7Fu);
}

}  // namespace
}  // namespace samebits
