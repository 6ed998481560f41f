// Steps of an optimizer as cases, and stores and loads of its arrays.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/core/choices.hpp"
#include "engine/core/fields.hpp"
#include "engine/core/target.hpp"
#include "samebits/optimizer.hpp"

namespace samebits::support {

/// Formats and size of a tensor of an optimizer.
struct optimizer_plan {
  stored_format weights = stored_format::fp32;
  stored_format master = stored_format::none;
  low_part low = low_part::none;
  stored_format gradient = stored_format::fp32;
  std::array<stored_format, 2> states = {stored_format::none, stored_format::none};
  bool gradient_scale = false;
  std::int64_t count = 0;
  std::uint64_t first_index = 0;
  std::uint32_t stream = 0, group = 0, block = 128;
  int shift = 0;  ///< elements between a border of 64 bytes and each array

  friend constexpr bool operator==(const optimizer_plan&, const optimizer_plan&) = default;
};

/// Whether a loss scaler's decision is given, and what it is.
enum class step_decision : std::uint8_t { none, applied, skipped };

struct optimizer_case {
  std::vector<optimizer_plan> tensors = {};
  std::vector<optimizer_settings> groups = {};
  std::uint64_t applied_steps = 1;
  float grad_mul = 1;
  std::uint64_t seed = 0;
  step_decision decision = step_decision::none;
  bool learning_rates = false;  ///< replaced by an array
  int threads = 1;
  std::uint64_t content = 0;
};
void describe(optimizer_case& c, case_fields& fields);

// The buffers of a tensor, by what they hold; scales stand behind the codes. Behind those of all
// tensors stand the decision and the learning rates.
namespace optimizer_buffers {
inline constexpr std::size_t weights = 0, gradient = 2, master = 4, low = 6, states = 7,
                             of_tensor = 11;
}
step_input input_of(const optimizer_case& c, const call_site& site);

/// A store of values in an array, and a load of what was there before.
struct store_case {
  stored_format format = stored_format::fp32;
  low_part low = low_part::none;
  format_id values = format_id::fp32;
  std::int64_t count = 0;
  store_options options = {};
  int threads = 1;
  std::uint64_t content = 0;
};
void describe(store_case& c, case_fields& fields);
/// The buffers of a store: values, what is loaded, codes, scales, low part.
inline constexpr std::size_t at_values = 0, at_loaded = 1, at_stored = 2, at_stored_scales = 3,
                             at_low = 4;

}  // namespace samebits::support
