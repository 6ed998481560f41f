// Simpler trials: parts, zeros, simpler codes.
#include "engine/kit/simpler.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "engine/inputs/families.hpp"

namespace samebits::testkit {
namespace {

/// A part of a matrix.
trial part(const trial& t, std::int64_t row, std::int64_t col, std::int64_t rows,
           std::int64_t cols) {
  trial p{rows, cols, {}, t.in_offset, t.out_offset};
  for (std::int64_t r = row; r < row + rows; ++r) {
    const auto first = t.codes.begin() + static_cast<std::ptrdiff_t>(r * t.cols + col);
    p.codes.insert(p.codes.end(), first, first + static_cast<std::ptrdiff_t>(cols));
  }
  return p;
}

/// Smaller sizes than one: half of it, and without a tile, four elements or one.
std::set<std::int64_t> smaller_sizes(std::int64_t size, std::int64_t tile) {
  std::set<std::int64_t> sizes = {size / 2, size - size / 2, size - tile, size - 4, size - 1};
  std::erase_if(sizes, [=](std::int64_t n) { return n <= 0 || n >= size; });
  return sizes;
}

std::vector<trial> parts(const trial& t, const matrix_shape& tile) {
  std::vector<trial> smaller;
  for (const std::int64_t rows : smaller_sizes(t.rows, tile.rows)) {
    smaller.push_back(part(t, 0, 0, rows, t.cols));
    smaller.push_back(part(t, t.rows - rows, 0, rows, t.cols));
  }
  for (const std::int64_t cols : smaller_sizes(t.cols, tile.cols)) {
    smaller.push_back(part(t, 0, 0, t.rows, cols));
    smaller.push_back(part(t, 0, t.cols - cols, t.rows, cols));
  }
  return smaller;
}

/// The matrix without the rows and columns of zeros only.
trial without_zeros(const trial& t) {
  std::vector<bool> rows(static_cast<std::size_t>(t.rows)), cols(static_cast<std::size_t>(t.cols));
  for (std::size_t i = 0; i < t.codes.size(); ++i) {
    if (t.codes[i] == 0) continue;
    rows[i / cols.size()] = true;
    cols[i % cols.size()] = true;
  }
  trial kept{std::count(rows.begin(), rows.end(), true),
             std::count(cols.begin(), cols.end(), true),
             {},
             t.in_offset,
             t.out_offset};
  for (std::size_t i = 0; i < t.codes.size(); ++i) {
    if (rows[i / cols.size()] && cols[i % cols.size()]) kept.codes.push_back(t.codes[i]);
  }
  return kept;
}

}  // namespace

std::vector<trial> simpler_trials(format_id from, const matrix_shape& tile, bool zeros,
                                  const trial& t) {
  std::vector<trial> simpler;
  if (zeros) {
    trial kept = without_zeros(t);
    if (!kept.codes.empty() && kept.codes.size() < t.codes.size()) {
      simpler.push_back(std::move(kept));
    }
  }
  for (trial& p : parts(t, tile)) simpler.push_back(std::move(p));
  const auto change = [&](const auto& f) {
    simpler.push_back(t);
    f(simpler.back());
  };
  if (t.in_offset != 0) change([](trial& other) { other.in_offset = 0; });
  if (t.out_offset != 0) change([](trial& other) { other.out_offset = 0; });
  const std::size_t size = t.codes.size();
  const auto is_zero = [](std::uint64_t code) { return code == 0; };
  for (std::size_t width = zeros ? size : 0; width > 0 && size / width <= 256; width /= 2) {
    for (std::size_t first = 0; first < size; first += width) {
      const auto at = static_cast<std::ptrdiff_t>(first);
      const auto end = static_cast<std::ptrdiff_t>(std::min(size, first + width));
      if (std::all_of(t.codes.begin() + at, t.codes.begin() + end, is_zero)) continue;
      change(
          [&](trial& other) { std::fill(other.codes.begin() + at, other.codes.begin() + end, 0); });
    }
  }
  const auto few = static_cast<std::ptrdiff_t>(size) <=
                   4 + std::count_if(t.codes.begin(), t.codes.end(), is_zero);
  if (!few) return simpler;  // for large calls the size explains more than the values
  for (std::size_t i = 0; i < size; ++i) {
    if (zeros && is_zero(t.codes[i])) continue;
    for (const std::uint64_t code : support::simpler_codes(from, t.codes[i])) {
      change([&](trial& other) { other.codes[i] = code; });
    }
  }
  return simpler;
}

trial shrunk_row(runner& calls, trial in, verdict& found, std::vector<trial> alone) {
  if (found.wrong) {
    alone.push_back(in);
    alone.back().codes.resize(found.wrong->element + 1);
    alone.back().cols = static_cast<std::int64_t>(alone.back().codes.size());
    in = calls.shrink(std::move(in), found, [&alone](const trial& t) {
      std::erase_if(alone, [&t](const trial& o) { return o.codes.size() >= t.codes.size(); });
      return std::exchange(alone, {});
    });
  }
  return calls.shrink(std::move(in), found, [&calls](const trial& t) {
    return simpler_trials(calls.what().from, {1, 1}, false, t);
  });
}

}  // namespace samebits::testkit
