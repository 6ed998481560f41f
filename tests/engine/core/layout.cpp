// Words of random choices; layouts of matrices: strides, sizes and texts.
#include "engine/core/layout.hpp"

#include <algorithm>
#include <memory>
#include <ostream>
#include <random>

namespace samebits::support {

word_source words_from(std::uint64_t seed) {
  const auto engine = std::make_shared<std::mt19937_64>(seed);
  return [engine] { return (*engine)(); };
}

array_layout draw_layout(std::int64_t rows, std::int64_t cols, array_side which,
                         const word_source& next) {
  array_layout layout{rows, cols, 0, 0, below(8, next)};
  if (rows <= 32 && below(16, next) == 0) {  // rows that interleave, by coprime strides
    layout.col_stride = std::max<std::int64_t>(rows, 1) + below(3, next);
    layout.row_stride = layout.col_stride * (1 + below(3, next)) + 1;
    return layout;
  }
  const std::int64_t gap = 1 + (below(3, next) == 0 ? below(4, next) : 0);
  const std::int64_t pad = below(2, next) == 0 ? 0 : below(9, next);
  if (below(4, next) == 0) {  // transposed
    layout.row_stride = gap;
    layout.col_stride = std::max<std::int64_t>(rows, 1) * gap + pad;
  } else {
    layout.col_stride = gap;
    layout.row_stride = std::max<std::int64_t>(cols, 1) * gap + pad;
  }
  if (which == array_side::read && below(8, next) == 0) layout.row_stride = 0;
  if (which == array_side::read && below(8, next) == 0) layout.col_stride = 0;
  return layout;
}

std::int64_t array_layout::span() const {
  if (rows == 0 || cols == 0) return 0;
  return (rows - 1) * row_stride + (cols - 1) * col_stride + 1;
}

void array_layout::resize(std::int64_t to_rows, std::int64_t to_cols) {
  if (row_stride == cols && col_stride == 1) row_stride = to_cols;
  rows = to_rows;
  cols = to_cols;
}

std::ostream& operator<<(std::ostream& out, const array_layout& l) {
  return out << "[" << l.rows << ", " << l.cols << "] strides " << l.row_stride << ", "
             << l.col_stride << " elements, " << l.misalignment << " bytes off";
}

}  // namespace samebits::support
