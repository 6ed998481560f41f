// The verdict of `fpinspect tensor`, on statistics without files.
#include "fpinspect/verdict/verdict.hpp"
#include "fpinspect/output/progress.hpp"
#include "fpinspect/verdict/gate/condition.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "samebits/scalar.hpp"

namespace fpinspect {
namespace {

// --- names -------------------------------------------------------------------------------------

TEST(Glob, StarsAndQuestionMarks) {
  EXPECT_TRUE(matches_glob("*", ""));
  EXPECT_TRUE(matches_glob("grad.*", "grad.layer.0/w"));
  EXPECT_TRUE(matches_glob("*.weight", "a.weight.weight"));
  EXPECT_TRUE(matches_glob("a?c*e", "abcde"));
  EXPECT_TRUE(matches_glob("plain", "plain"));
  EXPECT_FALSE(matches_glob("plain", "plain2"));
  EXPECT_FALSE(matches_glob("a?", "a"));
  EXPECT_FALSE(matches_glob("*.weight", "weight"));
  EXPECT_FALSE(matches_glob("", "a"));
}

TEST(Glob, BracketsAsInPythonsFnmatch) {
  EXPECT_TRUE(matches_glob("layers.[0-3].*", "layers.2.fc"));
  EXPECT_FALSE(matches_glob("layers.[0-3].*", "layers.4.fc"));
  EXPECT_TRUE(matches_glob("*[qv]_proj", "a.q_proj"));
  EXPECT_FALSE(matches_glob("*[!qv]_proj", "a.q_proj"));
  EXPECT_TRUE(matches_glob("*[!qv]_proj", "a.k_proj"));
  EXPECT_TRUE(matches_glob("[]a]", "]"));
  EXPECT_TRUE(matches_glob("[!]a]", "b"));
  EXPECT_TRUE(matches_glob("[a-]", "-"));
  EXPECT_FALSE(matches_glob("[b-a]", "a"));
  EXPECT_TRUE(matches_glob("a[0", "a[0"));  // not closed: a bracket
  EXPECT_FALSE(matches_glob("[ab]", ""));
  EXPECT_FALSE(matches_glob("[ab]", "ab"));
}

TEST(Roles, GuessedFromNames) {
  for (const char* name : {"model.layers.0.self_attn.q_proj.weight", "lm_head.bias", "wte",
                           "model.layers.1.input_layernorm.weight", "Dense_0/kernel",
                           "model.layers.0.mlp.experts.gate_up_proj", "h.0.attn.c_attn",
                           "experts.down_proj", "h.0.self_attention.query_key_value"}) {
    EXPECT_EQ(guessed_role(name), role::weights) << name;
  }
  for (const char* name :
       {"activation.gelu", "act.mlp", "layer3.output", "logits", "activation.mlp.up_proj"}) {
    EXPECT_EQ(guessed_role(name), role::activations) << name;
  }
  for (const char* name : {"grad.weight.fc1", "GRAD_fc1", "layer.weight.grad", "dgrad.fc1",
                           "grad.c_fc", "grad.activation.gelu", "grad.preactivation.fc1"}) {
    EXPECT_EQ(guessed_role(name), role::gradients) << name;
  }
  EXPECT_EQ(guessed_role("adam.exp_avg.fc1"), role::adam_m);
  EXPECT_EQ(guessed_role("state.0.exp_avg_sq"), role::adam_v);
  EXPECT_EQ(guessed_role("optimizer.v.layer0"), role::adam_v);
  EXPECT_EQ(guessed_role("fc1.momentum_buffer"), role::adam_m);
  for (const char* name : {"ramp", "", "q_proj.weight_scale", "w"}) {
    EXPECT_EQ(guessed_role(name), role::other) << name;
  }
}

TEST(Roles, TheFirstRuleThatMatches) {
  const auto rules = role_rules({"a.*=gradients", "*=Weights"});
  EXPECT_EQ(role_of("a.b", rules), role::gradients);
  EXPECT_EQ(role_of("grad.b", rules), role::weights);
  EXPECT_EQ(role_of("grad.b", {}), role::gradients);
  for (const char* wrong : {"a", "=weights", "a=weight", "a="}) {
    EXPECT_THROW(role_rules({wrong}), usage_error) << wrong;
  }
}

TEST(Need, Texts) {
  EXPECT_EQ(need_argument({}).db, 30);
  const need wanted = need_argument({"25.5 dB", "underflow<0.5%"});
  EXPECT_EQ(wanted.db, 25.5);
  EXPECT_EQ(wanted.underflow_percent, 0.5);
  EXPECT_TRUE(wanted.allows(4, 1000));
  EXPECT_FALSE(wanted.allows(5, 1000));
  EXPECT_TRUE(need_argument({"underflow<0%"}).allows(0, 0));
  EXPECT_FALSE(need_argument({"underflow<0%"}).allows(1, 1000000));
  for (const char* wrong :
       {"30", "dB", "-3dB", "nandB", "underflow<1", "underflow>1%", "1e999dB"}) {
    EXPECT_THROW(need_argument({wrong}), usage_error) << wrong;
  }
}

TEST(Condition, Parts) {
  const auto c = parse_condition("fp16.underflow >= 1.5 %");
  ASSERT_TRUE(c);
  EXPECT_EQ(c->text, "fp16.underflow>=1.5%");
  EXPECT_EQ(c->subject, "fp16");
  EXPECT_EQ(c->figure, "underflow");
  EXPECT_EQ(c->how, relation::at_least);
  EXPECT_EQ(c->limit.number, 1.5);
  EXPECT_EQ(c->limit.unit, "%");
  for (const char* wrong : {"", "1", "underflow", ">1", ".underflow>1", "underflow>", "a=1", "a>>1",
                            "a<>1", "a>1x", "a b>-1", "a+b>1", "a>1%2"}) {
    EXPECT_FALSE(parse_condition(wrong)) << wrong;
  }
}

TEST(Condition, Relations) {
  const auto holds = [](const char* text, double value, double whole) {
    return parse_condition(text)->holds(value, whole);
  };
  EXPECT_TRUE(holds("a>1%", 2, 199));
  EXPECT_FALSE(holds("a>1%", 2, 200));
  EXPECT_TRUE(holds("a>=1%", 2, 200));
  EXPECT_TRUE(holds("a<=1%", 2, 200));
  EXPECT_FALSE(holds("a<1%", 2, 200));
  EXPECT_TRUE(holds("a<1%", 2, 201));
  EXPECT_FALSE(holds("a>0%", 0, 0));
  EXPECT_TRUE(holds("a>1", 2, 200));
  EXPECT_FALSE(holds("a>2", 2, 1));
}

// --- loss scale --------------------------------------------------------------------------------

binades binades_of(const std::vector<double>& values) {
  binades result;
  for (const double x : values) {
    const int exponent = std::ilogb(x);
    const double fraction = std::fabs(std::ldexp(x, -exponent));
    samebits::binade_counts& counts = result[exponent];
    ++counts.all;
    counts.powers += fraction == 1.0 ? 1u : 0u;
    counts.top += fraction >= 2 - 0x1p-11 ? 1u : 0u;
  }
  return result;
}

scale_loss loss_by_conversion(const std::vector<double>& values, int log2) {
  scale_loss loss = {.log2 = log2};
  for (const double x : values) {
    const auto scaled = std::bit_cast<std::uint64_t>(std::ldexp(x, log2));
    const auto rounded =
        samebits::convert_code(samebits::format_id::fp64, samebits::format_id::fp16, scaled);
    loss.underflow += (rounded.code & 0x7fff) == 0 ? 1u : 0u;
    loss.overflow += rounded.overflow ? 1u : 0u;
  }
  return loss;
}

/// Values at and beside each border: powers of two, 65520 and 65504 times powers of two.
std::vector<double> borders() {
  std::vector<double> values;
  for (int e = -70; e < 30; e += 3) {
    for (const double x : {1.0, 65520.0, 65504.0, 1.5}) {
      values.push_back(std::ldexp(x, e));
      values.push_back(-std::nextafter(std::ldexp(x, e), 0));
      values.push_back(std::nextafter(std::ldexp(x, e), 1e300));
    }
  }
  return values;
}

TEST(LossScale, EqualsConversionAtEveryScale) {
  const std::vector<double> values = borders();
  const binades counts = binades_of(values);
  int best = -1000;
  for (int k = -120; k <= 120; ++k) {
    const scale_loss expected = loss_by_conversion(values, k);
    const scale_loss loss = loss_at(counts, k);
    ASSERT_EQ(loss.underflow, expected.underflow) << k;
    ASSERT_EQ(loss.overflow, expected.overflow) << k;
    if (expected.overflow == 0) best = k;
  }
  double amax = 0;
  for (const double x : values) amax = std::fmax(amax, std::fabs(x));
  EXPECT_EQ(best_scale_log2(amax, samebits::format_id::fp16), best);
  EXPECT_EQ(best_scale_log2(0, samebits::format_id::fp16), std::nullopt);
}

// --- channels ----------------------------------------------------------------------------------

TEST(Channels, TheOneThatStandsOut) {
  std::vector<double> values(10 * 16, 1.0);
  values[3 * 16 + 5] = -90;
  values[4 * 16 + 6] = NAN;
  for (std::size_t i = 7; i < values.size(); i += 16) values[i] = NAN;
  const samebits::cast_statistics s =
      samebits::statistics_of(samebits::view_of(values.data(), 10, 16), {.column_amax = true});
  const auto outlier = outlier_among(s.column_amax);
  ASSERT_TRUE(outlier);
  EXPECT_EQ(outlier->channel, 5u);
  EXPECT_EQ(outlier->ratio, 90);
  EXPECT_FALSE(outlier_among(std::vector<double>(16, 1.0)));
  EXPECT_FALSE(outlier_among(std::vector<double>{1, 1, 1, 90}));
  EXPECT_FALSE(outlier_among(std::vector<double>{0, 0, 0, 0, 0, 0, 0, 0, 0, 90}));
}

// --- progress ----------------------------------------------------------------------------------

TEST(Progress, ShareThroughputAndTimeLeft) {
  EXPECT_EQ(progress_text(0, 4e9, 1), "0 % of 4.0 GB   0.00 GB/s");
  EXPECT_EQ(progress_text(0.25, 4e9, 2), "25 % of 4.0 GB   0.50 GB/s   6 s left");
  EXPECT_EQ(progress_text(0.999, 25e7, 4), "99 % of 250 MB   0.06 GB/s   1 s left");
  EXPECT_EQ(progress_text(0.01, 4e9, 5), "1 % of 4.0 GB   0.01 GB/s   9 min left");
  EXPECT_EQ(progress_text(1, 4e9, 5), "100 % of 4.0 GB   0.80 GB/s   0 s left");
}

// --- decisions ---------------------------------------------------------------------------------

/// The effect of a choice that keeps `db` of a tensor.
choice_effect effect(choice c, double db, std::uint64_t underflow = 0, std::uint64_t overflow = 0) {
  return {c, 1000, underflow, overflow, std::pow(10.0, db / 10), 1.0};
}

/// A matrix of 1000 fp32 values, most of them 1.
tensor_evidence tensor(role what, std::vector<choice_effect> effects) {
  tensor_evidence t;
  t.name = "t";
  t.what = what;
  t.info = {.shape = {10, 100}, .count = 1000};
  t.stats = {.count = 1000, .amax = 1, .binades = {{0, {1000, 900, 0}}}};
  t.effects = std::move(effects);
  return t;
}

tensor_evidence weight(double one_scale_db, double tiles_db) {
  return tensor(
      role::weights,
      {effect(choice::e4m3_tensor, one_scale_db), effect(choice::e4m3_128x128, tiles_db),
       effect(choice::e4m3_mx, tiles_db), effect(choice::bf16, 50), effect(choice::fp16, 70)});
}

choice chosen(const verdict& v, std::size_t r = 0) {
  return v.roles.at(r).outcomes.at(v.roles.at(r).chosen.value()).what;
}

TEST(Verdict, TheCheapestThatAllTensorsMeet) {
  const need wanted;
  EXPECT_EQ(chosen(verdict_on(std::vector{weight(31, 32)}, wanted)), choice::e4m3_tensor);
  EXPECT_EQ(chosen(verdict_on(std::vector{weight(31, 32), weight(29, 32)}, wanted)),
            choice::e4m3_128x128);
  EXPECT_EQ(chosen(verdict_on(std::vector{weight(31, 32)}, need{40, 1})), choice::bf16);
  EXPECT_EQ(chosen(verdict_on(std::vector{weight(31, 32)}, need{60, 1})), choice::fp16);
  EXPECT_EQ(chosen(verdict_on(std::vector{weight(31, 32)}, need{80, 1})), choice::fp32);
  EXPECT_EQ(chosen(verdict_on(std::vector{weight(30, 30)}, need{30, 1})), choice::e4m3_tensor);
}

TEST(Verdict, LossesAndOverflowFail) {
  tensor_evidence t = weight(31, 32);
  t.effects[0].underflow = 10;  // 1 %
  EXPECT_EQ(chosen(verdict_on(std::vector{t}, need{})), choice::e4m3_128x128);
  t.effects[0].underflow = 9;
  EXPECT_EQ(chosen(verdict_on(std::vector{t}, need{})), choice::e4m3_tensor);
  t.effects[3].overflow = 1;
  EXPECT_EQ(chosen(verdict_on(std::vector{t}, need{40, 1})), choice::fp16);
}

TEST(Verdict, VectorsAndNarrowElementsStay) {
  tensor_evidence vector = weight(3, 3);
  vector.info.shape = {1000};
  vector.effects.erase(vector.effects.begin(), vector.effects.begin() + 3);
  tensor_evidence half = weight(31, 32);
  half.bits = 16;
  const std::vector all = {weight(31, 32), vector, half};
  verdict v = verdict_on(all, need{});
  EXPECT_EQ(chosen(v), choice::e4m3_tensor);
  EXPECT_EQ(v.roles[0].vectors, 1u);
  EXPECT_EQ(v.roles[0].outcomes[0].tried, 2u);
  EXPECT_EQ(choice_of(v, all[0]), choice::e4m3_tensor);
  EXPECT_EQ(choice_of(v, all[1]), std::nullopt);
  v = verdict_on(std::vector{vector}, need{});  // no matrix: no FP8
  EXPECT_EQ(chosen(v), choice::bf16);
  v = verdict_on(std::vector{half}, need{60, 1});
  EXPECT_EQ(chosen(v), choice::bf16);  // 16 bits already: nothing to change
  EXPECT_EQ(choice_of(v, half), std::nullopt);
}

TEST(Verdict, UnjudgedTensorsHaveNoChoice) {
  tensor_evidence t = weight(31, 32);
  t.state = judged::narrow_already;
  t.effects.clear();
  const verdict v = verdict_on(std::vector{t}, need{});
  EXPECT_EQ(v.roles.at(0).judged, 0u);
  EXPECT_EQ(v.roles.at(0).chosen, std::nullopt);
}

TEST(Verdict, AdamVStaysInFp32) {
  EXPECT_EQ(chosen(verdict_on(std::vector{tensor(role::adam_v, {effect(choice::bf16, 50)})}, {})),
            choice::fp32);
  EXPECT_EQ(chosen(verdict_on(std::vector{tensor(role::adam_m, {effect(choice::bf16, 50)})}, {})),
            choice::bf16);
}

TEST(Verdict, OneLossScaleForAllGradients) {
  tensor_evidence large = tensor(role::gradients, {});
  tensor_evidence small = tensor(role::gradients, {});
  small.stats.binades = {{-30, {1000, 0, 0}}};
  small.stats.amax = std::ldexp(1.5, -30);
  tensor_evidence other = tensor(role::weights, {});
  other.stats.binades = {{10, {1000, 0, 0}}};
  const std::vector all = {large, small, other};
  const auto l = loss_scale_of(all, need{});
  ASSERT_TRUE(l);
  EXPECT_EQ(l->nonzero, 2000u);
  EXPECT_EQ(l->without.underflow, 1000u);
  EXPECT_EQ(l->best.log2, 15);
  EXPECT_EQ(l->best.underflow, 0u);
  EXPECT_EQ(l->enough, 5);
  EXPECT_TRUE(l->needed);
  EXPECT_EQ(l->limit, 0u);
  EXPECT_EQ(l->neighbours.back().overflow, 1000u);
  EXPECT_FALSE(loss_scale_of(std::vector{other}, need{}));
}

TEST(Verdict, Findings) {
  std::vector<tensor_evidence> all(4, weight(31, 32));
  all.push_back(weight(20, 32));
  all.push_back(weight(31, 32));
  all[5].stats.nan = 2;
  all[5].state = judged::not_finite;
  verdict v = verdict_on(all, need{});
  ASSERT_EQ(v.findings.size(), 2u);
  EXPECT_EQ(v.findings[0].kind, finding_kind::not_finite);
  EXPECT_EQ(v.findings[0].tensor, 5u);
  EXPECT_EQ(v.order.front(), 5u);
  EXPECT_EQ(v.findings[1].kind, finding_kind::needs_more);
  EXPECT_EQ(v.findings[1].tensor, 4u);
  EXPECT_EQ(v.findings[1].others, 4u);  // without the one with NaN
  EXPECT_EQ(v.roles[0].judged, 5u);
  all[4].outlier = outlier_channel{17, 90};
  v = verdict_on(all, need{});
  EXPECT_EQ(v.findings.at(1).kind, finding_kind::outlier);
  EXPECT_EQ(v.findings.at(1).better, choice::e4m3_128x128);
  all[4] = weight(31, 32);
  all[4].outlier = outlier_channel{17, 90};  // harmless: the need is met
  all[5] = weight(31, 32);
  EXPECT_TRUE(verdict_on(all, need{}).findings.empty());
}

TEST(Verdict, TensorsInTheOrderOfTheirLosses) {
  std::vector<tensor_evidence> all(3, weight(31, 32));
  all[1].effects[0].underflow = 5;
  all[2].stats.binades = {{-40, {300, 0, 0}}, {0, {700, 0, 0}}};
  EXPECT_EQ(verdict_on(all, need{}).order, (std::vector<std::size_t>{2, 1, 0}));
}

}  // namespace
}  // namespace fpinspect
