// The distribution of a tensor's elements: implementation.
#include "fpinspect/tensors/distribution.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "fpinspect/tensors/decoder.hpp"
#include "fpinspect/tensors/percentiles.hpp"
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
    rows_.resize(rows);
    columns_.resize(columns);
  }

  void add(std::span<const double> values) {
    if (rows_.empty()) return;
    for (const double x : values) {
      const double magnitude = std::isfinite(x) ? std::fabs(x) : 0.0;
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

/// Collects counts, extremes and sums in the first pass.
class first_meter {
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
    add_finite(sum_, values, [](double x) { return x; });
    add_finite(magnitudes_, values, [](double x) { return std::fabs(x); });
    add_finite(squares_, values, [](double x) { return x * x; });
  }

  void finish(distribution& to) const {
    to.zeros = zeros_;
    to.nan = nan_;
    to.inf = inf_;
    to.l1_norm = magnitudes_.value();
    to.l2_norm = std::sqrt(squares_.value());
    if (to.finite() == 0) return;
    to.min = min_ + 0.0;  // a zero is +0
    to.max = max_ + 0.0;
    to.amax = std::max(std::fabs(min_), std::fabs(max_));
    to.mean = sum_.value() / static_cast<double>(to.finite());
    if (to.finite() > zeros_) to.min_nonzero = min_nonzero_;
  }

 private:
  std::uint64_t zeros_ = 0;
  std::uint64_t nan_ = 0;
  std::uint64_t inf_ = 0;
  double min_ = std::numeric_limits<double>::infinity();
  double max_ = -std::numeric_limits<double>::infinity();
  double min_nonzero_ = std::numeric_limits<double>::infinity();
  samebits::tree_sum sum_;
  samebits::tree_sum magnitudes_;
  samebits::tree_sum squares_;
};

}  // namespace

std::optional<double> channel_range::spread() const {
  return zero == channels ? std::nullopt : std::optional(largest / smallest);
}

channel_range range_of(std::span<const double> amaxes) {
  channel_range range = {.channels = amaxes.size()};
  const auto largest = std::max_element(amaxes.begin(), amaxes.end());
  range.largest = *largest;
  range.largest_index = static_cast<std::uint64_t>(largest - amaxes.begin());
  for (const double amax : amaxes) {
    if (amax == 0) {
      ++range.zero;
    } else if (range.smallest == 0 || amax < range.smallest) {
      range.smallest = amax;
    }
  }
  std::vector<double> sorted(amaxes.begin(), amaxes.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  range.median = *middle;
  return range;
}

std::optional<double> distribution::dynamic_range_log2() const {
  return min_nonzero ? std::optional(std::log2(*amax) - std::log2(*min_nonzero)) : std::nullopt;
}

distribution distribution_of(const reader& file, const tensor_info& info,
                             const element_reading& how) {
  distribution result;
  result.count = info.count;
  const decoder values_of(how.format);
  first_meter first;
  channel_amaxes channels(info);
  percentile_finder percentiles(how.format);
  for_each_chunk(file, info, how, values_of, [&](std::span<const double> values) {
    first.add(values);
    channels.add(values);
    percentiles.add(values);
  });
  first.finish(result);
  channels.finish(result);
  percentiles.next_pass();

  samebits::tree_sum deviations;
  const double mean = result.mean.value_or(0.0);
  for (bool second = true; second || !percentiles.done(); second = false) {
    for_each_chunk(file, info, how, values_of, [&](std::span<const double> values) {
      if (!percentiles.done()) percentiles.add(values);
      if (second) {
        add_finite(deviations, values, [&](double x) { return (x - mean) * (x - mean); });
      }
    });
    if (!percentiles.done()) percentiles.next_pass();
  }
  if (result.mean) {
    result.std = std::sqrt(deviations.value() / static_cast<double>(result.finite()));
  }
  result.percentiles = percentiles.values();
  return result;
}

}  // namespace fpinspect
