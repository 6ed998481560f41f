// Element list: the tensors of a gradient reduction as one sequence of elements, and the blocks of
// tensors that contain a part of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/dispatch/element.hpp"
#include "samebits/view.hpp"

namespace samebits {

inline std::int64_t count_of(const matrix_view& t) { return t.rows * t.cols; }

/// Calls f(block, first) for the blocks (at most three) that contain elements [begin, end) of a
/// matrix in row-major order. `first` is the position of a block's first element.
template <class Function>
void for_each_block(const matrix_view& t, std::int64_t begin, std::int64_t end, const Function& f) {
  while (begin < end) {
    const std::int64_t row = begin / t.cols;
    const std::int64_t col = begin % t.cols;
    const bool whole_rows = col == 0 && end - begin >= t.cols;
    const std::int64_t rows = whole_rows ? (end - begin) / t.cols : 1;
    const std::int64_t cols = whole_rows ? t.cols : std::min(end - begin, t.cols - col);
    f(backends::part_of(t, row, col, rows, cols), begin);
    begin += rows * cols;
  }
}

/// The tensor list as one sequence of elements.
class element_list {
 public:
  explicit element_list(std::span<const matrix_view> tensors) : tensors_(tensors) {
    for (const matrix_view& t : tensors) starts_.push_back(starts_.back() + count_of(t));
  }

  /// Calls f(tensor, begin, end) for the part of [begin, end) in each tensor. All positions count
  /// from the start of the list.
  template <class Function>
  void for_each_tensor(std::int64_t begin, std::int64_t end, const Function& f) const {
    auto i = static_cast<std::size_t>(std::upper_bound(starts_.begin(), starts_.end(), begin) -
                                      starts_.begin() - 1);
    for (; begin < end; ++i) {
      const std::int64_t stop = std::min(end, starts_[i + 1]);
      if (begin < stop) f(i, begin, stop);
      begin = stop;
    }
  }

  /// Calls f(block, first) for the blocks that contain [begin, end).
  template <class Function>
  void for_each_block(std::int64_t begin, std::int64_t end, const Function& f) const {
    for_each_tensor(begin, end, [&](std::size_t i, std::int64_t from, std::int64_t to) {
      const std::int64_t start = starts_[i];
      samebits::for_each_block(
          tensors_[i], from - start, to - start,
          [&](const matrix_view& block, std::int64_t first) { f(block, start + first); });
    });
  }

 private:
  std::span<const matrix_view> tensors_;
  std::vector<std::int64_t> starts_ = {0};
};

/// Calls f(begin, end) for consecutive parts of [begin, end) with at most `step` elements.
template <class Function>
void for_each_step(std::int64_t begin, std::int64_t end, std::int64_t step, const Function& f) {
  for (; begin < end; begin += std::min(step, end - begin)) {
    f(begin, begin + std::min(step, end - begin));
  }
}

}  // namespace samebits
