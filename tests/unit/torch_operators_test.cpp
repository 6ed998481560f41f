// numerics/hardware/torch_operators/: sums of the operators' results and gradients over 65,536
// operands of each format, all codes of fp16 and bf16 among them.
//
// The sums come from a program that has PyTorch's formulas in the processor's binary32 arithmetic
// and shares no code with the library. test_functions_gpu.py compares the library's own results with
// PyTorch's on a GPU.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>

#include "numerics/hardware/evaluate.hpp"

namespace samebits::numerics {
namespace {

constexpr format_id formats[] = {format_id::fp32, format_id::fp16, format_id::bf16};

constexpr std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

constexpr function_plan torch_plan(function f, format_id format, double parameter = 0) {
  return plan_of(function_rule::torch_2_11, f, format, bits(parameter), bits(parameter - 1));
}

struct operator_sums {
  function of;
  double parameter;
  std::uint64_t forward[3];  ///< fp32, fp16, bf16
  std::uint64_t gradient[3];
};

constexpr operator_sums expected[] = {
    {function::exp,
     0,
     {0x30B4BD1AAC7BB62C, 0x00003279A54FD493, 0x000030B3FC69FD14},
     {0x50E8D0E72FBE5870, 0x000052FF6B2C43F5, 0x000050E739015714}},
    {function::exp2,
     0,
     {0x30C5687763788955, 0x000032F2165EBB9C, 0x000030C4AA58EF80},
     {0x50DCD71764E4C0D8, 0x0000528F12D22F9F, 0x000050DAC53942CA}},
    {function::expm1,
     0,
     {0xA0846096558C0D9E, 0x00009C3E8C1DBDD9, 0x0000A084A06CDD27},
     {0x50AB237C246A4040, 0x000052CB0DD2ABF7, 0x00005068E94141B2}},
    {function::log,
     0,
     {0x787E3027302E14CC, 0x000078EEA922B2FE, 0x0000787DD13E21CE},
     {0x85B98540F3902827, 0x000083D675E74EAE, 0x000085BA23F3975B}},
    {function::log2,
     0,
     {0x788EF5D46D81E483, 0x0000796DA842223E, 0x0000788E96FF07B2},
     {0x85F3DDA7AECD0B54, 0x00008587ABA17C56, 0x000085F47D6C7540}},
    {function::log1p,
     0,
     {0x79AB0DDBF5087EF1, 0x000079FA6524C797, 0x000079AB23C1020D},
     {0x6887A379502A213E, 0x000069C785722CCD, 0x00006887A639229A}},
    {function::tanh,
     0,
     {0x94E5900E6F045292, 0x000091E31096A928, 0x000094E598AE9554},
     {0x394743D524E0ABED, 0x00003DC0A0112018, 0x000038F41FC11648}},
    {function::erf,
     0,
     {0x94EE0BABE4577775, 0x000092239A0257E8, 0x000094EE1442BD1E},
     {0x3936B135DFDDA606, 0x00003D35BD510EF0, 0x00003934B190D04F}},
    {function::pow,
     0,
     {0x3F80000000000000, 0x00003C0000000000, 0x00003F8000000000},
     {0x0000000000000000, 0x0000000000000000, 0x0000000000000000}},
    {function::pow,
     1,
     {0xAA2B54AA7F401580, 0x0000A6CABFA89402, 0x0000AA2BA7C49282},
     {0x5FEE77C899DD832D, 0x00005F0AF78E64C7, 0x00005FEDFC44AE11}},
    {function::pow,
     0.5,
     {0x72A9E4D596B9AE78, 0x000072ACB5441BFB, 0x000072A9188E29FB},
     {0x7555B7A35C3CC77D, 0x000074E0B58E5E2F, 0x00007554E7D7EF8C}},
    {function::pow,
     -0.5,
     {0x6D52D99215452327, 0x00006D4DDAFF3C4E, 0x00006D5222A1E0E1},
     {0x815FDFB2059660BE, 0x0000807CF3B6DA03, 0x00008145A47AA888}},
    {function::pow,
     -1,
     {0x9488D00CAC1146A5, 0x00008F6B0B235A3E, 0x00009488F51E5042},
     {0x90EA9338C564B74F, 0x00008DF5A83E4A2B, 0x000090EADF981B26}},
    {function::pow,
     2,
     {0x4EC2D6CC63E7E4C2, 0x00004F7F068084A0, 0x00004EC235571F82},
     {0x99C1425B7FFB2FE1, 0x00009C1113D9BEB0, 0x000099C1FD4D01FA}},
    {function::pow,
     3,
     {0xAF0A241C860A3197, 0x0000AC8AFD8F8094, 0x0000AF0A80D516E6},
     {0x6F45860806C3CA82, 0x000072687FED9CAB, 0x00006F1E28A1D377}},
    {function::pow,
     -2,
     {0x31374E6BB1692E4F, 0x000030A0AF371F68, 0x000031366799C9EC},
     {0x6110F3A0143291BD, 0x00006106EA454783, 0x000060E8535E077D}},
    {function::pow,
     0.3,
     {0x71987C027B73AF2C, 0x00007198EC5421C7, 0x00007198447723FA},
     {0x744F5C9C82AEA286, 0x00007358A2DBB93C, 0x0000744DFE553E98}},
    {function::pow,
     2.001,
     {0x775877A64ECB0EEB, 0x00007771AB0E3ED2, 0x00004EC235571F82},
     {0x7CF5E798AAA35568, 0x00007DDA1D7FF4F9, 0x000099C1FD4D01FA}},
    {function::pow,
     -3,
     {0x9007C526D69DD2E5, 0x00008C54E9000FF0, 0x00009007E3801EF8},
     {0x9018BC489DB5975F, 0x00008E660A0932EA, 0x00008FFC6627A85B}},
    {function::rsqrt,
     0,
     {0x6D52D99215452327, 0x00006D4DDAFF3C4E, 0x00006D5222A1E0E1},
     {0x81622121E0992C47, 0x0000807E97DFC03A, 0x000081483EE8845F}},
    {function::reciprocal,
     0,
     {0x9488D00CAC1146A5, 0x00008F6B0B235A3E, 0x00009488F51E5042},
     {0x9142C882A6DB5575, 0x00008EA013A918C3, 0x0000910984DA77FA}},
    {function::sigmoid,
     0,
     {0x24E6352685C5952A, 0x000026AF722D69B1, 0x000024E53CB79095},
     {0x395D88435EB078AD, 0x00003C82462EF619, 0x00003947F7556EF8}},
    {function::silu,
     0,
     {0x80965061EDABEBC3, 0x000080994F913ABF, 0x0000809651282E91},
     {0x60F3AFD275077422, 0x0000630F90EEBD71, 0x000060F328C7462D}},
    {function::gelu,
     0,
     {0x800B07747456D957, 0x00007ED7CB632097, 0x0000800B18AACDC1},
     {0x4587E969F9A939D8, 0x00004CECCC189D91, 0x000045881C0D5882}},
    {function::gelu_tanh,
     0,
     {0x80070A6DA4EC64BE, 0x00007ED03D8505B3, 0x000080071C7731F3},
     {0x5F275C26DCF67CD2, 0x00004A98B29E8D16, 0x00005F25C8491CB5}},
    {function::softplus,
     0,
     {0x2B9B6F7B2683E2F3, 0x00002DB03CD7E35C, 0x00002B9A7E7F258E},
     {0x452E151EB3AA0598, 0x000047EA1DBD986D, 0x0000452CD00B31BB}},
    {function::elu,
     1,
     {0x9B87E3A2DD62FE69, 0x0000983A0B29E9ED, 0x00009B8819A7860F},
     {0x452736E82F08D8EE, 0x0000478BCA2BE02A, 0x00004526B4CD9C84}},
    {function::elu,
     0.7,
     {0x9B5227D3F8E89B7B, 0x000096A4C13DDE40, 0x00009B5246DF3C07},
     {0x4511CA258AEBB7A2, 0x000046CD2D0C7EF9, 0x0000451147FB3F75}},
    {function::relu,
     0,
     {0x15D54A953EC04AC0, 0x0000195400E50202, 0x000015D434034842},
     {0x1847DCCD907B8581, 0x00001A958C6B221E, 0x000018474400F13D}},
    {function::leaky_relu,
     0.01,
     {0xA7B6E6C4512FF4EB, 0x0000953D122F7E83, 0x0000A7B73BFAA383},
     {0x5D74D5B5E0C99237, 0x00004C0DD5C6502C, 0x00005D745F0952A2}},
    {function::mish,
     0,
     {0x80A302316B3F144E, 0x000080F48C36D7BB, 0x000080A301EA3EA1},
     {0x466607CB04295CF5, 0x0000520B8F2A0AF8, 0x0000466483F4D76B}},
    {function::hardswish,
     0,
     {0x7FE801B937370A71, 0x00007F08E36C92B8, 0x00007FE7BE642B4E},
     {0x368C3AE2E23CD9BC, 0x0000392579C3A9FE, 0x0000368A633DFDE7}},
};

/// Operand i of 65,536: each code of 16 bits, or every 65,537th of 32 bits.
constexpr std::uint32_t operand_of(format_id format, std::uint32_t i) {
  return format == format_id::fp32 ? i * 65537 : i;
}

std::uint64_t forward_sum(const function_plan& plan) {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto y = evaluate_code<std::uint32_t>(plan, operand_of(plan.format, i));
    sum += std::uint64_t{y} * (2 * std::uint64_t{i} + 1);
  }
  return sum;
}

/// The gradients of the results are pseudo-random: every second one a number near 1.
std::uint64_t gradient_sum(const function_plan& plan) {
  std::uint64_t sum = 0, state = 7;
  for (std::uint32_t i = 0; i < 65536; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    auto grad = static_cast<std::uint32_t>(state >> 32);
    if (i % 2 == 0) grad = 0x3F000000 + grad % 0x01000000;
    if (plan.format != format_id::fp32) grad >>= 16;
    const std::uint32_t x = operand_of(plan.format, i);
    const auto y = evaluate_gradient_code<std::uint32_t>(plan, grad, x);
    sum += std::uint64_t{y} * (2 * std::uint64_t{i} + 1);
  }
  return sum;
}

TEST(TorchOperators, HaveTheSumsOfTheirFormulas) {
  for (const operator_sums& e : expected) {
    for (int i = 0; i < 3; ++i) {
      const function_plan plan = torch_plan(e.of, formats[i], e.parameter);
      EXPECT_EQ(forward_sum(plan), e.forward[i])
          << name(e.of) << " " << e.parameter << " " << name(formats[i]);
      EXPECT_EQ(gradient_sum(plan), e.gradient[i])
          << "gradient of " << name(e.of) << " " << e.parameter << " " << name(formats[i]);
    }
  }
}

constexpr std::uint32_t torch(function f, std::uint32_t x, double parameter = 0) {
  return evaluate_code<std::uint32_t>(torch_plan(f, format_id::fp32, parameter), x);
}
constexpr std::uint32_t gradient_at(function f, std::uint32_t x, double parameter = 0) {
  const function_plan plan = torch_plan(f, format_id::fp32, parameter);
  return evaluate_gradient_code<std::uint32_t>(plan, 0x40000000, x);  // of 2
}

// Zeros, infinities and NaN.
static_assert(torch(function::relu, 0x80000000) == 0 &&
              torch(function::relu, 0xFFC00001) == 0x7FFFFFFF);
static_assert(torch(function::silu, 0xFF800000) == 0x7FFFFFFF);
static_assert(torch(function::hardswish, 0x7FC00000) == 0x7FFFFFFF);
static_assert(torch(function::pow, 0x7FC00000, 0) == 0x3F800000);
static_assert(torch(function::pow, 0x7FC00000, -0.0) == 0x3F800000);
// The borders of hardswish's gradient, -3 and 3, and NaN: 0, grad, grad.
static_assert(gradient_at(function::hardswish, 0xC0400000) == 0);
static_assert(gradient_at(function::hardswish, 0x40400000) == 0x40000000);
static_assert(gradient_at(function::hardswish, 0x7FC00000) == 0x40000000);
static_assert(gradient_at(function::pow, 0x7FC00000, 0) == 0);

TEST(TorchOperators, BelongToTheirRules) {
  int of_cuda = 0, of_torch = 0;
  for (int i = 0; i < enum_count<function>; ++i) {
    const function f = static_cast<function>(i);
    EXPECT_FALSE(has_function(function_rule::exact, f, format_id::fp32)) << name(f);
    EXPECT_FALSE(has_function(function_rule::cuda_13_0, f, format_id::fp16)) << name(f);
    EXPECT_FALSE(has_function(function_rule::torch_2_11, f, format_id::e4m3)) << name(f);
    of_cuda += has_function(function_rule::cuda_13_0, f, format_id::fp32) ? 1 : 0;
    of_torch += has_function(function_rule::torch_2_11, f, format_id::bf16) ? 1 : 0;
  }
  EXPECT_EQ(of_cuda, 16);
  EXPECT_EQ(of_torch, 21);
  EXPECT_TRUE(has_function(function_rule::cuda_13_0, function::rsqrt, format_id::fp32));
  EXPECT_FALSE(has_function(function_rule::cuda_13_0, function::reciprocal, format_id::fp32));
}

TEST(TorchOperators, KeepTheSmallestPositiveOperand) {
  EXPECT_EQ(torch_2_11::leaky_relu(std::uint32_t{1}, 0x3C23D70A), 1u);
}

}  // namespace
}  // namespace samebits::numerics
