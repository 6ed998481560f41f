// Calls of a function under test: memory, comparison, shrinking.
#include "engine/kit/runner.hpp"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <random>
#include <utility>

#include "samebits/error.hpp"
#include "samebits/scalar.hpp"

namespace samebits::testkit {
namespace {

std::size_t width(format_id f) { return static_cast<std::size_t>(storage_bytes(f)); }

/// The text of an exception of the function, or an empty text.
std::string exception_of(const array_function& function, const trial& in,
                         std::span<guarded_array> arrays) {
  try {
    function(in, arrays);
  } catch (const std::exception& e) {
    return std::string("threw: ") + e.what();
  } catch (...) {
    return "threw something that is no std::exception";
  }
  return {};
}

}  // namespace

bool specification::is_right(std::size_t r, std::uint64_t got, std::uint64_t expected) const {
  if (got == expected) return true;
  return nan == nan_result::any && is_nan(results[r].format, expected) &&
         is_nan(results[r].format, got);
}

std::vector<guarded_array> specification::arrays_of(const trial& in) const {
  std::vector<guarded_array> arrays;
  arrays.emplace_back(width(from), in.in_offset, in.codes.size());
  arrays.back().store(in.codes);
  for (const result_kind& r : results) {
    arrays.emplace_back(width(r.format), in.out_offset, r.count(in));
  }
  return arrays;
}

std::vector<code_list> specification::results_of(const array_function& f, const trial& in) const {
  std::vector<guarded_array> arrays = arrays_of(in);
  f(in, arrays);
  std::vector<code_list> codes;
  for (std::size_t r = 1; r < arrays.size(); ++r) codes.push_back(arrays[r].codes());
  return codes;
}

runner::runner(const specification& what, array_function function, opinion second)
    : what_(what), function_(std::move(function)), second_(std::move(second)) {
  std::vector<guarded_array> empty = what_.arrays_of({});
  what_.reference({}, empty);  // throws for arguments that the library refuses
}

verdict runner::run(const trial& in) {
  std::vector<guarded_array> arrays = what_.arrays_of(in);
  verdict v;
  v.thrown = exception_of(function_, in, arrays);
  if (!v.thrown.empty()) return v;
  for (std::size_t r = 0; r < what_.results.size(); ++r) {
    if (arrays[r + 1].guards_are_intact()) continue;
    v.trouble = std::string("wrote outside its ") + what_.results[r].name;
  }
  std::vector<guarded_array> expected = what_.arrays_of(in);
  if (!arrays[0].guards_are_intact() || !arrays[0].has_elements_of(expected[0])) {
    v.trouble = "wrote to its input";
  }
  if (!v.trouble.empty()) return v;
  what_.reference(in, expected);
  return judge(in, arrays, expected);
}

verdict runner::judge(const trial& in, std::span<guarded_array> got,
                      std::span<guarded_array> expected) {
  verdict v;
  bool same = true;
  std::size_t elements = 0;
  for (std::size_t r = 1; r < got.size(); ++r) {
    same = same && got[r].has_elements_of(expected[r]);
    elements += got[r].size();
  }
  if (same && !keeps_more() && !second_) {
    compared_ += elements;
    return v;
  }
  seen_call call{in, {}, {}};
  for (std::size_t r = 1; r < got.size(); ++r) {
    call.got.push_back(got[r].codes());
    call.expected.push_back(expected[r].codes());
  }
  if (second_) v.trouble = second_(call);
  if (!v.trouble.empty()) return v;
  for (std::size_t r = 0; r < call.got.size(); ++r) {
    v.wrong_counts.push_back(0);
    for (std::size_t i = 0; i < call.got[r].size() && !same; ++i) {
      if (what_.is_right(r, call.got[r][i], call.expected[r][i])) continue;
      if (!v.wrong) {
        v.wrong = {r, i};
        compared_ += i + 1;
      }
      ++v.wrong_counts[r];
    }
    if (!v.wrong) compared_ += call.got[r].size();
  }
  if (v.wrong) v.call = call;
  if (v.wrong || keeps_more()) {
    seen_elements_ += in.codes.size();
    seen_.push_back(std::move(call));
  }
  return v;
}

trial runner::shrink(trial in, verdict& found,
                     const std::function<std::vector<trial>(const trial&)>& simpler) {
  if (!found.thrown.empty()) return in;
  const auto inside = [&](const trial& t) {
    if (what_.domain.is_everything()) return true;
    if (what_.domain.prepare) what_.domain.prepare(t.codes);
    for (const std::uint64_t code : t.codes) {
      if (!what_.domain.contains(what_.from, code)) return false;
    }
    return true;
  };
  int calls = 0;
  for (bool again = true; again;) {
    again = false;
    for (trial& candidate : simpler(in)) {
      if (!inside(candidate)) continue;
      if (++calls > max_shrinking) return in;
      verdict now = run(candidate);
      if (!now.thrown.empty()) return in;
      if (!now.failed()) continue;
      in = std::move(candidate);
      found = std::move(now);
      again = true;
      break;
    }
  }
  return in;
}

void require_element_size(const std::string& what, std::size_t got, format_id format) {
  if (got == width(format)) return;
  throw invalid_argument(what + " has elements of " + std::to_string(got) + " bytes, expected " +
                         std::to_string(width(format)) + " of " + std::string(name(format)));
}

std::uint64_t new_seed() {
  if (const char* const parameters = std::getenv("RC_PARAMS")) {
    const char* const seed = std::strstr(parameters, "seed=");
    if (seed != nullptr) return std::strtoull(seed + 5, nullptr, 10);
  }
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

}  // namespace samebits::testkit
