// What a block of a quantization with statistics keeps in shared memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/instructions/hardware.cuh"
#include "backends/cuda/quantize/counted/counted_patch.cuh"
#include "backends/cuda/quantize/counted/counted_strip.cuh"

namespace samebits::cuda {

/// The sums of a group's patches, joined_lanes() of each, which are joined at the group's end.
template <shape Shape>
struct group_nodes {
  static constexpr unsigned most = 1u << most_grouped<Shape>;
  double of_patch[most][32];

  /// Their sum over the lanes of a row and all patches. The patches' parts of a row are shared out
  /// to its lanes in order; `across`: log2 of such lanes.
  __device__ __forceinline__ double joined(int across, int grouped) const {
    const unsigned lane = threadIdx.x % 32, mask = (1u << across) - 1;
    const unsigned first = (lane >> 2 & mask) << grouped, others = lane & ~(mask << 2);
    double part[most];
#pragma unroll
    for (unsigned i = 0; i < most; ++i) {
      part[i] = 0;
      if (i >> grouped != 0) continue;
      const unsigned n = first + i;
      part[i] = of_patch[n >> across][others | (n & mask) << 2];
    }
    join_neighbours<most>(part);
    double sum = part[0];
    for (unsigned apart = 4; apart <= mask << 2; apart <<= 1) {
      sum = __dadd_rn(sum, __shfl_xor_sync(0xFFFFFFFFu, sum, apart));
    }
    return sum;
  }
};

/// The scales of tiles whose amax is in [1, 2), one for each significand of a 16-bit format; those
/// of others follow (numerics::scale_times()).
template <format_id From>
struct scale_table {
  static constexpr bool exists = is_half<From>;
  static constexpr int bits = spec_of(From).mantissa_bits;
  static constexpr unsigned entries = exists ? 1u << (bits % 16) : 1;
  uint2 of[entries];  ///< stored, factor

  /// All threads of the block come here.
  __device__ __forceinline__ void fill(const format_spec& to, numerics::scale_rule rule) {
    rule.eps = 0;
    rule.upper_bound = numerics::binary32::inf;
    for (unsigned i = threadIdx.x; i < entries; i += block_threads) {
      const tile_scale s = numerics::scale_of<hardware>(
          to, rule, static_cast<tile_amax>(0x3F800000u | i << (23 - bits)));
      of[i] = make_uint2(s.stored, s.factor);
    }
  }
  /// That of an amax of plain_amaxes(); `table`: a scale_table's address in shared memory.
  __device__ __forceinline__ static tile_scale scale(unsigned table, std::uint32_t amax) {
    tile_scale s;
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];"
                 : "=r"(s.stored), "=r"(s.factor)
                 : "r"(table + (amax >> (23 - bits) & (entries - 1)) * 8));
    return numerics::scale_times(s, (amax & 0x7F800000u) - 0x3F800000u);
  }
};

/// What warps of a block wait at for each other, without all stopping there: sm_80 mbarrier.
struct split_barrier {
  std::uint64_t state;

  /// By one thread, before all others come; so many arrive.
  __device__ __forceinline__ void init(unsigned count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address()), "r"(count) : "memory");
  }
  __device__ __forceinline__ void arrive() {
    asm volatile(
        "{\n\t.reg .b64 unused;\n\tmbarrier.arrive.shared.b64 unused, [%0];\n\t}" ::"r"(address())
        : "memory");
  }
  /// Until all have arrived; odd: for the second time, the fourth and so on.
  __device__ __forceinline__ void wait(unsigned odd) {
    unsigned done = 0;
    while (done == 0) {
      asm volatile(
          "{\n\t.reg .pred p;\n\tmbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n\t"
          "selp.u32 %0, 1, 0, p;\n\t}"
          : "=r"(done)
          : "r"(address()), "r"(odd)
          : "memory");
    }
  }

 private:
  __device__ __forceinline__ unsigned address() const {
    return static_cast<unsigned>(__cvta_generic_to_shared(&state));
  }
};

/// What a block keeps in shared memory.
template <format_id From, shape Shape>
struct counted_memory {
  static constexpr unsigned stages = 2;
  static constexpr unsigned most_tiles = 64;  // of a block's squares
  alignas(512) std::byte patch[stages][warps_of_block][patch_stage<From>::bytes];
  group_nodes<Shape> nodes[warps_of_block];
  scale_table<From> scales;
  std::uint32_t maxima[3][most_tiles];
  split_barrier posted;
  element_counts of_warps[warps_of_block];
};

}  // namespace samebits::cuda
