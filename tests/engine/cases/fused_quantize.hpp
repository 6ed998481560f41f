// Fused operators that quantize their result, as cases.
#pragma once

#include <iosfwd>

#include "engine/cases/quantize.hpp"
#include "engine/core/problem.hpp"
#include "samebits/operators.hpp"

namespace samebits::support {

struct gated_quantize_case {
  quantize_case tiles;  ///< of gate; up has its layout
  function f = function::silu;
};
std::ostream& operator<<(std::ostream& out, const gated_quantize_case& c);

operation_of<gated_quantize_case> gated_quantizations();

/// What gated() and quantize() leave one after the other.
returned_values gated_then_quantized(const gated_quantize_case& c, const call_site& site);

struct norm_quantize_case {
  quantize_case tiles;  ///< of the norm; rows and added rows have its layout
  bool rms = false, adds = false, weight = false, bias = false;
  std::int64_t offset = 0;
};
std::ostream& operator<<(std::ostream& out, const norm_quantize_case& c);

operation_of<norm_quantize_case> norm_quantizations();

/// What a norm, or one of a sum, and quantize() leave one after the other.
returned_values norm_then_quantized(const norm_quantize_case& c, const call_site& site);

}  // namespace samebits::support
