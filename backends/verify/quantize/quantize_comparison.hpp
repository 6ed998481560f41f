// Comparison of one quantization: the oracle and every tested backend compute it; results are
// compared.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backends/dispatch/calls/quantize.hpp"
#include "backends/verify/comparison.hpp"
#include "backends/verify/inputs.hpp"
#include "backends/verify/subject.hpp"

namespace samebits::backends::verification {

inline constexpr int tile_count = 18;

/// All tile shapes: {1, G}, {G, 1} and {G, G}, for several G and for 0, the whole extent.
const std::array<tile_shape, tile_count>& all_tiles();

/// The results of one backend under one heading.
struct quantize_result {
  std::uint64_t compared = 0;
  std::uint64_t differed = 0;
  std::string first_difference;
  std::bitset<format_count> sources;
  std::bitset<format_count> targets;
  std::bitset<tile_count> tiles;
  std::bitset<enum_count<scale_rule>> scale_rules;
};

/// Outputs of a quantization, in the order of their layouts in quantization::out.
enum output : std::size_t { codes, scales, codes_transposed, scales_transposed, output_count };

/// A quantization of the input. Outputs with 0 rows are not wanted.
struct quantization {
  format_id to;
  int tile;  ///< index in all_tiles()
  numerics::scale_settings scale;
  cast_rule cast;
  random_stream random;
  placement in;
  std::array<placement, output_count> out;
  bool counts = false;  ///< whether statistics are wanted
};

/// A dequantization: codes and scales to the format `to`.
struct dequantization {
  format_id from;
  format_id to;
  int tile;
  std::int64_t rows;
  std::int64_t cols;
};

/// A tested backend with its own memory for quantizations.
class quantize_subject {
 public:
  quantize_subject(const backend& tested, int threads);

  [[nodiscard]] const backend& tested() const { return *backend_; }
  [[nodiscard]] bool has(const quantize_call& call) const { return backend_->quantize.has(call); }
  void set_input(std::span<const std::byte> codes, std::span<const std::byte> scales);

  /// Runs the call on output buffers filled with `filling` and returns the buffers, which are valid
  /// until the next run. run() sets the data pointers of the views; the input starts `in_shift`
  /// bytes into the memory given to set_input(). Writes statistics if wanted.
  std::span<const std::vector<std::byte>> run(quantize_call call, std::size_t in_shift,
                                              const std::array<placement, output_count>& out,
                                              std::byte filling, quantize_statistics* statistics);
  const std::vector<std::byte>& run(dequantize_call call, std::size_t bytes, std::byte filling);

 private:
  std::byte* prepare(std::size_t slot, std::size_t bytes, std::byte filling);
  void finish(std::size_t slot);

  const backend* backend_;
  int threads_;
  std::array<std::span<const std::byte>, 2> input_;
  std::array<std::vector<std::byte>, output_count> result_;
  std::vector<device_buffer> device_;  ///< codes and scales of the input, outputs, statistics
};

/// Compares the tested backends with an oracle, for quantizations.
class quantize_comparer {
 public:
  /// Uses those backends in `tested` that can quantize.
  quantize_comparer(std::span<const backend* const> tested, const backend& reference, int threads);

  [[nodiscard]] std::size_t count() const { return subjects_.size(); }
  [[nodiscard]] std::string_view name(std::size_t i) const { return subjects_[i].tested().name; }
  [[nodiscard]] int threads() const { return threads_; }

  /// Sets the input of the following comparisons; it must outlive them. Only dequantizations need
  /// scales.
  void set_input(const code_buffer& input, const code_buffer* scales = nullptr);

  /// Adds the results of backend i to per_backend[i] if both the backend and the oracle support the
  /// call.
  void compare(const quantization& q, std::span<quantize_result> per_backend);
  void compare(const dequantization& d, std::span<quantize_result> per_backend);

 private:
  std::byte next_filling();

  std::vector<quantize_subject> subjects_;
  const backend* reference_;
  int threads_;
  const code_buffer* input_ = nullptr;
  const code_buffer* scales_ = nullptr;
  unsigned char filling_ = 0;
};

}  // namespace samebits::backends::verification
