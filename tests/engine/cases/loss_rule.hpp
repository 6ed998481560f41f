// Losses and clipping by the definitions of numerics/.
#pragma once

#include <initializer_list>
#include <vector>

#include "engine/cases/training.hpp"

namespace samebits::support {

void losses_by_rule(const training_case& c, const std::vector<std::int64_t>& targets,
                    const matrix_view& logits, const matrix_view& out);
void loss_gradients_by_rule(const training_case& c, const std::vector<std::int64_t>& targets,
                            const matrix_view& grad, const matrix_view& logits,
                            const matrix_view& out);
/// Clips gradients whose norms have these codes; returns their norm.
float clipped_by_rule(const training_case& c, const std::vector<std::uint32_t>& norms,
                      float max_norm, std::initializer_list<matrix_view> gradients);

}  // namespace samebits::support
