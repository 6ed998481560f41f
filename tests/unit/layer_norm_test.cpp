// LayerNorm and RMSNorm by torch_2_11 at widths around the borders between kernels. The sums are those
// of a program that has PyTorch's kernels thread by thread in the processor's floats and shares no code
// with the library. python.training_functions compares with what PyTorch returned.
#include <gtest/gtest.h>

#include <cstdint>

#include "numerics/hardware/torch_operators/row_layer_norm.hpp"
#include "unit/torch_rows.hpp"

namespace samebits {
namespace {

using namespace torch_rows;

/// Sums of statistics and results at one width.
struct sums_of_width {
  std::int64_t n;
  std::uint64_t layer_norm, rms_norm, gradients;
};
constexpr sums_of_width expected[] = {
    {1, 0x7A6EC2F913927166, 0x9AC13AE83A5EDC00, 0x464A7EA0D5B2D446},
    {2, 0x64DC6E62A37001E5, 0x0D070A39806CF7F6, 0x097E5D8AFAAEBA0D},
    {3, 0xDCF80494734BE306, 0x8D3AE201C312C10C, 0xFEB8A62E96C3ABB2},
    {4, 0x0E338EA6DD778357, 0xD18DC5D3D1F4364C, 0x6338A0CFFBC3C298},
    {5, 0x09CB392969E7A251, 0x76710CADA43CADA2, 0xCDA3881B974C10D7},
    {8, 0x1C5D1FCF356B6735, 0x541C0EE33A3DEBDA, 0xCE9806302B997246},
    {100, 0xD5C881A9807121A0, 0x006A663BB8D39FB6, 0xDC8FCDAAC58B37DC},
    {127, 0xE68B3BF7D1B9C378, 0x1C9860E37D8B7586, 0x12D7B9777C77FE57},
    {128, 0xC09AA87AE22BF5E3, 0x6DC6D9650A36BDE8, 0x4C40122FB6090A9E},
    {508, 0xDC6F223E0F542721, 0xBFC4B35315516915, 0x9AB1124B18B9B2D9},
    {509, 0x43509E40E26861F8, 0x280640314CF6C2BE, 0xE91F5B6EE03FCB42},
    {511, 0xFF18FB635E9CE1B0, 0xE2EC8568A4CE805E, 0x44B6D588002E19CE},
    {512, 0xCE21C2068D9EFCB6, 0x375708D2626619C8, 0x2202E799A58C570C},
    {513, 0x7FA865B7741392F6, 0x7033A17A6B960D8A, 0xCEF3F46AD0FF4087},
    {516, 0xD89E0C44325ED48E, 0x6EF5124FE8ED11E4, 0x57F9D2CBD0B37D16},
    {520, 0x580CC0907AB27A76, 0x383AF50BFD1D1206, 0xF1061B856B61824A},
    {1000, 0xEB99E60D844B7496, 0xD24460A50E41F03C, 0xD5E29125713B65CF},
    {1021, 0xDA7D42D566C25D8B, 0x10CA0CB536E19542, 0x7DDF6676A44ECC6F},
    {1028, 0x1D1E8CEBF5A7FE72, 0x93D157E535D6BA7D, 0x4CDEA329968E20A9},
    {4096, 0xB59C2384749155C9, 0x280CD42B08732486, 0xBEA93F6136E4CBC6},
    {4099, 0x8A05E0B630061504, 0x18813A02C18FC6AE, 0x33C6E32B01427597},
    {12288, 0xE8399F4FDB094BE4, 0x70783EB16A0141E5, 0xAC2D634C3100451D},
};
constexpr std::uint32_t epsilon = 0x3A83126F;  // 0.001

void add_layer_norm(word_sum& sum, format_id format, std::int64_t n, std::int64_t shift,
                    bool has_weight, bool has_bias) {
  row x = guarded(random_row(format, n, 29 + static_cast<std::uint64_t>(n), 2));
  const row weight = random_row(format, n, 31), bias = random_row(format, n, 37);
  const torch::row_statistics s = torch::layer_norm_row(
      x.data(), n, {has_weight ? weight.data() : nullptr, has_bias ? bias.data() : nullptr},
      epsilon, torch::has_vectors_of_4(n, shift));
  sum.add({s.mean, s.rstd});
  sum.add(x);
}

void add_rms_norm(word_sum& sum, format_id format, std::int64_t n, std::int64_t shift,
                  bool has_weight) {
  row x = guarded(random_row(format, n, 53 + static_cast<std::uint64_t>(n), 2));
  const row weight = random_row(format, n, 59);
  sum.add(torch::rms_norm_row(x.data(), n, has_weight ? weight.data() : nullptr, epsilon,
                              torch::has_vectors_of_4(n, shift)));
  sum.add(x);
}

void add_gradient(word_sum& sum, format_id format, std::int64_t n, bool has_weight, bool rms) {
  const row x = guarded(random_row(format, n, 41 + static_cast<std::uint64_t>(n), 2));
  const row weight = random_row(format, n, 47, 1);
  row grad = guarded(random_row(format, n, 43));
  const std::uint32_t* const weights = has_weight ? weight.data() : nullptr;
  const std::uint32_t rstd = bits(0.3f);
  if (rms) {
    torch::layer_norm_gradient_row(x.data(), {0, rstd}, weights, grad.data(), n, true);
  } else {
    torch::layer_norm_gradient_row(x.data(), {bits(1.7f), rstd}, weights, grad.data(), n);
  }
  sum.add(grad);
}

TEST(LayerNorm, HasTheSumsOfPyTorchsKernels) {
  for (const auto& [n, of_layer_norm, of_rms_norm, of_gradients] : expected) {
    word_sum layer_norm, rms_norm, gradients;
    for (const std::int64_t shift : {0, 1, 4}) {
      for (const bool weight : {false, true}) {
        add_layer_norm(layer_norm, format_id::fp32, n, shift, weight, false);
        add_layer_norm(layer_norm, format_id::fp32, n, shift, weight, true);
      }
    }
    add_layer_norm(layer_norm, format_id::bf16, n, 0, true, true);
    for (const std::int64_t shift : {0, 1}) {
      add_rms_norm(rms_norm, format_id::fp32, n, shift, n % 3 == 0);
      add_rms_norm(rms_norm, format_id::bf16, n, shift, true);
    }
    add_gradient(gradients, format_id::fp32, n, true, false);
    add_gradient(gradients, format_id::fp16, n, false, false);
    add_gradient(gradients, format_id::bf16, n, true, true);
    EXPECT_EQ(layer_norm.value(), of_layer_norm) << n;
    EXPECT_EQ(rms_norm.value(), of_rms_norm) << n;
    EXPECT_EQ(gradients.value(), of_gradients) << n;
  }
}

TEST(LayerNorm, ZerosHaveTheMeanZero) {
  const row zeros(12, 0u);
  for (const bool vectors : {false, true}) {
    EXPECT_EQ(torch::row_moments(zeros.data(), 12, vectors).mean, 0u) << vectors;
  }
}

TEST(LayerNorm, CountsToTwoToThe24) {
  EXPECT_TRUE(torch::has_vectors_of_4(1 << 24, 0));
  EXPECT_FALSE(torch::has_vectors_of_4((1 << 24) + 4, 0));
  EXPECT_FALSE(torch::has_vectors_of_4(8, 2));
  EXPECT_FALSE(torch::has_vectors_of_4(6, 0));
}

}  // namespace
}  // namespace samebits
