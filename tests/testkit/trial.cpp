// Runs, checks and shrinks single calls.
#include "trial.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "oracle/convert.hpp"
#include "oracle/philox.hpp"
#include "samebits/convert.hpp"
#include "samebits/error.hpp"
#include "support/generators.hpp"
#include "support/grid_step.hpp"
#include "support/rules.hpp"

namespace samebits::testkit {
namespace {

constexpr std::byte guard{0xA5};
constexpr std::size_t border = 256;  // bytes; also the size of each guard

std::size_t width(format_id f) { return static_cast<std::size_t>(storage_bytes(f)); }

/// Memory that starts at a 256-byte border: guards, `offset` + `count` elements, guards. The last
/// `count` elements are the array; the elements before are guards too.
class guarded_array {
 public:
  guarded_array(format_id format, int offset, std::size_t count)
      : at_(border + static_cast<std::size_t>(offset) * width(format)),
        bytes_(count * width(format)),
        memory_(border + at_ + bytes_ + border, guard) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    start_ = static_cast<std::size_t>((border - address % border) % border);
  }

  [[nodiscard]] std::span<std::byte> memory() {
    return std::span(memory_).subspan(start_, at_ + bytes_ + border);
  }
  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] std::byte* elements() { return memory().data() + at_; }
  [[nodiscard]] std::vector<std::byte> copy_of_elements() {
    return {elements(), elements() + bytes_};
  }
  [[nodiscard]] bool guards_are_intact() {
    const std::span<std::byte> all = memory();
    const auto is_guard = [](std::byte b) { return b == guard; };
    return std::all_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(at_), is_guard) &&
           std::all_of(all.begin() + static_cast<std::ptrdiff_t>(at_ + bytes_), all.end(),
                       is_guard);
  }

 private:
  std::size_t at_;
  std::size_t bytes_;
  std::vector<std::byte> memory_;
  std::size_t start_ = 0;
};

std::uint64_t load(const std::vector<std::byte>& bytes, std::size_t element_bytes, std::size_t i) {
  std::uint64_t code = 0;  // all supported hosts are little-endian
  std::memcpy(&code, bytes.data() + i * element_bytes, element_bytes);
  return code;
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

std::vector<trial> simpler_trials(format_id from, const trial& t) {
  std::vector<trial> simpler;
  const auto size = static_cast<std::ptrdiff_t>(t.codes.size());
  const auto keep = [&](std::ptrdiff_t first, std::ptrdiff_t last) {
    simpler.push_back(
        {{t.codes.begin() + first, t.codes.begin() + last}, t.in_offset, t.out_offset});
  };
  if (size > 1) {
    keep(0, size / 2);
    keep(size / 2, size);
    keep(0, size - 1);
    keep(1, size);
  }
  if (t.in_offset != 0) simpler.push_back({t.codes, 0, t.out_offset});
  if (t.out_offset != 0) simpler.push_back({t.codes, t.in_offset, 0});
  if (size > 4) return simpler;  // for large calls the size explains more than the values
  for (std::size_t i = 0; i < t.codes.size(); ++i) {
    for (const std::uint64_t code : support::simpler_codes(from, t.codes[i])) {
      simpler.push_back(t);
      simpler.back().codes[i] = code;
    }
  }
  return simpler;
}

trial_runner::trial_runner(const conversion_under_test& conversion, const raw_function& function)
    : conversion_(conversion), function_(function) {
  require_element_size("in", function.in_bytes, conversion.from);
  require_element_size("out", function.out_bytes, conversion.to);
  reference_codes(nullptr, 0, nullptr);  // throws for arguments that samebits::convert refuses
  const oracle::format& to = support::oracle_of(conversion.to);
  if (conversion.from == format_id::fp32 && conversion.rule.round != rounding::stochastic &&
      (to.max_finite >> to.unused_low_bits) < oracle::max_destination_magnitudes) {
    steps_ = oracle::make_step_function(support::oracle_of(format_id::fp32), to, conversion.rule);
    ordered_steps_.emplace(*steps_);
  }
}

void trial_runner::reference_codes(const void* in, std::size_t count, void* out) const {
  const auto cols = static_cast<std::int64_t>(count);
  const cast_rule& rule = conversion_.rule;
  convert(view_of_codes(conversion_.from, in, 1, cols), view_of_codes(conversion_.to, out, 1, cols),
          {rule.round, rule.on_overflow, rule.on_nan, conversion_.random},
          find_executor("reference"));
}

support::conversion_case trial_runner::case_of(std::uint64_t code, std::uint64_t position) const {
  support::conversion_case c{conversion_.from, conversion_.to, code, conversion_.rule};
  if (c.rule.round == rounding::stochastic) {
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
  guarded_array in(conversion_.from, t.in_offset, t.codes.size());
  guarded_array out(conversion_.to, t.out_offset, t.codes.size());
  for (std::size_t i = 0; i < t.codes.size(); ++i) {
    std::memcpy(in.elements() + i * function_.in_bytes, &t.codes[i], function_.in_bytes);
  }
  const std::vector<std::byte> before = in.copy_of_elements();
  verdict v;
  v.thrown = call(
      {in.memory(), out.memory(), in.at(), out.at(), static_cast<std::int64_t>(t.codes.size())});
  if (!v.thrown.empty()) return v;
  if (!out.guards_are_intact()) v.trouble = "wrote outside its output";
  if (in.copy_of_elements() != before || !in.guards_are_intact()) v.trouble = "wrote to its input";
  if (!v.trouble.empty()) return v;
  return judge(t, before, out.copy_of_elements());
}

verdict trial_runner::judge(const trial& t, const std::vector<std::byte>& in_codes,
                            const std::vector<std::byte>& out_codes) {
  std::vector<std::byte> expected(out_codes.size());
  reference_codes(in_codes.data(), t.codes.size(), expected.data());
  for (std::size_t i = 0; i < t.codes.size(); ++i) {
    const std::uint64_t code = load(in_codes, function_.in_bytes, i);
    const std::uint64_t right = load(expected, function_.out_bytes, i);
    const support::conversion_case c = case_of(code, i);
    const std::uint64_t exact = oracle_code(c);
    if (exact != right) {
      return {{},
              "cannot be judged: samebits' own reference and oracle disagree: " +
                  std::string(support::same_code(c, right, exact).message()),
              {}};
    }
    ++compared_;
    const std::uint64_t got = load(out_codes, function_.out_bytes, i);
    if (got == right) continue;
    return {
        counterexample{code, got, right, is_tie(conversion_, code), static_cast<std::int64_t>(i),
                       static_cast<std::int64_t>(t.codes.size()), t.in_offset, t.out_offset},
        {},
        {}};
  }
  return {};
}

verdict trial_runner::run_sequence(std::uint64_t first, std::uint64_t stride, std::size_t count) {
  guarded_array in(conversion_.from, 0, count);
  guarded_array out(conversion_.to, 0, count);
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
  const std::vector<std::byte> got = out.copy_of_elements();
  if (got == expected) return v;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t a = load(got, function_.out_bytes, i);
    const std::uint64_t b = load(expected, function_.out_bytes, i);
    if (a == b) continue;
    const std::uint64_t code = first + i * stride;
    v.wrong = counterexample{code,
                             a,
                             b,
                             is_tie(conversion_, code),
                             static_cast<std::int64_t>(i),
                             static_cast<std::int64_t>(count),
                             0,
                             0};
    break;
  }
  return v;
}

check_result trial_runner::failure(const trial& t, const verdict& found, const std::string& stage) {
  const std::uint64_t compared = compared_;
  trial smallest = t;
  verdict v = found;
  if (found.thrown.empty()) {  // a call that throws may not be repeatable
    bool threw = false;
    const auto fails = [&](const trial& candidate) {
      if (threw) return false;
      const verdict now = run(candidate);
      threw = !now.thrown.empty();
      if (threw || !now.failed()) return false;
      v = now;
      return true;
    };
    if (found.wrong) {  // fastest: only the wrong element
      const trial alone{{found.wrong->input}, 0, 0};
      if (fails(alone)) smallest = alone;
    }
    for (bool simpler = true; simpler;) {
      simpler = false;
      for (trial& candidate : simpler_trials(conversion_.from, smallest)) {
        if (!fails(candidate)) continue;
        smallest = std::move(candidate);
        simpler = true;
        break;
      }
    }
  }

  const std::string call_text =
      "a call of " + std::to_string(smallest.codes.size()) + " elements, in[0] and out[0] " +
      std::to_string(smallest.in_offset) + " and " + std::to_string(smallest.out_offset) +
      " elements behind a 256-byte border";
  const std::string how = "found by " + stage + " after " + std::to_string(compared) + " results";
  if (!v.wrong) {
    return {compared,
            "the function under test " + (v.thrown.empty() ? v.trouble : v.thrown) + "\n  in " +
                call_text + ", " + how,
            std::nullopt};
  }
  support::conversion_case c =
      case_of(v.wrong->input, static_cast<std::uint64_t>(v.wrong->position));
  c.where = "the function under test";
  std::string text = support::same_code(c, v.wrong->got, v.wrong->expected).message();
  if (v.wrong->is_tie) text += "\n  the input is a tie: halfway between two codes";
  text += "\n  element " + std::to_string(v.wrong->position) + " of " + call_text + ", " + how;
  return {compared, text, v.wrong};
}

}  // namespace samebits::testkit
