// Tests of the generators: every family occurs, and makes what it says. Fixed seeds.
#include "support/generators.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>

#include "oracle/convert.hpp"
#include "oracle/exact.hpp"
#include "support/array_generators.hpp"
#include "support/rules.hpp"

namespace samebits::support {
namespace {

constexpr int draws = 4000;

std::vector<std::uint64_t> random_codes(code_family family, format_id from, format_id to) {
  std::mt19937_64 engine(7);
  const word_source next = [&] { return engine(); };
  std::vector<std::uint64_t> codes(draws);
  for (std::uint64_t& code : codes) code = draw_code(family, from, to, next);
  return codes;
}

bool is_tie(format_id from, format_id to, std::uint64_t code) {
  const oracle::exact_value x = oracle::decode(oracle_of(from), code);
  if (x.kind != oracle::value_kind::finite || x.numerator == 0) return false;
  return place_on_grid(oracle_of(to), x).to_half == 0;
}

/// Pairs whose source is finer than the destination everywhere, so that ties are exact.
const std::vector<std::pair<format_id, format_id>> finer_pairs{
    {format_id::fp32, format_id::e4m3}, {format_id::fp32, format_id::fp16},
    {format_id::fp32, format_id::e5m2}, {format_id::fp64, format_id::fp32},
    {format_id::fp64, format_id::bf16}, {format_id::fp16, format_id::e4m3},
    {format_id::fp32, format_id::e2m1}, {format_id::tf32, format_id::e4m3fnuz}};

TEST(Generators, UniformCodesFillTheStorageWord) {
  for (const format_id from : all_formats()) {
    const int bits = spec_of(from).storage_bits;
    std::vector<int> set(static_cast<std::size_t>(bits), 0);
    for (const std::uint64_t code : random_codes(code_family::uniform, from, format_id::e4m3)) {
      ASSERT_TRUE(bits == 64 || code >> bits == 0);
      for (int i = 0; i < bits; ++i) set[static_cast<std::size_t>(i)] += (code >> i) % 2 == 1;
    }
    for (const int count : set) {  // 2000 expected, standard deviation 32
      EXPECT_GT(count, draws / 2 - 200) << name(from);
      EXPECT_LT(count, draws / 2 + 200) << name(from);
    }
  }
}

TEST(Generators, SpecialsOfFp32) {
  std::map<std::string, int> seen;
  for (const std::uint64_t code :
       random_codes(code_family::special, format_id::fp32, format_id::e4m3)) {
    const std::string sign = code >> 31 != 0 ? "-" : "+";
    const std::uint64_t magnitude = code & 0x7FFFFFFF;
    if (magnitude == 0) ++seen[sign + "zero"];
    if (magnitude == 0x7F800000) ++seen[sign + "inf"];
    if (magnitude > 0x7FC00000) ++seen[sign + "quiet NaN with payload"];
    if (magnitude > 0x7F800000 && magnitude < 0x7FC00000) ++seen[sign + "signalling NaN"];
    if (magnitude == 0x7F800001) ++seen["smallest NaN"];
    if (magnitude == 0x7FFFFFFF) ++seen[sign + "NaN of all ones"];
    if (magnitude == 0x7F7FFFFF) ++seen["max finite"];
    if (magnitude > 0 && magnitude < 0x00800000) ++seen[sign + "subnormal"];
    if (magnitude == 1) ++seen["smallest subnormal"];
  }
  for (const char* kind : {"+zero", "-zero", "+inf", "-inf", "+quiet NaN with payload",
                           "-quiet NaN with payload", "+signalling NaN", "-signalling NaN",
                           "+NaN of all ones", "-NaN of all ones", "+subnormal", "-subnormal"}) {
    EXPECT_GT(seen[kind], draws / 50) << kind;
  }
  for (const char* kind : {"smallest NaN", "max finite", "smallest subnormal"}) {
    EXPECT_GT(seen[kind], draws / 400) << kind;
  }
}

TEST(Generators, SpecialsOfEveryFormatIncludeItsNan) {
  for (const format_id from : all_formats()) {
    const oracle::format& f = oracle_of(from);
    int nans = 0;
    int infinities = 0;
    int zeros = 0;
    for (const std::uint64_t code : random_codes(code_family::special, from, format_id::e4m3)) {
      const oracle::exact_value x = oracle::decode(f, code);
      nans += x.kind == oracle::value_kind::nan;
      infinities += x.kind == oracle::value_kind::infinite;
      zeros += x.kind == oracle::value_kind::finite && x.numerator == 0;
    }
    EXPECT_EQ(nans > draws / 50, f.nan != oracle::nan_codes::none) << f.name;
    EXPECT_EQ(infinities > draws / 50, f.infinity.has_value()) << f.name;
    EXPECT_EQ(zeros > draws / 50, f.zero != oracle::zeros::none) << f.name;
  }
}

TEST(Generators, TiesAreTies) {
  for (const auto& [from, to] : finer_pairs) {
    std::set<std::uint64_t> different;
    for (const std::uint64_t code : random_codes(code_family::tie, from, to)) {
      ASSERT_TRUE(is_tie(from, to, code))
          << name(from) << " to " << name(to) << ' ' << code_text(from, code);
      different.insert(code);
    }
    // All of them in a small destination, and hardly any twice in a large one.
    const std::uint64_t ties = 2 * (oracle_of(to).max_finite + 1);
    EXPECT_GT(different.size(), ties < draws ? ties * 9 / 10 : std::size_t{draws} / 2) << name(to);
  }
}

TEST(Generators, NearTiesLieBesideTies) {
  for (const auto& [from, to] : finer_pairs) {
    const std::uint64_t unit = std::uint64_t{1} << oracle_of(from).unused_low_bits;
    int beside = 0;
    for (const std::uint64_t code : random_codes(code_family::near_tie, from, to)) {
      const bool near = is_tie(from, to, code + unit) || is_tie(from, to, code - unit) ||
                        is_tie(from, to, code + 2 * unit) || is_tie(from, to, code - 2 * unit);
      beside += near && !is_tie(from, to, code);
    }
    // Where the source is hardly finer than the destination, beside one tie may lie another.
    const bool close = from == format_id::fp16 || from == format_id::tf32;
    EXPECT_GT(beside, close ? draws / 4 : draws * 99 / 100) << name(from) << " to " << name(to);
  }
}

TEST(Generators, EdgesReachBeyondMax) {
  for (const auto& [from, to] : finer_pairs) {
    const oracle::format& target = oracle_of(to);
    const oracle::cpp_rational max = oracle::rational_of(oracle::decode(target, target.max_finite));
    const oracle::cpp_rational minimum =
        oracle::rational_of(oracle::decode(target, target.min_subnormal));
    std::map<std::string, int> seen;
    for (const std::uint64_t code : random_codes(code_family::edge, from, to)) {
      const oracle::exact_value x = oracle::decode(oracle_of(from), code);
      if (x.kind != oracle::value_kind::finite || x.numerator == 0) continue;
      const oracle::cpp_rational magnitude = abs(oracle::rational_of(x));
      const oracle::grid_place place = place_on_grid(target, x);
      const auto lower = compare(oracle::dyadic{static_cast<std::uint64_t>(place.q), place.spacing},
                                 oracle::decode_magnitude(target, target.max_finite));
      if (magnitude == max) ++seen["max"];
      if (magnitude > max && lower == 0) ++seen["between max and beyond"];
      if (lower > 0) ++seen["beyond"];
      if (lower == 0 && place.to_half == 0) ++seen["tie at max"];
      if (magnitude == minimum) ++seen["smallest"];
      if (2 * magnitude == minimum) ++seen["half of the smallest"];
      if (2 * magnitude < minimum) ++seen["below half of the smallest"];
      if (2 * magnitude > minimum && magnitude < minimum) ++seen["above half of the smallest"];
      if (magnitude == oracle::rational_of(oracle::decode(target, target.min_normal))) {
        ++seen["min normal"];
      }
    }
    for (const char* kind : {"max", "between max and beyond", "beyond", "tie at max", "smallest",
                             "half of the smallest", "below half of the smallest",
                             "above half of the smallest", "min normal"}) {
      EXPECT_GT(seen[kind], draws / 400) << kind << ' ' << name(from) << " to " << name(to);
    }
  }
}

TEST(Generators, OnGridCodesAreMostlyRepresentableOrOneUlpAway) {
  int exact = 0;
  for (const std::uint64_t code :
       random_codes(code_family::on_grid, format_id::fp32, format_id::e5m2)) {
    const oracle::exact_value x = oracle::decode(oracle_of(format_id::fp32), code);
    exact += x.numerator == 0 || place_on_grid(oracle_of(format_id::e5m2), x).rest == 0;
  }
  EXPECT_GT(exact, draws / 8);  // a fifth has no distance
  EXPECT_LT(exact, draws / 3);
}

TEST(Generators, RandomBitsHitTheDecision) {
  std::mt19937_64 engine(11);
  const word_source next = [&] { return engine(); };
  std::set<int> counts;
  int just_enough = 0;
  int just_short = 0;
  int extremes = 0;
  for (int i = 0; i < draws; ++i) {
    const std::uint64_t code =
        draw_code(code_family::uniform, format_id::fp32, format_id::e4m3, next);
    const random_bits bits = draw_random_bits(format_id::fp32, format_id::e4m3, code, next);
    const std::uint64_t limit = std::uint64_t{1} << bits.count;
    ASSERT_LT(bits.value, limit);
    counts.insert(bits.count);
    extremes += bits.value == 0 || bits.value == limit - 1;
    const oracle::exact_value x = oracle::decode(oracle_of(format_id::fp32), code);
    if (x.kind != oracle::value_kind::finite) continue;
    const std::uint64_t needed =
        oracle::placed_outcome(oracle_of(format_id::e4m3), {x}).smallest_away(bits.count);
    just_enough += needed != 0 && bits.value == needed;
    just_short += bits.value + 1 == needed;
  }
  EXPECT_EQ(counts.size(), 32u);
  EXPECT_GT(just_enough, draws / 40);
  EXPECT_GT(just_short, draws / 20);
  EXPECT_GT(extremes, draws / 8);
}

TEST(Generators, CasesCoverFormatsModesAndPolicies) {
  std::set<std::pair<format_id, format_id>> pairs;
  std::set<std::string> rules;
  const rc::Gen<conversion_case> generator = cases(whole_space());
  rc::Random random(3);
  for (int i = 0; i < draws; ++i) {
    const conversion_case c = generator(random.split()).value();
    pairs.insert({c.from, c.to});
    rules.insert(text_of(c.rule));
  }
  EXPECT_EQ(pairs.size(), static_cast<std::size_t>(format_count * format_count));
  EXPECT_EQ(rules.size(), 42u);
}

TEST(Generators, ArrayCasesCoverShapesStridesAndThreads) {
  const rc::Gen<array_case> generator = array_cases();
  rc::Random random(5);
  std::map<std::string, int> seen;
  std::set<int> threads;
  for (int i = 0; i < draws; ++i) {
    const array_case c = generator(random.split()).value();
    ASSERT_EQ(c.in.rows, c.out.rows);
    ASSERT_EQ(c.in.cols, c.out.cols);
    threads.insert(c.threads);
    seen["empty"] += c.in.span() == 0;
    seen["one element"] += c.in.rows == 1 && c.in.cols == 1;
    seen["large"] += c.in.rows * c.in.cols > 60000;
    seen["padded rows"] += c.in.row_stride > c.in.cols && c.in.col_stride == 1;
    seen["gaps in rows"] += c.in.col_stride > 1 && c.in.row_stride > c.in.col_stride;
    seen["transposed"] += c.out.row_stride == 1 && c.out.rows > 1 && c.out.cols > 1;
    seen["repeated row"] += c.in.row_stride == 0 && c.in.rows > 1;
    seen["repeated column"] += c.in.col_stride == 0 && c.in.cols > 1;
    seen["unaligned"] += c.in.misalignment % 2 == 1;
    seen["stochastic"] += c.rule.rounding == rounding::stochastic;
    seen["offset wraps"] += c.random.offset > ~std::uint64_t{0} - 8;
    seen["pitch"] += c.random.pitch.has_value();
  }
  EXPECT_EQ(threads.size(), 9u);
  for (const char* kind :
       {"empty", "one element", "large", "padded rows", "gaps in rows", "transposed",
        "repeated row", "repeated column", "unaligned", "stochastic", "offset wraps", "pitch"}) {
    EXPECT_GT(seen[kind], draws / 200) << kind;
  }
}

}  // namespace
}  // namespace samebits::support
