// Random gradient reductions.
#include "support/reduction_case.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <ostream>
#include <random>

#include "oracle/convert.hpp"
#include "support/generators.hpp"
#include "support/rules.hpp"

namespace samebits::support {

std::ostream& operator<<(std::ostream& out, const reduction_case& c) {
  out << c.ranks << " ranks, communication " << name(c.how.communication) << " "
      << name(c.how.scale) << " " << name(c.how.rounding) << " K " << c.how.random.bits
      << ", factor " << c.how.factor << ", " << c.how.elements_at_once << " at once;";
  for (const reduction_tensor& t : c.tensors) {
    out << " " << name(t.format) << "[" << t.rows << ", " << t.cols << "]"
        << (t.col_stride > 1 ? " strided" : "");
  }
  return out;
}

namespace {

/// Codes from all families in view of the communication dtype, or numbers of a few neighbouring
/// binades with a special one now and then.
std::vector<std::uint64_t> draw_codes(format_id format, format_id communication, std::size_t count,
                                      int binade, const word_source& next) {
  std::vector<std::uint64_t> codes(count);
  for (std::uint64_t& code : codes) {
    const auto family = static_cast<code_family>(next() % code_family_count);
    const std::uint64_t any = draw_code(family, format, communication, next);
    const float number =
        std::ldexp(static_cast<float>(static_cast<std::int64_t>(next() % 4095) - 2047),
                   binade + static_cast<int>(next() % 8));
    const bool clustered = binade > -1000 && next() % 16 != 0;
    code = clustered ? oracle::convert(oracle::format_named("fp32"), oracle_of(format),
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

}  // namespace

reduction_case draw_reduction(std::uint64_t seed, int ranks, int tensors, int elements) {
  std::mt19937_64 engine(seed);
  const word_source next = [&] { return engine(); };
  constexpr std::array dtypes = {format_id::fp32, format_id::fp16, format_id::bf16, format_id::e4m3,
                                 format_id::e5m2};
  constexpr std::array formats = {format_id::fp32, format_id::fp16, format_id::bf16};
  reduction_case c = {ranks, {}, {}};
  c.how.communication = dtypes[next() % dtypes.size()];
  c.how.scale = static_cast<scale_rule>(next() % enum_count<scale_rule>);
  c.how.rounding = next() % 2 == 0 ? rounding::nearest_even : rounding::stochastic;
  c.how.random = {.seed = draw_number(next),
                  .stream = draw_number(next),
                  .offset = draw_number(next),
                  .pitch = next() % 2 == 0 ? std::nullopt : std::optional<std::uint64_t>(next()),
                  .bits = static_cast<int>(next() % 32) + 1};
  c.how.factor = draw_factor(ranks, next);
  c.how.elements_at_once = static_cast<std::int64_t>(next() % 40) + 1;
  for (int i = 0; i < tensors; ++i) {
    reduction_tensor t = {formats[next() % formats.size()], 1, 0, 0, 1, {}};
    t.rows = static_cast<std::int64_t>(next() % 4);
    t.cols = static_cast<std::int64_t>(next() % static_cast<unsigned>(elements + 1));
    t.col_stride = next() % 4 == 0 ? 2 : 1;
    t.row_stride = t.cols * t.col_stride + static_cast<std::int64_t>(next() % 3);
    const int binade = next() % 4 == 0 ? -1000 : static_cast<int>(next() % 250) - 140;
    for (int r = 0; r < ranks; ++r) {
      t.codes.push_back(draw_codes(t.format, c.how.communication,
                                   static_cast<std::size_t>(t.rows * t.cols), binade, next));
    }
    c.tensors.push_back(t);
  }
  return c;
}

}  // namespace samebits::support
