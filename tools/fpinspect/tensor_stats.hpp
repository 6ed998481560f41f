// The figures of one tensor: its range, and what each format would do to it.
//
// A format's figures are those of a conversion by nearest_even, ieee and canonical (contract §3,
// §4). Sums are contract §6's tree over the elements in C order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "fpinspect/decoder.hpp"
#include "samebits/backend.hpp"
#include "samebits/format.hpp"
#include "tensor_file/tensor.hpp"

namespace fpinspect {

/// One format's effect on the elements.
struct format_effect {
  samebits::format_id format = samebits::format_id::fp32;
  std::uint64_t underflow = 0;  ///< finite and not zero, becomes a zero
  std::uint64_t subnormal = 0;  ///< finite and not zero, becomes a subnormal
  std::uint64_t overflow = 0;   ///< finite, rounds to beyond max finite
  double signal = 0.0;  ///< sum of RN64(x * x); pairs not finite on both sides are leaves +0
  double noise = 0.0;   ///< sum of RN64(d * d), d = RN64(x - rounded x); the same pairs
};

struct tensor_stats {
  std::uint64_t count = 0;
  std::uint64_t zeros = 0;
  std::uint64_t nan = 0;
  std::uint64_t inf = 0;
  std::optional<double> amax;              ///< largest finite magnitude
  std::optional<double> min_nonzero;       ///< smallest finite magnitude other than 0
  std::map<int, std::uint64_t> exponents;  ///< finite, not zero: elements by floor(log2(|x|))
  std::vector<format_effect> formats;

  /// Finite and not zero: what underflow, subnormal and overflow are shares of.
  [[nodiscard]] std::uint64_t nonzero() const { return count - zeros - nan - inf; }
};

/// Takes tensors of floating-point elements one after the other.
class tensor_analyser {
 public:
  /// formats  neither fp64 nor e8m0, which have no place among these figures
  /// where    threads >= 1; neither backend nor threads show in the result
  tensor_analyser(std::span<const samebits::format_id> formats, samebits::executor where);
  ~tensor_analyser();
  tensor_analyser(const tensor_analyser&) = delete;
  tensor_analyser& operator=(const tensor_analyser&) = delete;
  tensor_analyser(tensor_analyser&&) = delete;
  tensor_analyser& operator=(tensor_analyser&&) = delete;

  /// Reads the elements once, chunk by chunk.
  [[nodiscard]] tensor_stats analyse(const samebits::tensor_file::tensor_file& file,
                                     const samebits::tensor_file::tensor_info& info);

 private:
  struct target;
  class effect_meter;

  std::vector<target> targets_;
  std::map<samebits::format_id, decoder> sources_;  ///< of the element types met so far
  samebits::executor where_;
};

/// 10 * log10(signal / noise) in dB; nothing where there is no noise, no signal or the sums leave
/// binary64.
std::optional<double> sqnr_db(double signal, double noise);

/// The largest k for which amax * 2^k rounds to a finite fp16 to nearest even, which it does below
/// 65520; nothing where amax is missing or 0.
std::optional<int> fp16_loss_scale_log2(const tensor_stats& stats);

}  // namespace fpinspect
