// What dense_kernel asks of a conversion, over the one definition.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/launch.cuh"
#include "numerics/convert.hpp"
#include "numerics/random.hpp"

namespace samebits::cuda {

/// The random bits of a call; field_bits is a constant of the kernel, 0 where none are drawn.
struct random_source {
  std::uint64_t seed;
  std::uint64_t stream;
  int k;
};

constexpr int larger(int a, int b) { return a > b ? a : b; }

/// A conversion between two formats fixed at compile time.
template <class Source, class Target, class Mode, int FieldBits>
struct emulated_op {
  static constexpr int in_bits = Source::spec().storage_bits;
  static constexpr int out_bits = Target::spec().storage_bits;
  static constexpr int fields = FieldBits == 0 ? 1 : 128 / (FieldBits == 0 ? 1 : FieldBits);
  /// 16 bytes on the wider side, and whole Philox blocks.
  static constexpr int pack = larger(128 / larger(in_bits, out_bits), fields);
  static constexpr int unroll = 1;  // the text of the definition is long: packs give enough loads

  Mode mode;
  overflow on_overflow;
  nan_policy on_nan;
  random_source random;

  __device__ __forceinline__ std::uint32_t convert(std::uint32_t code, std::uint32_t dither) const {
    const cast_rule rule{mode.mode(), on_overflow, on_nan};
    return numerics::convert<std::uint32_t>(Source::spec(), Target::spec(), rule, code, dither)
        .code;
  }

  __device__ __forceinline__ packed<out_bits, pack> apply(const packed<in_bits, pack>& x,
                                                          std::uint64_t index) const {
    packed<out_bits, pack> y{};
    if constexpr (FieldBits == 0) {
#pragma unroll
      for (int i = 0; i < pack; ++i) y.set(i, convert(x.code(i), 0));
    } else {
      const std::uint32_t keep = ~std::uint32_t{0} << (32 - random.k);
#pragma unroll
      for (int first = 0; first < pack; first += fields) {
        // index is a multiple of `fields`: the launch sees to it.
        const auto block = numerics::philox4x32_10(
            random.seed, random.stream, (index + static_cast<std::uint64_t>(first)) / fields);
#pragma unroll
        for (int i = 0; i < fields; ++i) {
          // Field i at the top of a word; what lies below its top K bits goes.
          const std::uint32_t field = block.word[i * FieldBits / 32]
                                      << (32 - FieldBits - i * FieldBits % 32);
          y.set(first + i, convert(x.code(first + i), field & keep));
        }
      }
    }
    return y;
  }

  __device__ __forceinline__ void one(const std::byte* in, std::byte* out,
                                      std::uint64_t index) const {
    std::uint32_t dither = 0;
    if constexpr (FieldBits != 0) {
      dither = numerics::align_random<std::uint32_t>(
          numerics::random_word(random.seed, random.stream, index, random.k), random.k);
    }
    using in_code = typename samebits::detail::storage_of<in_bits>::type;
    using out_code = typename samebits::detail::storage_of<out_bits>::type;
    *reinterpret_cast<out_code*>(out) =
        static_cast<out_code>(convert(*reinterpret_cast<const in_code*>(in), dither));
  }
};

}  // namespace samebits::cuda
