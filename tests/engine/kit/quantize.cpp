// A check of a quantizer: random matrices, shrinking, and explanation.
#include "engine/kit/quantize.hpp"

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
  quantize_check(const quantizer_under_test& quantizer, const array_function& function,
                 const quantize_effort& effort, const std::vector<matrix_shape>& shapes)
      : quantizer_(quantizer),
        effort_(effort),
        shapes_(shapes),
        seed_(effort.seed != 0 ? effort.seed : new_seed()),
        runner_(specification_of(quantizer), function),
        domain_(quantizer.domain, quantizer.from, quantizer.to) {}

  check_outcome run() {
    for (int number = 0; number < effort_.matrices; ++number) {
      trial in = matrix(number);
      verdict v = runner_.run(in);
      if (v.failed()) return failure(std::move(in), std::move(v), number);
    }
    return {runner_.compared(), std::nullopt};
  }

 private:
  [[nodiscard]] trial matrix(int number) const {
    std::mt19937_64 engine(seed_ + static_cast<std::uint64_t>(number));
    const auto next = [&engine] { return engine(); };
    const auto n = static_cast<std::uint64_t>(number);
    if (shapes_.empty()) {
      const matrix_shape shape = random_shape(quantizer_, effort_.max_elements, next);
      return random_matrix(quantizer_, domain_, shape, n, next);
    }
    const std::uint64_t chosen = n < shapes_.size() ? n : engine() % shapes_.size();
    return random_matrix(quantizer_, domain_, shapes_[chosen], n, next);
  }

  check_outcome failure(trial in, verdict v, int number) {
    const std::uint64_t compared = runner_.compared();
    std::string how = "\n  found by random matrix " + std::to_string(number) + " (seed " +
                      std::to_string(seed_) +
                      ", repeat with RC_PARAMS=\"seed=" + std::to_string(seed_) + "\") after " +
                      std::to_string(compared) + " results";
    // Further results distinguish similar errors.
    for (int more = 1; v.wrong && more <= more_matrices; ++more) {
      if (!runner_.run(matrix(number + more)).thrown.empty()) break;
    }
    in = runner_.shrink(std::move(in), v, [this](const trial& t) {
      return simpler_trials(quantizer_.from, tile_extent(t, quantizer_.options.tile), true, t);
    });
    explanation why;
    if (v.wrong) why = explained(quantizer_, runner_);
    return {compared, failed_call{std::move(in), std::move(v), std::move(why), std::move(how)}};
  }

  quantizer_under_test quantizer_;
  quantize_effort effort_;
  std::vector<matrix_shape> shapes_;
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
  const format_id codes = preset->rules.code_format;
  return {.from = from,
          .to = codes == format_id::e4m3 ? to : codes,
          .options = options_of(preset->rules),
          .scale_format = preset->rules.scale_format};
}

check_outcome check_quantizer_calls(const quantizer_under_test& quantizer,
                                    const array_function& function, const quantize_effort& effort,
                                    const std::vector<matrix_shape>& shapes) {
  if (effort.matrices < 0) {
    throw invalid_argument("effort.matrices must be >= 0, got " + std::to_string(effort.matrices));
  }
  if (effort.max_elements < 1) {
    throw invalid_argument("effort.max_elements must be >= 1, got " +
                           std::to_string(effort.max_elements));
  }
  return quantize_check(quantizer, function, effort, shapes).run();
}

quantize_check_result check_raw_quantize(const quantizer_under_test& quantizer,
                                         const raw_quantizer& function,
                                         const quantize_effort& effort) {
  require_element_size("in of the quantizer under test", function.in_bytes, quantizer.from);
  require_element_size("codes of the quantizer under test", function.code_bytes, quantizer.to);
  require_element_size("scales of the quantizer under test", function.scale_bytes,
                       quantizer.scale_format);
  const quantize_options& o = quantizer.options;
  if (has_two_levels(o.scale)) {
    throw invalid_argument("quantizer.options.scale: a rule with one level is expected, got " +
                           std::string(name(o.scale)));
  }
  if (o.inverse_scales.data != nullptr || o.skip_if_nonzero != nullptr || !o.workspace.empty()) {
    throw invalid_argument(
        "quantizer.options: inverse_scales, skip_if_nonzero and workspace must be empty");
  }
  const auto call = [&](const trial& in, std::span<guarded_array> a) {
    function.call({a[0].memory(), a[2].memory(), a[1].memory(), a[0].at(), a[2].at(), a[1].at(),
                   in.rows, in.cols, static_cast<std::int64_t>(a[1].size())});
  };
  const check_outcome done = check_quantizer_calls(quantizer, call, effort);
  if (!done.failure) return {done.compared, {}, std::nullopt};
  std::optional<quantize_counterexample> wrong;
  if (done.failure->found.wrong) wrong = wrong_of(quantizer, done.failure->found);
  return {done.compared, failure_text(quantizer, *done.failure), wrong};
}

}  // namespace samebits::testkit
