// Losses, gradients of parameters, and norms of lists as cases.
#pragma once

#include <cstdint>

#include "engine/core/problem.hpp"
#include "samebits/cross_entropy.hpp"
#include "samebits/parameter_gradients.hpp"

namespace samebits::support {

enum class training_function : std::uint8_t {
  layer_norm_parameters,
  rms_norm_parameters,
  embedding_gradient,
  cross_entropy,
  cross_entropy_gradient,
  cross_entropy_and_gradient,
  foreach_norm,
  clip_grad_norm,
};

struct training_case {
  training_function of = training_function::layer_norm_parameters;
  format_id format = format_id::fp32;
  /// Matrices: the gradient or the logits, and the norm's argument. Of lists the first tensor has
  /// the layout `in`, the second one `second`.
  array_layout in = {}, second = {};
  int multiprocessors = 132;
  embedding_options embedding = {.rule = function_rule::torch_2_11};
  std::int64_t words = 1;  ///< of embeddings
  cross_entropy_options loss = {.rule = function_rule::torch_2_11};
  bool widens = false;  ///< the loss and its gradient are in fp32
  int threads = 1;
  std::uint64_t content = 0;
};
void describe(training_case& c, case_fields& fields);

}  // namespace samebits::support
