// Calls of a check of a function: sizes and offsets, every edge and magnitude, random calls.
#include "engine/kit/function.hpp"

#include <algorithm>
#include <bit>
#include <random>
#include <utility>

#include "engine/explain/errors.hpp"
#include "engine/kit/domain_codes.hpp"
#include "engine/kit/simpler.hpp"
#include "samebits/scalar.hpp"

namespace samebits::testkit {
namespace {

/// Numbers where the formulas of functions change: poles, ends of ranges, zeros of the derivative,
/// thresholds of PyTorch and CUDA.
constexpr float borders[] = {
    0.5f,    1.0f,       2.0f,       3.0f,       6.0f,       20.0f,     0.001f,    0.41f,
    0.6f,    0.7071068f, 1.0029764f, 1.5707964f, 3.1415927f, 3.92f,     5.5f,      9.010913f,
    10.055f, 13.8f,      16.635532f, 17.328680f, 25.0f,      87.33655f, 88.72284f, 103.97208f,
    104.0f,  105615.0f,  126.0f,     127.0f,     128.0f,     149.0f,    150.0f,    152.0f};
constexpr std::size_t random_numbers = std::size_t{1} << 16;
constexpr std::uint64_t largest_call = std::uint64_t{1} << 14;  // elements of a random call

bool has_few_codes(format_id format) { return spec_of(format).storage_bits <= 16; }

/// Codes of every check, whatever its seed: of 16 bits all, else special ones and neighbours of
/// borders.
code_list listed_codes(format_id format) {
  code_list codes;
  if (has_few_codes(format)) {
    for (std::uint64_t code = 0; code < 1 << 16; ++code) codes.push_back(code);
    return codes;
  }
  codes = support::special_codes(format);
  for (const float border : borders) {
    const std::uint64_t first = std::bit_cast<std::uint32_t>(border) - 2;
    for (std::uint64_t code = first; code < first + 5; ++code) {
      codes.push_back(code);
      codes.push_back(code | 0x80000000);
    }
  }
  return codes;
}

class function_check {
 public:
  function_check(const function_under_test& tested, const array_function& kernel,
                 std::uint64_t seed)
      : tested_(tested),
        runner_(specification_of(tested), kernel),
        listed_(listed_codes(tested.format)),
        domain_(tested.domain, tested.format, tested.format, listed_),
        engine_(seed) {}

  check_outcome run(const function_effort& effort) {
    const auto offsets = static_cast<std::uint64_t>(effort.offsets);
    const code_list pool = inputs(random_numbers);
    std::uint64_t number = 0;
    const auto attempt_size = [&](std::size_t size) {
      return attempt(row_of(chosen(pool, size), static_cast<int>(number++ % offsets)));
    };
    for (std::size_t size = 0; size < 18; ++size) {
      if (!attempt_size(size)) return failure();
    }
    for (const std::size_t around : {32u, 128u, 256u, 1024u, 4096u}) {
      for (std::size_t size = around - 1; size <= around + 1; ++size) {
        if (!attempt_size(size)) return failure();
      }
    }
    if (!attempt(row_of(pool))) return failure();
    // Where an output has other bytes before: see fill_of().
    if (!attempt(row_of({pool.begin() + 1, pool.end()}))) return failure();
    for (int i = 0; i < effort.examples; ++i) {
      const auto size = static_cast<std::size_t>(1 + engine_() % largest_call);
      const auto offset = static_cast<int>(engine_() % offsets);
      const code_list codes = has_few_codes(tested_.format) ? pool : inputs(size);
      if (!attempt(row_of(chosen(codes, size), offset))) return failure();
    }
    return failed_ ? failure() : check_outcome{runner_.compared(), std::nullopt};
  }

 private:
  using failing = std::pair<trial, verdict>;

  /// Codes of the domain: edges_ listed and random special ones, and then, unless all codes are
  /// listed, `count` numbers of many magnitudes and random codes.
  code_list inputs(std::size_t count) {
    const bool lists_all = has_few_codes(tested_.format);
    code_list codes = listed_;
    if (!lists_all) {
      const code_list more = domain_.any_codes(random_numbers / 64, [this] { return engine_(); });
      codes.insert(codes.end(), more.begin(), more.end());
    }
    codes = domain_.kept(std::move(codes));
    edges_ = codes.size();
    if (lists_all) return codes;
    code_list numbers;
    for (std::size_t i = 0; i < count; ++i) {  // magnitudes from 2^-30 to 2^8
      const std::uint64_t field = 127 - 30 + engine_() % 39;
      numbers.push_back((engine_() & 0x807FFFFF) | field << 23);
      if (i % 4 == 0) numbers.push_back(engine_() & 0xFFFFFFFF);
    }
    numbers = domain_.kept(std::move(numbers));
    codes.insert(codes.end(), numbers.begin(), numbers.end());
    return codes;
  }

  /// Random codes of inputs(), a quarter of which are edges.
  code_list chosen(const code_list& pool, std::size_t size) {
    code_list codes(size);
    for (std::uint64_t& code : codes) {
      code = pool[engine_() % (engine_() % 4 == 0 ? edges_ : pool.size())];
    }
    return codes;
  }

  /// Makes a call. Keeps the first wrong one and goes on: more results distinguish similar errors.
  /// Returns false if the kernel threw or wrote elsewhere.
  bool attempt(trial t) {
    verdict v = runner_.run(t);
    const bool ends = v.failed() && !v.wrong;
    if (ends || (v.failed() && !failed_)) failed_ = failing(std::move(t), std::move(v));
    return !ends;
  }

  check_outcome failure() {
    auto& [in, v] = *failed_;
    const std::uint64_t compared = runner_.compared();
    if (!v.wrong) return {compared, failed_call{in, v, {}, {}}};
    const explanation why = explained(tested_, runner_);
    const trial smallest = shrunk_row(runner_, in, v, {row_of({in.codes[v.wrong->element]})});
    return {compared, failed_call{smallest, v, why, {}}};
  }

  function_under_test tested_;
  runner runner_;
  code_list listed_;
  domain_codes domain_;
  std::mt19937_64 engine_;
  std::size_t edges_ = 0;  // of the last inputs()
  std::optional<failing> failed_;
};

}  // namespace

specification specification_of(const function_under_test& tested) {
  const auto reference = [t = tested](const trial& in, std::span<guarded_array> arrays) {
    const void* const source = arrays[0].elements();
    evaluate(t.of, view_of_codes(t.format, source, in.rows, in.cols),
             view_of_codes(t.format, arrays[1].elements(), in.rows, in.cols), t.options,
             {"reference"});
  };
  return {tested.format,
          {{"output", tested.format, [](const trial& in) { return in.codes.size(); }}},
          tested.nan,
          tested.domain,
          reference};
}

check_outcome check_function_calls(const function_under_test& tested, const array_function& kernel,
                                   const function_effort& effort) {
  return function_check(tested, kernel, effort.seed).run(effort);
}

}  // namespace samebits::testkit
