// Gradients summed over ranks.
#include <bit>
#include <cmath>

#include "engine/cases/gradients.hpp"
#include "engine/cases/operations.hpp"
#include "engine/inputs/families.hpp"
#include "samebits/distributed.hpp"
#include "samebits/scalar.hpp"

namespace samebits::support {
namespace {

/// Codes from all families in view of the communication dtype, or numbers of a few neighbouring
/// binades with a special one now and then.
strided_buffer gradient_of(const reduction_tensor& t, format_id communication,
                           const word_source& next) {
  strided_buffer memory(t.format, t.layout);
  for (std::int64_t i = 0; i < t.layout.rows * t.layout.cols; ++i) {
    const std::uint64_t any = draw_any_code(t.format, communication, next);
    const float number =
        std::ldexp(static_cast<float>(static_cast<std::int64_t>(next() % 4095) - 2047),
                   t.binade + static_cast<int>(next() % 8));
    const bool clustered = t.binade > -1000 && next() % 16 != 0;
    const auto bits = std::bit_cast<std::uint32_t>(number);
    memory.store(t.layout.at(i),
                 clustered ? convert_code(format_id::fp32, t.format, bits).code : any);
  }
  return memory;
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

reduction_tensor draw_tensor(int elements, const word_source& next) {
  constexpr format_id formats[] = {format_id::fp32, format_id::fp16, format_id::bf16};
  reduction_tensor t = {one_of(formats, next)};
  const std::int64_t rows = below(4, next), cols = below(elements + 1, next);
  const std::int64_t col_stride = below(4, next) == 0 ? 2 : 1;
  t.layout = {rows, cols, cols * col_stride + below(3, next), col_stride, 0};
  t.binade = below(4, next) == 0 ? -1000 : static_cast<int>(below(250, next)) - 140;
  return t;
}

/// Any communication dtype, formats, rounding and factor.
reduction_case draw_ranks(const word_source& next) {
  constexpr format_id dtypes[] = {format_id::fp32, format_id::fp16, format_id::bf16,
                                  format_id::e4m3, format_id::e5m2};
  reduction_case c;
  c.ranks = 1 + static_cast<int>(below(8, next));
  c.how.communication = one_of(dtypes, next);
  c.how.scale = static_cast<scale_rule>(below(one_level_scale_rules, next));
  c.how.rounding = below(2, next) == 0 ? rounding::nearest_even : rounding::stochastic;
  c.how.random = draw_random_stream(next);
  c.how.factor = draw_factor(c.ranks, next);
  c.how.elements_at_once = 1 + below(40, next);
  const bool is_long = below(64, next) == 0;
  if (is_long) {
    constexpr std::int64_t cuts[] = {1000, 4095, 4096, 1 << 22};
    c.how.elements_at_once = one_of(cuts, next);
  } else if (below(4, next) != 0) {
    c.how.elements_at_once += 100;  // few messages, mostly
  }
  const int elements = is_long ? 3000 : 1 + static_cast<int>(below(40, next));
  for (std::int64_t i = below(is_long ? 3 : 6, next); i > 0; --i) {
    c.tensors.push_back(draw_tensor(elements, next));
  }
  return c;
}

/// The tensors of rank 0, then those of rank 1, ...
buffers memory_of_ranks(const reduction_case& c) {
  const word_source next = words_from(c.content);
  buffers all;
  for (int rank = 0; rank < c.ranks; ++rank) {
    for (std::size_t i = 0; i < c.tensors.size(); ++i) {
      all.push_back({"rank " + std::to_string(rank) + " tensor " + std::to_string(i),
                     buffer_use::given, gradient_of(c.tensors[i], c.how.communication, next)});
    }
  }
  return all;
}

returned_values reduce_ranks(const reduction_case& c, const call_site& site) {
  site.target.simulate_ranks(c.ranks, [&](communicator& ranks) {
    gradient_reduction how = c.how;
    if (site.on_device()) how.backend = site.target.backend();
    const std::size_t tensors = c.tensors.size();
    reduce_gradients(
        ranks,
        std::span(site.views).subspan(static_cast<std::size_t>(ranks.rank()) * tensors, tensors),
        how);
  });
  return {};
}

}  // namespace

void describe(reduction_case& c, case_fields& fields) {
  const gradient_reduction plain;
  fields.show("communication", c.how.communication);
  fields.fewer(c.tensors);
  fields.show("ranks", c.ranks);
  if (fields.change(c.ranks > 1)) --c.ranks;
  for (reduction_tensor& t : c.tensors) {
    fields.line();
    fields.show("format", t.format, "binade", t.binade);
    fields.matrices({{"layout", t.layout}});
  }
  fields.line();
  fields.reset("factor", c.how.factor, plain.factor, "rounding", c.how.rounding, plain.rounding,
               "scale", c.how.scale, plain.scale, "elements at once", c.how.elements_at_once,
               plain.elements_at_once);
  fields.reset(c.how.random);
}

array_operation gradient_reduction_operation() {
  return make_operation<reduction_case>("reduce_gradients",
                                        {draw_ranks, memory_of_ranks, reduce_ranks});
}

}  // namespace samebits::support
