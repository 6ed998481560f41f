// The conversion ops by the definition that dense_kernel and the casts of lists run.
//
// An op has in_bits, out_bits, pack (elements of a vector), packs (vectors of a thread) and order.
// - apply(vector, index, tensor) converts a vector. index, the random index of its first element,
//   must be a multiple of index_multiple.
// - one(in, out, index, tensor) converts one element.
// - tensor is added to the stream number of the random bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/common/launch.cuh"
#include "numerics/bits/convert.hpp"
#include "numerics/bits/random.hpp"

namespace samebits::cuda {

/// random_source: key and stream of a call's random bits (contract §3).
struct random_source {
  numerics::philox_keys keys;  ///< computed on the host: constants of the kernel
  std::uint64_t stream;
  int k;  ///< random bits per element
};

/// The random_source of a call.
inline random_source source_of(const random_stream& r) {
  return {numerics::philox_keys_of(r.seed), r.stream, r.bits};
}

/// The random bits R of one element, at the top of a word. tensor: number of the tensor in a list.
__device__ __forceinline__ std::uint32_t dither_of(const random_source& r, std::uint64_t index,
                                                   std::uint32_t tensor = 0) {
  const auto per_block = static_cast<std::uint64_t>(numerics::fields_per_block(r.k));
  const auto block = numerics::philox4x32_10(r.keys, r.stream + tensor, index / per_block);
  const auto field = static_cast<int>(index % per_block);
  return numerics::align_random<std::uint32_t>(numerics::field_of(block, field, r.k), r.k);
}

constexpr int larger(int a, int b) { return a > b ? a : b; }

/// Conversion between two formats that are compile-time constants, by the definition. FieldBits:
/// width of the random fields, 0 without random bits.
template <class Source, class Target, class Mode, int FieldBits>
struct emulated_op {
  static constexpr int in_bits = Source::spec().storage_bits;
  static constexpr int out_bits = Target::spec().storage_bits;
  static constexpr int fields = FieldBits == 0 ? 1 : 128 / (FieldBits == 0 ? 1 : FieldBits);
  static constexpr int index_multiple = fields;
  // Measured on an H200 (docs/benchmarks.md), in % of the bandwidth of a device-to-device copy of
  // the same bytes. A loop over vectors of 16 elements spreads the cost of addresses best. Between
  // formats of equal exponent range the conversion is short, and vectors of 8 are better: 100
  // instead of 83 % for fp32 to bf16. With 32 random bits, loading all vectors at once is better:
  // 100 instead of 97 %.
  static constexpr bool same_binades = Source::spec().bias == Target::spec().bias;
  static constexpr bool loads_at_once = same_binades && FieldBits == 32;
  static constexpr int pack =
      same_binades && (FieldBits == 0 || FieldBits == 32) ? 8 : larger(16, fields);
  static constexpr int packs = loads_at_once ? 2 : pack == 8 ? 8 : 4;
  static constexpr pace order = loads_at_once ? pace::at_once : pace::one_ahead;

  bool saturate;  ///< overflow::saturate, else ieee; general_op has the other policies
  random_source random;

  __device__ __forceinline__ std::uint32_t convert(std::uint32_t code, std::uint32_t dither) const {
    const cast_rule rule{Mode::mode(), saturate ? overflow::saturate : overflow::ieee,
                         nan_policy::canonical};
    return numerics::convert<std::uint32_t>(Source::spec(), Target::spec(), rule, code, dither)
        .code;
  }

  __device__ __forceinline__ packed<out_bits, pack> apply(const packed<in_bits, pack>& x,
                                                          std::uint64_t index,
                                                          std::uint32_t tensor = 0) const {
    packed<out_bits, pack> y{};
    if constexpr (FieldBits == 0) {
#pragma unroll
      for (int i = 0; i < pack; ++i) y.set(i, convert(x.code(i), 0));
    } else {
      const std::uint32_t keep = ~std::uint32_t{0} << (32 - random.k);
#pragma unroll
      for (int first = 0; first < pack; first += fields) {
        // index is a multiple of `fields`: the launch checks it.
        const auto block =
            numerics::philox4x32_10(random.keys, random.stream + tensor,
                                    (index + static_cast<std::uint64_t>(first)) / fields);
#pragma unroll
        for (int i = 0; i < fields; ++i) {
          // Field i at the top of a word; `keep` clears all but its top K bits.
          const std::uint32_t field = block.word[i * FieldBits / 32]
                                      << (32 - FieldBits - i * FieldBits % 32);
          y.set(first + i, convert(x.code(first + i), field & keep));
        }
      }
    }
    return y;
  }

  __device__ __forceinline__ void one(const std::byte* in, std::byte* out, std::uint64_t index,
                                      std::uint32_t tensor = 0) const {
    std::uint32_t dither = 0;
    if constexpr (FieldBits != 0) dither = dither_of(random, index, tensor);
    using in_code = typename samebits::detail::storage_of<in_bits>::type;
    using out_code = typename samebits::detail::storage_of<out_bits>::type;
    *reinterpret_cast<out_code*>(out) =
        static_cast<out_code>(convert(*reinterpret_cast<const in_code*>(in), dither));
  }
};

/// Conversion between formats of constant widths, by any rule, by the definition.
template <int InBits, int OutBits>
struct general_op {
  static constexpr int in_bits = InBits;
  static constexpr int out_bits = OutBits;
  static constexpr int pack = 4;  // at most one Philox block's fields
  static constexpr int index_multiple = pack;
  static constexpr int packs = 8;
  static constexpr pace order = pace::one_ahead;

  format_spec source;
  format_spec target;
  cast_rule rule;
  random_source random;

  __device__ __forceinline__ std::uint32_t convert(std::uint32_t code, std::uint32_t dither) const {
    return numerics::convert<std::uint32_t>(source, target, rule, code, dither).code;
  }

  __device__ __forceinline__ packed<OutBits, pack> apply(const packed<InBits, pack>& x,
                                                         std::uint64_t index,
                                                         std::uint32_t tensor = 0) const {
    std::uint32_t dither[pack] = {};
    if (rule.rounding == rounding::stochastic) {
      const auto per_block = static_cast<std::uint64_t>(numerics::fields_per_block(random.k));
      const auto block =
          numerics::philox4x32_10(random.keys, random.stream + tensor, index / per_block);
      const auto field = static_cast<int>(index % per_block);
#pragma unroll
      for (int i = 0; i < pack; ++i) {
        dither[i] = numerics::align_random<std::uint32_t>(
            numerics::field_of(block, field + i, random.k), random.k);
      }
    }
    packed<OutBits, pack> y{};
#pragma unroll
    for (int i = 0; i < pack; ++i) y.set(i, convert(x.code(i), dither[i]));
    return y;
  }

  __device__ __forceinline__ void one(const std::byte* in, std::byte* out, std::uint64_t index,
                                      std::uint32_t tensor = 0) const {
    using in_code = typename samebits::detail::storage_of<InBits>::type;
    using out_code = typename samebits::detail::storage_of<OutBits>::type;
    const std::uint32_t dither =
        rule.rounding == rounding::stochastic ? dither_of(random, index, tensor) : 0;
    *reinterpret_cast<out_code*>(out) =
        static_cast<out_code>(convert(*reinterpret_cast<const in_code*>(in), dither));
  }
};

}  // namespace samebits::cuda
