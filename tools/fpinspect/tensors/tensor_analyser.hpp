// Statistics of one tensor: its range, and what each format would do to it.
//
// The statistics of a format are those of a conversion with nearest_even, ieee and canonical
// (contract §3, §4). Sums use contract §6's tree over the elements in C order.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fpinspect/quantize/sqnr.hpp"
#include "fpinspect/tensors/meters/effect_meter.hpp"
#include "fpinspect/tensors/meters/element_chunks.hpp"
#include "fpinspect/tensors/meters/format_effect.hpp"
#include "fpinspect/tensors/source/source.hpp"
#include "fpinspect/verdict/channels.hpp"
#include "fpinspect/verdict/loss_scale.hpp"
#include "samebits/backend.hpp"
#include "samebits/core/format.hpp"
#include "tensor_file/tensor.hpp"

namespace fpinspect {

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

  /// Reads the elements once, and a second time for the formats in which some overflow. Does not
  /// copy elements that the file holds in place.
  ///
  /// @param formats  the formats whose effects are wanted, among those of the constructor
  [[nodiscard]] tensor_stats analyse(const samebits::tensor_file::tensor_file& file,
                                     const samebits::tensor_file::tensor_info& info,
                                     const element_reading& how,
                                     std::span<const samebits::format_id> formats);

  /// The effects of the formats on the elements times 2^scale_log2, in binary64.
  [[nodiscard]] std::vector<format_effect> scaled_effects(
      const samebits::tensor_file::tensor_file& file,
      const samebits::tensor_file::tensor_info& info, const element_reading& how, int scale_log2);

 private:
  struct worker;

  /// Value is float, or double for elements of fp64.
  template <class Value>
  tensor_stats analyse_as(const element_source& source, std::span<const target_format> targets);

  std::vector<target_format> targets_;
  samebits::executor where_;
  std::vector<std::unique_ptr<worker>> workers_;  ///< one per thread
};

/// The ratio of a conversion that destroyed no element, else the reason why there is none.
sqnr sqnr_of(const format_effect& effect, const tensor_stats& stats);

}  // namespace fpinspect
