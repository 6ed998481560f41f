// reduce_gradients() against a transcription in exact arithmetic: any ranks, lists, formats and
// wire.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <random>
#include <span>
#include <vector>

#include "oracle/convert.hpp"
#include "oracle/elementary.hpp"
#include "oracle/philox.hpp"
#include "oracle/scale.hpp"
#include "samebits/gradient_reduction.hpp"
#include "samebits/testkit/ranks.hpp"
#include "support/generators.hpp"
#include "support/property.hpp"
#include "support/rules.hpp"

namespace samebits {
namespace {

constexpr std::byte guard{0xA5};

/// A tensor with gaps between its rows, of which every rank has a copy with codes of its own.
struct tensor {
  format_id format;
  std::int64_t rows, cols, row_stride;
  std::vector<std::vector<std::uint64_t>> codes;  ///< per rank, in the order (row, column)
};

struct reduction_case {
  int ranks;
  std::vector<tensor> tensors;
  gradient_reduction how;
};

std::ostream& operator<<(std::ostream& out, const reduction_case& c) {
  out << c.ranks << " ranks, wire " << name(c.how.wire) << " " << name(c.how.math) << " "
      << name(c.how.round) << " K " << c.how.random.bits << ", factor " << c.how.factor << ", "
      << c.how.elements_at_once << " at once;";
  for (const tensor& t : c.tensors) {
    out << " " << name(t.format) << "[" << t.rows << ", " << t.cols << "]";
  }
  return out;
}

using support::word_source;

/// Codes from all families in view of the wire, or numbers of a few neighbouring binades with a
/// special one now and then.
std::vector<std::uint64_t> draw_codes(format_id format, format_id wire, std::size_t count,
                                      int binade, const word_source& next) {
  std::vector<std::uint64_t> codes(count);
  for (std::uint64_t& code : codes) {
    const auto family = static_cast<support::code_family>(next() % support::code_family_count);
    const std::uint64_t any = support::draw_code(family, format, wire, next);
    const float number =
        std::ldexp(static_cast<float>(static_cast<std::int64_t>(next() % 4095) - 2047),
                   binade + static_cast<int>(next() % 8));
    const bool clustered = binade > -1000 && next() % 16 != 0;
    code = clustered ? oracle::convert(oracle::format_named("fp32"), support::judge_of(format),
                                       std::bit_cast<std::uint32_t>(number), {})
                     : any;
  }
  return codes;
}

float draw_factor(int ranks, const word_source& next) {
  switch (next() % 4) {
    case 0: return 1.0f;
    case 1: return 1.0f / static_cast<float>(ranks);
    case 2: return std::ldexp(1.0f / static_cast<float>(ranks), -static_cast<int>(next() % 40));
    default: break;
  }
  const auto bits = static_cast<std::uint32_t>(next());
  return std::isfinite(std::bit_cast<float>(bits)) ? std::bit_cast<float>(bits) : -0.0f;
}

reduction_case draw_case(std::uint64_t seed, int ranks, int tensors, int elements) {
  std::mt19937_64 engine(seed);
  const word_source next = [&] { return engine(); };
  constexpr std::array wires = {format_id::fp32, format_id::fp16, format_id::bf16, format_id::e4m3,
                                format_id::e5m2};
  constexpr std::array formats = {format_id::fp32, format_id::fp16, format_id::bf16};
  reduction_case c = {ranks, {}, {}};
  c.how.wire = wires[next() % wires.size()];
  c.how.math = static_cast<scale_math>(next() % scale_math_count);
  c.how.round = next() % 2 == 0 ? rounding::nearest_even : rounding::stochastic;
  c.how.random = {.seed = support::draw_number(next),
                  .stream = support::draw_number(next),
                  .offset = support::draw_number(next),
                  .pitch = next() % 2 == 0 ? std::nullopt : std::optional<std::uint64_t>(next()),
                  .bits = static_cast<int>(next() % 32) + 1};
  c.how.factor = draw_factor(ranks, next);
  c.how.elements_at_once = static_cast<std::int64_t>(next() % 40) + 1;
  for (int i = 0; i < tensors; ++i) {
    tensor t = {formats[next() % formats.size()], 1, 0, 0, {}};
    t.rows = static_cast<std::int64_t>(next() % 4);
    t.cols = static_cast<std::int64_t>(next() % static_cast<unsigned>(elements + 1));
    t.row_stride = t.cols + static_cast<std::int64_t>(next() % 3);
    const int binade = next() % 4 == 0 ? -1000 : static_cast<int>(next() % 250) - 140;
    for (int r = 0; r < ranks; ++r) {
      t.codes.push_back(draw_codes(t.format, c.how.wire, static_cast<std::size_t>(t.rows * t.cols),
                                   binade, next));
    }
    c.tensors.push_back(t);
  }
  return c;
}

/// One rank's memory for a tensor, guard bytes in the gaps.
struct buffer {
  std::vector<std::byte> bytes;
  matrix_view view;

  buffer(const tensor& t, int rank) {
    const auto size = static_cast<std::size_t>(storage_bytes(t.format));
    bytes.assign(static_cast<std::size_t>(t.rows * t.row_stride + 1) * size, guard);
    view = view_of_codes(t.format, bytes.data(), t.rows, t.cols);
    view.row_stride = t.row_stride;
    for (std::size_t i = 0; i < t.codes[static_cast<std::size_t>(rank)].size(); ++i) {
      std::memcpy(at(t, i), &t.codes[static_cast<std::size_t>(rank)][i], size);
    }
  }
  std::byte* at(const tensor& t, std::size_t i) {
    const auto row = static_cast<std::int64_t>(i) / t.cols;
    const auto col = static_cast<std::int64_t>(i) % t.cols;
    return bytes.data() + (row * t.row_stride + col) * storage_bytes(t.format);
  }
};

/// The memory after the call.
using image = std::vector<std::vector<std::byte>>;

std::vector<image> reduced(const reduction_case& c) {
  std::vector<image> images(static_cast<std::size_t>(c.ranks));
  testkit::play_ranks(c.ranks, [&](communicator& ranks) {
    std::vector<buffer> buffers;
    for (const tensor& t : c.tensors) buffers.emplace_back(t, ranks.rank());
    std::vector<matrix_view> views;
    for (const buffer& b : buffers) views.push_back(b.view);
    reduce_gradients(ranks, views, c.how);
    for (buffer& b : buffers) {
      images[static_cast<std::size_t>(ranks.rank())].push_back(std::move(b.bytes));
    }
  });
  return images;
}

const oracle::format& fp32() { return oracle::format_named("fp32"); }

/// The scale of a tensor from its elements on all ranks, step by step.
oracle::tile_scale scale_of(const reduction_case& c, const tensor& t) {
  std::vector<std::uint32_t> all;
  for (const auto& codes : t.codes) {
    for (const std::uint64_t code : codes) {
      all.push_back(static_cast<std::uint32_t>(
          oracle::convert(support::judge_of(t.format), fp32(), code, {})));
    }
  }
  const oracle::scale_rule rule = {.math = static_cast<oracle::scale_math>(c.how.math),
                                   .on_nonfinite = oracle::nonfinite::skip_nonfinite};
  return oracle::scale_of_tile(rule, support::judge_of(c.how.wire), all);
}

/// What one element must become; `position` is its place in the list.
std::uint64_t expected(const reduction_case& c, const tensor& t, const oracle::tile_scale* scale,
                       std::size_t i, std::uint64_t position) {
  const oracle::format& own = support::judge_of(t.format);
  const oracle::format& wire = support::judge_of(c.how.wire);
  const cast_rule cast = {c.how.round, overflow::ieee, nan_policy::canonical};
  std::uint64_t total = 0;
  for (std::size_t r = 0; r < t.codes.size(); ++r) {
    const random_stream& s = c.how.random;
    const random_bits bits = {
        oracle::random_word(s.seed, s.stream + r, s.offset + position, s.bits), s.bits};
    std::uint64_t x = t.codes[r][i];
    std::uint64_t q = 0;
    if (scale != nullptr) {
      x = oracle::convert(own, fp32(), x, {});
      x = oracle::scaled(static_cast<oracle::scale_math>(c.how.math), *scale,
                         static_cast<std::uint32_t>(x));
      q = oracle::convert(fp32(), wire, x, cast, bits);
    } else {
      q = oracle::convert(own, wire, x, cast, bits);
    }
    const std::uint64_t value = oracle::convert(wire, fp32(), q, {});
    total = r == 0 ? value : oracle::add(fp32(), total, value);
  }
  auto t32 = static_cast<std::uint32_t>(total);
  if (scale != nullptr) t32 = oracle::multiply32(t32, scale->s);
  t32 = oracle::multiply32(t32, std::bit_cast<std::uint32_t>(c.how.factor));
  return oracle::convert(fp32(), own, t32, {});
}

image expected_image(const reduction_case& c) {
  image all;
  std::uint64_t position = 0;
  for (const tensor& t : c.tensors) {
    buffer b(t, 0);
    const bool scaled = c.how.wire == format_id::e4m3 || c.how.wire == format_id::e5m2;
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
    const reduction_case c = draw_case(seed, ranks, tensors, elements);
    RC_LOG() << c;
    const image wanted = expected_image(c);
    const std::vector<image> got = reduced(c);
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
    reduction_case c = draw_case(seed, *rc::gen::element(2, 3, 8), 3, 3000);
    RC_LOG() << c;
    c.how.elements_at_once = std::int64_t{1} << 40;
    const auto whole = reduced(c);
    c.how.elements_at_once = *rc::gen::inRange<std::int64_t>(97, 5000);
    RC_ASSERT(reduced(c) == whole);
  });
}

}  // namespace
}  // namespace samebits
