// Handles of the C interface that several files use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "samebits/c/device_loss_scaler.h"
#include "samebits/c/loss_scaler.h"
#include "samebits/c/ranks.h"
#include "samebits/c/tensor_list.h"
#include "samebits/core/step_report.hpp"
#include "samebits/distributed.hpp"
#include "samebits/loss_scaler.hpp"
#include "samebits/tensor_list.hpp"

struct samebits_tensor_list {
  samebits::tensor_list list;
};

struct samebits_loss_scaler {
  samebits::loss_scaler scaler;
};

struct samebits_shard_layout {
  samebits::shard_layout layout;
};

namespace samebits::c_api {

/// Returns the C++ list of a handle. Throws invalid_argument for null.
const tensor_list& list_of(const samebits_tensor_list* list, const char* which);

/// Returns the tensors of a list. Throws invalid_argument, naming the tensor.
std::vector<list_tensor> list_tensors_of(const samebits_list_tensor* tensors, std::size_t count);

/// Returns the C struct of an unscale report.
samebits_unscale_report report_of(const unscale_report& report);

/// Returns the C struct of a step report.
samebits_step_report report_of(const step_report& report);

/// Returns the settings of a policy: the defaults, changed by `settings`. Throws invalid_argument
/// for a policy, name or value that is not allowed.
scaling_settings settings_of(std::int32_t policy, const samebits_setting* settings,
                             std::size_t count);

}  // namespace samebits::c_api
