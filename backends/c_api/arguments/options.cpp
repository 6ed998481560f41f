// Option structs of the C interface: copies between versions, and initializers.
#include "backends/c_api/arguments/options.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "backends/c_api/arguments/arguments.hpp"
#include "backends/c_api/arguments/guarded.hpp"
#include "samebits/error.hpp"

namespace samebits::c_api {
namespace {

// Every version's option structs are smaller. A larger struct_size means that the caller did not
// initialize the struct.
constexpr std::uint32_t max_size = 4096;

/// Reads struct_size, the first field of every option struct.
std::uint32_t size_of(const void* given, const char* which) {
  std::uint32_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (size >= sizeof size && size <= max_size) return size;
  throw invalid_argument(std::string(which) + ": struct_size must be the size of the struct, got " +
                         std::to_string(size) + "; initialize the struct with its ..._INIT");
}

}  // namespace

void check_struct_size(const void* given, const char* which) { (void)size_of(given, which); }

void copy_given(void* options, std::size_t size, const void* given, const char* which) {
  const std::uint32_t given_size = size_of(given, which);
  const auto* bytes = static_cast<const unsigned char*>(given);
  for (std::size_t i = size; i < given_size; ++i) {
    if (bytes[i] == 0) continue;
    throw invalid_argument(std::string(which) + ": byte " + std::to_string(i) +
                           " is set, which this version of the library does not know; its struct "
                           "has " +
                           std::to_string(size) + " bytes");
  }
  std::memcpy(options, given, std::min<std::size_t>(size, given_size));
}

void write_given(void* to, const void* options, std::size_t size, const char* which) {
  if (to == nullptr) refuse_null(which);
  const std::uint32_t given_size = size_of(to, which);
  std::memset(to, 0, given_size);
  std::memcpy(to, options, std::min<std::size_t>(size, given_size));
  std::memcpy(to, &given_size, sizeof given_size);
}

}  // namespace samebits::c_api

namespace api = samebits::c_api;

namespace {
template <class Options>
samebits_status init(Options* options, const char* which) {
  return api::guarded([&] { api::write_options(options, api::defaults<Options>(), which); });
}
}  // namespace

samebits_status samebits_executor_init(samebits_executor* executor) {
  return init(executor, "executor");
}
samebits_status samebits_cast_rule_init(samebits_cast_rule* rule) { return init(rule, "rule"); }
samebits_status samebits_convert_options_init(samebits_convert_options* options) {
  return init(options, "options");
}
samebits_status samebits_compute_options_init(samebits_compute_options* options) {
  return init(options, "options");
}
samebits_status samebits_evaluate_options_init(samebits_evaluate_options* options) {
  return init(options, "options");
}
samebits_status samebits_rotary_options_init(samebits_rotary_options* options) {
  return init(options, "options");
}
samebits_status samebits_softmax_options_init(samebits_softmax_options* options) {
  return init(options, "options");
}
samebits_status samebits_layer_norm_options_init(samebits_layer_norm_options* options) {
  return init(options, "options");
}
samebits_status samebits_dot_options_init(samebits_dot_options* options) {
  return init(options, "options");
}
samebits_status samebits_quantize_options_init(samebits_quantize_options* options) {
  return init(options, "options");
}
samebits_status samebits_quantize_outputs_init(samebits_quantize_outputs* outputs) {
  return init(outputs, "outputs");
}
samebits_status samebits_scale_layout_options_init(samebits_scale_layout_options* options) {
  return init(options, "options");
}
samebits_status samebits_delayed_settings_init(samebits_delayed_settings* settings) {
  return init(settings, "settings");
}
samebits_status samebits_step_observation_init(samebits_step_observation* observation) {
  return init(observation, "observation");
}
samebits_status samebits_device_scaler_options_init(samebits_device_scaler_options* options) {
  return init(options, "options");
}
samebits_status samebits_unscale_options_init(samebits_unscale_options* options) {
  return init(options, "options");
}
samebits_status samebits_accumulator_init(samebits_accumulator* accumulator) {
  return init(accumulator, "accumulator");
}
samebits_status samebits_matmul_options_init(samebits_matmul_options* options) {
  return init(options, "options");
}
samebits_status samebits_communicator_init(samebits_communicator* ranks) {
  return init(ranks, "ranks");
}
samebits_status samebits_gradient_reduction_init(samebits_gradient_reduction* options) {
  return init(options, "options");
}
samebits_status samebits_verify_options_init(samebits_verify_options* options) {
  return init(options, "options");
}
samebits_status samebits_optimizer_settings_init(samebits_optimizer_settings* settings) {
  return init(settings, "settings");
}
samebits_status samebits_step_input_init(samebits_step_input* input) {
  return init(input, "input");
}
