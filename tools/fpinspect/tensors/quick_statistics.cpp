// `fpinspect tensor --quick`: the figures.
#include "fpinspect/tensors/quick_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "fpinspect/cli/parallel.hpp"
#include "fpinspect/tensors/meters/distribution.hpp"
#include "fpinspect/tensors/meters/element_chunks.hpp"
#include "samebits/reductions.hpp"

namespace fpinspect {
namespace {

/// The memory of one thread.
struct quick_worker {
  chunk_reader reader;
  chunk_tree tree;
  quick_range range;
};

/// The partial sums of chunks, which are subtrees; only the last one may be shorter.
quick_sums sum_of(std::span<const quick_sums> chunks) {
  samebits::tree_sum sum;
  samebits::tree_sum squares;
  for (const quick_sums& chunk : chunks) {
    sum.add(chunk.sum);
    squares.add(chunk.squares);
  }
  return {sum.value(), squares.value()};
}

std::optional<double> if_any(bool any, double value) {
  return any ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<double> quick_statistics::min() const { return if_any(finite() != 0, range.min); }

std::optional<double> quick_statistics::max() const { return if_any(finite() != 0, range.max); }

std::optional<double> quick_statistics::amax() const {
  return if_any(finite() != 0, std::max(std::fabs(range.min), std::fabs(range.max)));
}

std::optional<double> quick_statistics::min_nonzero() const {
  return if_any(finite() > range.zeros, range.min_nonzero);
}

std::optional<double> quick_statistics::mean() const {
  const auto numbers = static_cast<double>(finite());
  return if_any(finite() != 0, std::ldexp(sums.sum / numbers, -sum_log2));
}

std::optional<double> quick_statistics::root_mean_square() const {
  const auto numbers = static_cast<double>(finite());
  return if_any(finite() != 0, std::ldexp(std::sqrt(sums.squares / numbers), -sum_log2));
}

double quick_statistics::l2_norm() const { return std::ldexp(std::sqrt(sums.squares), -sum_log2); }

quick_statistics quick_statistics_of(const shown_tensor& tensor, const samebits::executor& where) {
  const element_source source{*tensor.file, tensor.info, *tensor.how};
  const auto threads = static_cast<std::size_t>(where.threads);
  std::vector<quick_worker> workers(std::clamp<std::size_t>(source.chunks(), 1, threads),
                                    {chunk_reader(where.backend), {}, {}});
  std::vector<quick_sums> sums(source.chunks());
  quick_statistics result;
  result.count = tensor.info.count;
  for_each_index(source.chunks(), workers.size(), [&](std::size_t chunk, std::size_t at) {
    quick_worker& own = workers[at];
    own.reader.with_elements(source, chunk, [&](auto elements) {
      const quick_range range = quick_range_of(elements);
      own.range.combine(range);
      sums[chunk] = quick_sums_of(elements, range.nan + range.inf == 0, 0, own.tree);
    });
  });
  for (const quick_worker& one : workers) result.range.combine(one.range);
  result.sum_log2 = sum_log2_for(result.amax().value_or(0));
  if (result.sum_log2 != 0) {
    for_each_index(source.chunks(), workers.size(), [&](std::size_t chunk, std::size_t at) {
      quick_worker& own = workers[at];
      own.reader.with_elements(source, chunk, [&](auto elements) {
        sums[chunk] = quick_sums_of(elements, false, result.sum_log2, own.tree);
      });
    });
  }
  result.sums = sum_of(sums);
  return result;
}

}  // namespace fpinspect
