// The verdict on a set of tensors: a pure decision on their statistics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fpinspect/verdict/evidence.hpp"
#include "fpinspect/verdict/gate/condition.hpp"
#include "fpinspect/verdict/loss_scale.hpp"
#include "fpinspect/verdict/roles.hpp"

namespace fpinspect {

// Tensors are named by their index in the evidence.

/// What a choice keeps of one tensor.
struct kept {
  std::optional<double> db;  ///< nothing: no element changed
  std::uint64_t underflow = 0;
  std::uint64_t overflow = 0;
  std::uint64_t nonzero = 0;
  std::uint64_t negligible = 0;  ///< those of underflow that the need does not count
};
kept kept_by(const choice_effect& effect, std::uint64_t nonzero);
/// Whether fewer values become 0 than the need allows.
bool loses_little(const kept& k, const need& wanted);
bool meets(const kept& k, const need& wanted);

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

/// Whether the tensor counts for the loss scale: gradients with more than 8 bits,
/// of which the finite elements count.
bool is_gradient(const tensor_evidence& tensor);

/// Whether a tensor keeps its stored elements under a choice: it takes no FP8 and the choice is FP8, or
/// its elements already have no more bits than the choice.
bool stays_as_stored(const tensor_evidence& tensor, choice c);

/// Finds tensors with NaN or infinities, outlier channels, gradients that underflow, and tensors
/// that alone force their role to a wider format. One finding a tensor, most urgent first.
///
/// @param v  a verdict with roles and loss scale
std::vector<finding> findings_of(const verdict& v, std::span<const tensor_evidence> tensors);

}  // namespace fpinspect
