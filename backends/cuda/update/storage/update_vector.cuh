// One thread's vector of V neighbouring elements of an optimizer's tensor: reads weights, gradient
// and states as binary32 values, and writes weights and states back.
//
// Scales: the 128 or 256 elements of a block are vectors of 8 elements in 16 or 32 neighbouring
// lanes. These lanes find the block's amax together.
#pragma once

#include <cstdint>

#include "backends/cuda/instructions/warp.cuh"
#include "backends/cuda/update/storage/code_words.cuh"
#include "backends/cuda/update/storage/stored_values.cuh"
#include "numerics/arithmetic/binary32.hpp"
#include "numerics/update/stored.hpp"
#include "numerics/update/update_tables.hpp"
#include "samebits/core/optimizer.hpp"

namespace samebits::cuda {

/// The formats of a tensor's arrays. With constant formats, functions of this file become
/// specialised code.
struct row_formats {
  stored_format weights;
  stored_format gradient;
  stored_format master;
  stored_format states[2];
  low_part low;
  bool gradient_scaled;
};

__device__ __forceinline__ row_formats formats_of(const numerics::update_row& row) {
  return {row.weights_format, row.gradient_format,
          row.master_format,  {row.state_formats[0], row.state_formats[1]},
          row.low_kind,       row.gradient_scale != nullptr};
}

/// A vector's position in a tensor, and the random numbers of its stochastic formats.
struct vector_place {
  std::int64_t first;  ///< the vector's first element
  int count;           ///< elements of the vector that exist: 0 .. V, 0 or V if Whole
  bool vectors;        ///< loads and stores are of whole vectors
  const numerics::philox_keys& keys;
  std::uint64_t step;
};

/// Steps converts codes (stored_values.cuh). Whole: vectors are aligned, and either exist or do not;
/// vectors of 8 elements begin at multiples of 8 in the unsharded parameter.
template <class Steps, int V, bool Whole>
struct update_vector {
  using words = code_words<V>;
  using steps = Steps;
  using arithmetic = typename Steps::arithmetic;

  const numerics::update_row& row;
  const row_formats formats;
  const vector_place place;
  words weights;  ///< codes after load(), values after decode()
  words low;      ///< codes
  words gradient;
  words states[2];

  __device__ __forceinline__ update_vector(const numerics::update_row& r, const row_formats& f,
                                           const vector_place& p)
      : row(r), formats(f), place(p) {}

  /// Loads codes. The values follow in decode(), so that all loads can be in flight together.
  __device__ __forceinline__ void load(int count_of_states) {
    load_weights();
    gradient = load_array(row.gradient, formats.gradient);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (i < count_of_states) states[i] = load_array(row.states[i].codes, formats.states[i]);
    }
  }

  /// load() and decode() of the weights alone.
  __device__ __forceinline__ void load_weights() {
    weights = load_array(has_master() ? row.master.codes : row.weights.codes,
                         has_master() ? formats.master : formats.weights);
    if (formats.low != low_part::none) low = load_array(row.low, stored_format::bf16_nearest);
  }
  __device__ __forceinline__ void decode_weights() {
    if (formats.low == low_part::none) {
      weights = has_master()
                    ? steps::values(formats.master, weights, old_scale(row.master, formats.master))
                    : steps::values(formats.weights, weights, scale_word{false, one});
      return;
    }
    weights = steps::joined(formats.low, weights, low);
  }

  /// Replaces codes by values.
  __device__ __forceinline__ void decode(int count_of_states) {
    decode_weights();
    gradient = steps::values(formats.gradient, gradient,
                             scale_at(formats.gradient_scaled ? row.gradient_scale : nullptr));
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (i >= count_of_states) continue;
      const scale_word scale = old_scale(row.states[i], formats.states[i]);
      states[i] = steps::values(formats.states[i], states[i], scale);
    }
  }

  /// Stores states. All lanes of a warp must call.
  __device__ __forceinline__ void write_states(int count_of_states) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (i < count_of_states) write_state(i);
    }
  }

  /// Stores states and replaces them by the values of the stored codes. All lanes of a warp must
  /// call.
  __device__ __forceinline__ void write_and_reread_states() {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const written w = write_state(i);
      states[i] = steps::values(formats.states[i], w.codes, w.scale);
    }
  }

  /// Stores weights, and masters or low parts. All lanes of a warp must call.
  __device__ __forceinline__ void write_weights(
      stream_purpose purpose = stream_purpose::weights) const {
    if (formats.low != low_part::none) return write_halves();
    if (has_master()) write(row.master, formats.master, purpose, weights);
    write(row.weights, formats.weights, purpose, weights);
  }

 private:
  /// Codes as stored, and the scale of their block.
  struct written {
    words codes;
    scale_word scale;
  };

  __device__ __forceinline__ bool has_master() const {
    return formats.master != stored_format::none;
  }

  __device__ __forceinline__ words load_array(const std::byte* codes, stored_format f) const {
    const int bytes = code_bytes(f);
    const std::byte* const p = codes + place.first * bytes;
    if constexpr (!Whole) {
      if (!place.vectors) return load_some_codes<V>(p, bytes, place.count);
    }
    return place.count == 0 ? words{} : load_codes<V>(p, bytes);
  }
  __device__ __forceinline__ void store_array(std::byte* codes, stored_format f,
                                              const words& x) const {
    const int bytes = code_bytes(f);
    std::byte* const p = codes + place.first * bytes;
    if constexpr (!Whole) {
      if (!place.vectors) return store_some_codes<V>(p, bytes, place.count, x);
    }
    if (place.count != 0) store_codes<V>(x, p, bytes);
  }

  /// The scale of the vector's block.
  __device__ __forceinline__ std::uint32_t* scale_pointer(const numerics::update_array& a) const {
    return a.scales + (place.first >> (row.block == 128 ? 7 : 8));
  }
  __device__ __forceinline__ scale_word old_scale(const numerics::update_array& a,
                                                  stored_format f) const {
    const bool exists = has_block_scales(f) && place.count > 0;
    return scale_at(exists ? scale_pointer(a) : nullptr);
  }

  __device__ __forceinline__ void write_halves() const {
    words high = weights, rest = {};
    steps::split(formats.low, high, rest);
    store_array(row.weights.codes, stored_format::bf16_nearest, high);
    store_array(row.low, stored_format::bf16_nearest, rest);
  }

  __device__ __forceinline__ written write_state(int i) const {
    const stream_purpose purpose =
        i == 0 ? stream_purpose::first_state : stream_purpose::second_state;
    return write(row.states[i], formats.states[i], purpose, states[i]);
  }

  __device__ __forceinline__ written write(const numerics::update_array& array, stored_format f,
                                           stream_purpose purpose, const words& values) const {
    written w = {values, {false, one}};
    std::uint32_t factor = one;
    if (has_block_scales(f)) {
      const numerics::tile_scale s = steps::scale(f, block_amax(values));
      w.scale = {true, s.dequantization_scale};
      factor = s.factor;
      if (place.count > 0 && (place.first & (row.block - 1)) == 0) {
        *scale_pointer(array) = s.dequantization_scale;
      }
    }
    random_halves<V> random = {};
    if (is_stochastic(f)) {
      random = steps::template random<V>(place.keys,
                                         random_stream_number(purpose, row.stream, place.step),
                                         row.first_index + static_cast<std::uint64_t>(place.first));
    }
    w.codes = steps::codes(f, values, factor, random);
    store_array(array.codes, f, w.codes);
    return w;
  }

  /// The amax of the vector's block, in all lanes of the block.
  __device__ __forceinline__ std::uint32_t block_amax(const words& values) const {
    static_assert(V == 8 || V == 4);
    std::uint32_t amax = 0;
#pragma unroll
    for (int k = 0; k < V; ++k) {
      const std::uint32_t x = numerics::binary32::magnitude(arithmetic::canonical(values.w[k]));
      if (Whole || k < place.count) amax = max(amax, x);
    }
    if (Whole && place.count == 0) amax = 0;
    if constexpr (V == 8) {  // other vectors never have scales
#pragma unroll
      for (int lanes = 1; lanes < 16; lanes *= 2) {
        amax = max(amax, __shfl_xor_sync(all_lanes, amax, lanes));
      }
      const std::uint32_t other = __shfl_xor_sync(all_lanes, amax, 16);
      if (row.block == 256) amax = max(amax, other);
    }
    return amax;
  }

  static constexpr std::uint32_t one = numerics::binary32::one;
};

}  // namespace samebits::cuda
