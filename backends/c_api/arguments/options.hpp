// Option structs of the C interface: their defaults, and structs of older and newer callers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "samebits/c/samebits.h"

namespace samebits::c_api {

/// Returns the defaults of an option struct.
template <class Options>
Options defaults();

template <>
inline samebits_executor defaults() {
  return SAMEBITS_EXECUTOR_INIT;
}
template <>
inline samebits_cast_rule defaults() {
  return SAMEBITS_CAST_RULE_INIT;
}
template <>
inline samebits_convert_options defaults() {
  return SAMEBITS_CONVERT_OPTIONS_INIT;
}
template <>
inline samebits_compute_options defaults() {
  return SAMEBITS_COMPUTE_OPTIONS_INIT;
}
template <>
inline samebits_evaluate_options defaults() {
  return SAMEBITS_EVALUATE_OPTIONS_INIT;
}
template <>
inline samebits_rotary_options defaults() {
  return SAMEBITS_ROTARY_OPTIONS_INIT;
}
template <>
inline samebits_softmax_options defaults() {
  return SAMEBITS_SOFTMAX_OPTIONS_INIT;
}
template <>
inline samebits_layer_norm_options defaults() {
  return SAMEBITS_LAYER_NORM_OPTIONS_INIT;
}
template <>
inline samebits_dot_options defaults() {
  return SAMEBITS_DOT_OPTIONS_INIT;
}
template <>
inline samebits_quantize_options defaults() {
  return SAMEBITS_QUANTIZE_OPTIONS_INIT;
}
template <>
inline samebits_quantize_outputs defaults() {
  return SAMEBITS_QUANTIZE_OUTPUTS_INIT;
}
template <>
inline samebits_scale_layout_options defaults() {
  return SAMEBITS_SCALE_LAYOUT_OPTIONS_INIT;
}
template <>
inline samebits_delayed_settings defaults() {
  return SAMEBITS_DELAYED_SETTINGS_INIT;
}
template <>
inline samebits_step_observation defaults() {
  return SAMEBITS_STEP_OBSERVATION_INIT;
}
template <>
inline samebits_device_scaler_options defaults() {
  return SAMEBITS_DEVICE_SCALER_OPTIONS_INIT;
}
template <>
inline samebits_unscale_options defaults() {
  return SAMEBITS_UNSCALE_OPTIONS_INIT;
}
template <>
inline samebits_accumulator defaults() {
  return SAMEBITS_ACCUMULATOR_INIT;
}
template <>
inline samebits_matmul_options defaults() {
  return SAMEBITS_MATMUL_OPTIONS_INIT;
}
template <>
inline samebits_optimizer_settings defaults() {
  return SAMEBITS_OPTIMIZER_SETTINGS_INIT;
}
template <>
inline samebits_step_input defaults() {
  return SAMEBITS_STEP_INPUT_INIT;
}
template <>
inline samebits_communicator defaults() {
  return SAMEBITS_COMMUNICATOR_INIT;
}
template <>
inline samebits_gradient_reduction defaults() {
  return SAMEBITS_GRADIENT_REDUCTION_INIT;
}
template <>
inline samebits_verify_options defaults() {
  return SAMEBITS_VERIFY_OPTIONS_INIT;
}

/// Throws invalid_argument if the struct_size of an option struct is below 4 or too large.
void check_struct_size(const void* given, const char* which);

/// Copies the first struct_size bytes of a caller's struct over `options`, which has the defaults
/// and `size` bytes.
///
/// @throws invalid_argument if struct_size is below 4 or too large, or if a byte behind `size` is
///   not 0.
void copy_given(void* options, std::size_t size, const void* given, const char* which);

/// Writes `size` bytes of `options` into as many bytes as the struct_size of `to` says. Bytes
/// behind `size` become 0, and struct_size stays.
///
/// @throws invalid_argument if `to` is null, or if struct_size is below 4 or too large.
void write_given(void* to, const void* options, std::size_t size, const char* which);

/// Returns a caller's option struct with all fields of this version; null gives the defaults.
template <class Options>
Options read(const Options* given, const char* which) {
  static_assert(std::is_trivially_copyable_v<Options> && offsetof(Options, struct_size) == 0);
  Options options = defaults<Options>();
  if (given != nullptr) copy_given(&options, sizeof options, given, which);
  return options;
}

/// Writes options into a caller's struct of any version.
template <class Options>
void write_options(Options* to, const Options& options, const char* which) {
  static_assert(std::is_trivially_copyable_v<Options> && offsetof(Options, struct_size) == 0);
  write_given(to, &options, sizeof options, which);
}

}  // namespace samebits::c_api
