// The statistics of one tensor from which the verdict is drawn.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fpinspect/verdict/channels.hpp"
#include "fpinspect/verdict/loss_scale.hpp"
#include "fpinspect/verdict/roles.hpp"

namespace fpinspect {

/// What one choice does to a tensor.
struct choice_effect {
  choice what = choice::fp32;
  std::uint64_t underflow = 0;   ///< finite and non-zero, becomes 0
  std::uint64_t overflow = 0;    ///< finite, becomes infinite or NaN
  double signal = 0;             ///< sum of x^2
  double noise = 0;              ///< sum of (x - x')^2; elements that overflow count as max finite
  std::uint64_t negligible = 0;  ///< those of underflow that the need does not count
  std::uint64_t scale_bits = 0;  ///< of all tiles; 0 for one scale of the tensor
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
  std::string unread;  ///< why the elements are not read
  std::vector<std::uint64_t> shape;
  bool of_weight = false;       ///< has the shape of a weight
  bool is_unquantized = false;  ///< weights of a layer that stays in 16 bits beside FP8 layers
  std::uint64_t count = 0;
  int bits = 32;  ///< of an element as stored
  std::uint64_t nonzero = 0;
  std::uint64_t nan = 0;
  std::uint64_t inf = 0;
  std::optional<std::uint64_t> first_nonfinite;  ///< index in C order
  std::optional<double> amax;
  binades magnitudes;
  std::optional<outlier_channel> outlier;
  std::vector<choice_effect> effects;  ///< of the choices that were tried
  /// Gradients: from this power of two on, loss scales without overflow meet the need in fp16.
  std::optional<int> enough_log2;

  /// Whether recipes are judged on [out, rest] instead of the rows along the last dimension.
  [[nodiscard]] bool is_reshaped() const { return of_weight && shape.size() > 2; }

  /// Biases, norms and scalars.
  [[nodiscard]] bool is_vector() const { return shape.size() < 2; }

  /// Whether FP8 is tried.
  [[nodiscard]] bool takes_fp8() const { return !is_vector() && !is_unquantized; }

  [[nodiscard]] const choice_effect* effect(choice c) const {
    const auto found = std::find_if(effects.begin(), effects.end(),
                                    [&](const choice_effect& e) { return e.what == c; });
    return found == effects.end() ? nullptr : &*found;
  }
};

}  // namespace fpinspect
