// A check of a quantizer: random matrices, shrinking, and the text of a failure.
#include "samebits/testkit/quantize.hpp"

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "quantize_explain.hpp"
#include "quantize_inputs.hpp"
#include "report.hpp"
#include "samebits/error.hpp"
#include "seed.hpp"
#include "support/rules.hpp"

namespace samebits::testkit {
namespace {

constexpr int more_matrices = 20;      // run after a failure, for its explanation
constexpr int max_shrinking = 10'000;  // calls

struct failing_matrix {
  code_matrix in;
  quantize_verdict errors;
};

/// Runs smaller matrices as long as they fail with the same kind of error.
failing_matrix shrunk(quantize_runner& runner, const domain_codes& domain, failing_matrix found) {
  if (!found.errors.thrown.empty()) return found;
  int runs = 0;
  for (bool simpler = true; simpler && runs < max_shrinking;) {
    simpler = false;
    for (code_matrix& m : simpler_matrices(runner.quantizer(), domain, found.in)) {
      if (++runs > max_shrinking) break;
      quantize_verdict now = runner.run(m);
      if (!now.thrown.empty()) return found;  // a call that throws may not be repeatable
      if (!now.failed()) continue;
      found = {std::move(m), std::move(now)};
      simpler = true;
      break;
    }
  }
  return found;
}

// ---- Texts ----

std::string shape_text(std::int64_t rows, std::int64_t cols) {
  return "[" + std::to_string(rows) + ", " + std::to_string(cols) + "]";
}

std::string quantizer_text(const quantizer_under_test& q) {
  const quantize_options& o = q.options;
  const std::string nan = q.nan == nan_result::any ? "any NaN" : std::string(name(o.nan));
  return std::string(name(q.from)) + " to " + std::string(name(q.to)) + " with scales in " +
         std::string(name(q.scale_format)) + ", tile " + std::to_string(o.tile.rows) + " x " +
         std::to_string(o.tile.cols) + ", rule " + std::string(name(o.scale)) + ", " +
         std::string(name(o.rounding)) + " " + std::string(name(o.overflow)) + ", " + nan;
}

std::string count_text(const quantize_verdict& v, const seen_quantize_call& call) {
  return std::to_string(v.wrong_scales) + " of " + std::to_string(call.expected.scales.size()) +
         " scales and " + std::to_string(v.wrong_codes) + " of " +
         std::to_string(call.expected.codes.size()) + " codes are wrong (smallest case found)";
}

/// Returns the position and the value of the wrong element.
std::string wrong_text(const quantizer_under_test& q, const quantize_counterexample& w,
                       const seen_quantize_call& call) {
  const bool is_scale = w.part == quantized_part::scale;
  const format_id format = is_scale ? q.scale_format : q.to;
  const auto tile_cols = scales_shape(w.rows, w.cols, q.options.tile).cols;
  const auto tile = static_cast<std::size_t>(w.tile_row * tile_cols + w.tile_col);
  std::string text = "\n  matrix   " + shape_text(w.rows, w.cols) + ", tile " +
                     shape_text(w.tile_row, w.tile_col) + ", ";
  text += is_scale ? "scale; the tile starts at element " : "code of element ";
  text += shape_text(w.row, w.col);
  text += "\n  input    " + support::code_text(q.from, w.input);
  if (!is_scale) {
    text +=
        "\n  scale    " + short_code_text(q.scale_format, call.expected.scales[tile]) + ", right";
  }
  return text + "\n  got      " + support::code_text(format, w.got) + "\n  expected " +
         support::code_text(format, w.expected);
}

/// Returns the elements that are not 0, if there are few.
std::string elements_text(const quantizer_under_test& q, const code_matrix& m) {
  std::string text;
  int shown = 0;
  for (std::size_t i = 0; i < m.codes.size(); ++i) {
    if (m.codes[i] == 0) continue;
    if (++shown > 4) return "\n  elements more than 4 are not 0";
    const auto n = static_cast<std::int64_t>(i);
    text += std::string(shown == 1 ? "" : ", ") + shape_text(n / m.cols, n % m.cols) + " " +
            short_code_text(q.from, m.codes[i]);
  }
  if (shown == 0) return "\n  elements all are 0";
  const bool all_shown = static_cast<std::size_t>(shown) == m.codes.size();
  return "\n  elements " + text + (all_shown ? "" : "; all others are 0");
}

// ---- The check ----

class quantize_stages {
 public:
  quantize_stages(quantize_runner& runner, const quantize_effort& effort)
      : runner_(runner),
        effort_(effort),
        seed_(effort.seed != 0 ? effort.seed : new_seed()),
        domain_(runner.quantizer().domain, runner.quantizer().from, runner.quantizer().to) {}

  quantize_check_result run() {
    for (int number = 0; number < effort_.matrices; ++number) {
      code_matrix m = matrix(number);
      quantize_verdict v = runner_.run(m);
      if (v.failed()) return failure({std::move(m), std::move(v)}, number);
    }
    return {runner_.compared(), {}, std::nullopt};
  }

 private:
  code_matrix matrix(int number) const {
    std::mt19937_64 engine(seed_ + static_cast<std::uint64_t>(number));
    const support::word_source next = [&engine] { return engine(); };
    return random_matrix(runner_.quantizer(), domain_, effort_.max_elements,
                         static_cast<std::uint64_t>(number), next);
  }

  quantize_check_result failure(failing_matrix found, int number) {
    const std::uint64_t compared = runner_.compared();
    const std::string how = "\n  found by random matrix " + std::to_string(number) + " (seed " +
                            std::to_string(seed_) +
                            ", repeat with RC_PARAMS=\"seed=" + std::to_string(seed_) +
                            "\") after " + std::to_string(compared) + " results";
    if (found.errors.wrong) see_more(number);
    const failing_matrix smallest = shrunk(runner_, domain_, std::move(found));
    const quantize_verdict& v = smallest.errors;
    if (!v.wrong) {
      return {compared,
              "the quantizer under test " + (v.thrown.empty() ? v.trouble : v.thrown) +
                  "\n  for a matrix " + shape_text(smallest.in.rows, smallest.in.cols) + how,
              std::nullopt};
    }
    const quantizer_under_test& q = runner_.quantizer();
    const seen_quantize_call call{smallest.in, {}, quantized_by(q, smallest.in)};
    const explanation why = explain_quantize(q, runner_.seen());
    return {compared,
            quantizer_text(q) + ", by the quantizer under test: " + count_text(v, call) +
                wrong_text(q, *v.wrong, call) + elements_text(q, smallest.in) + "\n  " +
                why.text() + how,
            v.wrong};
  }

  /// Runs further matrices, whether they fail or not. The further results distinguish similar
  /// errors.
  void see_more(int number) {
    for (int more = 1; more <= more_matrices; ++more) {
      if (!runner_.run(matrix(number + more)).thrown.empty()) return;
    }
  }

  quantize_runner& runner_;
  quantize_effort effort_;
  std::uint64_t seed_;
  domain_codes domain_;
};

void check_effort_range(const quantize_effort& effort) {
  if (effort.matrices < 0) {
    throw invalid_argument("effort.matrices must be >= 0, got " + std::to_string(effort.matrices));
  }
  if (effort.max_elements < 1) {
    throw invalid_argument("effort.max_elements must be >= 1, got " +
                           std::to_string(effort.max_elements));
  }
}

}  // namespace

quantize_check_result check_raw_quantize(const quantizer_under_test& quantizer,
                                         const raw_quantizer& function,
                                         const quantize_effort& effort) {
  check_effort_range(effort);
  quantize_runner runner(quantizer, function);
  return quantize_stages(runner, effort).run();
}

}  // namespace samebits::testkit
