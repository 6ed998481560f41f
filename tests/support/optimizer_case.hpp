// Random tensors, settings and inputs of an optimizer step, in memory of their own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "samebits/optimizer.hpp"

namespace samebits::support {

using random_words = std::mt19937_64;

/// An array of codes with its scales.
struct array_memory {
  stored_format format = stored_format::none;
  std::vector<std::byte> codes = {};
  std::vector<float> scales = {};

  [[nodiscard]] std::uint32_t code(std::int64_t i) const;
  /// Binary32 code of the scale of element i; 1 without scales.
  [[nodiscard]] std::uint32_t scale(std::int64_t i, std::uint32_t block) const;
  [[nodiscard]] stored_array view(std::int64_t first, std::uint32_t block);
  friend bool operator==(const array_memory& a, const array_memory& b);
};

/// One tensor's arrays.
struct tensor_memory {
  array_memory weights, gradient, master, low;
  std::array<array_memory, 2> states;
  low_part low_kind = low_part::none;
  std::int64_t count = 0;
  std::uint64_t first_index = 0;
  std::uint32_t stream = 0, group = 0, block = 128;
  std::vector<float> gradient_scale = {};  ///< empty: none

  /// Elements [first, first + count) as a tensor of an optimizer_list.
  [[nodiscard]] optimizer_tensor part(std::int64_t first, std::int64_t elements);
  [[nodiscard]] optimizer_tensor whole() { return part(0, count); }
  friend bool operator==(const tensor_memory& a, const tensor_memory& b);
};

/// Which formats a case's tensors have.
enum class tensor_formats : std::uint8_t { fp32, any };

/// A list of tensors, its groups and a step.
struct optimizer_case {
  std::vector<tensor_memory> tensors;
  std::vector<optimizer_settings> groups;
  step_input input;

  [[nodiscard]] optimizer_list list();
};

/// Settings of any rule and profile.
optimizer_settings draw_settings(random_words& next);
/// A binary32 code: NaN, Inf, zeros, subnormals, extremes, any bits, or ordinary numbers.
std::uint32_t draw_word(random_words& next);
/// A case with up to `max_tensors` tensors of up to `max_count` elements.
optimizer_case draw_case(random_words& next, tensor_formats formats, std::int64_t max_count,
                         int max_tensors);

}  // namespace samebits::support
