// Runs and checks single calls.
#include "trial.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "guarded_array.hpp"
#include "oracle/convert.hpp"
#include "oracle/philox.hpp"
#include "samebits/convert.hpp"
#include "samebits/error.hpp"
#include "support/grid_step.hpp"
#include "support/rules.hpp"

namespace samebits::testkit {
namespace {

std::size_t width(format_id f) { return static_cast<std::size_t>(storage_bytes(f)); }

/// Returns a part of a call: some elements before element `i`, and many after it.
seen_call part_of(const seen_call& all, std::size_t i) {
  constexpr std::size_t before = 256;
  constexpr std::size_t maximum = std::size_t{1} << 16;
  const std::size_t first = i - std::min(i, before);
  const std::size_t last = std::min(all.in.size(), first + maximum);
  const auto cut = [&](const std::vector<std::uint64_t>& codes) {
    return std::vector<std::uint64_t>(codes.begin() + static_cast<std::ptrdiff_t>(first),
                                      codes.begin() + static_cast<std::ptrdiff_t>(last));
  };
  return {cut(all.in), cut(all.got), cut(all.expected), all.first + first, all.count};
}

void require_element_size(const char* what, std::size_t got, format_id format) {
  if (got == width(format)) return;
  throw invalid_argument(std::string(what) + " of the function under test has elements of " +
                         std::to_string(got) + " bytes, expected " + std::to_string(width(format)) +
                         " of " + std::string(name(format)));
}

bool is_tie(const conversion_under_test& conversion, std::uint64_t code) {
  const oracle::exact_value x = oracle::decode(support::oracle_of(conversion.from), code);
  if (x.kind != oracle::value_kind::finite) return false;
  const support::grid_step step = support::locate(support::oracle_of(conversion.to), x);
  return step.lower != step.upper && step.part * 2 == step.whole;
}

}  // namespace

trial_runner::trial_runner(const conversion_under_test& conversion, const raw_function& function)
    : conversion_(conversion), function_(function) {
  require_element_size("in", function.in_bytes, conversion.from);
  require_element_size("out", function.out_bytes, conversion.to);
  reference_codes(nullptr, 0, nullptr);  // throws for arguments that samebits::convert refuses
  const oracle::format& to = support::oracle_of(conversion.to);
  if (conversion.from == format_id::fp32 && conversion.rule.rounding != rounding::stochastic &&
      (to.max_finite >> to.unused_low_bits) < oracle::max_destination_magnitudes) {
    steps_ = oracle::make_step_function(support::oracle_of(format_id::fp32), to, conversion.rule);
    ordered_steps_.emplace(*steps_);
  }
}

void trial_runner::reference_codes(const void* in, std::size_t count, void* out) const {
  const auto cols = static_cast<std::int64_t>(count);
  const cast_rule& rule = conversion_.rule;
  convert(view_of_codes(conversion_.from, in, 1, cols), view_of_codes(conversion_.to, out, 1, cols),
          {rule.rounding, rule.overflow, rule.nan, conversion_.random}, find_executor("reference"));
}

support::conversion_case trial_runner::case_of(std::uint64_t code, std::uint64_t position) const {
  support::conversion_case c{conversion_.from, conversion_.to, code, conversion_.rule};
  if (c.rule.rounding == rounding::stochastic) {
    const random_stream& s = conversion_.random;
    const std::uint64_t index = s.offset + position;
    c.origin = {{s.seed, s.stream, index}};
    c.random = {oracle::random_word(s.seed, s.stream, index, s.bits), s.bits};
  }
  return c;
}

std::uint64_t trial_runner::oracle_code(const support::conversion_case& c) const {
  if (steps_) return oracle::evaluate(*steps_, static_cast<std::uint32_t>(c.input));
  return support::expected_code(c);
}

std::string trial_runner::call(const raw_call& c) const {
  try {
    function_.call(c);
  } catch (const std::exception& e) {
    return std::string("threw: ") + e.what();
  } catch (...) {
    return "threw something that is no std::exception";
  }
  return {};
}

verdict trial_runner::run(const trial& t) {
  guarded_array in(function_.in_bytes, t.in_offset, t.codes.size());
  guarded_array out(function_.out_bytes, t.out_offset, t.codes.size());
  in.store(t.codes);
  const std::vector<std::byte> before = in.copy_of_elements();
  verdict v;
  v.thrown = call(
      {in.memory(), out.memory(), in.at(), out.at(), static_cast<std::int64_t>(t.codes.size())});
  if (!v.thrown.empty()) return v;
  if (!out.guards_are_intact()) v.trouble = "wrote outside its output";
  if (in.copy_of_elements() != before || !in.guards_are_intact()) v.trouble = "wrote to its input";
  if (!v.trouble.empty()) return v;
  guarded_array expected(function_.out_bytes, 0, t.codes.size());
  reference_codes(before.data(), t.codes.size(), expected.elements());
  return compared(t, {in.codes(), out.codes(), expected.codes(), 0, t.codes.size()});
}

counterexample trial_runner::wrong_element(const trial& t, const seen_call& results,
                                           std::size_t i) const {
  return {results.in[i],
          results.got[i],
          results.expected[i],
          is_tie(conversion_, results.in[i]),
          static_cast<std::int64_t>(i),
          static_cast<std::int64_t>(t.codes.size()),
          t.in_offset,
          t.out_offset};
}

verdict trial_runner::compared(const trial& t, seen_call results) {
  verdict v;
  for (std::size_t i = 0; i < t.codes.size(); ++i) {
    const bool right =
        is_right(conversion_.to, conversion_.nan, results.got[i], results.expected[i]);
    if (!right && v.wrong_count++ > 0) continue;
    const support::conversion_case c = case_of(results.in[i], i);
    const std::uint64_t exact = oracle_code(c);
    if (exact != results.expected[i]) {
      v = {};
      v.trouble = "has no expected result: samebits' own reference and oracle disagree: " +
                  std::string(support::same_code(c, results.expected[i], exact).message());
      return v;
    }
    if (v.wrong_count == 0) ++compared_;
    if (!right) v.wrong = wrong_element(t, results, i);
  }
  if (v.wrong) ++compared_;
  keep(std::move(results), v.failed());
  return v;
}

void trial_runner::keep(seen_call results, bool failed) {
  if (!failed && !keeps_more()) return;
  seen_elements_ += results.in.size();
  seen_.push_back(std::move(results));
}

verdict trial_runner::run_sequence(std::uint64_t first, std::uint64_t stride, std::size_t count) {
  guarded_array in(function_.in_bytes, 0, count);
  guarded_array out(function_.out_bytes, 0, count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto code = static_cast<std::uint32_t>(first + i * stride);
    std::memcpy(in.elements() + i * sizeof code, &code, sizeof code);
  }
  std::vector<std::byte> expected(count * function_.out_bytes);
  if (ordered_steps_) {
    ordered_steps_->fill(first, stride, count, expected.data());
  } else {
    reference_codes(in.elements(), count, expected.data());
  }
  verdict v;
  v.thrown = call({in.memory(), out.memory(), in.at(), out.at(), static_cast<std::int64_t>(count)});
  if (!v.thrown.empty()) return v;
  compared_ += count;
  if (std::memcmp(out.elements(), expected.data(), expected.size()) == 0) return v;
  guarded_array right(function_.out_bytes, 0, count);
  std::memcpy(right.elements(), expected.data(), expected.size());
  return compared_sequence({in.codes(), out.codes(), right.codes(), 0, count});
}

verdict trial_runner::compared_sequence(const seen_call& results) {
  verdict v;
  const std::size_t count = results.in.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t got = results.got[i];
    if (is_right(conversion_.to, conversion_.nan, got, results.expected[i])) continue;
    if (v.wrong_count++ == 0) v.wrong = wrong_element({results.in, 0, 0}, results, i);
  }
  if (v.wrong) keep(part_of(results, static_cast<std::size_t>(v.wrong->position)), true);
  return v;
}

}  // namespace samebits::testkit
