// Losses, gradients of parameters, and norms of lists; the definition of some.
#include "engine/cases/training.hpp"

#include <algorithm>
#include <bit>
#include <random>
#include <span>
#include <utility>

#include "engine/cases/loss_rule.hpp"
#include "engine/cases/operations.hpp"
#include "engine/cases/torch_numbers.hpp"
#include "numerics/hardware/torch_operators/axis_plan.hpp"
#include "numerics/hardware/torch_operators/axis_reduction.hpp"
#include "numerics/hardware/torch_operators/embedding_gradient.hpp"
#include "numerics/hardware/torch_operators/foreach_norm.hpp"
#include "numerics/hardware/torch_operators/norm_parameters.hpp"
#include "numerics/hardware/torch_operators/row_layer_norm.hpp"
#include "samebits/axis_reductions.hpp"

namespace samebits::support {
namespace {

namespace torch = numerics::torch_2_11;
using of = training_function;

constexpr std::size_t at_in = 0, at_second = 1, at_mean = 2, at_rstd = 3, at_out = 4, at_bias = 5,
                      at_targets = 6;

bool is_norm(const training_case& c) { return c.of <= of::rms_norm_parameters; }
bool is_loss(const training_case& c) {
  return c.of >= of::cross_entropy && c.of <= of::cross_entropy_and_gradient;
}
bool is_loss_gradient(const training_case& c) { return is_loss(c) && c.of != of::cross_entropy; }
bool is_list(const training_case& c) { return c.of >= of::foreach_norm; }

/// Indices of rows that follow from the content; every seventh target is ignored.
std::vector<std::int64_t> indices_of(const training_case& c) {
  std::mt19937_64 engine(c.content + 1);
  const std::int64_t limit = is_loss(c) ? c.in.cols : c.words;
  std::vector<std::int64_t> all(static_cast<std::size_t>(c.in.rows));
  for (std::int64_t& i : all) {
    i = static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(limit));
    if (is_loss(c) && engine() % 7 == 0) i = c.loss.ignore_index;
  }
  return all;
}

training_case draw_training(const word_source& next) {
  training_case c;
  c.of = static_cast<of>(below(8, next));
  c.format = one_of(torch_formats, next);
  constexpr std::int64_t most_rows[] = {20, 20, 70, 140, 300, 300, 700, 4000};
  std::int64_t rows = 1 + below(one_of(most_rows, next), next), cols = 1 + below(40, next);
  if (below(6, next) == 0) rows = std::min<std::int64_t>(rows, 70), cols = 250 + below(300, next);
  if (is_norm(c) && below(50, next) == 0)
    rows = 65530 + below(100, next), cols = 1 + below(66, next);
  if (is_list(c) && below(4, next) == 0) rows = 1, cols = 1 + below(140'000, next);
  if (below(40, next) == 0) rows = 0;
  c.in = draw_written(rows, cols, next);
  if (is_list(c)) rows = 1 + below(60, next);
  c.second = draw_written(rows, cols, next);
  constexpr int multiprocessors[] = {132, 4, 2};
  c.multiprocessors = c.loss.multiprocessors = one_of(multiprocessors, next);
  c.embedding.deterministic = true;
  c.words = 1 + below(below(2, next) == 0 ? 5 : 300, next);
  if (below(3, next) == 0) c.embedding.padding = below(c.words, next);
  c.loss.reduction = any_enumerator<loss_reduction>(next);
  constexpr double smoothing[] = {0, 0, 0.1, 1};
  c.loss.label_smoothing = one_of(smoothing, next);
  c.widens = c.loss.label_smoothing == 0 && below(3, next) == 0;
  c.loss.upcast = c.format != format_id::fp32 && below(4, next) == 0;
  if (c.loss.upcast) c.widens = true;
  c.loss.offset = below(9, next);
  return c;
}

/// What GPUs compute: gradients of norms' parameters of up to 65536 rows, and of embeddings; cross
/// entropy of rows up to those that a block cannot hold.
training_case draw_on_device(const word_source& next) {
  training_case c = draw_training(next);
  if (c.loss.label_smoothing != 0) c.widens = c.loss.upcast || below(3, next) == 0;
  c.loss.label_smoothing = 0;
  if (c.of == of::embedding_gradient || (is_norm(c) && c.in.rows <= 65536)) return c;
  constexpr of losses[] = {of::cross_entropy, of::cross_entropy_gradient,
                           of::cross_entropy_and_gradient};
  c.of = one_of(losses, next);
  c.second = draw_written(c.in.rows, c.in.cols, next);  // that of a list had rows of its own
  if (c.in.rows > 65536) c.in = c.second = dense_layout(1 + below(300, next), 1 + below(40, next));
  if (below(8, next) != 0) return c;
  const std::int64_t rows = 1 + below(4, next), cols = 1 + below(14'000, next);
  c.in = c.second = dense_layout(rows, cols);
  return c;
}

/// In one matrix of four some numbers are special.
buffers memory_of_training(const training_case& c) {
  const word_source next = words_from(c.content);
  buffers all;
  const auto given = [&](const char* name, bool wanted, format_id format,
                         const array_layout& layout) {
    const number_kind kind{.rarity = below(4, next) == 0 ? std::uint64_t{256} : 0};
    all.push_back(
        {name, buffer_use::given, numbers(format, wanted ? layout : array_layout{}, next, kind)});
  };
  const format_id of_loss = c.widens ? format_id::fp32 : c.format;
  const auto result = [&](const char* name, const array_layout& layout, bool is_loss_itself) {
    all.push_back(result_buffer(name, is_loss_itself ? of_loss : c.format, layout));
  };
  const bool one_loss = c.loss.reduction != loss_reduction::none;
  const array_layout row = {1, c.in.cols, 2 * c.in.cols, 2, 0},
                     statistics = {c.in.rows, 1, 3, 1, 0};
  const array_layout losses = dense_layout(1, one_loss ? 1 : c.in.rows);
  given("in", true, c.format, c.in);
  given("second", is_norm(c) || is_list(c) || is_loss_gradient(c), is_loss(c) ? of_loss : c.format,
        is_loss(c) ? losses : c.second);
  given("mean", c.of == of::layer_norm_parameters, format_id::fp32, statistics);
  given("rstd", is_norm(c), format_id::fp32, statistics);
  result("out",
         is_norm(c)                       ? row
         : c.of == of::embedding_gradient ? dense_layout(c.words, c.in.cols)
         : c.of == of::cross_entropy      ? losses
         : is_loss_gradient(c)            ? c.second
                                          : dense_layout(1, 2),
         c.of == of::cross_entropy);
  result("bias",
         c.of == of::layer_norm_parameters        ? row
         : c.of == of::cross_entropy_and_gradient ? losses
                                                  : array_layout{},
         c.of == of::cross_entropy_and_gradient);
  const bool has_indices = is_loss(c) || c.of == of::embedding_gradient;
  strided_buffer targets(format_id::fp64,
                         has_indices ? dense_layout(1, c.in.rows) : array_layout{});
  std::int64_t row_of = 0;
  for (const std::int64_t i : has_indices ? indices_of(c) : std::vector<std::int64_t>{}) {
    targets.store(row_of++, static_cast<std::uint64_t>(i));
  }
  all.push_back(
      {"targets", is_loss(c) ? buffer_use::given : buffer_use::fixed, std::move(targets)});
  return all;
}

returned_values training_on(const training_case& c, const call_site& site) {
  const std::vector<matrix_view>& v = site.views;
  const executor where = site.target.where(c.threads);
  const std::span targets(static_cast<const std::int64_t*>(v[at_targets].data),
                          static_cast<std::size_t>(v[at_targets].cols));
  const norm_parameter_options norm{c.loss.rule, c.multiprocessors};
  if (c.of == of::clip_grad_norm) {
    const float norm_before = clip_grad_norm({v[at_in], v[at_second]}, 1, c.loss.rule, where);
    return {{"norm", std::bit_cast<std::uint32_t>(norm_before)}};
  }
  site.target.enqueue([&] {
    switch (c.of) {
      case of::layer_norm_parameters:
        norm_parameter_gradients(v[at_in], v[at_second], v[at_mean], v[at_rstd], v[at_out],
                                 v[at_bias], norm, where);
        break;
      case of::rms_norm_parameters:
        norm_parameter_gradients(v[at_in], v[at_second], {}, v[at_rstd], v[at_out], {}, norm,
                                 where);
        break;
      case of::embedding_gradient:
        embedding_gradient(v[at_in], targets, v[at_out], c.embedding, where);
        break;
      case of::cross_entropy: cross_entropy(v[at_in], targets, v[at_out], c.loss, where); break;
      case of::cross_entropy_gradient:
        cross_entropy_gradient(v[at_second], v[at_in], targets, v[at_out], c.loss, where);
        break;
      case of::cross_entropy_and_gradient:
        cross_entropy_and_gradient(v[at_second], v[at_in], targets, v[at_bias], v[at_out], c.loss,
                                   where);
        break;
      case of::foreach_norm:
        foreach_norm({v[at_in], v[at_second]}, v[at_out], c.loss.rule, where);
        break;
      case of::clip_grad_norm: return;
    }
  });
  return {};
}

/// torch.sum over the rows of one column of partial sums.
std::uint32_t sum_of_blocks(const training_case& c, const words& codes) {
  const auto blocks = static_cast<std::int64_t>(codes.size());
  const std::int64_t shape[] = {blocks, c.in.cols}, strides[] = {c.in.cols, 1};
  const torch::axis_plan plan =
      torch::plan_of({c.format, axis_reduction::sum, 2, shape, strides, 1, 0, c.multiprocessors});
  return torch::axis_sum(plan, axis_reduction::sum, 0, [&](std::int64_t i) {
    return torch::value_of(c.format, codes[static_cast<std::size_t>(i)]);
  });
}

/// One column's gradient of the weight, or of the bias.
std::uint32_t norm_parameter(const training_case& c, const std::vector<matrix_view>& v,
                             std::int64_t col, bool of_weight) {
  const torch::parameter_order order =
      torch::norm_parameter_order(c.in.rows, c.in.cols, c.multiprocessors);
  words blocks;
  for (std::int64_t first = 0; first < c.in.rows; first += order.rows_of_block) {
    words sums(static_cast<std::size_t>(order.threads));
    for (std::int64_t row = first; row < std::min(first + order.rows_of_block, c.in.rows); ++row) {
      std::uint32_t& sum = sums[static_cast<std::size_t>(order.thread_of(row))];
      const std::uint32_t grad = value_at(v[at_in], row, col);
      const std::uint32_t mean = c.of == of::rms_norm_parameters ? 0 : value_at(v[at_mean], row, 0);
      sum = of_weight
                ? torch::with_product<std::uint32_t>(sum, grad, value_at(v[at_second], row, col),
                                                     mean, value_at(v[at_rstd], row, 0))
                : numerics::ptx::add(sum, grad);
    }
    const std::uint32_t sum = torch::fold_halves(
        sums.data(), order.threads,
        [](std::uint32_t a, std::uint32_t b) { return numerics::ptx::add(a, b); });
    blocks.push_back(torch::code_of(c.format, sum));
  }
  return blocks.size() == 1 ? blocks[0] : torch::code_of(c.format, sum_of_blocks(c, blocks));
}

std::uint32_t norm_of(const matrix_view& m) {
  const std::int64_t size = m.rows * m.cols;
  words chunks;
  for (std::int64_t first = 0; first < size; first += torch::foreach_chunk) {
    words sums(torch::foreach_sums);
    const bool vectors = torch::reads_vectors(size - first);
    for (std::int64_t i = 0; i < std::min(size - first, torch::foreach_chunk); ++i) {
      const std::uint32_t x = value_at(m, (first + i) / m.cols, (first + i) % m.cols);
      std::uint32_t& sum = sums[static_cast<std::size_t>(torch::foreach_place(vectors, i))];
      sum = numerics::ptx::fma(x, x, sum);
    }
    chunks.push_back(torch::foreach_block_sum(sums.data(), 4));
  }
  return torch::code_of(
      m.format, torch::foreach_norm_of(chunks.data(), static_cast<std::int64_t>(chunks.size())));
}

void embedding_by_definition(const training_case& c, const std::vector<matrix_view>& v) {
  const std::vector<std::int64_t> indices = indices_of(c);
  const bool few = torch::few_indices(c.in.rows, c.embedding.padding);
  for (std::int64_t word = 0; word < c.words; ++word) {
    std::vector<std::int64_t> rows;
    for (std::int64_t row = 0; row < c.in.rows; ++row) {
      const bool has = indices[static_cast<std::size_t>(row)] == word;
      if (has && word != c.embedding.padding) rows.push_back(row);
    }
    for (std::int64_t col = 0; col < c.in.cols; ++col) {
      const auto value = [&](std::int64_t row) { return value_at(v[at_in], row, col); };
      const std::uint32_t sum =
          rows.empty() ? 0
                       : torch::embedding_sum(few, c.format, rows.data(),
                                              static_cast<std::int64_t>(rows.size()), value);
      put_value(v[at_out], word, col, sum);
    }
  }
}

/// What the definition in numerics/ leaves, one element after another.
returned_values training_by_definition(const training_case& c, const call_site& site) {
  const std::vector<matrix_view>& v = site.views;
  if (c.of == of::embedding_gradient) embedding_by_definition(c, v);
  for (std::int64_t col = 0; is_norm(c) && col < c.in.cols; ++col) {
    put_code(v[at_out], 0, col, norm_parameter(c, v, col, true));
    if (c.of == of::layer_norm_parameters) {
      put_code(v[at_bias], 0, col, norm_parameter(c, v, col, false));
    }
  }
  if (c.of == of::foreach_norm) {
    put_code(v[at_out], 0, 0, norm_of(v[at_in]));
    put_code(v[at_out], 0, 1, norm_of(v[at_second]));
  }
  if (c.of == of::cross_entropy) losses_by_rule(c, indices_of(c), v[at_in], v[at_out]);
  if (c.of == of::cross_entropy_and_gradient) {
    losses_by_rule(c, indices_of(c), v[at_in], v[at_bias]);
  }
  if (is_loss_gradient(c)) {
    loss_gradients_by_rule(c, indices_of(c), v[at_second], v[at_in], v[at_out]);
  }
  if (c.of != of::clip_grad_norm) return {};
  const words norms = {norm_of(v[at_in]), norm_of(v[at_second])};
  const float norm = clipped_by_rule(c, norms, 1, {v[at_in], v[at_second]});
  return {{"norm", std::bit_cast<std::uint32_t>(norm)}};
}

}  // namespace

array_operation training_operation_on_device() {
  return make_operation<training_case>("training functions",
                                       {draw_on_device, memory_of_training, training_on}, 64);
}

array_operation training_operation() {
  return judged("the definition", training_by_definition,
                make_operation<training_case>(
                    "training functions", {draw_training, memory_of_training, training_on}, 64));
}
std::string_view name(training_function which) {
  constexpr std::string_view names[] = {"layer norm's parameters",
                                        "rms norm's parameters",
                                        "embedding_gradient",
                                        "cross_entropy",
                                        "cross_entropy_gradient",
                                        "cross_entropy_and_gradient",
                                        "foreach_norm",
                                        "clip_grad_norm"};
  return names[static_cast<int>(which)];
}

void describe(training_case& c, case_fields& fields) {
  fields.show("of", c.of, "format", c.format, "in", c.in, "second", c.second, "multiprocessors",
              c.multiprocessors, "words", c.words, "reduction", c.loss.reduction, "upcast",
              c.loss.upcast, "loss in fp32", c.widens, "offset", c.loss.offset);
  fields.sizes(c.in.rows - 1, c.in.cols - 1, [&](std::int64_t rows, std::int64_t cols) {
    for (array_layout* l : {&c.in, &c.second}) l->resize(rows + 1, cols + 1);
  });
  fields.reset("padding", c.embedding.padding, -1, "label smoothing", c.loss.label_smoothing, 0.0);
}

}  // namespace samebits::support
