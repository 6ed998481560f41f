// The distribution of a tensor's elements: implementation.
#include "fpinspect/tensors/meters/distribution.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "fpinspect/tensors/meters/percentiles.hpp"
#include "fpinspect/tensors/source/decoder.hpp"
#include "samebits/reductions.hpp"

namespace fpinspect {
namespace {

using samebits::tensor_file::tensor_info;
using reader = samebits::tensor_file::tensor_file;

/// Calls f(values) for the elements, chunk by chunk.
template <class Function>
void for_each_chunk(const reader& file, const tensor_info& info, const element_reading& how,
                    const decoder& values_of, const Function& f) {
  constexpr std::uint64_t chunk = 1 << 15;
  const auto room = static_cast<std::size_t>(std::min(info.count, chunk));
  std::vector<std::byte> codes(room *
                               static_cast<std::size_t>(samebits::storage_bytes(how.format)));
  std::vector<double> values(room);
  for (std::uint64_t first = 0; first < info.count; first += chunk) {
    const auto size = static_cast<std::size_t>(std::min(chunk, info.count - first));
    read_elements(file, info, how, first, size, codes.data());
    values_of.decode(codes.data(), std::span(values.data(), size));
    f(std::span<const double>(values.data(), size));
  }
}

/// Appends f(x) for each finite element, +0 for the others.
template <class Function>
void add_finite(samebits::tree_sum& to, std::span<const double> values, const Function& f) {
  std::vector<double> inputs(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    inputs[i] = std::isfinite(values[i]) ? f(values[i]) : 0.0;
  }
  to.add(inputs);
}

/// Collects the amax of each row and column. Elements come in C order.
class channel_amaxes {
 public:
  explicit channel_amaxes(const tensor_info& info) {
    constexpr std::uint64_t most = 1 << 22;
    if (info.shape.size() < 2 || info.count == 0) return;
    const std::uint64_t columns = info.shape.back();
    const std::uint64_t rows = info.count / columns;
    if (columns > most || rows > most) return;
    rows_.assign(rows, -1.0);  // no finite element yet
    columns_.assign(columns, -1.0);
  }

  void add(std::span<const double> values) {
    if (rows_.empty()) return;
    for (const double x : values) {
      const double magnitude = std::isfinite(x) ? std::fabs(x) : -1.0;
      rows_[row_] = std::max(rows_[row_], magnitude);
      columns_[column_] = std::max(columns_[column_], magnitude);
      if (++column_ == columns_.size()) {
        column_ = 0;
        ++row_;
      }
    }
  }

  void finish(distribution& to) const {
    if (rows_.empty()) return;
    to.rows = range_of(rows_);
    to.columns = range_of(columns_);
  }

 private:
  std::vector<double> rows_;
  std::vector<double> columns_;
  std::size_t row_ = 0;
  std::size_t column_ = 0;
};

/// Collects counts and extremes, in the first pass.
class extremes_meter {
 public:
  void add(std::span<const double> values) {
    for (const double x : values) {
      nan_ += std::isnan(x) ? 1u : 0u;
      inf_ += std::isinf(x) ? 1u : 0u;
      if (!std::isfinite(x)) continue;
      min_ = std::min(min_, x);
      max_ = std::max(max_, x);
      zeros_ += x == 0.0 ? 1u : 0u;
      if (x != 0.0) min_nonzero_ = std::min(min_nonzero_, std::fabs(x));
    }
  }

  void finish(distribution& to) const {
    to.zeros = zeros_;
    to.nan = nan_;
    to.inf = inf_;
    if (to.finite() == 0) return;
    to.min = min_ + 0.0;  // a zero is +0
    to.max = max_ + 0.0;
    to.amax = std::max(std::fabs(min_), std::fabs(max_));
    if (to.finite() > zeros_) to.min_nonzero = min_nonzero_;
  }

 private:
  std::uint64_t zeros_ = 0;
  std::uint64_t nan_ = 0;
  std::uint64_t inf_ = 0;
  double min_ = std::numeric_limits<double>::infinity();
  double max_ = -std::numeric_limits<double>::infinity();
  double min_nonzero_ = std::numeric_limits<double>::infinity();
};

/// Collects sums of the elements times 2^log2.
class sums_meter {
 public:
  explicit sums_meter(int log2) : log2_(log2) {}

  void add(std::span<const double> values) {
    add_finite(sum_, values, [&](double x) { return scaled(x); });
    add_finite(magnitudes_, values, [&](double x) { return std::fabs(scaled(x)); });
    add_finite(squares_, values, [&](double x) { return scaled(x) * scaled(x); });
  }

  void finish(distribution& to) const {
    to.l1_norm = std::ldexp(magnitudes_.value(), -log2_);
    to.l2_norm = std::ldexp(std::sqrt(squares_.value()), -log2_);
    if (to.finite() != 0) to.mean = std::ldexp(scaled_mean(to), -log2_);
  }

  [[nodiscard]] double scaled(double x) const { return log2_ == 0 ? x : std::ldexp(x, log2_); }
  /// The mean times 2^log2.
  [[nodiscard]] double scaled_mean(const distribution& of) const {
    return of.finite() == 0 ? 0.0 : sum_.value() / static_cast<double>(of.finite());
  }

 private:
  int log2_;
  samebits::tree_sum sum_;
  samebits::tree_sum magnitudes_;
  samebits::tree_sum squares_;
};

}  // namespace

std::optional<double> channel_range::spread() const {
  return smallest == 0 ? std::nullopt : std::optional(largest / smallest);
}

channel_range range_of(std::span<const double> amaxes) {
  channel_range range = {.channels = amaxes.size()};
  std::vector<double> sorted;
  for (std::size_t i = 0; i < amaxes.size(); ++i) {
    const double amax = amaxes[i];
    if (amax < 0) {
      ++range.not_finite;
      continue;
    }
    sorted.push_back(amax);
    if (amax == 0) ++range.zero;
    if (amax != 0 && (range.smallest == 0 || amax < range.smallest)) range.smallest = amax;
    if (sorted.size() == 1 || amax > range.largest) {
      range.largest = amax;
      range.largest_index = i;
    }
  }
  if (sorted.empty()) return range;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  range.median = *middle;
  return range;
}

int sum_log2_for(double amax) {
  const bool squares_fit = amax == 0 || (amax >= 0x1p-500 && amax < 0x1p500);
  return squares_fit ? 0 : -std::ilogb(amax);
}

std::optional<double> distribution::dynamic_range_log2() const {
  return min_nonzero ? std::optional(std::log2(*amax) - std::log2(*min_nonzero)) : std::nullopt;
}

distribution distribution_of(const reader& file, const tensor_info& info,
                             const element_reading& how) {
  distribution result;
  result.count = info.count;
  const decoder values_of(how.format);
  extremes_meter extremes;
  sums_meter sums(0);
  channel_amaxes channels(info);
  percentile_finder percentiles(how.format, info.count);
  for_each_chunk(file, info, how, values_of, [&](std::span<const double> values) {
    extremes.add(values);
    sums.add(values);
    channels.add(values);
    percentiles.add(values);
  });
  extremes.finish(result);
  channels.finish(result);
  percentiles.next_pass();

  const int log2 = sum_log2_for(result.amax.value_or(0));
  if (log2 != 0) {
    sums = sums_meter(log2);
    for_each_chunk(file, info, how, values_of,
                   [&](std::span<const double> values) { sums.add(values); });
  }
  sums.finish(result);

  samebits::tree_sum deviations;
  const double mean = sums.scaled_mean(result);
  for (bool second = true; second || !percentiles.done(); second = false) {
    for_each_chunk(file, info, how, values_of, [&](std::span<const double> values) {
      if (!percentiles.done()) percentiles.add(values);
      if (!second) return;
      add_finite(deviations, values, [&](double x) {
        const double d = sums.scaled(x) - mean;
        return d * d;
      });
    });
    if (!percentiles.done()) percentiles.next_pass();
  }
  if (result.mean) {
    const double variance = deviations.value() / static_cast<double>(result.finite());
    result.std = std::ldexp(std::sqrt(variance), -log2);
  }
  result.percentiles = percentiles.values();
  return result;
}

}  // namespace fpinspect
