// Gradients summed over ranks.
#include <algorithm>
#include <ostream>
#include <random>

#include "operations/operations.hpp"
#include "samebits/distributed.hpp"
#include "support/case_generator.hpp"
#include "support/reduction_case.hpp"

namespace samebits::support {
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

std::vector<reduction_case> simpler_ranks(const reduction_case& c) {
  std::vector<reduction_case> all;
  for (std::size_t i = 0; i < c.tensors.size(); ++i) {
    all.push_back(c);
    all.back().tensors.erase(all.back().tensors.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (c.ranks > 1) {
    all.push_back(c);
    --all.back().ranks;
    for (reduction_tensor& t : all.back().tensors) t.codes.pop_back();
  }
  for (std::size_t i = 0; i < c.tensors.size(); ++i) {
    const reduction_tensor& t = c.tensors[i];
    const auto add = [&](const reduction_tensor& other) {
      all.push_back(c);
      all.back().tensors[i] = other;
    };
    if (t.rows > 1) add(part_of(t, 1, t.cols));
    if (t.cols > 1) add(part_of(t, t.rows, t.cols / 2));
    if (t.cols > 1) add(part_of(t, t.rows, t.cols - 1));
    if (t.col_stride == 1 && t.row_stride == t.cols) continue;
    reduction_tensor dense = t;
    dense.col_stride = 1;
    dense.row_stride = t.cols;
    add(dense);
  }
  const gradient_reduction plain;
  const auto reset = [&](auto gradient_reduction::*option) {
    if (c.how.*option == plain.*option) return;
    all.push_back(c);
    all.back().how.*option = plain.*option;
  };
  reset(&gradient_reduction::factor);
  reset(&gradient_reduction::rounding);
  reset(&gradient_reduction::scale);
  reset(&gradient_reduction::elements_at_once);
  const auto reset_random = [&](auto random_stream::*part) {
    if (c.how.random.*part == plain.random.*part) return;
    all.push_back(c);
    all.back().how.random.*part = plain.random.*part;
  };
  reset_random(&random_stream::seed);
  reset_random(&random_stream::stream);
  reset_random(&random_stream::offset);
  return all;
}

/// The tensors of rank 0, then those of rank 1, ...
std::vector<case_buffer> memory_of_ranks(const reduction_case& c) {
  std::vector<case_buffer> all;
  for (int rank = 0; rank < c.ranks; ++rank) {
    for (std::size_t i = 0; i < c.tensors.size(); ++i) {
      const reduction_tensor& t = c.tensors[i];
      strided_buffer memory(t.format, {t.rows, t.cols, t.row_stride, t.col_stride, 0});
      const std::vector<std::uint64_t>& codes = t.codes[static_cast<std::size_t>(rank)];
      for (std::size_t k = 0; k < codes.size(); ++k) {
        const auto at = static_cast<std::int64_t>(k);
        memory.store(at / t.cols * t.row_stride + at % t.cols * t.col_stride, codes[k]);
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

array_operation gradient_reduction_operation() {
  return make_operation<reduction_case>("reduce_gradients",
                                        case_generator<reduction_case>(draw_ranks, simpler_ranks),
                                        memory_of_ranks, reduce_ranks);
}

}  // namespace samebits::support
