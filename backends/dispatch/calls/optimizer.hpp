// Optimizer steps: the description of an optimizer_list as backends read it, the checked call that
// a backend receives, and the functions that a host backend supplies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backends/dispatch/calls/described_rows.hpp"
#include "backends/dispatch/overlap.hpp"
#include "numerics/update/constants.hpp"
#include "numerics/update/update_tables.hpp"
#include "samebits/optimizer.hpp"

namespace samebits::backends {

/// Settings that all tensors of one group share.
struct group_summary {
  std::uint32_t group = 0;
  int states = 2;           ///< the smallest number of states that a tensor has
  std::size_t fewest = 0;   ///< position of the first tensor with that number
  std::int64_t mixed = -1;  ///< position of the first tensor that no torch profile can update
  std::int64_t shard = -1;  ///< position of the first tensor with first_index > 0
};

/// A checked optimizer_list: its tensors and tables.
struct optimizer_data : described_rows<numerics::update_row> {
  std::vector<optimizer_tensor> tensors;
  std::vector<group_summary> groups;  ///< in order of first appearance
  bool only_fp32 = true;  ///< all tensors have fp32 weights or masters, and fp32 states if any
};

/// Tensors of an optimizer whose gradients move.
struct optimizer_parts {
  std::shared_ptr<optimizer_data> data;  ///< formats and numbers are checked; without chunks
  std::vector<extent> written;           ///< of the arrays that steps write, sorted by address
};

/// Checks formats and numbers of tensors, whose gradients have a format and no address. Throws as
/// optimizer_list's constructor does for these.
optimizer_parts describe_without_gradients(std::vector<optimizer_tensor> tensors,
                                           memory_space space);
/// Returns the description of a list with these addresses of gradients, one for each tensor. A tensor
/// without one takes no part in steps. In device memory the tables are not copied: the caller writes
/// them to the device and sets `on_device`. Throws as optimizer_list's constructor does for memory,
/// except that only the first array is asked for its device.
std::shared_ptr<optimizer_data> with_gradients(const optimizer_parts& parts,
                                               std::span<const void* const> gradients);

/// A step with checked arguments, on a list that has elements.
struct optimizer_call {
  const optimizer_data& list;
  std::span<const optimizer_settings> groups;
  const step_input& input;
};

/// A call of store() or load() with checked arguments, on one element or more: the values of one
/// tensor's weights are stored as those of another. The other arrays of both rows are missing.
struct store_call {
  numerics::update_row from;
  numerics::update_row to;
  std::uint64_t seed;    ///< of random bits
  std::uint64_t stream;  ///< number of the random stream
};

/// A segment of a chunk as binary32 words. Arrays may be missing: null.
struct update_words {
  std::uint32_t* weights;
  const std::uint32_t* gradient;
  std::uint32_t* states[2];
};

/// A part of an array: `count` elements from element `first` of the tensor on.
struct stored_part {
  numerics::update_array array;
  stored_format format;
  std::int64_t first;  ///< a multiple of `block`, if the format has block scales
  std::int64_t count;
  std::int64_t block;         ///< elements per scale
  random_stream random = {};  ///< of stochastic formats; its offset is the index of element 0
};

/// The functions with which a host backend computes steps (backends/threads/optimizer.hpp), on
/// contiguous elements. Several threads call them at once, in their scope.
struct update_kernels {
  kernel_scope in_scope;
  /// Updates `count` elements in place by the rule and profile of the settings. Rule lamb: only the
  /// states. `rounds_to` is numerics::step_format() of the tensor.
  void (*update)(const optimizer_settings& settings, const numerics::update_constants& constants,
                 stored_format rounds_to, const update_words& words, std::int64_t count);
  /// words[i] = RN(value of codes[i] * scale)
  void (*rescale)(stored_format format, const std::byte* codes, std::uint32_t scale,
                  std::uint32_t* words, std::int64_t count);
  /// The largest magnitude; any NaN may stand for the canonical NaN.
  std::uint32_t (*amax)(const std::uint32_t* words, std::int64_t count);
  /// codes[i] = RN(words[i] * factor) in one of the formats with scales
  void (*scaled_codes)(stored_format format, const std::uint32_t* words, std::uint32_t factor,
                       std::byte* codes, std::int64_t count);
  /// Writes words to a part without scales.
  void (*unscaled_codes)(const stored_part& part, const std::uint32_t* words);
  /// Weights with a low part: 16-bit codes and binary32 words.
  void (*read_halves)(low_part kind, const std::byte* high, const std::byte* low,
                      std::uint32_t* words, std::int64_t count);
  void (*write_halves)(low_part kind, std::byte* high, std::byte* low, const std::uint32_t* words,
                       std::int64_t count);
  /// Rule lamb: the directions of elements, and weights moved along them.
  void (*direction)(const optimizer_settings& settings, const numerics::update_constants& constants,
                    const update_words& words, std::uint32_t* direction, std::int64_t count);
  void (*move)(std::uint32_t factor, const std::uint32_t* direction, std::uint32_t* weights,
               std::int64_t count);
  /// The sum of the squares of a chunk's words as binary64 bits (contract §6).
  std::uint64_t (*squares)(const std::uint32_t* words, std::int64_t count);
};

}  // namespace samebits::backends
