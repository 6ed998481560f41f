// reduce_gradients() against a transcription in exact arithmetic: any ranks, lists, formats and
// communication dtype.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "oracle/convert.hpp"
#include "oracle/elementary.hpp"
#include "oracle/philox.hpp"
#include "oracle/scale.hpp"
#include "samebits/distributed.hpp"
#include "samebits/testkit/ranks.hpp"
#include "support/property.hpp"
#include "support/reduction_case.hpp"
#include "support/rules.hpp"

namespace samebits {
namespace {

using support::reduction_buffer;
using support::reduction_case;
using support::reduction_image;
using support::reduction_tensor;

std::vector<reduction_image> reduced(const reduction_case& c) {
  return support::reduced_on_host(c, testkit::simulate_ranks);
}

const oracle::format& fp32() { return oracle::format_named("fp32"); }

/// The scale of a tensor from its elements on all ranks, step by step.
oracle::tile_scale scale_of(const reduction_case& c, const reduction_tensor& t) {
  std::vector<std::uint32_t> all;
  for (const auto& codes : t.codes) {
    for (const std::uint64_t code : codes) {
      all.push_back(static_cast<std::uint32_t>(
          oracle::convert(support::oracle_of(t.format), fp32(), code, {})));
    }
  }
  const oracle::scale_settings settings = {.rule = c.how.scale,
                                           .nonfinite = nonfinite::skip_nonfinite};
  return oracle::scale_of_tile(settings, support::oracle_of(c.how.communication), all);
}

/// What one element must become; `position` is its index in the list.
std::uint64_t expected(const reduction_case& c, const reduction_tensor& t,
                       const oracle::tile_scale* scale, std::size_t i, std::uint64_t position) {
  const oracle::format& own = support::oracle_of(t.format);
  const oracle::format& communication = support::oracle_of(c.how.communication);
  const cast_rule cast = {c.how.rounding, overflow::ieee, nan_policy::canonical};
  std::uint64_t total = 0;
  for (std::size_t r = 0; r < t.codes.size(); ++r) {
    const random_stream& s = c.how.random;
    const random_bits bits = {
        oracle::random_word(s.seed, s.stream + r, s.offset + position, s.bits), s.bits};
    std::uint64_t x = t.codes[r][i];
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

reduction_image expected_image(const reduction_case& c) {
  reduction_image all;
  std::uint64_t position = 0;
  for (const reduction_tensor& t : c.tensors) {
    reduction_buffer b(t, 0);
    const bool scaled =
        c.how.communication == format_id::e4m3 || c.how.communication == format_id::e5m2;
    const oracle::tile_scale scale = scaled ? scale_of(c, t) : oracle::tile_scale{};
    for (std::size_t i = 0; i < t.codes[0].size(); ++i) {
      const std::uint64_t code = expected(c, t, scaled ? &scale : nullptr, i, position++);
      std::memcpy(b.at(t, i), &code, static_cast<std::size_t>(storage_bytes(t.format)));
    }
    all.push_back(std::move(b.bytes));
  }
  return all;
}

TEST(GradientReductionProperty, EveryRankHasTheBitsOfTheTranscription) {
  support::expect_holds("reduced in rank order", 6000, [] {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const int ranks = *rc::gen::element(1, 2, 3, 8);
    const int tensors = *rc::gen::inRange(0, 5);
    const int elements = *rc::gen::inRange(1, 14);
    const reduction_case c = support::draw_reduction(seed, ranks, tensors, elements);
    RC_LOG() << c;
    const reduction_image wanted = expected_image(c);
    const std::vector<reduction_image> got = reduced(c);
    for (std::size_t r = 0; r < got.size(); ++r) {
      for (std::size_t t = 0; t < wanted.size(); ++t) {
        if (got[r][t] != wanted[t]) {
          RC_LOG() << " rank " << r << " tensor " << t;
          RC_FAIL("other bits");
        }
      }
    }
  });
}

TEST(GradientReductionProperty, MessagesMayBeCutAnywhere) {
  support::expect_holds("any elements_at_once", 60, [] {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    reduction_case c = support::draw_reduction(seed, *rc::gen::element(2, 3, 8), 3, 3000);
    RC_LOG() << c;
    c.how.elements_at_once = std::int64_t{1} << 40;
    const auto whole = reduced(c);
    c.how.elements_at_once = *rc::gen::inRange<std::int64_t>(97, 5000);
    RC_ASSERT(reduced(c) == whole);
  });
}

}  // namespace
}  // namespace samebits
