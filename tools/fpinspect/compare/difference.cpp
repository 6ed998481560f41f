// How the values of two tensors differ: implementation.
#include "fpinspect/compare/comparison.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/formats/describe.hpp"

namespace fpinspect {
using samebits::format_id;

double difference_figures::mean_error() const {
  return paired == 0 ? 0.0 : sum_error / static_cast<double>(paired);
}

sqnr difference_figures::ratio() const {
  if (count == 0) return {.empty = true, .reason = "there are no elements"};
  std::string reason;
  const auto add = [&](std::uint64_t elements, const char* what) {
    if (elements != 0) reason += cat(reason.empty() ? "" : ", ", elements, " ", what);
  };
  add(new_nan, "new NaN");
  add(new_inf, "new Inf");
  add(lost_nan, "NaN became numbers");
  add(lost_inf, "Inf became other values");
  if (!reason.empty()) return {.reason = reason};
  if (differ == 0) return {.exact = true};
  if (const auto db = sqnr_db(signal, noise)) return {.db = db};
  if (signal == 0) return {.reason = "the reference is all zeros"};
  return {.reason = "signal or noise is beyond binary64"};
}

format_id coarser(format_id a, format_id b) {
  if (a == b) return a;
  if (a == format_id::e8m0) return b;
  if (b == format_id::e8m0) return a;
  const samebits::format_spec& in_a = samebits::spec_of(a);
  const samebits::format_spec& in_b = samebits::spec_of(b);
  if (in_a.mantissa_bits != in_b.mantissa_bits) {
    return in_a.mantissa_bits < in_b.mantissa_bits ? a : b;
  }
  return in_a.exponent_bits < in_b.exponent_bits ? a : b;
}

std::uint64_t code_distance(format_id format, std::uint64_t a, std::uint64_t b) {
  const samebits::format_spec& spec = samebits::spec_of(format);
  const int magnitude_bits = spec.exponent_bits + spec.mantissa_bits;
  // Positions on the line of all values; a negative one is in two's complement.
  const auto position = [&](std::uint64_t code) {
    code >>= spec.padding_bits;
    const std::uint64_t magnitude = code & ((std::uint64_t{1} << magnitude_bits) - 1);
    return (code >> magnitude_bits & 1) != 0 ? 0 - magnitude : magnitude;
  };
  const std::uint64_t x = position(a);
  const std::uint64_t y = position(b);
  return static_cast<std::int64_t>(x) > static_cast<std::int64_t>(y) ? x - y : y - x;
}

void difference_meter::add_specials(double a, double b) {
  difference_figures& f = figures_;
  if (std::isnan(a)) ++f.lost_nan;
  if (std::isnan(b)) ++f.new_nan;
  if (std::isinf(a)) ++f.lost_inf;
  if (std::isinf(b)) ++f.new_inf;
}

void difference_meter::add_values(std::span<const double> a, std::span<const double> b) {
  difference_figures& f = figures_;
  inputs_.resize(3 * a.size());
  const std::span<double> all = inputs_;
  const std::span<double> error = all.first(a.size());
  const std::span<double> signal = all.subspan(a.size(), a.size());
  const std::span<double> noise = all.last(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = a[i];
    const double y = b[i];
    const bool paired = std::isfinite(x) && std::isfinite(y);
    const double d = paired ? std::fabs(x - y) : 0.0;
    error[i] = d;
    signal[i] = paired ? x * x : 0.0;
    noise[i] = d * d;
    f.paired += paired ? 1u : 0u;
    const bool some = std::isfinite(x) && x != 0.0;
    f.nonzero += some ? 1u : 0u;
    f.underflow += some && y == 0.0 ? 1u : 0u;
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    ++f.differ;
    const found_difference here = {f.count + i, x, y};
    if (!f.first) f.first = here;
    if (!paired) add_specials(x, y);
    if (d > f.max_error) {
      f.max_error = d;
      f.largest = here;
    }
  }
  errors_.add(error);
  signal_.add(signal);
  noise_.add(noise);
}

void difference_meter::add(std::span<const double> a, std::span<const double> b,
                           const std::byte* codes_a, const std::byte* codes_b) {
  add_values(a, b);
  const auto bytes = static_cast<std::size_t>(samebits::storage_bytes(figures_.ulp_format));
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) continue;
    const std::uint64_t distance =
        code_distance(figures_.ulp_format, load_code(codes_a + i * bytes, bytes),
                      load_code(codes_b + i * bytes, bytes));
    figures_.max_ulp = std::max(figures_.max_ulp, distance);
    ++figures_.steps[static_cast<std::size_t>(std::bit_width(distance))];
  }
  figures_.count += a.size();
}

difference_figures difference_meter::result() const {
  difference_figures result = figures_;
  result.sum_error = errors_.value();
  result.signal = signal_.value();
  result.noise = noise_.value();
  return result;
}

void closeness::add(std::span<const double> original, std::span<const double> in_a,
                    std::span<const double> in_b) {
  for (std::size_t i = 0; i < original.size(); ++i) {
    const double to_a = std::fabs(original[i] - in_a[i]);
    const double to_b = std::fabs(original[i] - in_b[i]);
    // A value that is not finite is farther away than every number.
    const bool far_a = !std::isfinite(to_a);
    const bool far_b = !std::isfinite(to_b);
    if (to_a < to_b || (far_b && !far_a)) {
      ++a;
    } else if (to_b < to_a || (far_a && !far_b)) {
      ++b;
    } else {
      ++equal;
    }
  }
}

}  // namespace fpinspect
