// fp16 add and mul on all 2^32 pairs, or on every N-th first operand, in every deterministic mode;
// values and flags against the exact oracle:
//
//   fp16_pairs add|mul STRIDE [THREADS]
//
// binary64 holds the exact sum and product of any two fp16 numbers. Between two neighbours among
// the grid points of fp16, the midpoints and a few points around the extremes, code and flags are
// constant: the oracle rounds each such point and interval once per mode. For a fixed first operand
// the exact results of all second ones, in order, then walk along that list. Prints one line per
// mode; the exit status is 1 if any result differs and 2 for a bad command line.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "exhaustive/sweep_program.hpp"
#include "oracle/convert.hpp"
#include "samebits/arithmetic.hpp"
#include "support/arithmetic_case.hpp"
#include "support/rules.hpp"

namespace samebits {
namespace {

using namespace support;

const oracle::format& oracle_format = oracle::format_named("fp16");
const oracle::format& fp64 = oracle::format_named("fp64");

/// The value of a finite code.
double value_of(std::uint64_t code) {
  return std::bit_cast<double>(oracle::convert(oracle_format, fp64, code, {}));
}

/// Where code or flags of a result may change, ascending: both signs, without zero.
std::vector<double> critical_points() {
  std::vector<double> points;
  for (std::uint64_t code = 0; code < oracle_format.max_finite; ++code) {
    points.push_back(value_of(code + 1));
    points.push_back((value_of(code) + value_of(code + 1)) / 2);
  }
  const double max = value_of(oracle_format.max_finite);
  const double ulp = max - value_of(oracle_format.max_finite - 1);
  points.push_back(max + ulp / 2);
  points.push_back(max + ulp);
  // As rounded with unbounded exponent, what is just below the least normal number.
  const double normal = value_of(oracle_format.min_normal);
  const double minimum = value_of(oracle_format.min_subnormal);
  points.push_back(normal - minimum / 4);
  const std::size_t count = points.size();
  for (std::size_t i = 0; i < count; ++i) points.push_back(-points[i]);
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  return points;
}

/// Expected results at the critical points and between them, for one mode.
class step_list {
 public:
  step_list(const std::vector<double>& points, rounding mode) : points_(&points) {
    const cast_rule rule{mode};
    const auto rounded = [&](double x) {
      return oracle::round_outcome(oracle_format,
                                   {oracle::decode(fp64, std::bit_cast<std::uint64_t>(x))}, rule);
    };
    between_.push_back(rounded(points.front() * 2));
    for (std::size_t i = 0; i < points.size(); ++i) {
      at_.push_back(rounded(points[i]));
      const bool last = i + 1 == points.size();
      // Around 0 the two halves differ in sign; a zero itself is not looked up here.
      between_.push_back(rounded(last ? points[i] * 2 : points[i] / 2 + points[i + 1] / 2));
      if (!last && points[i] < 0 && points[i + 1] > 0) {
        zero_ = i + 1;
        below_zero_ = rounded(points[i] / 2);
        between_.back() = rounded(points[i + 1] / 2);
      }
    }
  }

  /// The expected result for x != 0; `hint` moves to its entry and is best kept from a neighbour of
  /// x.
  [[nodiscard]] const oracle::rounded_result& look_up(double x, std::size_t& hint) const {
    const std::vector<double>& p = *points_;
    while (hint < p.size() && p[hint] < x) ++hint;
    while (hint > 0 && p[hint - 1] >= x) --hint;
    if (hint < p.size() && p[hint] == x) return at_[hint];
    return hint == zero_ && x < 0 ? below_zero_ : between_[hint];
  }

 private:
  const std::vector<double>* points_;
  std::vector<oracle::rounded_result> at_;
  std::vector<oracle::rounded_result> between_;  ///< [i] below point i
  std::size_t zero_ = 0;
  oracle::rounded_result below_zero_{};
};

/// What decides where the exact result is no number other than zero.
constexpr std::array<std::uint64_t, 10> class_samples{0x0000, 0x8000, 0x3C00, 0xBC00, 0x7C00,
                                                      0xFC00, 0x7E00, 0xFE00, 0x7C01, 0xFC01};

std::size_t class_of(std::uint64_t code) {
  const std::uint64_t magnitude = code & 0x7FFF;
  const std::size_t kind = magnitude == 0        ? 0
                           : magnitude < 0x7C00  ? 2
                           : magnitude == 0x7C00 ? 4
                           : magnitude >= 0x7E00 ? 6
                                                 : 8;
  return kind + (code >> 15);
}

class sweep {
 public:
  sweep(operation op, const std::vector<double>& points, rounding mode)
      : op_(op), rule_{mode}, steps_(points, mode) {
    for (std::size_t i = 0; i < class_samples.size(); ++i) {
      for (std::size_t j = 0; j < class_samples.size(); ++j) {
        specials_[i][j] = expected_result(case_of(class_samples[i], class_samples[j]));
      }
    }
    for (std::uint64_t code = 0; code < 65536; ++code) {
      codes_.push_back(static_cast<std::uint16_t>(code));
      values_.push_back((code & 0x7FFF) < 0x7C00 ? value_of(code) : 0);
    }
    std::sort(codes_.begin(), codes_.end(),
              [&](std::uint16_t a, std::uint16_t b) { return values_[a] < values_[b]; });
  }

  void run(std::uint64_t a, comparison_counts& t) const {
    const auto first = fp16::from_bits(static_cast<std::uint16_t>(a));
    std::size_t hint = 0;
    for (const std::uint16_t b : codes_) {
      const auto second = fp16::from_bits(b);
      const auto got =
          op_ == operation::add ? add<fp16>(first, second, rule_) : mul<fp16>(first, second, rule_);
      const oracle::rounded_result& expected = expected_of(a, b, hint);
      ++t.compared;
      if (got.value.bits() == expected.code &&
          static_cast<unsigned>(got.raised) == expected.flags) {
        continue;
      }
      if (t.differing++ == 0) {
        const auto text = same_result(case_of(a, b), {got.value.bits(), got.raised}, expected);
        std::printf("%s\n", text.message());
      }
    }
  }

 private:
  [[nodiscard]] arithmetic_case case_of(std::uint64_t a, std::uint64_t b) const {
    return {.op = op_,
            .x = {{format_id::fp16, a}, {format_id::fp16, b}},
            .to = format_id::fp16,
            .rule = rule_,
            .where = "the fp16 template"};
  }

  const oracle::rounded_result& expected_of(std::uint64_t a, std::uint64_t b,
                                            std::size_t& hint) const {
    const std::size_t x = class_of(a);
    const std::size_t y = class_of(b);
    const double exact = op_ == operation::add ? values_[a] + values_[b] : values_[a] * values_[b];
    if (x >= 4 || y >= 4 || exact == 0) return specials_[x][y];
    return steps_.look_up(exact, hint);
  }

  operation op_;
  cast_rule rule_;
  step_list steps_;
  std::array<std::array<oracle::rounded_result, 10>, 10> specials_{};
  std::vector<std::uint16_t> codes_;
  std::vector<double> values_;
};

std::optional<bool> agrees(const command_line& words) {
  if (words.size() != 2 && words.size() != 3) return std::nullopt;
  const std::optional<operation> op = find_enumerator<operation>(words[0]);
  const std::uint64_t stride = words.number(1) * effort_divisor, threads = words.number(2, 1);
  if (stride == 0 || threads == 0 || (op != operation::add && op != operation::mul)) {
    return std::nullopt;
  }
  const std::vector<double> points = critical_points();
  bool good = true;
  for (const rounding mode : deterministic_modes) {
    const sweep whole(*op, points, mode);
    const auto counts = sum_on_threads(threads, [&](std::uint64_t thread) {
      comparison_counts mine;
      for (std::uint64_t a = thread * stride; a < 65536; a += threads * stride) whole.run(a, mine);
      return mine;
    });
    good = all_agree("fp16 " + words[0] + ' ' + std::string(name(mode)), counts) && good;
  }
  return good;
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) {
  return samebits::support::run_program(argc, argv, "fp16_pairs add|mul STRIDE [THREADS]",
                                        samebits::agrees);
}
