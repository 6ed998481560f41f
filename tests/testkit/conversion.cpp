// Stages of a check: edges, borders of stochastic decisions, sizes and offsets, random batches, and
// the sweep.
#include "samebits/testkit/conversion.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "borders.hpp"
#include "domain_codes.hpp"
#include "report.hpp"
#include "samebits/error.hpp"
#include "seed.hpp"
#include "shrink.hpp"
#include "support/sweep.hpp"
#include "trial.hpp"

namespace samebits::testkit {
namespace {

constexpr std::uint64_t fp32_codes = std::uint64_t{1} << 32;

void check_effort_range(const conversion_under_test& conversion, const check_effort& effort) {
  if (effort.batches < 0) {
    throw invalid_argument("effort.batches must be >= 0, got " + std::to_string(effort.batches));
  }
  if (effort.batch_size < 1) {
    throw invalid_argument("effort.batch_size must be >= 1, got " +
                           std::to_string(effort.batch_size));
  }
  if (effort.sweep_stride != 0 && conversion.from != format_id::fp32) {
    throw invalid_argument(
        "effort.sweep_stride must be 0 unless conversion.from is fp32, got from " +
        std::string(name(conversion.from)));
  }
}

/// The codes of the stages. All codes lie in the domain of the function.
class stage_codes {
 public:
  stage_codes(const trial_runner& runner, std::uint64_t seed)
      : runner_(runner),
        domain_(runner.conversion().domain, runner.conversion().from, runner.conversion().to),
        seed_(seed) {}

  [[nodiscard]] const domain_codes& domain() const { return domain_; }

  [[nodiscard]] std::vector<std::uint64_t> random_codes(std::uint64_t seed,
                                                        std::size_t count) const {
    std::mt19937_64 engine(seed);
    std::vector<std::uint64_t> codes(count);
    for (std::uint64_t& code : codes) code = domain_.any_code([&engine] { return engine(); });
    return codes;
  }

  /// Returns the codes around every change of the result, or many random ones.
  [[nodiscard]] std::vector<std::uint64_t> edges() const {
    const int bits = spec_of(runner_.conversion().from).storage_bits;
    if (!domain_.listed().empty()) return domain_.listed();
    if (bits <= 16) {
      std::vector<std::uint64_t> codes;
      for (std::uint64_t code = 0; code < std::uint64_t{1} << bits; ++code) codes.push_back(code);
      return domain_.kept(codes);
    }
    if (!runner_.steps()) return random_codes(seed_, many);
    const auto around = support::code_steps(*runner_.steps()).codes_around(2);
    return domain_.kept({around.begin(), around.end()});
  }

  /// Returns codes at the border of their own stochastic decision: element i for the random bits of
  /// position i.
  [[nodiscard]] std::vector<std::uint64_t> borders() const {
    const conversion_under_test& conversion = runner_.conversion();
    if (conversion.rule.rounding != rounding::stochastic) return {};
    std::vector<std::uint64_t> codes = random_codes(seed_ + 1, many);
    rc::Random random(seed_);
    for (std::uint64_t i = 0; i < codes.size(); ++i) {
      auto border = border_of_last_bit(conversion, i);
      if (!border || !domain_.contains(border->away)) {
        border = border_beside(conversion, i, codes[i]);
      }
      if (!border) continue;
      const std::uint64_t code = random.next() % 2 == 0 ? border->toward : border->away;
      if (domain_.contains(code)) codes[i] = code;
    }
    return codes;
  }

  /// Returns random codes with one bit inverted. Some of these codes are a tie plus a small power
  /// of two: there, two roundings give another result than one rounding.
  [[nodiscard]] std::vector<std::uint64_t> with_one_bit() const {
    const auto bits = static_cast<std::uint64_t>(spec_of(runner_.conversion().from).storage_bits);
    std::vector<std::uint64_t> codes = random_codes(seed_ + 2, many / 4);
    for (std::size_t i = 0; i < codes.size(); ++i) codes[i] ^= std::uint64_t{1} << i % bits;
    return domain_.kept(codes);
  }

 private:
  static constexpr std::size_t many = std::size_t{1} << 16;

  const trial_runner& runner_;
  domain_codes domain_;
  std::uint64_t seed_;
};

/// The stages in order. Each stage returns a result only if it fails.
class stages {
 public:
  stages(trial_runner& runner, const check_effort& effort)
      : runner_(runner),
        effort_(effort),
        seed_(effort.seed != 0 ? effort.seed : new_seed()),
        codes_(runner, seed_) {}

  std::optional<check_result> edges() {
    std::vector<std::uint64_t> codes = codes_.edges();
    auto failed = attempt_parts(codes, "the edges of the conversion");
    const bool every_code = spec_of(runner_.conversion().from).storage_bits <= 16;
    if (!failed && every_code && !codes.empty()) {  // again, over other bytes: see fill_of()
      codes.erase(codes.begin());
      failed = attempt_parts(codes, "the edges of the conversion");
    }
    edges_are_right_ = !failed;
    return failed;
  }

  std::optional<check_result> borders() {
    auto failed = attempt_parts(codes_.borders(), "the borders of stochastic decisions");
    borders_are_right_ = !failed;
    return failed;
  }

  std::optional<check_result> sizes() {
    const std::vector<std::uint64_t> pool = codes_.random_codes(seed_, 4097);
    for (const std::int64_t around : {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096}) {
      for (std::int64_t size = around - 1; size <= around + 1; ++size) {
        for (int offset = 0; offset <= 16; offset += size > 257 ? 8 : 1) {
          for (const auto& [in, out] : {std::array{offset, 0}, {0, offset}, {offset, offset}}) {
            const trial t{{pool.begin(), pool.begin() + size}, in, out};
            if (auto failed = attempt(t, "sizes and offsets")) return failed;
          }
        }
      }
    }
    return std::nullopt;
  }

  std::optional<check_result> batches() {
    rc::Random random(seed_);
    for (int batch = 0; batch < effort_.batches; ++batch) {
      const std::string stage = "random batch " + std::to_string(batch) + " (seed " +
                                std::to_string(seed_) +
                                ", repeat with RC_PARAMS=\"seed=" + std::to_string(seed_) + "\")";
      if (auto failed = attempt(random_trial(random), stage)) return failed;
    }
    return std::nullopt;
  }

  std::optional<check_result> sweep() {
    const std::uint64_t stride = effort_.sweep_stride;
    if (stride == 0) return std::nullopt;
    constexpr std::uint64_t part = std::uint64_t{1} << 22;
    for (std::uint64_t first = 0; first < fp32_codes;) {
      const std::uint64_t left = (fp32_codes - first - 1) / stride + 1;
      const auto count = static_cast<std::size_t>(std::min(left, part));
      if (auto failed = sweep_piece(first, stride, count)) return failed;
      if (left <= part) break;
      first += count * stride;
    }
    return std::nullopt;
  }

 private:
  std::optional<check_result> attempt(const trial& t, const std::string& stage) {
    const verdict v = runner_.run(t);
    if (!v.failed()) return std::nullopt;
    return failure({t, v}, stage);
  }

  std::optional<check_result> attempt_parts(const std::vector<std::uint64_t>& codes,
                                            const std::string& stage) {
    for (const trial& t : parts_of(codes)) {
      if (auto failed = attempt(t, stage)) return failed;
    }
    return std::nullopt;
  }

  std::optional<check_result> sweep_piece(std::uint64_t first, std::uint64_t stride,
                                          std::size_t count) {
    const bool everything = runner_.conversion().domain.is_everything();
    trial t;
    if (!everything) t.codes = codes_.domain().kept(sequence(first, stride, count));
    const verdict v = everything ? runner_.run_sequence(first, stride, count) : runner_.run(t);
    if (!v.failed()) return std::nullopt;
    if (everything) t.codes = sequence(first, stride, count);
    return failure({t, v}, "the sweep");
  }

  /// Returns the result of a check that failed.
  check_result failure(failing_trial found, const std::string& stage) {
    const std::uint64_t compared = runner_.compared();
    const std::string how = "found by " + stage + " after " + std::to_string(compared) + " results";
    if (found.errors.wrong) see_more();
    const failing_trial smallest = shrunk(runner_, codes_.domain(), std::move(found));
    explanation why;
    if (smallest.errors.wrong) why = explain(runner_.conversion(), runner_.seen());
    return {compared, failure_text(runner_, smallest, why, how), smallest.errors.wrong};
  }

  /// Runs calls of every kind, whether they fail or not. The further results distinguish similar
  /// errors.
  void see_more() {
    std::vector<trial> calls = parts_of(codes_.with_one_bit());
    const auto add = [&](const std::vector<std::uint64_t>& codes) {
      for (trial& t : parts_of(codes)) calls.push_back(std::move(t));
    };
    if (!borders_are_right_) add(codes_.borders());
    if (!edges_are_right_) add(codes_.edges());
    rc::Random random(seed_);
    for (int batch = 0; batch < 4; ++batch) calls.push_back(random_trial(random));
    for (std::size_t size = 1; size <= 33; ++size) {
      calls.push_back({codes_.random_codes(random.next(), size), 0, 0});
    }
    for (const trial& t : calls) {
      if (!runner_.keeps_more() || !runner_.run(t).thrown.empty()) return;
    }
  }

  trial random_trial(rc::Random& random) const {
    const auto maximum = static_cast<std::uint64_t>(effort_.batch_size);
    const auto count = static_cast<std::size_t>(1 + random.next() % maximum);
    const std::uint64_t offsets = random.next();
    return {codes_.random_codes(random.next(), count), static_cast<int>(offsets % 17),
            static_cast<int>((offsets >> 32) % 17)};
  }

  static std::vector<trial> parts_of(const std::vector<std::uint64_t>& codes) {
    constexpr std::size_t part = std::size_t{1} << 16;
    std::vector<trial> parts;
    for (std::size_t first = 0; first < codes.size(); first += part) {
      const std::size_t last = std::min(codes.size(), first + part);
      parts.push_back({{codes.begin() + static_cast<std::ptrdiff_t>(first),
                        codes.begin() + static_cast<std::ptrdiff_t>(last)},
                       0,
                       0});
    }
    return parts;
  }

  static std::vector<std::uint64_t> sequence(std::uint64_t first, std::uint64_t stride,
                                             std::size_t count) {
    std::vector<std::uint64_t> codes(count);
    for (std::size_t i = 0; i < count; ++i) codes[i] = first + i * stride;
    return codes;
  }

  trial_runner& runner_;
  check_effort effort_;
  std::uint64_t seed_;
  stage_codes codes_;
  bool edges_are_right_ = false;  // then see_more() does not repeat the edges
  bool borders_are_right_ = false;
};

}  // namespace

check_result check_raw(const conversion_under_test& conversion, const raw_function& function,
                       const check_effort& effort) {
  check_effort_range(conversion, effort);
  trial_runner runner(conversion, function);
  stages run(runner, effort);
  for (const auto stage :
       {&stages::edges, &stages::borders, &stages::sizes, &stages::batches, &stages::sweep}) {
    if (auto failed = (run.*stage)()) return *failed;
  }
  return {runner.compared(), {}, std::nullopt};
}

}  // namespace samebits::testkit
