// numerics/sums/rank_sum.hpp, what kernels work by, against reduce_gradients() on arrays.
#include "numerics/sums/rank_sum.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "numerics/bits/random.hpp"
#include "samebits/distributed.hpp"
#include "samebits/testkit/ranks.hpp"
#include "samebits/types.hpp"

namespace samebits {
namespace {

constexpr int rank_count = 5;
constexpr std::size_t elements = 5000;
constexpr random_stream stream = {.seed = 11, .stream = 7, .offset = 1'000'000'007, .bits = 13};

/// Codes of numbers around 1, one in 32 of them any pattern at all.
template <class Storage>
std::vector<Storage> random_codes(const format_spec& format, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Storage> codes(elements);
  for (Storage& code : codes) {
    const float x = std::ldexp(static_cast<float>(random() % 4095) - 2047.0f,
                               static_cast<int>(random() % 16) - 18);
    code = static_cast<Storage>(
        random() % 32 == 0
            ? random()
            : numerics::encode<std::uint32_t>(format, {}, std::bit_cast<std::uint32_t>(x), 0).code);
  }
  return codes;
}

template <class Storage>
void compare(format_id own, const gradient_reduction& how) {
  const format_spec& format = spec_of(own);
  std::vector<std::vector<Storage>> codes;
  for (std::uint64_t r = 0; r < rank_count; ++r) codes.push_back(random_codes<Storage>(format, r));
  std::vector<Storage> got;
  testkit::simulate_ranks(rank_count, [&](communicator& ranks) {
    std::vector<Storage> mine = codes[static_cast<std::size_t>(ranks.rank())];
    const matrix_view list[] = {view_of_codes(own, mine.data(), 1, elements)};
    reduce_gradients(ranks, list, how);
    if (ranks.rank() == 3) got = mine;
  });

  const numerics::communication_settings settings = {spec_of(how.communication), how.scale,
                                                     how.rounding};
  std::uint32_t largest = 0;
  for (const auto& of_rank : codes) {
    for (const Storage code : of_rank) {
      const auto amax = numerics::amax_contribution(nonfinite::skip_nonfinite,
                                                    numerics::decode<std::uint32_t>(format, code));
      largest = std::max(largest, numerics::amax_to_word(amax));
    }
  }
  const numerics::tile_scale scale =
      numerics::has_scale(settings)
          ? numerics::shared_scale(settings, numerics::amax_from_word(largest))
          : numerics::no_scale;
  for (std::size_t i = 0; i < elements; ++i) {
    const auto sent = [&](int rank) {
      const auto r = static_cast<std::uint64_t>(rank);
      const std::uint32_t dither = how.rounding == rounding::stochastic
                                       ? numerics::align_random<std::uint32_t>(
                                             numerics::random_word(stream.seed, stream.stream + r,
                                                                   stream.offset + i, stream.bits),
                                             stream.bits)
                                       : 0;
      const std::uint32_t x = numerics::decode<std::uint32_t>(format, codes[r][i]);
      return numerics::contribution(settings, scale, x, dither);
    };
    const std::uint32_t total = numerics::sum_in_rank_order(settings, rank_count, sent);
    const std::uint32_t expected =
        numerics::reduced(settings, scale, format, total, std::bit_cast<std::uint32_t>(how.factor));
    ASSERT_EQ(got[i], expected) << name(own) << " over " << name(how.communication) << ", " << i;
  }
}

// Among unsigned words, nothing comes first.
static_assert(numerics::amax_to_word(numerics::no_amax) == 0);
static_assert(numerics::amax_to_word(0) == 1 && numerics::amax_from_word(1) == 0);
static_assert(numerics::amax_from_word(0) == numerics::no_amax);

TEST(RankSum, IsWhatArraysGet) {
  for (const format_id communication :
       {format_id::fp32, format_id::fp16, format_id::bf16, format_id::e4m3, format_id::e5m2}) {
    for (int rule = 0;
         rule < (spec_of(communication).storage_bits == 8 ? one_level_scale_rules : 1); ++rule) {
      for (const rounding round : {rounding::nearest_even, rounding::stochastic}) {
        const gradient_reduction how = {.communication = communication,
                                        .scale = static_cast<scale_rule>(rule),
                                        .rounding = round,
                                        .random = stream,
                                        .factor = 0.2f,
                                        .elements_at_once = 777};
        compare<std::uint32_t>(format_id::fp32, how);
        compare<std::uint16_t>(format_id::fp16, how);
        compare<std::uint16_t>(format_id::bf16, how);
      }
    }
  }
}

}  // namespace
}  // namespace samebits
