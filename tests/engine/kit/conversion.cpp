// Stages of a check of a conversion: edges, borders of stochastic decisions, sizes and offsets, random batches, and
// the sweep.
#include "engine/kit/conversion.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/explain/errors.hpp"
#include "engine/kit/borders.hpp"
#include "engine/kit/domain_codes.hpp"
#include "engine/kit/report.hpp"
#include "engine/kit/simpler.hpp"
#include "samebits/error.hpp"
#include "samebits/scalar.hpp"

namespace samebits::testkit {
namespace {

constexpr std::uint64_t fp32_codes = std::uint64_t{1} << 32;
constexpr std::size_t part_size = std::size_t{1} << 16;   // elements of one call
constexpr std::size_t sweep_size = std::size_t{1} << 18;  // of one call of the sweep
constexpr std::size_t first_positions = 32;               // tried for a stochastic error

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

std::vector<trial> calls_of(const code_list& codes) {
  std::vector<trial> parts;
  for (std::size_t first = 0; first < codes.size(); first += part_size) {
    const auto begin = codes.begin() + static_cast<std::ptrdiff_t>(first);
    const std::size_t count = std::min(part_size, codes.size() - first);
    parts.push_back(row_of({begin, begin + static_cast<std::ptrdiff_t>(count)}));
  }
  return parts;
}

/// The codes of the stages. All codes lie in the domain of the function.
class stage_codes {
 public:
  stage_codes(const conversion_under_test& conversion, std::uint64_t seed)
      : conversion_(conversion),
        domain_(conversion.domain, conversion.from, conversion.to),
        seed_(seed) {}

  [[nodiscard]] const domain_codes& domain() const { return domain_; }

  [[nodiscard]] code_list random_codes(std::uint64_t seed, std::size_t count) const {
    std::mt19937_64 engine(seed);
    return domain_.any_codes(count, [&engine] { return engine(); });
  }

  /// The codes around every change of the result, or many random ones.
  [[nodiscard]] code_list edges() const {
    if (!domain_.listed().empty()) return domain_.listed();
    const int bits = spec_of(conversion_.from).storage_bits;
    if (bits <= 16) {
      code_list codes;
      for (std::uint64_t code = 0; code < std::uint64_t{1} << bits; ++code) codes.push_back(code);
      return domain_.kept(codes);
    }
    const format_spec to = spec_of(conversion_.to);
    const bool many_results = to.exponent_bits + to.mantissa_bits > (bits == 32 ? 20 : 8);
    if (conversion_.rule.rounding == rounding::stochastic || many_results) {
      return random_codes(seed_, part_size);
    }
    return domain_.kept(codes_around_changes(conversion_));
  }

  /// Codes at the border of their own stochastic decision: element i for the random bits of
  /// position i.
  [[nodiscard]] code_list borders() const {
    if (conversion_.rule.rounding != rounding::stochastic) return {};
    code_list codes = random_codes(seed_ + 1, part_size);
    std::vector<std::optional<decision_border>> borders(codes.size());
    code_list tried;
    for (std::uint64_t i = 0; i < codes.size(); ++i) {
      borders[i] = border_of_last_bit(conversion_, i);
      if (borders[i]) tried.push_back(borders[i]->away);
    }
    domain_.prepare(tried);
    tried = codes;
    std::mt19937_64 engine(seed_);
    for (std::uint64_t i = 0; i < codes.size(); ++i) {
      if (!borders[i] || !domain_.contains(borders[i]->away)) {
        borders[i] = border_beside(conversion_, i, codes[i]);
      }
      if (borders[i]) tried[i] = engine() % 2 == 0 ? borders[i]->toward : borders[i]->away;
    }
    domain_.prepare(tried);
    for (std::size_t i = 0; i < codes.size(); ++i) {
      if (domain_.contains(tried[i])) codes[i] = tried[i];
    }
    return codes;
  }

  /// Random codes with one bit inverted. Some of these codes are a tie plus a small power of two:
  /// there, two roundings give another result than one rounding.
  [[nodiscard]] code_list with_one_bit() const {
    const auto bits = static_cast<std::uint64_t>(spec_of(conversion_.from).storage_bits);
    code_list codes = random_codes(seed_ + 2, part_size / 4);
    for (std::size_t i = 0; i < codes.size(); ++i) codes[i] ^= std::uint64_t{1} << i % bits;
    return domain_.kept(codes);
  }

  /// Calls of the wrong element alone. For stochastic rounding, position 0 has other random bits, so
  /// short calls follow that end with a code at the border of its own decision.
  [[nodiscard]] std::vector<trial> short_calls(std::uint64_t wrong) const {
    std::vector<trial> calls{row_of({wrong})};
    if (conversion_.rule.rounding != rounding::stochastic) return calls;
    const std::uint64_t one =
        convert_code(format_id::fp64, conversion_.from, 0x3FF0000000000000u).code;
    for (std::size_t position = 0; position < first_positions; ++position) {
      for (const std::uint64_t beside : {one, wrong}) {
        const auto border = border_beside(conversion_, position, beside);
        if (!border) continue;
        for (const std::uint64_t code : {border->away, border->toward}) {
          code_list codes(position, one);
          codes.push_back(code);
          calls.push_back(row_of(std::move(codes)));
        }
      }
    }
    return calls;
  }

 private:
  const conversion_under_test& conversion_;
  domain_codes domain_;
  std::uint64_t seed_;
};

/// The stages in order. Each stage returns a failure or nothing.
class stages {
 public:
  stages(const conversion_under_test& conversion, const array_function& function,
         const check_effort& effort, const call_plan& plan)
      : conversion_(conversion),
        effort_(effort),
        plan_(plan),
        seed_(effort.seed != 0 ? effort.seed : new_seed()),
        runner_(specification_of(conversion), function, opinion_of(conversion, effort)),
        codes_(conversion_, seed_) {}

  check_outcome run() {
    using stage = stage_result (stages::*)();
    std::vector<stage> order{&stages::edges, &stages::borders, &stages::sizes, &stages::batches,
                             &stages::sweep};
    if (plan_.sizes_first) std::rotate(order.begin(), order.begin() + 2, order.begin() + 3);
    for (const stage next : order) {
      if (auto failed = (this->*next)()) return {compared_, std::move(failed)};
    }
    return {runner_.compared(), std::nullopt};
  }

 private:
  using stage_result = std::optional<failed_call>;

  static runner::opinion opinion_of(const conversion_under_test& c, const check_effort& effort) {
    if (effort.oracle == nullptr) return {};
    return [c, oracle = effort.oracle](const seen_call& call) -> std::string {
      for (std::size_t i = 0; i < call.in.codes.size(); ++i) {
        const std::uint64_t exact = oracle(c, call.in.codes[i], i);
        if (exact == call.expected[0][i]) continue;
        return "has no expected result: samebits' own reference and the oracle disagree on input " +
               std::to_string(call.in.codes[i]) + ": " + std::to_string(call.expected[0][i]) +
               " and " + std::to_string(exact);
      }
      return {};
    };
  }

  stage_result edges() {
    code_list codes = codes_.edges();
    stage_result failed = attempt_all(calls_of(codes), "the edges of the conversion");
    const bool every_code = spec_of(conversion_.from).storage_bits <= 16;
    if (!failed && every_code && !codes.empty()) {  // again, over other bytes: see fill_of()
      codes.erase(codes.begin());
      failed = attempt_all(calls_of(codes), "the edges of the conversion");
    }
    edges_are_right_ = !failed;
    return failed;
  }

  stage_result borders() {
    stage_result failed =
        attempt_all(calls_of(codes_.borders()), "the borders of stochastic decisions");
    borders_are_right_ = !failed;
    return failed;
  }

  stage_result sizes() {
    const code_list pool = codes_.random_codes(seed_, 4097);
    for (const std::int64_t around : {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096}) {
      for (std::int64_t size = around - 1; size <= around + 1; ++size) {
        const int step = size > 257 ? std::max(plan_.in_offsets / 2, 1) : 1;
        for (int offset = 0; offset < plan_.in_offsets; offset += step) {
          const bool both = plan_.out_offsets > 1;
          for (const auto& [in, out] : {std::array{offset, 0}, {0, offset}, {offset, offset}}) {
            if (!both && (in != offset || out != 0)) continue;
            const trial t = row_of({pool.begin(), pool.begin() + size}, in, out);
            if (stage_result failed = attempt(t, "sizes and offsets")) return failed;
          }
        }
      }
    }
    return std::nullopt;
  }

  stage_result batches() {
    std::mt19937_64 engine(seed_);
    for (int batch = 0; batch < effort_.batches; ++batch) {
      const std::string stage = "random batch " + std::to_string(batch) + " (seed " +
                                std::to_string(seed_) +
                                ", repeat with RC_PARAMS=\"seed=" + std::to_string(seed_) + "\")";
      if (stage_result failed = attempt(random_trial(engine), stage)) return failed;
    }
    return std::nullopt;
  }

  stage_result sweep() {
    const std::uint64_t stride = effort_.sweep_stride;
    const array_function fast = specification_of(conversion_, executor{}).reference;
    const array_function reference = runner_.what().reference;
    for (std::uint64_t next = 0; stride != 0 && next < fp32_codes;) {
      code_list codes;
      codes.reserve(sweep_size);
      for (; codes.size() < sweep_size && next < fp32_codes; next += stride) codes.push_back(next);
      const trial t = row_of(codes_.domain().kept(std::move(codes)));
      runner_.set_reference(fast);
      const bool failed = runner_.run(t).failed();
      runner_.set_reference(reference);
      if (!failed) continue;
      if (stage_result result = attempt(t, "the sweep")) return result;
    }
    return std::nullopt;
  }

  stage_result attempt(const trial& t, const std::string& stage) {
    verdict v = runner_.run(t);
    if (!v.failed()) return std::nullopt;
    return failure(t, std::move(v), stage);
  }

  stage_result attempt_all(const std::vector<trial>& calls, const std::string& stage) {
    for (const trial& t : calls) {
      if (stage_result failed = attempt(t, stage)) return failed;
    }
    return std::nullopt;
  }

  failed_call failure(trial in, verdict v, const std::string& stage) {
    compared_ = runner_.compared();
    std::string how = "found by " + stage + " after " + std::to_string(compared_) + " results";
    if (v.wrong) see_more();
    std::vector<trial> alone;
    if (v.wrong) alone = codes_.short_calls(in.codes[v.wrong->element]);
    in = shrunk_row(runner_, std::move(in), v, std::move(alone));
    explanation why;
    if (v.wrong) why = explained(conversion_, runner_);
    return {std::move(in), std::move(v), std::move(why), std::move(how)};
  }

  /// Runs calls of every kind, whether they fail or not. The further results distinguish similar
  /// errors.
  void see_more() {
    std::vector<trial> calls = calls_of(codes_.with_one_bit());
    const auto add = [&](const code_list& codes) {
      for (trial& t : calls_of(codes)) calls.push_back(std::move(t));
    };
    if (!borders_are_right_) add(codes_.borders());
    std::mt19937_64 engine(seed_);
    if (!edges_are_right_) {
      code_list edges = codes_.edges();
      for (std::size_t i = part_size; i < edges.size(); ++i) {  // keeps as many random ones
        const std::uint64_t kept = engine() % (i + 1);
        if (kept < part_size) edges[kept] = edges[i];
      }
      edges.resize(std::min(edges.size(), part_size));
      add(edges);
    }
    for (int batch = 0; batch < 4; ++batch) calls.push_back(random_trial(engine));
    for (std::size_t size = 1; size <= 33; ++size) {
      calls.push_back(row_of(codes_.random_codes(engine(), size)));
    }
    for (const trial& t : calls) {
      if (!runner_.keeps_more() || !runner_.run(t).thrown.empty()) return;
    }
  }

  trial random_trial(std::mt19937_64& engine) const {
    const auto maximum = static_cast<std::uint64_t>(effort_.batch_size);
    const auto count = static_cast<std::size_t>(1 + engine() % maximum);
    const std::uint64_t offsets = engine();
    const auto in_offsets = static_cast<std::uint64_t>(plan_.in_offsets);
    const auto out_offsets = static_cast<std::uint64_t>(plan_.out_offsets);
    return row_of(codes_.random_codes(engine(), count), static_cast<int>(offsets % in_offsets),
                  static_cast<int>((offsets >> 32) % out_offsets));
  }

  conversion_under_test conversion_;
  check_effort effort_;
  call_plan plan_;
  std::uint64_t seed_;
  runner runner_;
  stage_codes codes_;
  std::uint64_t compared_ = 0;    // when the failure was found
  bool edges_are_right_ = false;  // then see_more() does not repeat the edges
  bool borders_are_right_ = false;
};

counterexample counterexample_of(const conversion_under_test& c, const failed_call& failure) {
  const trial& in = failure.in;
  const verdict& v = failure.found;
  const std::size_t i = v.wrong->element;
  const auto beside = neighbours_of(c, in.codes[i]);
  return {in.codes[i],
          v.call.got[0][i],
          v.call.expected[0][i],
          beside && beside->part == 0.5,
          static_cast<std::int64_t>(i),
          in.cols,
          in.in_offset,
          in.out_offset};
}

}  // namespace

check_outcome check_calls(const conversion_under_test& conversion, const array_function& function,
                          const check_effort& effort, const call_plan& plan) {
  check_effort_range(conversion, effort);
  return stages(conversion, function, effort, plan).run();
}

check_result check_raw(const conversion_under_test& conversion, const raw_function& function,
                       const check_effort& effort) {
  require_element_size("in of the function under test", function.in_bytes, conversion.from);
  require_element_size("out of the function under test", function.out_bytes, conversion.to);
  const auto call = [&](const trial& in, std::span<guarded_array> a) {
    function.call({a[0].memory(), a[1].memory(), a[0].at(), a[1].at(), in.cols});
  };
  const check_outcome done = check_calls(conversion, call, effort);
  if (!done.failure) return {done.compared, {}, std::nullopt};
  std::optional<counterexample> wrong;
  if (done.failure->found.wrong) wrong = counterexample_of(conversion, *done.failure);
  return {done.compared, failure_text(conversion, *done.failure), wrong};
}

}  // namespace samebits::testkit
