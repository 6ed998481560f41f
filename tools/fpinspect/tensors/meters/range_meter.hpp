// The range of a tensor's elements: counts by binade, extremes, NaN and infinities, channels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "fpinspect/tensors/source/value_bits.hpp"
#include "fpinspect/verdict/channels.hpp"
#include "fpinspect/verdict/loss_scale.hpp"

namespace fpinspect {

/// The range of elements.
struct element_range {
  std::uint64_t zeros = 0;
  std::uint64_t nan = 0;
  std::uint64_t inf = 0;
  std::optional<std::uint64_t> first_nonfinite;  ///< index of the first NaN or infinity
  std::optional<double> amax;                    ///< largest finite magnitude
  std::optional<double> min_nonzero;             ///< smallest finite non-zero magnitude
  binades magnitudes;                            ///< finite non-zero elements by binade
  std::optional<outlier_channel> outlier;        ///< among the columns
};

/// Collects the range of elements that are float or double (Value). Parts of a tensor may be added to
/// several meters, which are then combined.
template <class Value>
class range_meter {
 public:
  /// @param columns  size of the last dimension; 0 looks for no outlier channel
  explicit range_meter(std::size_t columns) : channels_(columns) {}

  /// Adds consecutive elements.
  /// @param first  index of the first one in the tensor
  void add(std::uint64_t first, std::span<const Value> elements);

  /// Adds what another meter has collected of other elements of the tensor.
  void combine(const range_meter& other);

  [[nodiscard]] element_range result() const;

 private:
  using fields = value_fields<Value>;
  using word = word_of<Value>;

  /// Elements of one biased exponent by their fraction: 0, at least that of 2 - 2^-11, any other.
  enum fraction_kind : std::uint8_t { other_fraction, no_fraction, top_fraction, kinds = 4 };
  static constexpr std::size_t exponents = std::size_t{1} << fields::exponent_bits;
  using counts = std::array<std::uint64_t, kinds * exponents>;

  [[nodiscard]] std::uint64_t counted(std::size_t exponent, fraction_kind kind) const {
    return counts_[0][kinds * exponent + kind] + counts_[1][kinds * exponent + kind];
  }
  [[nodiscard]] std::uint64_t subnormals() const {
    return counted(0, other_fraction) + counted(0, top_fraction);
  }
  [[nodiscard]] std::uint64_t nonfinite() const {
    return counted(exponents - 1, no_fraction) + counted(exponents - 1, other_fraction) +
           counted(exponents - 1, top_fraction);
  }
  void count_exponents(std::span<const Value> elements);
  void count_subnormals(std::span<const Value> elements);

  /// Two tables that take turns: neighbours in one binade then do not wait for each other's count.
  std::array<counts, 2> counts_{};
  /// Subnormal elements by the position of their leading bit.
  std::array<binade_counts, fields::fraction_bits> subnormals_{};
  word largest_ = 0;                                  ///< magnitude of the largest finite element
  word smallest_ = std::numeric_limits<word>::max();  ///< magnitude of the smallest above 0
  std::optional<std::uint64_t> first_nonfinite_;
  channel_meter<Value> channels_;
};

extern template class range_meter<float>;
extern template class range_meter<double>;

}  // namespace fpinspect
