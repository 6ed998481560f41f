// predict(), and the distance of results from exact values.
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/api/view_checks.hpp"
#include "backends/dispatch/matmul_element.hpp"
#include "backends/reference/reference.hpp"
#include "backends/self_test/self_test.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"
#include "samebits/error.hpp"
#include "samebits/matmul.hpp"
#include "samebits/reductions.hpp"

namespace samebits {
namespace {

double number_of(format_id f, std::uint64_t code) {
  return std::bit_cast<double>(numerics::decode(spec_of(f), code));
}

double exact_at(const const_matrix_view& v, std::int64_t r, std::int64_t c) {
  double x = 0;
  std::memcpy(&x, backends::element_at(v, r, c), sizeof x);
  return x;
}

/// Inputs of the sums over all elements.
struct error_inputs {
  std::vector<double> error;
  std::vector<double> signal;
  std::vector<double> noise;
  std::vector<double> rounding;
  std::vector<double> accumulation;
};

void count_octave(product_error& e, double error, double exact) {
  int octave = 0;
  if (exact != 0) {
    // ratio = m * 2^exponent with m in [1, 2)
    const int exponent = std::ilogb(error / std::abs(exact));
    octave = exponent >= 0 ? 0 : -exponent - 1;
  }
  const int last = static_cast<int>(e.octaves.size()) - 1;
  ++e.octaves[static_cast<std::size_t>(octave < last ? octave : last)];
}

void see(product_error& e, error_inputs& inputs, format_id format, std::uint64_t code,
         double exact) {
  const double result = number_of(format, code);
  if (!std::isfinite(result) || !std::isfinite(exact)) {
    ++e.nonfinite;
    return;
  }
  const std::uint64_t nearest_code =
      numerics::encode<std::uint64_t>(spec_of(format), cast_rule{},
                                      std::bit_cast<std::uint64_t>(exact), 0)
          .code;
  const double nearest = number_of(format, nearest_code);
  const double error = std::abs(result - exact);
  inputs.error.push_back(error);
  inputs.signal.push_back(exact * exact);
  inputs.noise.push_back(error * error);
  inputs.rounding.push_back((nearest - exact) * (nearest - exact));
  inputs.accumulation.push_back((result - nearest) * (result - nearest));
  if (error > e.max) e.max = error;
  if (error == 0) return;
  ++e.unequal;
  count_octave(e, error, exact);
}

double sum_of(const std::vector<double>& inputs) {
  tree_sum sum;
  sum.add(inputs);
  return sum.value();
}

}  // namespace

product_error error_of(const const_matrix_view& results, const const_matrix_view& exact) {
  backends::check_view(results, "results");
  backends::check_view(exact, "exact");
  backends::check_format(results, "results", backends::number_formats);
  backends::check_format(exact, "exact", std::array{format_id::fp64});
  backends::check_shape_of(exact, "exact", results, "results");
  backends::check_host(results, "results");
  backends::check_host(exact, "exact");
  backends::require_tested(backends::reference);
  product_error e;
  error_inputs inputs;
  for (std::int64_t r = 0; r < results.rows; ++r) {
    for (std::int64_t c = 0; c < results.cols; ++c) {
      see(e, inputs, results.format, backends::code_at(results, r, c), exact_at(exact, r, c));
    }
  }
  e.count = static_cast<std::uint64_t>(results.rows * results.cols);
  const std::size_t finite = inputs.error.size();
  e.mean = finite == 0 ? 0 : sum_of(inputs.error) / static_cast<double>(finite);
  e.signal = sum_of(inputs.signal);
  e.noise = sum_of(inputs.noise);
  e.rounding_noise = sum_of(inputs.rounding);
  e.accumulation_noise = sum_of(inputs.accumulation);
  return e;
}

prediction predict(const const_matrix_view& a, const const_matrix_view& b, const matrix_view& d,
                   const accumulator& sum, const matmul_options& options, const executor& where) {
  backends::check_format(d, "d", backends::number_formats);
  backends::require_tested(backends::reference);
  matmul(a, b, d, sum, options, where);
  const auto size = static_cast<std::size_t>(d.rows * d.cols);
  std::vector<double> exact(size);
  const matrix_view exact_view = view_of(exact.data(), d.rows, d.cols);
  matmul(a, b, exact_view, accumulator::exact(), options, where);
  return {evidence_of(sum, a.format, b.format), error_of(d, exact_view)};
}

}  // namespace samebits
