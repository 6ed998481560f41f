// A check of a quantizer: random matrices, shrinking, and explanation.
#include "samebits/testkit/quantize.hpp"

#include <random>
#include <string>
#include <utility>

#include "engine/explain/errors.hpp"
#include "engine/kit/quantizer_inputs.hpp"
#include "engine/kit/report.hpp"
#include "engine/kit/simpler.hpp"
#include "samebits/error.hpp"
#include "samebits/recipe.hpp"

namespace samebits::testkit {
namespace {

constexpr int more_matrices = 20;  // run after a failure, for its explanation

class quantize_check {
 public:
  quantize_check(const quantizer_under_test& quantizer, const raw_quantizer& function,
                 const quantize_effort& effort)
      : quantizer_(quantizer),
        effort_(effort),
        seed_(effort.seed != 0 ? effort.seed : new_seed()),
        runner_(specification_of(quantizer), array_function_of(function)),
        domain_(quantizer.domain, quantizer.from, quantizer.to) {}

  quantize_check_result run() {
    for (int number = 0; number < effort_.matrices; ++number) {
      trial in = matrix(number);
      verdict v = runner_.run(in);
      if (v.failed()) return failure(std::move(in), std::move(v), number);
    }
    return {runner_.compared(), {}, std::nullopt};
  }

 private:
  static array_function array_function_of(const raw_quantizer& function) {
    return [call = function.call](const trial& in, std::span<guarded_array> a) {
      call({a[0].memory(), a[2].memory(), a[1].memory(), a[0].at(), a[2].at(), a[1].at(), in.rows,
            in.cols, static_cast<std::int64_t>(a[1].size())});
    };
  }

  [[nodiscard]] trial matrix(int number) const {
    std::mt19937_64 engine(seed_ + static_cast<std::uint64_t>(number));
    return random_matrix(quantizer_, domain_, effort_.max_elements,
                         static_cast<std::uint64_t>(number), [&engine] { return engine(); });
  }

  quantize_check_result failure(trial in, verdict v, int number) {
    const std::uint64_t compared = runner_.compared();
    const std::string how = "\n  found by random matrix " + std::to_string(number) + " (seed " +
                            std::to_string(seed_) +
                            ", repeat with RC_PARAMS=\"seed=" + std::to_string(seed_) +
                            "\") after " + std::to_string(compared) + " results";
    // Further results distinguish similar errors.
    for (int more = 1; v.wrong && more <= more_matrices; ++more) {
      if (!runner_.run(matrix(number + more)).thrown.empty()) break;
    }
    in = runner_.shrink(std::move(in), v, [this](const trial& t) {
      return simpler_trials(quantizer_.from, tile_extent(t, quantizer_.options.tile), true, t);
    });
    explanation why;
    std::optional<quantize_counterexample> wrong;
    if (v.wrong) {
      why = explained();
      wrong = wrong_of(quantizer_, v);
    }
    return {compared, failure_text(quantizer_, in, v, why, how), wrong};
  }

  /// If every scale is right, the codes are explained as conversions of the scaled elements too.
  [[nodiscard]] explanation explained() const {
    explanation why = explain(runner_.what(), runner_.seen(), quantizer_errors(quantizer_));
    for (const seen_call& call : runner_.seen()) {
      for (std::size_t i = 0; i < call.got[0].size(); ++i) {
        if (!runner_.what().is_right(0, call.got[0][i], call.expected[0][i])) return why;
      }
    }
    const quantize_options& o = quantizer_.options;
    const conversion_under_test cast{.from = format_id::fp32,
                                     .to = quantizer_.to,
                                     .rule = {o.rounding, o.overflow, o.nan},
                                     .random = o.random,
                                     .nan = quantizer_.nan};
    std::vector<std::string> sentences =
        explain(specification_of(cast), casts_of(quantizer_, runner_.seen()),
                conversion_errors(cast))
            .sentences;
    for (std::string& s : sentences) s = "right scales; codes: " + s;
    why.sentences.insert(why.sentences.begin(), sentences.begin(), sentences.end());
    return why;
  }

  quantizer_under_test quantizer_;
  quantize_effort effort_;
  std::uint64_t seed_;
  runner runner_;
  domain_codes domain_;
};

}  // namespace

quantizer_under_test quantizer_of(std::string_view recipe, format_id from, format_id to) {
  const recipe_preset* const preset = find_recipe(recipe);
  if (preset == nullptr) {
    throw invalid_argument("recipe: no recipe has the name '" + std::string(recipe) +
                           "'; `fpinspect recipes` lists them");
  }
  if (preset->rules.source == scale_source::delayed) {
    throw invalid_argument("recipe: the scales of " + std::string(recipe) +
                           " are delayed; check_quantize needs scales of the matrix itself");
  }
  return {.from = from,
          .to = to,
          .options = options_of(preset->rules),
          .scale_format = preset->rules.scale_format};
}

quantize_check_result check_raw_quantize(const quantizer_under_test& quantizer,
                                         const raw_quantizer& function,
                                         const quantize_effort& effort) {
  if (effort.matrices < 0) {
    throw invalid_argument("effort.matrices must be >= 0, got " + std::to_string(effort.matrices));
  }
  if (effort.max_elements < 1) {
    throw invalid_argument("effort.max_elements must be >= 1, got " +
                           std::to_string(effort.max_elements));
  }
  require_element_size("in of the quantizer under test", function.in_bytes, quantizer.from);
  require_element_size("codes of the quantizer under test", function.code_bytes, quantizer.to);
  require_element_size("scales of the quantizer under test", function.scale_bytes,
                       quantizer.scale_format);
  const quantize_options& o = quantizer.options;
  if (o.inverse_scales.data != nullptr || o.skip_if_nonzero != nullptr || !o.workspace.empty()) {
    throw invalid_argument(
        "quantizer.options: inverse_scales, skip_if_nonzero and workspace must be empty");
  }
  return quantize_check(quantizer, function, effort).run();
}

}  // namespace samebits::testkit
