// reduce_gradients() against a transcription in exact arithmetic: any ranks, lists, formats and
// communication dtype.
#include <bit>

#include "engine/cases/gradients.hpp"
#include "engine/cases/operations.hpp"
#include "engine/suites/rapidcheck.hpp"
#include "oracle/convert.hpp"
#include "oracle/elementary.hpp"
#include "oracle/philox.hpp"
#include "oracle/scale.hpp"
#include "support/rules.hpp"

namespace samebits::support {
namespace {

const oracle::format& fp32() { return oracle::format_named("fp32"); }

/// The scale of a tensor from its elements on all ranks, step by step.
oracle::tile_scale scale_of(const reduction_case& c, const std::vector<matrix_view>& ranks) {
  std::vector<std::uint32_t> all;
  for (const matrix_view& v : ranks) {
    for_each_element(v, [&](std::int64_t row, std::int64_t col) {
      all.push_back(static_cast<std::uint32_t>(
          oracle::convert(oracle_of(v.format), fp32(), code_at(v, row, col), {})));
    });
  }
  const oracle::scale_settings settings = {.rule = c.how.scale,
                                           .nonfinite = oracle::nonfinite::skip_nonfinite};
  return oracle::scale_of_tile(settings, oracle_of(c.how.communication), all);
}

/// What one element must become; `position` is its index in the list.
std::uint64_t expected(const reduction_case& c, const std::vector<matrix_view>& ranks,
                       const oracle::tile_scale* scale, std::int64_t row, std::int64_t col,
                       std::uint64_t position) {
  const oracle::format& own = oracle_of(ranks[0].format);
  const oracle::format& communication = oracle_of(c.how.communication);
  const cast_rule cast = {c.how.rounding, overflow::ieee, nan_policy::canonical};
  std::uint64_t total = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const random_stream& s = c.how.random;
    const random_bits bits = {
        oracle::random_word(s.seed, s.stream + r, s.offset + position, s.bits), s.bits};
    std::uint64_t x = code_at(ranks[r], row, col);
    std::uint64_t q = 0;
    if (scale != nullptr) {
      x = oracle::convert(own, fp32(), x, {});
      x = oracle::scaled(c.how.scale, *scale, static_cast<std::uint32_t>(x));
      q = oracle::convert(fp32(), communication, x, cast, bits);
    } else {
      q = oracle::convert(own, communication, x, cast, bits);
    }
    const std::uint64_t value = oracle::convert(communication, fp32(), q, {});
    total = r == 0 ? value : oracle::add(fp32(), total, value);
  }
  auto t32 = static_cast<std::uint32_t>(total);
  if (scale != nullptr) t32 = oracle::multiply32(t32, scale->s);
  t32 = oracle::multiply32(t32, std::bit_cast<std::uint32_t>(c.how.factor));
  return oracle::convert(fp32(), own, t32, {});
}

returned_values by_oracle(const reduction_case& c, const call_site& site) {
  const bool scaled =
      c.how.communication == format_id::e4m3 || c.how.communication == format_id::e5m2;
  std::uint64_t position = 0;
  for (std::size_t t = 0; t < c.tensors.size(); ++t) {
    std::vector<matrix_view> ranks;
    for (std::size_t r = 0; r < static_cast<std::size_t>(c.ranks); ++r) {
      ranks.push_back(site.views[r * c.tensors.size() + t]);
    }
    const oracle::tile_scale scale = scaled ? scale_of(c, ranks) : oracle::tile_scale{};
    for_each_element(ranks[0], [&](std::int64_t row, std::int64_t col) {
      const std::uint64_t code =
          expected(c, ranks, scaled ? &scale : nullptr, row, col, position++);
      for (const matrix_view& v : ranks) put_code(v, row, col, code);
    });
  }
  return {};
}

TEST(GradientsOracle, EveryRankHasTheBitsOfTheTranscription) {
  const function_target<reduction_case> oracle("the oracle", by_oracle);
  expect_same(gradient_reduction_operation(), *host_target("reference"), oracle, 2500);
}

}  // namespace
}  // namespace samebits::support
