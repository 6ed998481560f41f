// Elements and factors of tensors in lists.
#pragma once

#include <cstdint>

#include "engine/core/choices.hpp"
#include "samebits/core/format.hpp"

namespace samebits::support {

/// What the elements of a list are.
enum class list_content : std::uint8_t {
  ordinary,    ///< of both signs around 1
  small,       ///< zeros of both signs, subnormals, the smallest normal numbers; all finite
  any_bits,    ///< uniform bits, so NaN and Inf too
  every_code,  ///< of casts alone: codes in order
};

/// A code of fp32, fp16, bf16, e4m3 or e5m2.
std::uint32_t draw_list_code(format_id format, list_content content, const word_source& next);

/// What tensors are multiplied by: no NaN, seldom Inf; most are near 1.
float draw_list_factor(const word_source& next);

}  // namespace samebits::support
