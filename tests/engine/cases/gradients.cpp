// Gradients summed over ranks.
#include <array>
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
std::vector<std::uint64_t> draw_codes(format_id format, format_id communication, std::size_t count,
                                      int binade, const word_source& next) {
  std::vector<std::uint64_t> codes(count);
  for (std::uint64_t& code : codes) {
    const std::uint64_t any = draw_any_code(format, communication, next);
    const float number =
        std::ldexp(static_cast<float>(static_cast<std::int64_t>(next() % 4095) - 2047),
                   binade + static_cast<int>(next() % 8));
    const bool clustered = binade > -1000 && next() % 16 != 0;
    const auto bits = std::bit_cast<std::uint32_t>(number);
    code = clustered ? convert_code(format_id::fp32, format, bits).code : any;
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
  const word_source next = words_from(seed);
  constexpr std::array dtypes = {format_id::fp32, format_id::fp16, format_id::bf16, format_id::e4m3,
                                 format_id::e5m2};
  constexpr std::array formats = {format_id::fp32, format_id::fp16, format_id::bf16};
  reduction_case c = {ranks, {}, {}};
  c.how.communication = dtypes[next() % dtypes.size()];
  c.how.scale = static_cast<scale_rule>(next() % one_level_scale_rules);
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

namespace {

constexpr int max_ranks = 8;

reduction_case draw_ranks(const word_source& next) {
  const auto below = [&](std::uint64_t limit) { return static_cast<int>(next() % limit); };
  const bool long_list = below(64) == 0;
  const int elements = long_list ? 3000 : 1 + below(40);
  reduction_case c =
      draw_reduction(next(), 1 + below(max_ranks), below(long_list ? 3 : 6), elements);
  if (long_list) {
    constexpr std::int64_t cuts[] = {1000, 4095, 4096, 1 << 22};
    c.how.elements_at_once = cuts[below(std::size(cuts))];
  } else if (below(4) != 0) {
    c.how.elements_at_once += 100;  // few messages, mostly
  }
  return c;
}

/// A tensor's first rows and columns.
reduction_tensor part_of(const reduction_tensor& t, std::int64_t rows, std::int64_t cols) {
  reduction_tensor part = t;
  part.rows = rows;
  part.cols = cols;
  for (std::vector<std::uint64_t>& codes : part.codes) {
    std::vector<std::uint64_t> kept;
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto first = codes.begin() + row * t.cols;
      kept.insert(kept.end(), first, first + cols);
    }
    codes = std::move(kept);
  }
  return part;
}

/// The tensors of rank 0, then those of rank 1, ...
buffers memory_of_ranks(const reduction_case& c) {
  buffers all;
  for (int rank = 0; rank < c.ranks; ++rank) {
    for (std::size_t i = 0; i < c.tensors.size(); ++i) {
      const reduction_tensor& t = c.tensors[i];
      strided_buffer memory(t.format, {t.rows, t.cols, t.row_stride, t.col_stride, 0});
      const std::vector<std::uint64_t>& codes = t.codes[static_cast<std::size_t>(rank)];
      for (std::size_t k = 0; k < codes.size(); ++k) {
        memory.store(memory.layout().at(static_cast<std::int64_t>(k)), codes[k]);
      }
      all.push_back({"rank " + std::to_string(rank) + " tensor " + std::to_string(i),
                     buffer_use::given, std::move(memory)});
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
  fields.show("ranks", c.ranks, "communication", c.how.communication);
  fields.fewer(c.tensors);
  if (fields.change(c.ranks > 1)) {
    --c.ranks;
    for (reduction_tensor& t : c.tensors) t.codes.pop_back();
  }
  for (reduction_tensor& t : c.tensors) {
    fields.line();
    fields.show("format", t.format, "rows", t.rows, "columns", t.cols);
    if (fields.change(t.rows > 1)) t = part_of(t, 1, t.cols);
    if (fields.change(t.cols > 1)) t = part_of(t, t.rows, t.cols / 2);
    if (fields.change(t.cols > 1)) t = part_of(t, t.rows, t.cols - 1);
    fields.reset("column stride", t.col_stride, 1, "row stride", t.row_stride,
                 t.cols * t.col_stride);
  }
  fields.line();
  fields.reset("factor", c.how.factor, plain.factor, "rounding", c.how.rounding, plain.rounding,
               "scale", c.how.scale, plain.scale, "elements at once", c.how.elements_at_once,
               plain.elements_at_once);
  fields.reset(c.how.random);
}

operation_of<reduction_case> gradient_reductions() {
  return {draw_ranks, memory_of_ranks, reduce_ranks};
}

array_operation gradient_reduction_operation() {
  return make_operation("reduce_gradients", gradient_reductions());
}

}  // namespace samebits::support
