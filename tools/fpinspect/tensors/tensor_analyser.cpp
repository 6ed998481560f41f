// Statistics of one tensor: implementation.
#include "fpinspect/tensors/tensor_analyser.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <type_traits>
#include <utility>

#include "fpinspect/cli/parallel.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/tensors/meters/range_meter.hpp"
#include "samebits/reductions.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;
using samebits::tensor_file::tensor_info;
using reader = samebits::tensor_file::tensor_file;

/// Replaces float elements by their product with 2^log2. Returns whether all products are exact and
/// finite.
bool scale_exactly(std::span<const float> in, int log2, std::span<float> out) {
  constexpr int largest_factor = 127;
  if (log2 < 0 || log2 > largest_factor) return false;  // a result may be subnormal and inexact
  const float factor = std::ldexp(1.0f, log2);
  bool finite = true;
  for (std::size_t i = 0; i < in.size(); ++i) {
    out[i] = in[i] * factor;
    finite = finite && std::isfinite(out[i]);
  }
  return finite;
}

std::size_t columns_of(const tensor_info& info) {
  constexpr std::uint64_t most = 1 << 20;  // 4 MiB of maxima for each thread
  const bool matrix = info.shape.size() >= 2 && info.shape.back() <= most;
  return matrix ? static_cast<std::size_t>(info.shape.back()) : 0;
}

/// The effect of each format on each chunk: [format][chunk].
using effects_of_chunks = std::vector<std::vector<format_effect>>;

/// Adds the effects of consecutive chunks.
format_effect sum_of(std::span<const format_effect> chunks, format_id format) {
  format_effect sum{.format = format};
  samebits::tree_sum signal;
  samebits::tree_sum noise;
  samebits::tree_sum saturated_signal;
  samebits::tree_sum saturated_noise;
  for (const format_effect& chunk : chunks) {
    sum.underflow += chunk.underflow;
    sum.subnormal += chunk.subnormal;
    sum.overflow += chunk.overflow;
    sum.to_inf += chunk.to_inf;
    sum.to_nan += chunk.to_nan;
    sum.to_max += chunk.to_max;
    sum.changed += chunk.changed;
    signal.add(chunk.signal);  // a chunk is a subtree, and only the last one may be partial
    noise.add(chunk.noise);
    saturated_signal.add(chunk.saturated_signal);
    saturated_noise.add(chunk.saturated_noise);
  }
  sum.signal = signal.value();
  sum.noise = noise.value();
  sum.saturated_signal = saturated_signal.value();
  sum.saturated_noise = saturated_noise.value();
  return sum;
}

std::vector<format_effect> sums_of(std::span<const target_format> targets,
                                   const effects_of_chunks& effects) {
  std::vector<format_effect> sums;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    sums.push_back(sum_of(effects[i], targets[i].format));
  }
  return sums;
}

tensor_stats stats_of(element_range range) {
  tensor_stats stats;
  stats.zeros = range.zeros;
  stats.nan = range.nan;
  stats.inf = range.inf;
  stats.amax = range.amax;
  stats.min_nonzero = range.min_nonzero;
  stats.first_nonfinite = range.first_nonfinite;
  stats.outlier = range.outlier;
  for (const auto& [exponent, counts] : range.magnitudes) stats.exponents[exponent] = counts.all;
  stats.magnitudes = std::move(range.magnitudes);
  return stats;
}

}  // namespace

/// The memory of one thread: one chunk in several forms.
struct tensor_analyser::worker {
  explicit worker(std::string_view backend) : backend_(backend), reader_(backend) {}

  /// Calls f(elements) with the elements of a chunk times 2^log2, as a span of float, or of double
  /// if the products do not all fit float.
  template <class Function>
  void with_elements(const element_source& source, int log2, std::size_t chunk, const Function& f) {
    reader_.with_elements(source, chunk, [&](auto exact) {
      if (log2 == 0) return f(exact);
      if constexpr (std::is_same_v<decltype(exact), std::span<const float>>) {
        const std::span<float> products = std::span(products_).first(exact.size());
        if (scale_exactly(exact, log2, products)) return f(std::span<const float>(products));
      }
      f(scaled(exact, log2));
    });
  }

  /// The effects of all formats on the elements of a chunk, to effects[format][chunk].
  template <class Value>
  void measure(std::span<const target_format> targets, std::span<const Value> exact,
               std::size_t chunk, effects_of_chunks& effects) {
    if (!targets.empty()) meter_.begin(exact);
    for (std::size_t i = 0; i < targets.size(); ++i) {
      using enum samebits::overflow;
      format_effect& result = effects[i][chunk];
      result = meter_.effect(targets[i], exact, rounded(targets[i].format, exact, ieee));
      result.saturated_signal = result.signal;
      result.saturated_noise = result.noise;
      if (result.to_inf + result.to_nan == 0) continue;
      const format_effect saturated =
          meter_.effect(targets[i], exact, rounded(targets[i].format, exact, saturate));
      result.saturated_signal = saturated.signal;
      result.saturated_noise = saturated.noise;
    }
  }

 private:
  /// The elements rounded to a format.
  template <class Value>
  std::span<const float> rounded(format_id to, std::span<const Value> exact,
                                 samebits::overflow policy) {
    constexpr format_id from = sizeof(Value) == sizeof(float) ? format_id::fp32 : format_id::fp64;
    if constexpr (from == format_id::fp32) {
      if (to == from) return exact;
    }
    const bool is_float = to == format_id::fp32;
    void* const codes = is_float ? static_cast<void*>(rounded_.data()) : codes_.data();
    convert_codes(from, exact.data(), to, codes, exact.size(), policy, backend_);
    if (!is_float) {
      convert_codes(to, codes, format_id::fp32, rounded_.data(), exact.size(),
                    samebits::overflow::ieee, backend_);
    }
    return std::span<const float>(rounded_).first(exact.size());
  }

  template <class Value>
  std::span<const double> scaled(std::span<const Value> in, int log2) {
    // Products outside binary64 stay numbers that overflow, or underflow, in every format shown.
    using limits = std::numeric_limits<double>;
    for (std::size_t i = 0; i < in.size(); ++i) {
      const auto x = static_cast<double>(in[i]);
      double product = std::ldexp(x, log2);
      if (std::isfinite(x) && std::isinf(product)) product = std::copysign(limits::max(), x);
      if (x != 0 && product == 0) product = std::copysign(limits::denorm_min(), x);
      doubles_[i] = product;
    }
    return std::span<const double>(doubles_).first(in.size());
  }

  std::string_view backend_;
  chunk_reader reader_;
  effect_meter meter_;
  std::vector<std::byte> codes_ = std::vector<std::byte>(chunk_elements * sizeof(float));
  std::vector<float> products_ = std::vector<float>(chunk_elements);
  std::vector<float> rounded_ = std::vector<float>(chunk_elements);
  std::vector<double> doubles_ = std::vector<double>(chunk_elements);
};

tensor_analyser::tensor_analyser(std::span<const format_id> formats, samebits::executor where)
    : targets_(formats.begin(), formats.end()), where_(where) {
  for (int i = 0; i < where.threads; ++i)
    workers_.push_back(std::make_unique<worker>(where.backend));
}

tensor_analyser::~tensor_analyser() = default;

tensor_stats tensor_analyser::analyse(const reader& file, const tensor_info& info,
                                      const element_reading& how,
                                      std::span<const format_id> formats) {
  const element_source source{file, info, how};
  std::vector<target_format> targets;
  std::copy_if(targets_.begin(), targets_.end(), std::back_inserter(targets), [&](const auto& one) {
    return std::find(formats.begin(), formats.end(), one.format) != formats.end();
  });
  return how.format == format_id::fp64 ? analyse_as<double>(source, targets)
                                       : analyse_as<float>(source, targets);
}

template <class Value>
tensor_stats tensor_analyser::analyse_as(const element_source& source,
                                         std::span<const target_format> targets) {
  const std::size_t threads = std::clamp<std::size_t>(source.chunks(), 1, workers_.size());
  std::vector<range_meter<Value>> ranges(threads, range_meter<Value>(columns_of(source.info)));
  effects_of_chunks effects(targets.size(), std::vector<format_effect>(source.chunks()));
  for_each_index(source.chunks(), threads, [&](std::size_t chunk, std::size_t at) {
    worker& own = *workers_[at];
    own.with_elements(source, 0, chunk, [&](auto exact) {
      if constexpr (std::is_same_v<decltype(exact), std::span<const Value>>) {
        ranges[at].add(std::uint64_t{chunk} * chunk_elements, exact);
      }
      own.measure(targets, exact, chunk, effects);
    });
  });
  for (std::size_t i = 1; i < threads; ++i) ranges[0].combine(ranges[i]);
  tensor_stats stats = stats_of(ranges[0].result());
  stats.count = source.info.count;
  stats.formats = sums_of(targets, effects);
  return stats;
}

std::vector<format_effect> tensor_analyser::scaled_effects(const reader& file,
                                                           const tensor_info& info,
                                                           const element_reading& how,
                                                           int scale_log2) {
  const element_source source{file, info, how};
  effects_of_chunks effects(targets_.size(), std::vector<format_effect>(source.chunks()));
  for_each_index(source.chunks(), workers_.size(), [&](std::size_t chunk, std::size_t at) {
    worker& own = *workers_[at];
    own.with_elements(source, scale_log2, chunk,
                      [&](auto exact) { own.measure(targets_, exact, chunk, effects); });
  });
  return sums_of(targets_, effects);
}

sqnr sqnr_of(const format_effect& effect, const tensor_stats& stats) {
  if (stats.count == 0) return {.reason = "there are no elements"};
  if (effect.changed == 0) return {.exact = true};
  std::string reason;
  const auto count = [&](std::uint64_t elements, const char* what) {
    if (elements != 0) reason += cat(reason.empty() ? "" : ", ", elements, " became ", what);
  };
  count(effect.underflow, "0");
  count(effect.to_inf, "Inf");
  count(effect.to_nan, "NaN");
  count(effect.to_max, "finite");
  if (!reason.empty()) return {.reason = reason};
  if (const auto db = sqnr_db(effect.signal, effect.noise)) return {.db = db};
  return {.reason = "signal or noise is beyond binary64"};
}

}  // namespace fpinspect
