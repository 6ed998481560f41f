// Loss scales of other libraries, transcribed in the processor's own binary32 and binary64
// arithmetic, for judging the integer ones.
//
// Written from the libraries' sources (docs/loss_scaling.md has the commits), class for class and
// statement for statement, with their names. Needs a build without contraction and a process
// without FTZ, as every test has.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace oracle {

/// torch.amp.GradScaler: _scale and _growth_tracker on the device, amp_update_scale_cuda_kernel.
struct torch_scaler {
  double growth_factor, backoff_factor;
  int growth_interval;
  float current_scale;
  int growth_tracker = 0;

  void update(bool found_inf) {
    if (found_inf) {
      current_scale = static_cast<float>(static_cast<double>(current_scale) * backoff_factor);
      growth_tracker = 0;
      return;
    }
    const int successful = growth_tracker + 1;
    if (successful == growth_interval) {
      const auto new_scale = static_cast<float>(static_cast<double>(current_scale) * growth_factor);
      if (std::isfinite(new_scale)) current_scale = new_scale;
      growth_tracker = 0;
    } else {
      growth_tracker = successful;
    }
  }
};

/// update_scale_hysteresis_cuda_kernel.
struct apex_scaler {
  double growth_factor, backoff_factor;
  int growth_interval, hysteresis;
  float current_scale;
  int growth_tracker = 0;
  int hysteresis_tracker;

  void update(bool found_inf) {
    if (found_inf) {
      hysteresis_tracker -= 1;
      if (hysteresis_tracker > 0) {
        growth_tracker = 0;
        return;
      }
    }
    torch_scaler shared{growth_factor, backoff_factor, growth_interval, current_scale,
                        growth_tracker};
    shared.update(found_inf);
    current_scale = shared.current_scale;
    growth_tracker = shared.growth_tracker;
    if (!found_inf) hysteresis_tracker = hysteresis;
  }
};

/// apex.amp.scaler.LossScaler with loss_scale "dynamic".
struct apex_amp_scaler {
  double min_loss_scale;  // 0 is None
  double max_loss_scale;
  std::int64_t scale_seq_len;
  double loss_scale;
  std::int64_t unskipped = 0;

  void update(bool has_overflow) {
    if (has_overflow) {
      if (min_loss_scale != 0) {
        loss_scale = std::max(min_loss_scale, loss_scale / 2.0);
      } else {
        loss_scale = loss_scale / 2.0;
      }
      unskipped = 0;
    } else {
      unskipped += 1;
    }
    if (unskipped == scale_seq_len) {
      loss_scale = std::min(max_loss_scale, loss_scale * 2.0);
      unskipped = 0;
    }
  }
};

/// megatron.core.optimizer.grad_scaler.DynamicGradScaler; the tensors are float32.
struct megatron_scaler {
  float min_scale, growth_factor, backoff_factor;
  std::int64_t growth_interval, hysteresis;
  float scale;
  std::int64_t growth_tracker = 0;
  std::int64_t hysteresis_tracker;

  void update(bool found_inf) {
    if (found_inf) {
      growth_tracker = 0;
      hysteresis_tracker -= 1;
      if (hysteresis_tracker <= 0) scale = std::max(scale * backoff_factor, min_scale);
    } else {
      growth_tracker += 1;
      if (growth_tracker == growth_interval) {
        growth_tracker = 0;
        hysteresis_tracker = hysteresis;
        scale = scale * growth_factor;
      }
    }
  }
};

/// deepspeed.runtime.fp16.loss_scaler.DynamicLossScaler.
struct deepspeed_scaler {
  double scale_factor, min_scale;
  std::int64_t scale_window, delayed_shift;
  bool consecutive_hysteresis, raise_error_at_min_scale;
  double cur_scale;
  std::int64_t cur_hysteresis;
  std::int64_t cur_iter = 0;
  std::int64_t last_overflow_iter = -1;

  /// False where the library raises.
  bool update(bool overflow) {
    if (overflow) {
      if (delayed_shift == 1 || cur_hysteresis == 1) {
        if (cur_scale == min_scale && raise_error_at_min_scale) return false;
        cur_scale = std::max(cur_scale / scale_factor, min_scale);
      } else {
        cur_hysteresis -= 1;
      }
      last_overflow_iter = cur_iter;
    } else {
      if (consecutive_hysteresis) cur_hysteresis = delayed_shift;
      const std::int64_t stable_interval = (cur_iter - last_overflow_iter) - 1;
      if (stable_interval > 0 && stable_interval % scale_window == 0) {
        if (!consecutive_hysteresis) cur_hysteresis = delayed_shift;
        cur_scale *= scale_factor;
      }
    }
    cur_iter += 1;
    return true;
  }
};

}  // namespace oracle
