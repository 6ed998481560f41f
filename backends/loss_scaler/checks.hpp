// Checks of loss scaling: valid settings and states.
#pragma once

#include "samebits/loss_scaler.hpp"

namespace samebits::backends {

/// Throws invalid_argument if no scaler with these (valid) settings can have this state; the
/// message names the field.
void check_state(const scaling_settings& settings, const scaling_state& state);

}  // namespace samebits::backends
