// Codes of weights and states to binary32 values and back, for vectors of V elements of one thread
// (numerics/update/stored.hpp defines the values and codes of one element).
#pragma once

#include <cstdint>

#include "backends/cuda/instructions/fp8.cuh"
#include "backends/cuda/instructions/halves.cuh"
#include "backends/cuda/update/storage/code_words.cuh"
#include "backends/cuda/update/update_arithmetic.cuh"
#include "numerics/bits/random.hpp"
#include "numerics/update/dynamic_codes.hpp"
#include "numerics/update/stored.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/optimizer.hpp"

namespace samebits::cuda {

/// The 16 random bits of V elements: element k has the lower (k even) or upper half of word k / 2.
template <int V>
struct random_halves {
  std::uint32_t w[V / 2];

  __device__ __forceinline__ std::uint32_t of(int k) const {
    return w[k / 2] >> (k % 2 * 16) & 0xFFFFu;
  }
};

/// The seed of keys: they are its two words in the first round.
__device__ __forceinline__ std::uint64_t seed_of(const numerics::philox_keys& keys) {
  return std::uint64_t{keys.key1[0]} << 32 | keys.key0[0];
}

/// Random bits of elements index .. index + 7, a whole Philox block: index is a multiple of 8.
__device__ __forceinline__ random_halves<8> random_of_block(const numerics::philox_keys& keys,
                                                            std::uint64_t stream,
                                                            std::uint64_t index) {
  const numerics::philox_block block = numerics::philox4x32_10(keys, stream, index / 8);
  return {{block.word[0], block.word[1], block.word[2], block.word[3]}};
}

/// Random bits of elements index .. index + 7, for any index.
__device__ __noinline__ inline random_halves<8> random_of_any(std::uint64_t seed,
                                                              std::uint64_t stream,
                                                              std::uint64_t index) {
  if (index % 8 == 0) return random_of_block(numerics::philox_keys_of(seed), stream, index);
  random_halves<8> bits = {};
#pragma unroll 1
  for (int k = 0; k < 8; ++k) {
    const std::uint32_t r =
        numerics::random_word(seed, stream, index + k, numerics::update_random_bits);
    bits.w[k / 2] |= r << (k % 2 * 16);
  }
  return bits;
}

/// A scale of an array's block or of a gradient, as binary32 bits.
struct scale_word {
  bool exists;
  std::uint32_t scale;  ///< 1 if it does not exist
};

__device__ __forceinline__ scale_word scale_at(const std::uint32_t* p) {
  return {p != nullptr, p != nullptr ? *p : numerics::binary32::one};
}

/// Unrolled iterations of a loop over the elements of a vector: code in integers is long.
template <class Arithmetic>
inline constexpr int unrolled_elements = is_hardware<Arithmetic> ? 8 : 1;

/// numerics::kahan_weight().
template <class Arithmetic>
__device__ __forceinline__ numerics::two_halves<std::uint32_t> kahan_halves(std::uint32_t x) {
  if constexpr (!is_hardware<Arithmetic>) {
    return numerics::kahan_weight<Arithmetic>(x);
  } else {
    const std::uint32_t high = half_pair<format_id::bf16, false>(x, 0);
    const std::uint32_t error =
        Arithmetic::sum(x, numerics::negated(high << 16));  // NaN if x is Inf or NaN
    const bool finite = (high & 0x7FFFu) < 0x7F80u;
    return {high, finite ? half_pair<format_id::bf16, false>(error, 0) : 0};
  }
}

/// Weights in two halves of 16 bits.
template <class Arithmetic>
struct stored_halves {
  /// The values.
  template <int V>
  __device__ __forceinline__ static code_words<V> joined(low_part kind, const code_words<V>& high,
                                                         const code_words<V>& low) {
    constexpr int unrolled = unrolled_elements<Arithmetic>;
    code_words<V> y;
#pragma unroll unrolled
    for (int k = 0; k < V; ++k) {
      const numerics::two_halves<std::uint32_t> x = {packed_code(high, 2, k),
                                                     packed_code(low, 2, k)};
      y.w[k] = kind == low_part::split ? numerics::joined_weight(x)
                                       : numerics::compensated_weight<Arithmetic>(x);
    }
    return y;
  }

  /// Replaces values by their high halves, and writes their low halves.
  template <int V>
  __device__ __forceinline__ static void split(low_part kind, code_words<V>& values,
                                               code_words<V>& low) {
    constexpr int unrolled = unrolled_elements<Arithmetic>;
    code_words<V> high;
#pragma unroll unrolled
    for (int k = 0; k < V; ++k) {
      const std::uint32_t x = values.w[k];
      const auto halves =
          kind == low_part::split ? numerics::split_weight(x) : kahan_halves<Arithmetic>(x);
      set_packed_code(high, 2, k, halves.high);
      set_packed_code(low, 2, k, halves.low);
    }
    values = high;
  }
};

/// Values and codes in integers.
struct stored_by_definition : stored_halves<numerics::update_by_definition> {
  using arithmetic = numerics::update_by_definition;

  /// The values of packed codes.
  template <int V>
  __device__ static code_words<V> values(stored_format f, const code_words<V>& x,
                                         const scale_word& by) {
    const int bytes = code_bytes(f);
    code_words<V> y;
#pragma unroll 1
    for (int k = 0; k < V; ++k) {
      y.w[k] = numerics::stored_value(f, packed_code(x, bytes, k), by.scale);
    }
    return y;
  }

  /// The packed codes of values.
  template <int V>
  __device__ static code_words<V> codes(stored_format f, code_words<V> x, std::uint32_t factor,
                                        const random_halves<V>& random) {
    const int bytes = code_bytes(f);
#pragma unroll 1
    for (int k = 0; k < V; ++k) {
      set_packed_code(x, bytes, k, numerics::stored_code(f, x.w[k], factor, random.of(k)));
    }
    return x;
  }

  /// The scale of a block with this amax.
  __device__ static numerics::tile_scale scale(stored_format f, std::uint32_t amax) {
    return numerics::block_scale(f, amax);
  }

  /// RN to bf16, as a binary32 value.
  __device__ __forceinline__ static std::uint32_t to_bf16(std::uint32_t x) {
    constexpr auto f = stored_format::bf16_nearest;
    constexpr std::uint32_t one = numerics::binary32::one;
    return numerics::stored_value(f, numerics::stored_code(f, x, one, 0), one);
  }
};

// Dynamic 8-bit codes (numerics/update/dynamic_codes.hpp). The tables are in global memory and stay in the
// first-level cache.

/// The values of packed codes of a block with this scale.
template <int V>
__device__ __forceinline__ code_words<V> dynamic_values(stored_format f, const code_words<V>& x,
                                                        std::uint32_t scale) {
  const numerics::dynamic_table& table = numerics::dynamic_table_of(f);
  code_words<V> y;
#pragma unroll
  for (int k = 0; k < V; ++k) {
    y.w[k] = update_hardware::product(table.values[packed_code(x, 1, k)], scale);
  }
  return y;
}

/// The packed codes of values.
template <int V>
__device__ __forceinline__ code_words<V> dynamic_codes(stored_format f, const code_words<V>& x,
                                                       std::uint32_t factor) {
  const numerics::dynamic_table& table = numerics::dynamic_table_of(f);
  code_words<V> y = {};
#pragma unroll
  for (int k = 0; k < V; ++k) {
    set_packed_code(y, 1, k,
                    numerics::dynamic_code(table, update_hardware::product(x.w[k], factor)));
  }
  return y;
}

/// Values and codes by conversion instructions, for constant formats. A value may be a NaN with a
/// payload.
struct stored_by_instructions : stored_halves<update_hardware> {
  using arithmetic = update_hardware;

  template <int V>
  __device__ __forceinline__ static code_words<V> values(stored_format f, const code_words<V>& x,
                                                         const scale_word& by) {
    if (is_dynamic(f)) return dynamic_values(f, x, by.scale);
    const code_words<V> y = decoded(f, x);
    return by.exists ? multiplied(y, by.scale) : y;
  }

  template <int V>
  __device__ __forceinline__ static code_words<V> codes(stored_format f, const code_words<V>& x,
                                                        std::uint32_t factor,
                                                        const random_halves<V>& random) {
    switch (f) {
      case stored_format::bf16_nearest: return halves<format_id::bf16>(x);
      case stored_format::fp16_nearest: return halves<format_id::fp16>(x);
      case stored_format::bf16_stochastic: return dithered_bf16(x, random);
      case stored_format::fp16_stochastic: return dithered_fp16(x, random);
      case stored_format::fp16_scaled: return halves<format_id::fp16>(multiplied(x, factor));
      case stored_format::e4m3_scaled: return bytes<format_id::e4m3>(multiplied(x, factor));
      case stored_format::e5m2_scaled: return bytes<format_id::e5m2>(multiplied(x, factor));
      case stored_format::dynamic8_signed:
      case stored_format::dynamic8_unsigned: return dynamic_codes(f, x, factor);
      default: return x;
    }
  }

  __device__ __forceinline__ static numerics::tile_scale scale(stored_format f,
                                                               std::uint32_t amax) {
    return numerics::block_scale<update_hardware>(f, amax);
  }

  /// Random bits of elements index .. index + 7; index is a multiple of 8. Stochastic formats never
  /// come in vectors of 4 elements.
  template <int V>
  __device__ __forceinline__ static random_halves<V> random(const numerics::philox_keys& keys,
                                                            std::uint64_t stream,
                                                            std::uint64_t index) {
    if constexpr (V == 8) return random_of_block(keys, stream, index);
    return {};
  }

  __device__ __forceinline__ static std::uint32_t to_bf16(std::uint32_t x) {
    return half_pair<format_id::bf16, false>(x, 0) << 16;
  }

 private:
  template <int V>
  __device__ __forceinline__ static code_words<V> decoded(stored_format f, const code_words<V>& x) {
    switch (numerics::codes_format(f)) {
      case format_id::bf16: return of_halves<format_id::bf16>(x);
      case format_id::fp16: return of_halves<format_id::fp16>(x);
      case format_id::e4m3: return of_bytes<format_id::e4m3>(x);
      case format_id::e5m2: return of_bytes<format_id::e5m2>(x);
      default: return x;
    }
  }

  template <format_id F, int V>
  __device__ __forceinline__ static code_words<V> of_halves(const code_words<V>& x) {
    code_words<V> y;
#pragma unroll
    for (int k = 0; k < V; ++k) y.w[k] = widen<F>(packed_code(x, 2, k));
    return y;
  }

  template <format_id F, int V>
  __device__ __forceinline__ static code_words<V> of_bytes(const code_words<V>& x) {
    code_words<V> y;
#pragma unroll
    for (int k = 0; k < V; k += 2) {
      const float2 pair = fp8_values<F>(static_cast<std::uint16_t>(x.w[k / 4] >> (k % 4 * 8)));
      y.w[k] = __float_as_uint(pair.x);
      y.w[k + 1] = __float_as_uint(pair.y);
    }
    return y;
  }

  template <int V>
  __device__ __forceinline__ static code_words<V> multiplied(code_words<V> x, std::uint32_t by) {
#pragma unroll
    for (int k = 0; k < V; ++k) x.w[k] = update_hardware::product(x.w[k], by);
    return x;
  }

  template <format_id F, int V>
  __device__ __forceinline__ static code_words<V> halves(const code_words<V>& x) {
    code_words<V> y;
#pragma unroll
    for (int k = 0; k < V; k += 2) y.w[k / 2] = half_pair<F, false>(x.w[k], x.w[k + 1]);
    return y;
  }

  template <format_id F, int V>
  __device__ __forceinline__ static code_words<V> bytes(const code_words<V>& x) {
    code_words<V> y = {};
#pragma unroll
    for (int k = 0; k < V; k += 2) {
      set_packed_code(y, 2, k / 2, fp8_pair<F>(x.w[k], x.w[k + 1]));
    }
    return y;
  }

  /// Adds the random bits below the last bit of bf16 and truncates. Inf stays Inf. The canonical NaN
  /// loses its low half first, because the addition could carry into its sign. As signed words, all
  /// other codes are below 7FFF0000.
  template <int V>
  __device__ __forceinline__ static code_words<V> dithered_bf16(const code_words<V>& x,
                                                                const random_halves<V>& random) {
    code_words<V> y;
    const auto moved = [&](int k) {
      const int below = min(static_cast<int>(x.w[k]), 0x7FFF0000);
      return static_cast<std::uint32_t>(below) + random.of(k);
    };
#pragma unroll
    for (int k = 0; k < V; k += 2) y.w[k / 2] = __byte_perm(moved(k), moved(k + 1), 0x7632);
    return y;
  }

  template <int V>
  __device__ __forceinline__ static code_words<V> dithered_fp16(const code_words<V>& x,
                                                                const random_halves<V>& random) {
    code_words<V> y = {};
#pragma unroll
    for (int k = 0; k < V; ++k) {
      set_packed_code(
          y, 2, k,
          numerics::stored_code<update_hardware>(stored_format::fp16_stochastic, x.w[k],
                                                 numerics::binary32::one, random.of(k)));
    }
    return y;
  }
};

/// Steps for formats that are read at run time. Not inlined: kernels have one copy of each function,
/// not one for each array. ptxas allocates registers in the order of mangled names: under a name that
/// comes before step_any_formats, which calls these functions, that spills more and steps of split and
/// Kahan weights take 4 % longer (nvcc 13.0, H200).
template <class Steps>
struct stored_of_any_format {
  using arithmetic = typename Steps::arithmetic;

  template <int V>
  __device__ __noinline__ static code_words<V> values(stored_format f, code_words<V> x,
                                                      scale_word by) {
    return Steps::values(f, x, by);
  }
  template <int V>
  __device__ __noinline__ static code_words<V> codes(stored_format f, code_words<V> x,
                                                     std::uint32_t factor,
                                                     random_halves<V> random) {
    return Steps::codes(f, x, factor, random);
  }
  __device__ __noinline__ static numerics::tile_scale scale(stored_format f, std::uint32_t amax) {
    return Steps::scale(f, amax);
  }
  /// Random bits of elements index .. index + 7.
  template <int V>
  __device__ __forceinline__ static random_halves<V> random(const numerics::philox_keys& keys,
                                                            std::uint64_t stream,
                                                            std::uint64_t index) {
    return random_of_any(seed_of(keys), stream, index);
  }
  template <int V>
  __device__ __noinline__ static code_words<V> joined(low_part kind, code_words<V> high,
                                                      code_words<V> low) {
    return Steps::joined(kind, high, low);
  }
  template <int V>
  __device__ __noinline__ static void split(low_part kind, code_words<V>& values,
                                            code_words<V>& low) {
    Steps::split(kind, values, low);
  }
  __device__ __forceinline__ static std::uint32_t to_bf16(std::uint32_t x) {
    return Steps::to_bf16(x);
  }
};

}  // namespace samebits::cuda
