// The figures of one tensor: implementation.
#include "fpinspect/tensor_stats.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>

#include "fpinspect/describe.hpp"
#include "fpinspect/parallel.hpp"
#include "samebits/convert.hpp"
#include "samebits/reduce.hpp"
#include "samebits/scalar.hpp"
#include "samebits/view.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;
using samebits::tensor_file::tensor_info;
using reader = samebits::tensor_file::tensor_file;

constexpr std::uint64_t chunk = 1 << 17;  // elements: 1 MiB of binary64 stays in the cache
constexpr std::size_t block = 4096;       // leaves handed to the sums at a time

/// The least magnitude that overflows into a format: magnitudes are ordered as their codes are, and
/// rounding is monotone. Infinity if none does.
double overflow_start(format_id format) {
  std::uint64_t below = 0;
  auto start = std::bit_cast<std::uint64_t>(std::numeric_limits<double>::infinity());
  while (start - below > 1) {
    const std::uint64_t middle = below + (start - below) / 2;
    (samebits::convert_code(format_id::fp64, format, middle).overflow ? start : below) = middle;
  }
  return std::bit_cast<double>(start);
}

/// Gathers what the elements are in themselves.
class range_meter {
 public:
  explicit range_meter(tensor_stats& stats) : stats_(stats) {}

  void add(std::span<const double> exact) {
    for (const double x : exact) {
      const double magnitude = std::fabs(x);
      if (!std::isfinite(x)) {
        ++(std::isnan(x) ? stats_.nan : stats_.inf);
        continue;
      }
      amax_ = std::max(amax_, magnitude);
      if (magnitude == 0.0) {
        ++stats_.zeros;
        continue;
      }
      min_ = std::min(min_, magnitude);
      ++binades_[static_cast<std::size_t>(fast_exponent(magnitude) - least_exponent)];
    }
  }

  void finish() {
    if (stats_.count > stats_.nan + stats_.inf) stats_.amax = amax_;
    if (stats_.nonzero() > 0) stats_.min_nonzero = min_;
    for (std::size_t i = 0; i < binades_.size(); ++i) {
      if (binades_[i] != 0) stats_.exponents[static_cast<int>(i) + least_exponent] = binades_[i];
    }
  }

 private:
  /// exponent_of() for positive numbers.
  static int fast_exponent(double x) {
    const auto biased = static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 52);
    return biased != 0 ? biased - 1023 : exponent_of(x);  // binary64's subnormals the slow way
  }

  static constexpr int least_exponent = -1074;  // of binary64's least subnormal
  static constexpr int binade_count = 1024 - least_exponent;

  tensor_stats& stats_;
  double amax_ = 0.0;
  double min_ = std::numeric_limits<double>::infinity();
  std::array<std::uint64_t, binade_count> binades_{};
};

}  // namespace

/// A format to be judged, with what is worked out once.
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

/// Gathers one format's figures over the chunks of a tensor.
class tensor_analyser::effect_meter {
 public:
  explicit effect_meter(const target& to) : to_(to) { effect_.format = to.format; }

  /// codes are `exact` rounded into the format.
  void add(std::span<const double> exact, const std::byte* codes) {
    const auto bytes = static_cast<std::size_t>(samebits::storage_bytes(to_.format));
    for (std::size_t first = 0; first < exact.size(); first += block) {
      const std::size_t size = std::min(block, exact.size() - first);
      const std::span<double> rounded(rounded_.data(), size);
      to_.values.decode(codes + first * bytes, rounded);
      add_block(exact.subspan(first, size), rounded);
    }
  }

  [[nodiscard]] format_effect result() const {
    format_effect effect = effect_;
    effect.signal = signal_.value();
    effect.noise = noise_.value();
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
      const bool paired = finite && std::isfinite(y);
      const double d = x - y;
      signal_leaves_[i] = paired ? x * x : 0.0;
      noise_leaves_[i] = paired ? d * d : 0.0;
    }
    signal_.add(std::span<const double>(signal_leaves_.data(), exact.size()));
    noise_.add(std::span<const double>(noise_leaves_.data(), exact.size()));
  }

  const target& to_;
  format_effect effect_;
  samebits::tree_sum signal_;
  samebits::tree_sum noise_;
  std::array<double, block> rounded_{};
  std::array<double, block> signal_leaves_{};
  std::array<double, block> noise_leaves_{};
};

tensor_analyser::tensor_analyser(std::span<const format_id> formats, samebits::executor where)
    : targets_(formats.begin(), formats.end()), where_(where) {}

tensor_analyser::~tensor_analyser() = default;

tensor_stats tensor_analyser::analyse(const reader& file, const tensor_info& info) {
  const format_id from = samebits::tensor_file::format_of(info.type).value();
  const decoder& values_of = sources_.try_emplace(from, from).first->second;
  const auto bytes = static_cast<std::size_t>(samebits::storage_bytes(from));
  const auto room = static_cast<std::size_t>(std::min(info.count, chunk));
  const auto threads = static_cast<std::size_t>(where_.threads);
  std::vector<effect_meter> meters(targets_.begin(), targets_.end());
  std::vector<std::byte> read(room * bytes);
  std::vector<std::vector<std::byte>> codes(
      threads, std::vector<std::byte>(room * sizeof(std::uint32_t)));  // one for each worker
  std::vector<double> exact(room);
  tensor_stats stats;
  stats.count = info.count;
  range_meter range(stats);

  for (std::uint64_t first = 0; first < info.count; first += chunk) {
    const auto size = static_cast<std::size_t>(std::min(chunk, info.count - first));
    const auto cols = static_cast<std::int64_t>(size);
    file.read_codes(info, first, size, read.data());
    const auto source = samebits::view_of_codes(from, read.data(), 1, cols);
    const std::span<double> values(exact.data(), size);
    values_of.decode(read.data(), values);
    range.add(values);
    for_each_index(meters.size(), threads, [&](std::size_t i, std::size_t worker) {
      std::byte* out = codes[worker].data();
      samebits::convert(source, samebits::view_of_codes(targets_[i].format, out, 1, cols), {},
                        {where_.backend, 1});
      meters[i].add(values, out);
    });
  }

  range.finish();
  for (const effect_meter& meter : meters) stats.formats.push_back(meter.result());
  return stats;
}

std::optional<double> sqnr_db(double signal, double noise) {
  const bool usable = noise > 0.0 && signal > 0.0 && std::isfinite(noise) && std::isfinite(signal);
  if (!usable) return std::nullopt;
  return 10.0 * std::log10(signal / noise);
}

std::optional<int> fp16_loss_scale_log2(const tensor_stats& stats) {
  if (!stats.amax || *stats.amax == 0.0) return std::nullopt;
  constexpr double limit = 65520.0 / 65536.0;  // 65520 = limit * 2^16
  int exponent = 0;
  const double fraction = std::frexp(*stats.amax, &exponent);  // amax = fraction * 2^exponent
  return (fraction < limit ? 16 : 15) - exponent;
}

}  // namespace fpinspect
