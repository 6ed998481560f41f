// Fused operators as cases: gated and biased functions, rotary embeddings, embeddings, dropout.
#pragma once

#include <cstdint>
#include <iosfwd>

#include "engine/core/problem.hpp"
#include "samebits/operators.hpp"

namespace samebits::support {

enum class fused_operator : std::uint8_t {
  gated,
  gated_gradient,
  biased,
  biased_gradient,
  rotate,
  rotate_gradient,
  embed,
  dropout,
  clip_fake_quantize,
  clip_fake_quantize_gradient,
};
inline constexpr int fused_operator_count = 10;

struct fused_case {
  fused_operator of = fused_operator::gated;
  function f = function::silu;
  format_id format = format_id::fp32;
  array_layout operands[3] = {};  ///< in the shape of the results
  array_layout out = {}, second_out = {};
  std::int64_t rows_of_tables = 1;  ///< of the bias, of cos and sin, of words
  std::int64_t positions = 0;       ///< of embed; 0: none are added
  std::int64_t each = 1;
  double scale = 1, probability = 0.5;
  int bits = 8;  ///< of clip_fake_quantize
  random_stream random = {};
  bool in_place = false;
  int threads = 1;
  std::uint64_t content = 0;
};
std::ostream& operator<<(std::ostream& out, const fused_case& c);

operation_of<fused_case> fused_operators();

/// What PyTorch's operators leave one after another, each by the library's definition.
returned_values fused_by_definition(const fused_case& c, const call_site& site);

}  // namespace samebits::support
