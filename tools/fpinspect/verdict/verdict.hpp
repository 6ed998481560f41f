// The verdict on a set of tensors: a pure decision on their statistics.
#pragma once

#include "fpinspect/verdict/gate/condition.hpp"
#include "fpinspect/verdict/roles.hpp"
#include "samebits/cast_statistics.hpp"
#include "tensor_file/tensor_info.hpp"

namespace fpinspect {

// --- What formats lose of gradients at each loss scale, exactly, from counts by binade -----------

// Loss scales are normal binary32 numbers. Loss scalers stop at 2^24 unless they are told otherwise.
inline constexpr int smallest_scale_log2 = -126;
inline constexpr int largest_scale_log2 = 127;
inline constexpr int usual_ceiling_log2 = 24;

/// Finite non-zero elements by e = floor(log2(|x|)).
using binades = std::map<int, binade_counts>;

/// What fp16 loses of the elements times 2^log2, rounded to nearest even.
struct scale_loss {
  int log2 = 0;
  std::uint64_t underflow = 0;  ///< becomes 0
  std::uint64_t overflow = 0;   ///< becomes infinite
};
scale_loss loss_at(const binades& elements, int log2);

/// A lower bound of the SQNR in dB that fp16 keeps of the elements times 2^log2, if none overflows.
/// It grows with the scale.
double sqnr_bound_at(const binades& elements, int log2);

/// The number of elements that times 2^log2 become 0 in the format, rounded to nearest even.
std::uint64_t underflow_at(const binades& elements, int log2, format_id to);

/// The largest loss scale at which the magnitude amax does not overflow in the format, rounded to
/// nearest even. It loses the fewest elements of all scales without overflow. Nothing if amax is 0 or
/// overflows at every loss scale.
std::optional<int> best_scale_log2(double amax, format_id to);

// --- The statistics of one tensor ----------------------------------------------------------------

/// The column with the largest amax, and how far it stands out.
struct outlier_channel {
  std::uint64_t channel = 0;
  double ratio = 0;  ///< its amax over the median amax of the columns
};

/// The largest column if its amax is at least 16 times the median, which must not be 0. Nothing for
/// fewer than 8 columns.
std::optional<outlier_channel> outlier_among(std::span<const double> amaxes);

/// What one choice does to a tensor.
struct choice_effect {
  choice what = choice::fp32;
  std::uint64_t nonzero = 0;     ///< finite and non-zero elements
  std::uint64_t underflow = 0;   ///< of these, become 0
  std::uint64_t overflow = 0;    ///< finite, becomes infinite or NaN
  double signal = 0;             ///< sum of x^2
  double noise = 0;              ///< sum of (x - x')^2; elements that overflow count as max finite
  std::uint64_t scale_bits = 0;  ///< of all tiles; 0 for one scale of the tensor
  std::uint64_t negligible = 0;  ///< those of underflow that the need does not count

  /// The SQNR; nothing: no element changed.
  [[nodiscard]] std::optional<double> db() const;
  /// The SQNR as a number to compare: infinite if no element changed.
  [[nodiscard]] double level() const {
    return db().value_or(std::numeric_limits<double>::infinity());
  }
  /// Whether fewer values become 0 than the need allows.
  [[nodiscard]] bool loses_little(const need& wanted) const {
    return wanted.allows(underflow - negligible, nonzero);
  }
  [[nodiscard]] bool meets(const need& wanted) const {
    return overflow == 0 && level() >= wanted.db && loses_little(wanted);
  }
};

/// Why the verdict does not judge a tensor.
enum class judged : std::uint8_t {
  yes,
  not_read,        ///< types that the reader of the file does not read, such as blocks of GGUF
  not_numbers,     ///< no elements, booleans, complex numbers, integers that fp64 does not hold
  integers,        ///< integer values
  narrow_already,  ///< elements of 8 bits or fewer
  not_finite       ///< NaN or infinities: scaled recipes would measure what they do to these
};

struct tensor_evidence {
  std::string name;  ///< as it is; the path for a tensor without a name
  role what = role::other;
  judged state = judged::yes;
  tensor_file::tensor_info info;
  bool of_weight = false;       ///< has the shape of a weight
  bool is_unquantized = false;  ///< weights of a layer that stays in 16 bits beside FP8 layers
  int bits = 32;                ///< of an element as stored
  cast_statistics stats;        ///< of elements that are numbers
  std::optional<outlier_channel> outlier;
  std::vector<choice_effect> effects;  ///< of the choices that were tried
  /// Gradients: from this power of two on, loss scales without overflow meet the need in fp16.
  std::optional<int> enough_log2;

  /// Whether recipes are judged on [out, rest] instead of the rows along the last dimension.
  [[nodiscard]] bool is_reshaped() const { return of_weight && info.shape.size() > 2; }

  /// Biases, norms and scalars.
  [[nodiscard]] bool is_vector() const { return info.shape.size() < 2; }

  /// Whether FP8 is tried.
  [[nodiscard]] bool takes_fp8() const { return !is_vector() && !is_unquantized; }

  [[nodiscard]] bool has_nonfinite() const { return stats.nan + stats.inf != 0; }

  [[nodiscard]] const choice_effect* effect(choice c) const {
    return find_by(effects, c, &choice_effect::what);
  }
};

/// Finite non-zero elements of all tensors by floor(log2(|x|)).
std::map<int, std::uint64_t> exponents_of(std::span<const tensor_evidence> tensors);

// --- The decision --------------------------------------------------------------------------------

// Tensors are named by their index in the evidence.

/// A choice, tried on all tensors of a role that it concerns.
struct choice_outcome {
  choice what = choice::fp32;
  double bits = 32;                        ///< for each element, with the scales of its tiles
  std::size_t tried = 0;                   ///< number of tensors
  std::vector<std::size_t> failed = {};    ///< those that do not meet the need, worst first
  std::optional<std::size_t> lowest = {};  ///< the tensor with the lowest SQNR; nothing: all exact
  std::optional<std::size_t> lossiest = {};  ///< the tensor with the largest share that becomes 0
};

/// The decision for one role.
struct role_verdict {
  role what = role::other;
  std::vector<std::size_t> tensors = {};  ///< all tensors of the role
  std::size_t judged = 0;                 ///< those with more than 8 bits, all finite
  std::size_t vectors = 0;                ///< judged ones of rank 0 and 1
  std::uint64_t values = 0;
  std::vector<choice_outcome> outcomes = {};  ///< by their bits
  bool met = false;  ///< whether the choice meets the need; only fp32 may fail, for fp64
  std::optional<std::size_t> chosen = {};  ///< index of an outcome; nothing if nothing is judged
};

/// One loss scale for fp16 gradients. Losses are those of all tensors together; the need holds in
/// every tensor.
struct loss_scale_verdict {
  std::uint64_t nonzero = 0;
  scale_loss without = {};  ///< at scale 1
  scale_loss best = {};  ///< the largest scale without overflow; if all overflow, the smallest one
  std::vector<scale_loss> neighbours = {};  ///< best / 16, / 4, / 2, best, best * 2, if they exist
  bool needed = false;                      ///< scale 1 does not meet the need
  std::optional<int> enough = {};           ///< it and all powers up to best meet the need
  std::size_t limit = 0;                    ///< the tensor that overflows first
  bool bf16_holds_all = true;               ///< all are in [2^-133, 2^127), which bf16 holds
  bool fp32_holds_all = true;               ///< all are in [2^-149, 2^127)
};

enum class finding_kind : std::uint8_t {
  not_finite,  ///< NaN or infinities
  outlier,     ///< a channel far larger than the others, which costs more than the need allows
  underflows,  ///< a gradient that loses more than the need without a loss scale
  still_underflows,  ///< the same with the loss scale of the verdict
  needs_more         ///< fails a cheaper choice that most tensors of its role meet
};

/// A tensor that needs attention.
struct finding {
  finding_kind kind = finding_kind::not_finite;
  std::size_t tensor = 0;
  choice cheaper = choice::fp32;  ///< outlier, needs_more: what fails
  choice better = choice::fp32;   ///< outlier: what meets the need, or the last tried
  std::size_t others = 0;         ///< needs_more: tensors of the role that meet `cheaper`
  scale_loss loss = {};           ///< underflows, still_underflows
};

/// The whole verdict.
struct verdict {
  std::span<const tensor_evidence> tensors = {};
  need wanted = {};
  std::vector<role_verdict> roles = {};  ///< roles with tensors, in the order of `role`
  std::optional<loss_scale_verdict> loss_scale = {};  ///< nothing without non-zero gradients
  std::vector<finding> findings = {};                 ///< most urgent first
  std::vector<std::size_t> order =
      {};  ///< all tensors, by the largest share that fp16 or the choice loses
};

/// The loss scale for the gradients among the tensors.
std::optional<loss_scale_verdict> loss_scale_of(std::span<const tensor_evidence> tensors,
                                                const need& wanted);

/// The gradient of which fp16 at the loss scale 2^log2 loses the largest share; nothing if all
/// gradients lose nothing.
///
/// @param lost  the elements that become 0, or those that overflow
std::optional<std::size_t> worst_gradient(std::span<const tensor_evidence> tensors, int log2,
                                          std::uint64_t scale_loss::*lost = &scale_loss::underflow);

verdict verdict_on(std::span<const tensor_evidence> tensors, const need& wanted);

/// The choice of the tensor's role; nothing if the tensor is not judged or stays as stored.
std::optional<choice> choice_of(const verdict& v, const tensor_evidence& tensor);

/// What this choice does to the tensor; null if there is none.
const choice_effect* chosen_effect(const verdict& v, const tensor_evidence& tensor);

/// Whether a tensor keeps its stored elements under a choice: it takes no FP8 and the choice is FP8, or
/// its elements already have no more bits than the choice.
inline bool stays_as_stored(const tensor_evidence& tensor, choice c) {
  return (is_recipe(c) && !tensor.takes_fp8()) || tensor.bits <= spec_of(c).bits;
}

}  // namespace fpinspect
