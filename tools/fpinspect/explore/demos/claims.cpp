// `fpinspect claims`: statements of tutorials, and computations that refute them.
#include "fpinspect/explore/demos/demos.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/command.hpp"
#include "fpinspect/explore/resolution.hpp"
#include "fpinspect/formats/describe.hpp"
#include "samebits/scalar.hpp"
#include "samebits/text.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;
using samebits::operation;

/// The result of a computation about a statement.
struct claim_evidence {
  bool refuted;
  std::vector<std::string> lines;
  std::vector<std::pair<std::string, double>> figures;  ///< the numbers of the lines
};

struct claim {
  std::string_view name;
  std::string_view statement;
  std::string_view source;
  void (*check)(claim_evidence&);
};

double value_of_code(format_id format, std::uint64_t code) { return value_of({format, code}); }

/// Text and figure of one number.
void add(claim_evidence& evidence, const std::string& name, double value) {
  evidence.lines.push_back(cat(name, " = ", general(value, 9)));
  evidence.figures.emplace_back(name, value);
}

void bf16_1e40(claim_evidence& evidence) {
  for (const format_id format : {format_id::fp32, format_id::bf16}) {
    const std::string name(samebits::name(format));
    add(evidence, cat(name, "(1e40)"), value_of(rounded(format, 1e40)));
    add(evidence, cat("largest ", name), value_of_code(format, samebits::max_finite(format)));
  }
  add(evidence, "fp32(1e-40)", value_of(rounded(format_id::fp32, 1e-40)));
  add(evidence, "bf16(1e-40)", value_of(rounded(format_id::bf16, 1e-40)));
  evidence.refuted = !std::isfinite(value_of(rounded(format_id::bf16, 1e40))) ||
                     !std::isfinite(value_of(rounded(format_id::fp32, 1e40)));
}

void fp16_gradients(claim_evidence& evidence) {
  const double gradient = 1e-5;
  const double kept = value_of(rounded(format_id::fp16, gradient));
  add(evidence, "fp16(1e-5)", kept);
  add(evidence, "smallest normal fp16",
      value_of_code(format_id::fp16, samebits::min_normal(format_id::fp16)));
  const double smallest = value_of_code(format_id::fp16, samebits::min_positive(format_id::fp16));
  add(evidence, "smallest fp16", smallest);
  // The largest number that becomes 0 is the tie between 0 and the smallest number.
  add(evidence, "largest number that becomes 0", smallest / 2);
  evidence.refuted = kept != 0 && value_of(rounded(format_id::fp16, smallest / 2)) == 0 &&
                     value_of(rounded(format_id::fp16, std::nextafter(smallest / 2, 1.0))) != 0;
}

void smallest_positive(claim_evidence& evidence) {
  evidence.refuted = true;
  for (const format_id format : {format_id::fp16, format_id::bf16, format_id::fp32}) {
    const std::string name(samebits::name(format));
    const double normal = value_of_code(format, samebits::min_normal(format));
    const double smallest = value_of_code(format, samebits::min_positive(format));
    add(evidence, cat("smallest normal ", name), normal);
    add(evidence, cat("smallest ", name), smallest);
    evidence.refuted = evidence.refuted && smallest < normal;
  }
}

void fp16_1e_7(claim_evidence& evidence) {
  const double unscaled = value_of(rounded(format_id::fp16, 1e-7));
  const double scaled = value_of(rounded(format_id::fp16, 1e-7 * 65536)) / 65536;
  add(evidence, "fp16(1e-7)", unscaled);
  add(evidence, "relative error", unscaled / 1e-7 - 1);
  add(evidence, "fp16(1e-7 * 2^16) / 2^16", scaled);
  add(evidence, "relative error, scaled", scaled / 1e-7 - 1);
  evidence.lines.emplace_back("the scale saves digits here, not the gradient itself");
  evidence.refuted = unscaled != 0;
}

void fp16_three_and_seven_tenths(claim_evidence& evidence) {
  const auto where = spot_of(format_id::fp16, 3.7);
  const double below = value_of_code(format_id::fp16, where->below);
  const double above = value_of_code(format_id::fp16, where->above);
  add(evidence, "fp16 below 3.7", below);
  add(evidence, "fp16 above 3.7", above);
  add(evidence, "values of fp16 in [3, 4)",
      static_cast<double>(values_between(format_id::fp16, 3, 4).count));
  evidence.refuted = below != 3 || above != 4;
}

/// A number that becomes `low` or, with probability `share`, `high`.
struct random_result {
  double low;
  double high;
  double share;

  [[nodiscard]] double mean() const { return low + (high - low) * share; }
  [[nodiscard]] double rms_error(double x) const {
    return std::sqrt((1 - share) * (low - x) * (low - x) + share * (high - x) * (high - x));
  }
};

/// The tutorial's rule: x16 = fp16(x); with probability |x - x16| the result is
/// fp16(x16 + sign(x - x16)).
random_result tutorial_rule(double x) {
  const double nearest = value_of(rounded(format_id::fp16, x));
  const double error = x - nearest;
  const double moved = value_of(rounded(format_id::fp16, nearest + (error > 0 ? 1 : -1)));
  return {nearest, moved, std::min(std::fabs(error), 1.0)};
}

random_result stochastic_rule(format_id from, const number& x) {
  constexpr samebits::rounding mode = samebits::rounding::stochastic;
  constexpr format_id half = format_id::fp16;
  const auto codes = round_by_all(samebits::to_exact_decimal(from, x.code), {&half, 1}, {&mode, 1});
  const auto value = [](const rounded_code& code) { return value_of_code(code.format, code.code); };
  return {value(codes.front()), value(codes.back()),
          codes.size() == 1 ? 0.0 : codes.back().modes.front().share};
}

void absolute_error(claim_evidence& evidence) {
  for (const double decimal : {3.7, 0.1, 2049.3}) {
    const number x = rounded(format_id::fp32, decimal);
    const random_result tutorial = tutorial_rule(value_of(x));
    const random_result proper = stochastic_rule(format_id::fp32, x);
    const auto line = [&](const std::string& rule, const random_result& result) {
      evidence.lines.push_back(cat(shortest(decimal), rule, general(result.low, 9), " or, in ",
                                   general(100 * result.share, 4), " %, ", general(result.high, 9),
                                   ": mean ", general(result.mean(), 9), ", rms error ",
                                   general(result.rms_error(value_of(x)), 3)));
      const std::string name = cat(shortest(decimal), rule);
      evidence.figures.emplace_back(cat(name, "low"), result.low);
      evidence.figures.emplace_back(cat(name, "high"), result.high);
      evidence.figures.emplace_back(cat(name, "share"), result.share);
    };
    line(" by the tutorial: ", tutorial);
    line(" stochastically: ", proper);
    evidence.refuted =
        evidence.refuted || (tutorial.high != proper.low && tutorial.high != proper.high);
  }
  evidence.lines.emplace_back("the tutorial's step is 1, whatever the spacing of fp16 at x");
}

void loss_scale_nan(claim_evidence& evidence) {
  const number gradient = rounded(format_id::fp16, 2.0);
  bool overflowed = false;
  for (const int log2 : {14, 15, 16, 17}) {
    const number scale = rounded(format_id::fp32, std::ldexp(1.0, log2));
    const double scaled = value_of(step(operation::mul, format_id::fp16, {gradient, scale}).result);
    add(evidence, cat("fp16(2 * 2^", log2, ")"), scaled);
    if (overflowed && std::isfinite(scaled)) return;
    overflowed = overflowed || !std::isfinite(scaled);
  }
  const number inf =
      step(operation::mul, format_id::fp16, {gradient, rounded(format_id::fp32, 65536.0)}).result;
  add(evidence, "inf - inf", value_of(step(operation::sub, format_id::fp16, {inf, inf}).result));
  evidence.lines.emplace_back(
      "scaled gradients that overflow give NaN; a smaller scale avoids this, a larger one does "
      "not");
  evidence.refuted = overflowed;
}

void layernorm_one_pass(claim_evidence& evidence) {
  for (const double mean : {0.0, 1000.0, 10000.0}) {
    const variance_case found = variance_of_case(mean);
    const std::string at = cat(", mean ", shortest(mean));
    add(evidence, "variance" + at, found.exact);
    add(evidence, "E[x^2] - E[x]^2" + at, found.one_pass);
    add(evidence, "two passes" + at, found.two_pass);
    const auto error = [&](double variance) { return std::fabs(variance / found.exact - 1); };
    evidence.refuted = evidence.refuted || error(found.one_pass) > 100 * error(found.two_pass);
  }
}

void epsilon_fp32(claim_evidence& evidence) {
  const auto where = spot_of(format_id::fp32, 1.0);
  const double epsilon = std::ldexp(1.0, *where->spacing_log2);
  add(evidence, "distance from 1 to the next fp32", epsilon);
  add(evidence, "1.19^-7", std::pow(1.19, -7));
  evidence.lines.emplace_back("1.19e-7 is meant");
  evidence.refuted = std::fabs(std::pow(1.19, -7) / epsilon - 1) > 0.01;
}

constexpr std::string_view course_11 = "course \"Mixed-precision training\" (Chinese), chapter 11";
constexpr std::string_view playbook_part_4 = "Ultra-Scale Playbook, Chinese edition, part 4";
constexpr std::string_view lightseq_notes = "notes on LightSeq2 (Chinese), section 3.1";

constexpr claim claims[] = {
    {"bf16-1e40", "fp32 and bf16 hold 1e40; only fp16 overflows", course_11, bf16_1e40},
    {"fp16-gradients", "gradients below 6.1e-5 become 0 in fp16", course_11, fp16_gradients},
    {"smallest-positive", "the smallest positive numbers: fp16 6.1e-5, fp32 1.2e-38", course_11,
     smallest_positive},
    {"fp16-1e-7", "without a loss scale, a gradient of 1e-7 underflows in fp16", course_11,
     fp16_1e_7},
    {"fp16-3.7", "of 3.7, fp16 can only represent 3.0 or 4.0", course_11,
     fp16_three_and_seven_tenths},
    {"stochastic-absolute-error",
     "stochastic rounding: add sign(error) with probability |x - fp16(x)|", course_11,
     absolute_error},
    {"loss-scale-nan", "against NaN losses in fp16, increase the loss scale", course_11,
     loss_scale_nan},
    {"layernorm-one-pass", "E[x^2] - E[x]^2 in fp32 is as exact as two passes", lightseq_notes,
     layernorm_one_pass},
    {"epsilon-fp32", "epsilon of fp32 is 1.19^-7", playbook_part_4, epsilon_fp32},
};

claim_evidence evidence_of(const claim& each) {
  claim_evidence evidence{};
  each.check(evidence);
  return evidence;
}

json_object claim_json(const claim& each) {
  const claim_evidence evidence = evidence_of(each);
  json_object figures;
  for (const auto& [name, value] : evidence.figures) figures.add(name, value);
  return {{"name", each.name},
          {"statement", each.statement},
          {"source", each.source},
          {"refuted", evidence.refuted},
          {"figures", figures}};
}

std::string claim_text(const claim& each, const terminal& term) {
  const claim_evidence evidence = evidence_of(each);
  std::string text = cat(term.painted(paint::heading, each.name), ": \"", each.statement, "\"\n");
  for (const std::string& line : evidence.lines) text += cat("  ", line, "\n");
  const std::string_view verdict = evidence.refuted ? "refuted" : "not refuted";
  return cat(text, "  ", term.painted(evidence.refuted ? paint::bad : paint::good, verdict), "   (",
             each.source, ")\n");
}

std::vector<claim> chosen_claims(const std::vector<std::string>& names) {
  if (names.empty()) return {std::begin(claims), std::end(claims)};
  std::vector<claim> chosen;
  for (const std::string& name : names) chosen.push_back(row_argument<claim>("NAME", name, claims));
  return chosen;
}

class claims_command final : public command {
 public:
  void options(option_list& add) override {
    add.list("NAME", chosen_, chosen_claims, "Names of statements (default: all)");
  }

  void run(const session& s) override {
    if (s.json) return s.write_json({{"claims", json_rows(chosen_, claim_json)}});
    const auto text = [&](const claim& each) { return claim_text(each, s.term); };
    s.out.write(joined(chosen_, text, "\n"));
  }

 private:
  std::vector<claim> chosen_;
};

const registered<claims_command> claims_here("claims",
                                             "Refute statements of tutorials by computing them",
                                             230);

}  // namespace
}  // namespace fpinspect
