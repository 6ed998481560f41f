// Statistics of one tensor: implementation.
#include "fpinspect/tensors/tensor_stats.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>

#include "fpinspect/cli/parallel.hpp"
#include "fpinspect/cli/text.hpp"
#include "fpinspect/formats/describe.hpp"
#include "samebits/convert.hpp"
#include "samebits/reductions.hpp"
#include "samebits/scalar.hpp"
#include "samebits/view.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;
using samebits::tensor_file::tensor_info;
using reader = samebits::tensor_file::tensor_file;

constexpr std::uint64_t chunk = 1 << 17;  // elements: 1 MiB of binary64 stays in the cache
constexpr std::size_t block = 4096;       // inputs of the sums per call

/// The smallest magnitude that overflows in a format; infinity if none does. Binary search: codes
/// have the order of magnitudes, and rounding is monotone.
double overflow_start(format_id format) {
  std::uint64_t below = 0;
  auto start = std::bit_cast<std::uint64_t>(std::numeric_limits<double>::infinity());
  while (start - below > 1) {
    const std::uint64_t middle = below + (start - below) / 2;
    (samebits::convert_code(format_id::fp64, format, middle).overflow ? start : below) = middle;
  }
  return std::bit_cast<double>(start);
}

/// Collects the statistics of the elements themselves.
class range_meter {
 public:
  range_meter(tensor_stats& stats, const tensor_info& info)
      : stats_(stats), channels_(columns_of(info)) {}

  void add(std::span<const double> exact) {
    channels_.add(exact);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const double magnitude = std::fabs(exact[i]);
      if (!std::isfinite(magnitude)) {
        ++(std::isnan(magnitude) ? stats_.nan : stats_.inf);
        if (!stats_.first_nonfinite) stats_.first_nonfinite = done_ + i;
        continue;
      }
      amax_ = std::max(amax_, magnitude);
      if (magnitude == 0.0) {
        ++stats_.zeros;
        continue;
      }
      min_ = std::min(min_, magnitude);
      count_binade(magnitude);
    }
    done_ += exact.size();
  }

  void finish() {
    if (stats_.count > stats_.nan + stats_.inf) stats_.amax = amax_;
    if (stats_.nonzero() > 0) stats_.min_nonzero = min_;
    for (std::size_t i = 0; i < binades_.size(); ++i) {
      if (binades_[i].all == 0) continue;
      const int exponent = static_cast<int>(i) + subnormal_exponent;
      stats_.exponents[exponent] = binades_[i].all;
      stats_.magnitudes[exponent] = binades_[i];
    }
    stats_.outlier = channels_.outlier();
  }

 private:
  static std::size_t columns_of(const tensor_info& info) {
    constexpr std::uint64_t most = 1 << 20;  // 8 MiB of maxima
    const bool matrix = info.shape.size() >= 2 && info.shape.back() <= most;
    return matrix ? static_cast<std::size_t>(info.shape.back()) : 0;
  }

  void count_binade(double magnitude) {
    constexpr int fraction_bits = 52;
    constexpr std::uint64_t top = std::uint64_t{0x7ff} << 41;  // the fraction of 2 - 2^-11
    auto word = std::bit_cast<std::uint64_t>(magnitude);
    int exponent = static_cast<int>(word >> fraction_bits) - 1023;
    if (exponent == -1023) {  // subnormal
      exponent = exponent_of(magnitude);
      word = std::bit_cast<std::uint64_t>(std::ldexp(magnitude, -exponent));
    }
    const std::uint64_t fraction = word & ((std::uint64_t{1} << fraction_bits) - 1);
    binade_counts& counts = binades_[static_cast<std::size_t>(exponent - subnormal_exponent)];
    ++counts.all;
    counts.powers += fraction == 0 ? 1u : 0u;
    counts.top += fraction >= top ? 1u : 0u;
  }

  static constexpr int subnormal_exponent = -1074;  // exponent of binary64's smallest subnormal
  static constexpr int binade_count = 1024 - subnormal_exponent;

  tensor_stats& stats_;
  channel_meter channels_;
  std::uint64_t done_ = 0;  ///< elements so far
  double amax_ = 0.0;
  double min_ = std::numeric_limits<double>::infinity();
  std::array<binade_counts, binade_count> binades_{};
};

/// Calls f(codes, values) for the elements times 2^scale_log2, chunk by chunk. `codes` is a matrix
/// of one row, in how.format or, if scaled, in fp64; `values` are its values, by `values_of`.
template <class Function>
void for_each_chunk(const reader& file, const tensor_info& info, const element_reading& how,
                    const decoder& values_of, int scale_log2, const Function& f) {
  const auto room = static_cast<std::size_t>(std::min(info.count, chunk));
  std::vector<std::byte> read(room * static_cast<std::size_t>(samebits::storage_bytes(how.format)));
  std::vector<double> exact(room);
  for (std::uint64_t first = 0; first < info.count; first += chunk) {
    const auto size = static_cast<std::size_t>(std::min(chunk, info.count - first));
    const std::span<double> values(exact.data(), size);
    read_elements(file, info, how, first, size, read.data());
    values_of.decode(read.data(), values);
    if (scale_log2 != 0) {
      for (double& x : values) x = std::ldexp(x, scale_log2);
    }
    const void* codes = read.data();
    if (scale_log2 != 0) codes = exact.data();
    const format_id format = scale_log2 != 0 ? format_id::fp64 : how.format;
    f(samebits::view_of_codes(format, codes, 1, static_cast<std::int64_t>(size)),
      std::span<const double>(values));
  }
}

}  // namespace

/// A target format, with data that is computed once.
struct tensor_analyser::target {
  explicit target(format_id id)
      : format(id),
        values(id),
        overflow_start(fpinspect::overflow_start(id)),
        min_normal(samebits::decode_double(id, samebits::min_normal(id))) {}

  format_id format;
  decoder values;
  double overflow_start;
  double min_normal;
};

/// Collects the statistics of one format over the chunks of a tensor.
class tensor_analyser::effect_meter {
 public:
  explicit effect_meter(const target& to) : to_(to) { effect_.format = to.format; }

  /// Adds a chunk. `codes` are the values `exact`, rounded to the format.
  void add(std::span<const double> exact, const std::byte* codes) {
    const auto bytes = static_cast<std::size_t>(samebits::storage_bytes(to_.format));
    for (std::size_t first = 0; first < exact.size(); first += block) {
      const std::size_t size = std::min(block, exact.size() - first);
      const std::span<double> rounded(rounded_.data(), size);
      to_.values.decode(codes + first * bytes, rounded);
      add_block(exact.subspan(first, size), rounded);
    }
  }

  [[nodiscard]] format_id format() const { return to_.format; }

  [[nodiscard]] format_effect result() const {
    format_effect effect = effect_;
    effect.signal = signal_.value();
    effect.noise = noise_.value();
    effect.saturated_signal = effect.signal;
    effect.saturated_noise = effect.noise;
    return effect;
  }

 private:
  void add_block(std::span<const double> exact, std::span<const double> rounded) {
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const double x = exact[i];
      const double y = rounded[i];
      const bool finite = std::isfinite(x);
      const bool some = finite && x != 0.0;
      effect_.underflow += some && y == 0.0 ? 1 : 0;
      effect_.subnormal += some && y != 0.0 && std::fabs(y) < to_.min_normal ? 1 : 0;
      effect_.overflow += finite && std::fabs(x) >= to_.overflow_start ? 1 : 0;
      const bool same_nan = std::isnan(x) && std::isnan(y);
      effect_.to_inf += finite && std::isinf(y) ? 1u : 0u;
      effect_.to_nan += !std::isnan(x) && std::isnan(y) ? 1u : 0u;
      effect_.to_max += !finite && std::isfinite(y) ? 1u : 0u;
      effect_.changed += x != y && !same_nan ? 1u : 0u;
      const bool paired = finite && std::isfinite(y);
      const double d = x - y;
      signal_inputs_[i] = paired ? x * x : 0.0;
      noise_inputs_[i] = paired ? d * d : 0.0;
    }
    signal_.add(std::span<const double>(signal_inputs_.data(), exact.size()));
    noise_.add(std::span<const double>(noise_inputs_.data(), exact.size()));
  }

  const target& to_;
  format_effect effect_;
  samebits::tree_sum signal_;
  samebits::tree_sum noise_;
  std::array<double, block> rounded_{};
  std::array<double, block> signal_inputs_{};
  std::array<double, block> noise_inputs_{};
};

tensor_analyser::tensor_analyser(std::span<const format_id> formats, samebits::executor where)
    : targets_(formats.begin(), formats.end()),
      where_(where),
      rounded_(static_cast<std::size_t>(where.threads),
               std::vector<std::byte>(chunk * sizeof(std::uint32_t))) {}

tensor_analyser::~tensor_analyser() = default;

void tensor_analyser::round_into(std::vector<effect_meter>& meters,
                                 const samebits::const_matrix_view& source,
                                 std::span<const double> exact, samebits::overflow policy) {
  for_each_index(meters.size(), rounded_.size(), [&](std::size_t i, std::size_t worker) {
    std::byte* out = rounded_[worker].data();
    samebits::convert(source, samebits::view_of_codes(meters[i].format(), out, 1, source.cols),
                      {.on_overflow = policy}, {where_.backend, 1});
    meters[i].add(exact, out);
  });
}

tensor_stats tensor_analyser::analyse(const reader& file, const tensor_info& info,
                                      const element_reading& how, int scale_log2) {
  const decoder& values_of = sources_.try_emplace(how.format, how.format).first->second;
  tensor_stats stats;
  stats.count = info.count;

  std::vector<effect_meter> meters(targets_.begin(), targets_.end());
  range_meter range(stats, info);
  for_each_chunk(file, info, how, values_of, scale_log2,
                 [&](const samebits::const_matrix_view& codes, std::span<const double> exact) {
                   range.add(exact);
                   round_into(meters, codes, exact, samebits::overflow::ieee);
                 });
  range.finish();
  for (const effect_meter& meter : meters) stats.formats.push_back(meter.result());

  // Saturation changes the sums only of formats in which some element overflowed.
  std::vector<effect_meter> saturating;
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    const format_effect& effect = stats.formats[i];
    if (effect.to_inf + effect.to_nan != 0) saturating.emplace_back(targets_[i]);
  }
  if (saturating.empty()) return stats;
  for_each_chunk(file, info, how, values_of, scale_log2,
                 [&](const samebits::const_matrix_view& codes, std::span<const double> exact) {
                   round_into(saturating, codes, exact, samebits::overflow::saturate);
                 });
  for (const effect_meter& meter : saturating) {
    const format_effect saturated = meter.result();
    for (format_effect& effect : stats.formats) {
      if (effect.format != saturated.format) continue;
      effect.saturated_signal = saturated.signal;
      effect.saturated_noise = saturated.noise;
    }
  }
  return stats;
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

std::optional<int> fp16_loss_scale_log2(const tensor_stats& stats) {
  if (!stats.amax || *stats.amax == 0.0) return std::nullopt;
  constexpr double limit = 65520.0 / 65536.0;  // 65520 = limit * 2^16
  int exponent = 0;
  const double fraction = std::frexp(*stats.amax, &exponent);  // amax = fraction * 2^exponent
  return (fraction < limit ? 16 : 15) - exponent;
}

}  // namespace fpinspect
