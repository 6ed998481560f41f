// `fpinspect demo`: small computations that show what a format does to training.
#include <variant>

#include "fpinspect/cli/command.hpp"
#include "fpinspect/formats/describe.hpp"
#include "samebits/array_arithmetic.hpp"
#include "samebits/reductions.hpp"
#include "samebits/view.hpp"

namespace fpinspect {
namespace {

// --- Single steps of arithmetic on codes ---------------------------------------------------------

/// A code and its format.
using coded_number = operand;

/// x, rounded once to nearest even.
coded_number rounded(format_id format, double x) {
  return {format, convert_code(format_id::fp64, format, __builtin_bit_cast(std::uint64_t, x)).code};
}

double value_of(const coded_number& x) { return decode_double(x.format, x.code); }

struct step_result {
  coded_number result;
  flags raised;
};

/// Computes a operation b, rounded once to nearest even.
step_result step(operation op, format_id to, const operands& x) {
  const arithmetic_result result = samebits::compute(op, x, to);
  return {{to, result.code}, result.raised};
}

// --- Small computations that show what a format does to training ---------------------------------

/// A table of texts and numbers.
struct demo_table {
  using cell = std::variant<std::string, double>;

  std::vector<std::string> columns;
  std::vector<std::vector<cell>> rows;
};

struct demo {
  std::string_view name;
  std::string_view question;
  demo_table (*run)();
  std::string_view answer;
};

constexpr std::array training_formats = {format_id::fp32, format_id::bf16, format_id::fp16,
                                         format_id::e5m2, format_id::e4m3};

std::string format_name(format_id format) { return std::string(name(format)); }

std::string flags_text(flags raised) {
  const std::string text = joined(names_of(raised));
  return text.empty() ? "none" : text;
}

/// 1 * 1e-8 in several formats.
demo_table tiny_mul() {
  demo_table table{{"format", "a", "b", "a * b", "flags of b"}, {}};
  for (const format_id format : training_formats) {
    const coded_number a = rounded(format, 1.0);
    const coded_number b = rounded(format, 1e-8);
    // 1e-8 is rounded by a multiplication with 1, which raises the flags of rounding.
    const step_result rounding = step(
        operation::mul, format, {rounded(format_id::fp32, 1e-8), rounded(format_id::fp32, 1.0)});
    const step_result product = step(operation::mul, format, {a, b});
    table.rows.push_back({format_name(format), value_of(a), value_of(b), value_of(product.result),
                          flags_text(rounding.raised)});
  }
  return table;
}

/// The gradient of y = c * sum(w), with and without a loss scale.
demo_table grad_once() {
  demo_table table{{"format", "factors", "loss scale", "loss", "scaled gradient", "gradient"}, {}};
  constexpr double weights = 1024;  // all 1
  for (const format_id format : {format_id::fp32, format_id::bf16, format_id::fp16}) {
    for (const bool split : {false, true}) {
      const std::vector<double> factors =
          split ? std::vector<double>{1e-4, 1e-4} : std::vector<double>{1e-8};
      for (const double scale : {1.0, 32768.0}) {
        coded_number loss = rounded(format, weights);
        coded_number gradient = rounded(format, scale);
        for (const double factor : factors) {
          loss = step(operation::mul, format, {loss, rounded(format, factor)}).result;
          gradient = step(operation::mul, format, {gradient, rounded(format, factor)}).result;
        }
        const coded_number unscaled =
            step(operation::div, format_id::fp32, {gradient, rounded(format_id::fp32, scale)})
                .result;
        table.rows.push_back({format_name(format), split ? "1e-4, 1e-4" : "1e-8", scale,
                              value_of(loss), value_of(gradient), value_of(unscaled)});
      }
    }
  }
  return table;
}

/// The same number added again and again, each sum rounded.
demo_table repeated_sum() {
  demo_table table{{"format", "term", "terms", "sum", "exact", "last change"}, {}};
  constexpr int terms = 10'000;
  for (const double value : {1.0, 0.001}) {
    for (const format_id format : training_formats) {
      const coded_number term = rounded(format, value);
      coded_number sum = rounded(format, 0.0);
      int last_change = 0;
      for (int i = 1; i <= terms; ++i) {
        const coded_number next = step(operation::add, format, {sum, term}).result;
        if (next.code == sum.code) break;  // the next sums are equal too
        sum = next;
        last_change = i;
      }
      table.rows.push_back({format_name(format), value_of(term), static_cast<double>(terms),
                            value_of(sum), value_of(term) * terms,
                            static_cast<double>(last_change)});
    }
  }
  return table;
}

/// The number after `term` was added to it, rounded stochastically by random word `index` of seed 0
/// and `stream`.
std::uint64_t stochastic_sum(const coded_number& x, const coded_number& term, std::uint64_t stream,
                             std::uint64_t index) {
  const random_bits random{random_word(0, stream, index)};
  return samebits::compute(operation::add, {x, term}, x.format, {.rounding = rounding::stochastic},
                           random)
      .code;
}

/// A small update added many times, rounded to nearest and stochastically.
demo_table error_growth() {
  demo_table table{{"format", "updates", "exact", "nearest", "stochastic", "rms error"}, {}};
  constexpr std::size_t runs = 64;
  constexpr double update = 1e-4;
  for (const format_id format : {format_id::fp16, format_id::bf16}) {
    const coded_number one = rounded(format, 1.0);
    const coded_number term = rounded(format_id::fp32, update);
    coded_number nearest = one;
    std::vector<std::uint64_t> weights(runs, one.code);
    int next_row = 1;
    for (int i = 1; i <= 10'000; ++i) {
      nearest = step(operation::add, format, {nearest, term}).result;
      for (std::size_t k = 0; k < runs; ++k) {
        const auto stream = static_cast<std::uint64_t>(i);
        weights[k] = stochastic_sum({format, weights[k]}, term, stream, k);
      }
      if (i != next_row) continue;
      next_row *= 10;
      const double exact = 1.0 + i * value_of(term);
      double sum = 0;
      double squares = 0;
      for (const std::uint64_t code : weights) {
        const double weight = value_of({format, code});
        sum += weight;
        squares += (weight - exact) * (weight - exact);
      }
      table.rows.push_back({format_name(format), static_cast<double>(i), exact, value_of(nearest),
                            sum / runs, std::sqrt(squares / runs)});
    }
  }
  return table;
}

/// Variances of the same values, for one mean.
struct variance_case {
  double exact;     ///< of the fp32 values, in binary64
  double one_pass;  ///< E[x^2] - E[x]^2 in fp32
  double two_pass;  ///< the mean of (x - E[x])^2 in fp32
};

/// The variance of 4096 fp32 values: `mean` plus random numbers in [-1, 1).
variance_case variance_of_case(double mean) {
  constexpr std::size_t count = 4096;
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double noise = random_word(0, 0, i) * 0x1p-31 - 1.0;
    x[i] = static_cast<float>(value_of(rounded(format_id::fp32, mean + noise)));
  }
  constexpr dot_options in_fp32{.precision = accumulation::fp32};
  const std::vector<float> ones(count, 1.0F);
  const coded_number n = rounded(format_id::fp32, count);
  const auto fp32_step = [](operation op, coded_number a, coded_number b) {
    return step(op, format_id::fp32, {a, b}).result;
  };
  const auto mean_product = [&](const std::vector<float>& a, const std::vector<float>& b) {
    const double sum = samebits::dot(view_of(a), view_of(b), in_fp32);
    return fp32_step(operation::div, rounded(format_id::fp32, sum), n);
  };
  const coded_number average = mean_product(x, ones);
  const coded_number average_square = mean_product(x, x);
  const coded_number one_pass =
      fp32_step(operation::sub, average_square, fp32_step(operation::mul, average, average));
  std::vector<float> distances(count);
  const auto center = static_cast<float>(value_of(average));
  const const_matrix_view centers{&center, format_id::fp32, 1, count, 0, 0};
  samebits::compute(operation::sub, {view_of(x), centers}, view_of(distances));
  const coded_number two_pass = mean_product(distances, distances);
  const double exact_mean = samebits::sum(view_of(x)) / count;
  std::vector<double> squares;
  for (const float value : x) squares.push_back((value - exact_mean) * (value - exact_mean));
  tree_sum exact;
  exact.add(squares);
  return {exact.value() / count, value_of(one_pass), value_of(two_pass)};
}

/// E[x^2] - E[x]^2 and the mean of (x - E[x])^2, in fp32.
demo_table layernorm_variance() {
  demo_table table{{"mean", "variance", "E[x^2]-E[x]^2", "error", "two passes", "error (2)"}, {}};
  for (const double mean : {0.0, 1.0, 10.0, 100.0, 1000.0, 10000.0}) {
    const variance_case found = variance_of_case(mean);
    const auto error = [&](double variance) { return variance / found.exact - 1; };
    table.rows.push_back({mean, found.exact, found.one_pass, error(found.one_pass), found.two_pass,
                          error(found.two_pass)});
  }
  return table;
}

constexpr demo demos[] = {
    {"tiny-mul", "What is 1 * 1e-8?", tiny_mul,
     "1e-8 is below half the smallest subnormal of fp16, e5m2 and e4m3, so it becomes 0."},
    {"grad-once", "loss = c * sum(w): what is left of its gradient c, for c = 1e-8 or 1e-4 * 1e-4?",
     grad_once,
     "A loss scale saves products that are too small, but not a constant that is 0 itself."},
    {"repeated-sum", "Where does a sum stop growing?", repeated_sum,
     "A sum stops when the term is at most half the spacing at the sum: add in fp32."},
    {"error-growth", "What becomes of a weight of 1 after many updates of 1e-4?", error_growth,
     "To nearest, updates below half the spacing are lost. Stochastically, the mean of 64\n"
     "runs stays near the exact weight."},
    {"layernorm-variance", "Is E[x^2] - E[x]^2 as exact as two passes in fp32?", layernorm_variance,
     "The difference cancels: with the mean far from 0 the error exceeds the variance."},
};

// --- The subcommand ------------------------------------------------------------------------------

std::string cell_text(const demo_table::cell& cell) {
  const double* const value = std::get_if<double>(&cell);
  return value != nullptr ? general(*value, 6) : std::get<std::string>(cell);
}

/// Each column is two characters wider than its longest text.
std::string table_text(const demo_table& table) {
  std::vector<std::string> lines(table.rows.size() + 1);
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    std::vector<std::string> cells = {table.columns[i]};
    for (const auto& row : table.rows) cells.push_back(cell_text(row[i]));
    std::size_t width = 0;
    for (const std::string& cell : cells) width = std::max(width, cell.size() + 2);
    for (std::size_t k = 0; k < cells.size(); ++k) lines[k] += left(cells[k], width);
  }
  return joined(
      lines, [](const std::string& line) { return without_end_blanks(line) + "\n"; }, "");
}

json_value row_json(const demo_table& table, const std::vector<demo_table::cell>& row) {
  json_object cells;
  for (std::size_t i = 0; i < row.size(); ++i) {
    std::visit([&](const auto& cell) { cells.add(table.columns[i], cell); }, row[i]);
  }
  return cells.on_one_line();
}

run_function demo_command(option_list& add) {
  auto& shown = add.required(
      "NAME",
      [](std::string_view option, std::string_view text) {
        return &row_argument<demo>(option, text, demos);
      },
      "tiny-mul, grad-once, repeated-sum, error-growth or layernorm-variance");
  return [&](const session& s) {
    const demo_table table = shown->run();
    s.write({{"demo", shown->name},
             {"question", shown->question},
             {"rows", json_rows(table.rows, [&](const auto& row) { return row_json(table, row); })},
             {"answer", shown->answer}},
            cat(s.term.painted(paint::heading, shown->question), "\n\n", table_text(table), "\n",
                shown->answer, "\n"));
  };
}

const registered demo_here("demo", "Show what formats do to a small computation", 210,
                           demo_command);

}  // namespace
}  // namespace fpinspect
