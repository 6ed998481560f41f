// The checks of stochastic rounding and of views.
#include <array>
#include <utility>

#include "backends/verify/checks.hpp"
#include "backends/verify/conversion.hpp"

namespace samebits::backends::verification {
namespace {

using enum format_id;

constexpr std::array<int, 4> bit_counts{8, 13, 16, 32};
constexpr std::array stochastic_rules{
    cast_rule{rounding::stochastic, overflow::ieee, nan_policy::canonical},
    cast_rule{rounding::stochastic, overflow::saturate, nan_policy::preserve_sign},
    cast_rule{rounding::stochastic, overflow::saturate_finite, nan_policy::canonical}};

struct source_targets {
  format_id from;
  std::vector<format_id> to;
};

/// The format pairs that have their own kernels, and some others.
std::vector<source_targets> stochastic_pairs() {
  return {{fp32, {fp16, bf16, e4m3, e5m2, e2m1, tf32}},
          {bf16, {fp16, e4m3, e5m2}},
          {fp16, {bf16, e4m3, e5m2}},
          {fp64, {fp32, bf16}}};
}

/// Random seed, stream and offset number i. Every fourth offset is just below 2^64.
random_stream random_stream_at(std::uint64_t i, int bits) {
  random_stream r{random_pattern(2, 3 * i), random_pattern(2, 3 * i + 1),
                  random_pattern(2, 3 * i + 2), std::nullopt, bits};
  if (i % 4 == 3) r.offset |= ~std::uint64_t{0} << 12;
  return r;
}

/// Splits one row at uneven positions; no part is a multiple of a vector or block size.
std::vector<block> uneven_parts(std::int64_t cols) {
  std::vector<block> parts;
  std::int64_t step = 1;
  for (std::int64_t at = 0; at < cols; step = step * 3 + 2) {
    const std::int64_t count = step < cols - at ? step : cols - at;
    parts.push_back({0, at, 1, count});
    at += count;
  }
  return parts;
}

void check_shards(comparer& backends, const done_function& done) {
  heading h = make_heading(backends, "whole and in column shards", "stochastic");
  const placement whole = placement::dense(61, 1003);
  const std::vector<block> shards{
      {0, 0, 61, 1}, {0, 1, 61, 255}, {0, 256, 61, 512}, {0, 768, 17, 235}, {17, 768, 44, 235}};
  std::uint64_t draw = 1000;
  for (const auto& [from, targets] : stochastic_pairs()) {
    const code_buffer input =
        random_codes(from, targets, ++draw, static_cast<std::uint64_t>(whole.rows * whole.cols),
                     backends.threads());
    backends.set_input(input);
    for (const format_id to : targets) {
      for (const int bits : bit_counts) {
        for (const cast_rule& rule : stochastic_rules) {
          conversion c{to, rule, whole, whole, random_stream_at(++draw, bits), shards};
          backends.compare(call_of(c, input), h.per_backend);
          // The call is itself a shard: its row pitch in the tensor is larger than its number of
          // columns.
          c.random.pitch = 4096 + draw % 1000;
          backends.compare(call_of(c, input), h.per_backend);
        }
      }
    }
  }
  done(h);
}

/// The layouts of the input and the output of a matrix [rows, cols].
struct view_pair {
  placement in;
  placement out;
};

std::vector<view_pair> odd_views() {
  constexpr std::int64_t rows = 19;
  constexpr std::int64_t cols = 83;
  std::vector<placement> readable;
  for (std::size_t shift = 0; shift < 8; ++shift) readable.push_back({1, 997, 997, 1, shift});
  const std::vector<placement> matrices{{rows, cols, cols, 1, 0}, {rows, cols, cols + 5, 1, 3},
                                        {rows, cols, 128, 1, 0},  {rows, cols, 3 * cols, 3, 1},
                                        {rows, cols, 1, rows, 0}, {rows, cols, 2, 2 * rows + 1, 2}};
  std::vector<view_pair> views;
  for (const placement& in : readable) {
    for (const placement& out : readable) views.push_back({in, out});
  }
  for (const placement& in : matrices) {
    for (const placement& out : matrices) views.push_back({in, out});
  }
  const placement dense = placement::dense(rows, cols);
  for (const auto& [row_stride, col_stride] :
       {std::pair<std::int64_t, std::int64_t>{0, 1}, {1, 0}, {0, 0}}) {
    views.push_back({{rows, cols, row_stride, col_stride, 0}, dense});
  }
  for (std::int64_t cols_of_tail = 1; cols_of_tail <= 67; ++cols_of_tail) {
    views.push_back({placement::dense(3, cols_of_tail), placement::dense(3, cols_of_tail)});
  }
  return views;
}

}  // namespace

void check_stochastic(comparer& backends, const effort& much, const done_function& done) {
  std::vector<heading> headings;
  for (const int bits : bit_counts) {
    headings.push_back(make_heading(backends, "in one call and in uneven parts",
                                    "stochastic with K = " + std::to_string(bits)));
  }
  const auto cols = static_cast<std::int64_t>(much.stochastic);
  const placement row = placement::dense(1, cols);
  const std::vector<block> parts = uneven_parts(cols);
  std::uint64_t draw = 0;
  for (std::uint64_t slice = 0; slice < much.stochastic_slices; ++slice) {
    for (const auto& [from, targets] : stochastic_pairs()) {
      const code_buffer input =
          random_codes(from, targets, 1'000'000 + draw, much.stochastic, backends.threads());
      backends.set_input(input);
      for (const format_id to : targets) {
        for (std::size_t k = 0; k < bit_counts.size(); ++k) {
          const cast_rule& rule = stochastic_rules[static_cast<std::size_t>(
              random_pattern(3, draw) % stochastic_rules.size())];
          const random_stream random = random_stream_at(++draw, bit_counts[k]);
          backends.compare(call_of(conversion{to, rule, row, row, random, parts}, input),
                           headings[k].per_backend);
        }
      }
    }
  }
  for (const heading& h : headings) done(h);
  check_shards(backends, done);
}

void check_views(comparer& backends, const done_function& done) {
  heading h = make_heading(backends, "unaligned, strided and transposed views");
  constexpr std::array rules{
      cast_rule{rounding::nearest_even}, cast_rule{rounding::nearest_even, overflow::saturate},
      cast_rule{rounding::downward, overflow::saturate_finite, nan_policy::preserve_sign},
      cast_rule{rounding::stochastic}};
  // Elements that the largest view spans, including its shift.
  constexpr std::uint64_t enough = 8192;
  std::uint64_t draw = 2000;
  for (const auto& [from, targets] : stochastic_pairs()) {
    const code_buffer input = random_codes(from, targets, ++draw, enough, backends.threads());
    backends.set_input(input);
    for (const view_pair& views : odd_views()) {
      for (const format_id to : targets) {
        for (const cast_rule& rule : rules) {
          const int bits = bit_counts[draw % bit_counts.size()];
          const random_stream random = random_stream_at(++draw, bits);
          backends.compare(call_of(conversion{to, rule, views.in, views.out, random}, input),
                           h.per_backend);
        }
      }
    }
  }
  done(h);
}

}  // namespace samebits::backends::verification
