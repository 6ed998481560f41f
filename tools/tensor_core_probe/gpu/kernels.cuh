// Device functions of the kernels that run a tensor core instruction on tiles and compare the
// results with its rule.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/hardware/accumulate.hpp"
#include "tensor_core_probe/device.hpp"
#include "tensor_core_probe/gpu/instructions.cuh"

namespace samebits::cuda {

/// A job with its arrays in device memory.
struct device_job {
  numerics::accumulate_rule rule;
  std::uint32_t tiles;
  std::uint32_t partners;
  const std::uint32_t* a;
  const std::uint32_t* b;
  const std::uint32_t* c;
  std::uint32_t* own;
  unsigned long long* differing;
  unsigned int* found;  ///< differences found, counted beyond the room of `first`
  backends::tensor_cores::difference* first;
};

/// Enqueues a job of one instruction on the default stream. find_mma() and find_wgmma() return null
/// for instructions of the other kind.
using tensor_launcher = void (*)(const device_job& j, int blocks);
tensor_launcher find_mma(instruction which);
tensor_launcher find_wgmma(instruction which);

using backends::tensor_cores::line_words;
using backends::tensor_cores::max_products;
using backends::tensor_cores::tile_columns;

/// The result that the rule predicts for a line of A, a line of B and C.
__device__ __noinline__ inline std::uint32_t expected_of(const numerics::accumulate_rule& rule,
                                                         const std::uint32_t* a,
                                                         const std::uint32_t* b, std::uint32_t c) {
  using backends::tensor_cores::code_of;
  numerics::tensor_operand x[max_products];
  numerics::tensor_operand y[max_products];
  for (int k = 0; k < rule.products; ++k) {
    x[k] = numerics::tensor_operand_of(rule.a, rule.subnormal_exponent_a,
                                       code_of(a, rule.a.storage_bits, k));
    y[k] = numerics::tensor_operand_of(rule.b, rule.subnormal_exponent_b,
                                       code_of(b, rule.b.storage_bits, k));
  }
  return numerics::accumulate(rule, x, y, rule.products, c);
}

/// Compares the four results of a thread. `row`: the thread's first row; `rows`: rows of a tile.
__device__ inline void compare(const device_job& j, std::uint32_t tile, std::uint32_t partner,
                               int rows, int row, const std::uint32_t* d) {
  const int t = static_cast<int>(threadIdx.x % 4);
  const bool wide = j.rule.result.storage_bits == 32;
  for (int o = 0; o < 4; ++o) {
    const int r = row + 8 * (o / 2);
    const int c = 2 * t + o % 2;
    const std::uint32_t got = wide ? d[o] : (d[o / 2] >> (16 * (o % 2))) & 0xFFFFu;
    const std::size_t line = static_cast<std::size_t>(tile) * rows + r;
    const std::size_t at = line * tile_columns + c;
    const std::uint32_t expected = expected_of(
        j.rule, j.a + line * line_words,
        j.b + (static_cast<std::size_t>(partner) * tile_columns + c) * line_words, j.c[at]);
    if (tile == partner) j.own[at] = got;
    if (got == expected) continue;
    atomicAdd(j.differing, 1ull);
    const unsigned int slot = atomicAdd(j.found, 1u);
    if (slot < backends::tensor_cores::max_differences) {
      j.first[slot] = {tile, partner, static_cast<std::uint32_t>(r), static_cast<std::uint32_t>(c),
                       got,  expected};
    }
  }
}

/// Loads the thread's four values of C into d.
__device__ inline void load_c(const device_job& j, std::uint32_t tile, int rows, int row,
                              std::uint32_t* d) {
  constexpr int below = 8 * tile_columns;
  const int t = static_cast<int>(threadIdx.x % 4);
  const std::uint32_t* c =
      j.c + (static_cast<std::size_t>(tile) * rows + row) * tile_columns + 2 * t;
  if (j.rule.result.storage_bits == 32) {
    d[0] = c[0], d[1] = c[1], d[2] = c[below], d[3] = c[below + 1];
  } else {
    d[0] = c[0] | c[1] << 16, d[1] = c[below] | c[below + 1] << 16, d[2] = 0, d[3] = 0;
  }
}

/// The tile and the partner tile of a pair, 0 <= pair < tiles * partners.
__device__ inline uint2 tiles_of(const device_job& j, std::uint64_t pair) {
  const auto tile = static_cast<std::uint32_t>(pair / j.partners);
  return {tile, static_cast<std::uint32_t>((tile + pair % j.partners) % j.tiles)};
}

}  // namespace samebits::cuda
