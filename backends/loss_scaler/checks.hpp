// Checks of loss scaling: which settings and states a policy can work with.
#pragma once

#include "samebits/loss_scaler.hpp"

namespace samebits::backends {

/// Throws invalid_argument naming the field that no scaler with these (valid) settings can have.
void check_state(const scaling_settings& settings, const scaling_state& state);

}  // namespace samebits::backends
