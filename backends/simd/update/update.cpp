// Optimizer steps on the SIMD backends. Compiled without instruction set flags.
#include "backends/simd/update/update.hpp"

#include <algorithm>
#include <cstdint>

#include "backends/reference/optimizer.hpp"
#include "backends/simd/lanes/control_register.hpp"
#include "backends/simd/simd.hpp"
#include "numerics/arithmetic/binary32.hpp"
#include "numerics/update/stored.hpp"

namespace samebits::backends {
namespace {

using conversion = void (*)(const convert_call&, element_range);

std::byte* codes_at(const stored_part& part, std::int64_t first) {
  return part.array.codes + first * code_bytes(part.format);
}

/// Calls f(block, first element in the part, number of elements) for the blocks of a part.
template <class Function>
void for_each_block(const stored_part& part, const Function& f) {
  std::int64_t done = 0;
  while (done < part.count) {
    const std::int64_t at = part.first + done;
    const std::int64_t count = std::min(part.block - at % part.block, part.count - done);
    f(at / part.block, done, count);
    done += count;
  }
}

/// A conversion of the part's codes from or to words.
convert_call conversion_of(const stored_part& part, const void* in, format_id from, void* out,
                           format_id to) {
  convert_call call{{in, from, 1, part.count, part.count, 1, memory_space::host},
                    {out, to, 1, part.count, part.count, 1, memory_space::host},
                    numerics::stored_rule(part.format),
                    part.random,
                    static_cast<std::uint64_t>(part.count)};
  call.random.bits = numerics::update_random_bits;
  call.random.offset += static_cast<std::uint64_t>(part.first);
  return call;
}

template <const update_lanes_kernel& Kernel>
void read(const stored_part& part, std::uint32_t* words) {
  const ieee_control_register ieee;
  if (part.array.scales == nullptr) {
    return Kernel.rescale(part.format, codes_at(part, part.first), numerics::binary32::one, words,
                          part.count);
  }
  for_each_block(part, [&](std::int64_t block, std::int64_t first, std::int64_t count) {
    Kernel.rescale(part.format, codes_at(part, part.first + first), part.array.scales[block],
                   words + first, count);
  });
}

template <const update_lanes_kernel& Kernel, conversion Convert>
void write(const stored_part& part, const std::uint32_t* words) {
  const ieee_control_register ieee;
  if (part.array.scales == nullptr) {
    const convert_call call =
        conversion_of(part, words, format_id::fp32, codes_at(part, part.first),
                      numerics::codes_format(part.format));
    return Convert(call, {0, part.count});
  }
  for_each_block(part, [&](std::int64_t block, std::int64_t first, std::int64_t count) {
    const std::uint32_t amax = numerics::binary32::amax_bits(Kernel.amax(words + first, count));
    const numerics::tile_scale scale = numerics::block_scale(part.format, amax);
    part.array.scales[block] = scale.dequantization_scale;
    Kernel.scaled_codes(part.format, words + first, scale.factor,
                        codes_at(part, part.first + first), count);
  });
}

template <const update_lanes_kernel& Kernel>
void update(const optimizer_settings& settings, const numerics::update_constants& constants,
            stored_format rounds_to, const update_words& words, std::int64_t count) {
  const ieee_control_register ieee;
  Kernel.update(settings, constants, rounds_to, words, count);
}

template <const update_lanes_kernel& Kernel>
void read_halves(low_part kind, const std::byte* high, const std::byte* low, std::uint32_t* words,
                 std::int64_t count) {
  const ieee_control_register ieee;
  Kernel.read_halves(kind, high, low, words, count);
}

template <const update_lanes_kernel& Kernel>
void write_halves(low_part kind, std::byte* high, std::byte* low, const std::uint32_t* words,
                  std::int64_t count) {
  const ieee_control_register ieee;
  Kernel.write_halves(kind, high, low, words, count);
}

template <const update_lanes_kernel& Kernel>
void direction(const optimizer_settings& settings, const numerics::update_constants& constants,
               const update_words& words, std::uint32_t* out, std::int64_t count) {
  const ieee_control_register ieee;
  Kernel.direction(settings, constants, words, out, count);
}

template <const update_lanes_kernel& Kernel>
void move(std::uint32_t factor, const std::uint32_t* direction, std::uint32_t* weights,
          std::int64_t count) {
  const ieee_control_register ieee;
  Kernel.move(factor, direction, weights, count);
}

template <const list_lanes_kernel& Lists>
std::uint64_t squares(const std::uint32_t* words, std::int64_t count) {
  const ieee_control_register ieee;
  return Lists.inspect(format_id::fp32, reinterpret_cast<const std::byte*>(words), count).squares;
}

template <const update_lanes_kernel& Kernel, conversion Convert, const list_lanes_kernel& Lists>
inline constexpr update_kernels kernels_of = {
    .update = update<Kernel>,
    .read = read<Kernel>,
    .write = write<Kernel, Convert>,
    .read_halves = read_halves<Kernel>,
    .write_halves = write_halves<Kernel>,
    .direction = direction<Kernel>,
    .move = move<Kernel>,
    .squares = squares<Lists>,
};

}  // namespace

const update_kernels& avx2_update_kernels() {
  const bool has_fma = __builtin_cpu_supports("fma") != 0;  // AVX2 does not include them
  return has_fma ? kernels_of<avx2_update_lanes, avx2_convert, avx2_list_lanes>
                 : reference_update_kernels();
}

const update_kernels& avx512_update_kernels() {
  return kernels_of<avx512_update_lanes, avx512_convert, avx512_list_lanes>;
}

}  // namespace samebits::backends
