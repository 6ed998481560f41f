// Statistics of one tensor: its range, and what each format would do to it.
//
// The statistics of a format are those of a conversion with nearest_even, ieee and canonical
// (contract §3, §4). Sums use contract §6's tree over the elements in C order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "fpinspect/quantize/sqnr.hpp"
#include "fpinspect/tensors/decoder.hpp"
#include "fpinspect/tensors/source.hpp"
#include "fpinspect/verdict/channels.hpp"
#include "fpinspect/verdict/loss_scale.hpp"
#include "samebits/backend.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/view.hpp"
#include "tensor_file/tensor.hpp"

namespace fpinspect {

/// The effect of one format on the elements. The members count elements unless they are sums.
struct format_effect {
  samebits::format_id format = samebits::format_id::fp32;
  std::uint64_t underflow = 0;  ///< finite and non-zero, becomes a zero
  std::uint64_t subnormal = 0;  ///< finite and non-zero, becomes a subnormal
  std::uint64_t overflow = 0;   ///< finite, rounds to a value beyond max finite
  std::uint64_t to_inf = 0;     ///< finite, becomes an infinity
  std::uint64_t to_nan = 0;     ///< a number or an infinity, becomes NaN
  std::uint64_t to_max = 0;     ///< NaN or an infinity, becomes finite
  std::uint64_t changed = 0;    ///< becomes a different number; NaN to NaN is no change
  double signal = 0.0;  ///< sum of RN64(x * x); pairs that are not finite on both sides add +0
  double noise = 0.0;   ///< sum of RN64(d * d), d = RN64(x - rounded x), over the same pairs
  /// signal and noise for a conversion with overflow `saturate`.
  double saturated_signal = 0.0;
  double saturated_noise = 0.0;

  /// Number of elements that lost their value.
  [[nodiscard]] std::uint64_t destroyed() const { return underflow + to_inf + to_nan + to_max; }
};

/// The statistics of one tensor.
struct tensor_stats {
  std::uint64_t count = 0;
  std::uint64_t zeros = 0;
  std::uint64_t nan = 0;
  std::uint64_t inf = 0;
  std::optional<double> amax;                    ///< largest finite magnitude
  std::optional<double> min_nonzero;             ///< smallest finite non-zero magnitude
  std::map<int, std::uint64_t> exponents;        ///< finite non-zero elements by floor(log2(|x|))
  binades magnitudes;                            ///< the same with what decides losses in fp16
  std::optional<std::uint64_t> first_nonfinite;  ///< index of the first NaN or infinity
  std::optional<outlier_channel> outlier;        ///< among the columns of the last dimension
  std::vector<format_effect> formats;

  /// Number of finite non-zero elements: the base of the shares of underflow, subnormal and
  /// overflow.
  [[nodiscard]] std::uint64_t nonzero() const { return count - zeros - nan - inf; }
};

/// Analyses tensors of floating-point elements, one after another.
class tensor_analyser {
 public:
  /// @param formats  must contain neither fp64 nor e8m0, for which these statistics have no meaning
  /// @param where  threads >= 1; the result depends on neither backend nor threads
  tensor_analyser(std::span<const samebits::format_id> formats, samebits::executor where);
  ~tensor_analyser();
  tensor_analyser(const tensor_analyser&) = delete;
  tensor_analyser& operator=(const tensor_analyser&) = delete;
  tensor_analyser(tensor_analyser&&) = delete;
  tensor_analyser& operator=(tensor_analyser&&) = delete;

  /// Reads the elements chunk by chunk: once, and a second time for the formats in which some
  /// overflow.
  ///
  /// @param scale_log2  analyses the elements times this power of two, in binary64
  [[nodiscard]] tensor_stats analyse(const samebits::tensor_file::tensor_file& file,
                                     const samebits::tensor_file::tensor_info& info,
                                     const element_reading& how, int scale_log2 = 0);

 private:
  struct target;
  class effect_meter;

  /// Rounds the elements to the format of each meter and adds them to it. The elements are given as
  /// codes (`source`) and as their exact values (`exact`).
  void round_into(std::vector<effect_meter>& meters, const samebits::const_matrix_view& source,
                  std::span<const double> exact, samebits::overflow policy);

  std::vector<target> targets_;
  std::map<samebits::format_id, decoder> sources_;  ///< one for each element type seen so far
  samebits::executor where_;
  std::vector<std::vector<std::byte>> rounded_;  ///< codes of a chunk, one vector per worker
};

/// The ratio of a conversion that destroyed no element, else the reason why there is none.
sqnr sqnr_of(const format_effect& effect, const tensor_stats& stats);

/// The largest k for which amax * 2^k rounds to a finite fp16 number (nearest even), which means
/// below 65520. Nothing if amax is missing or 0.
std::optional<int> fp16_loss_scale_log2(const tensor_stats& stats);

}  // namespace fpinspect
