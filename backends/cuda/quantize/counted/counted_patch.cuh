// The patch of a warp of a quantization with statistics in shared memory: how it comes there, how
// lanes find their strips, and where codes and nodes go.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/quantize/counted/counted_launch.cuh"

namespace samebits::cuda {

/// A lane's way through rows that follow each other in shared memory and lie apart in global
/// memory, Bytes at a time and all lanes side by side.
template <unsigned Bytes>
struct lane_walk {
  static constexpr unsigned step = 32 * Bytes;
  unsigned row_bytes, at;
  std::uint64_t apart;

  __device__ __forceinline__ lane_walk(unsigned row, std::uint64_t rows_apart)
      : row_bytes(row), at(threadIdx.x % 32 * Bytes), apart(rows_apart) {}
  __device__ __forceinline__ std::uint64_t first() const {
    return at / row_bytes * apart + at % row_bytes;
  }
  __device__ __forceinline__ unsigned row(unsigned i) const { return (at + i) / row_bytes; }
  /// From step i to the one after it.
  __device__ __forceinline__ std::uint64_t to_next(unsigned i) const {
    if (row_bytes <= step) return step / row_bytes * apart;
    return (i + step) % row_bytes == 0 ? apart + step - row_bytes : step;
  }
};

/// A lane's places in a patch in shared memory, which change with the patch's place alone.
///
/// The patch is row after row: the elements, and then in place of a lane's elements of a half its
/// codes and its node. Addresses are of shared memory and are held in registers, where the compiler
/// would find each of them again from the lane; so they are read and written by instructions.
template <format_id From>
struct patch_stage {
  static constexpr unsigned element_bytes = spec_of(From).storage_bits / 8;
  static constexpr unsigned lane_bytes = lane_cols * element_bytes, half_bytes = 32 * lane_bytes;
  static constexpr unsigned bytes = halves * half_bytes;
  static constexpr unsigned strip_bytes = strip * element_bytes;
  unsigned elements, codes, node, fetched, stored, sums;

  /// `patch`: aligned to 512 bytes.
  __device__ __forceinline__ explicit patch_stage(const std::byte* patch) {
    const unsigned lane = threadIdx.x % 32;
    const auto at = static_cast<unsigned>(__cvta_generic_to_shared(patch));
    // Halves of 32-byte strips, too, change places.
    elements =
        at + lane * lane_bytes + turn() * strip_bytes + (strip_bytes == 32 ? lane % 2 * 16 : 0);
    codes = at + codes_at(lane) + turn() * strip;
    node = at + node_at(lane);
    fetched = at + lane * 16;
    stored = at + codes_at(lane / 2) + lane % 2 * 16;
    const unsigned half = lane >> 1 & 1;
    sums = at + half * half_bytes + node_at((lane & ~3u) + (half | (lane >> 3 & 1) << 1)) +
           lane % 2 * 8;
    asm volatile(""
                 : "+r"(elements), "+r"(codes), "+r"(node), "+r"(fetched), "+r"(stored),
                   "+r"(sums));
  }
  /// To the patch of which this is the distance from the current one, or back.
  __device__ __forceinline__ void move(unsigned by) {
    elements += by, codes += by, node += by, fetched += by, stored += by, sums += by;
  }

  /// Lanes take their strips in different orders, so that they do not meet in the banks: strip k is
  /// number k ^ turn() from the left. Neighbours stay neighbours, and which of two is added to the
  /// other is all the same.
  __device__ __forceinline__ static unsigned turn() {
    return (threadIdx.x >> 1 ^ threadIdx.x >> 3 & 1) & 3;
  }
  __device__ __forceinline__ strip_of<From> load(int half, int k) const {
    strip_of<From> x;
#pragma unroll
    for (unsigned u = 0; u < strip_bytes; u += 16) {
      std::uint32_t* const w = x.w + u / 4;
      asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                   : "r"((elements ^ (k * strip_bytes + u)) + half * half_bytes));
    }
    return x;
  }
  /// Once the lane has loaded the half.
  __device__ __forceinline__ void set_codes(int half, int k, uint2 of_strip) const {
    if (strip_bytes == 32 && threadIdx.x % 2 != 0) of_strip = make_uint2(of_strip.y, of_strip.x);
    set_codes_at((codes ^ (k * strip)) + half * half_bytes, of_strip);
  }
  /// Of the strip that is k-th from the left.
  __device__ __forceinline__ void set_codes_in_order(int half, int k, uint2 of_strip) const {
    set_codes_at((codes ^ ((static_cast<unsigned>(k) ^ turn()) * strip)) + half * half_bytes,
                 of_strip);
  }

  /// Where a lane's fetch of a patch begins.
  template <shape Shape, int Lanes>
  __device__ __forceinline__ static const std::byte* source(const counted_launch& c,
                                                            const warp_place<Shape, Lanes>& at) {
    return c.t.in + at.first_row(c) * c.t.in_row_bytes +
           std::uint64_t{at.first_col(c)} * element_bytes + rows_of<Shape, Lanes>(c).first();
  }
  /// Starts a fetch from there; zeros, which change no amax, in rows beyond the matrix.
  template <shape Shape, int Lanes>
  __device__ __forceinline__ void fetch(const counted_launch& c, const std::byte* from,
                                        unsigned inside) const {
    const auto lane = rows_of<Shape, Lanes>(c);
    if (inside == halves * warp_place<Shape, Lanes>::lines(c)) {
#pragma unroll
      for (unsigned i = 0; i < bytes; i += lane.step) {
        copy(fetched + i, from, 16);
        from += lane.to_next(i);
      }
    } else {
#pragma unroll 1
      for (unsigned i = 0; i < bytes; i += lane.step) {
        const bool there = lane.row(i) < inside;
        copy(fetched + i, there ? from : c.t.in, there ? 16 : 0);
        from += lane.to_next(i);
      }
    }
  }
  /// Ends a group of fetches, if only an empty one.
  __device__ __forceinline__ static void commit() {
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  /// Until all groups of the warp are there but the last few.
  template <int Last>
  __device__ __forceinline__ static void wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(Last) : "memory");
    __syncwarp();
  }

  /// Where a lane's share of a patch's codes begins, stored by 16 bytes.
  template <shape Shape, int Lanes>
  __device__ __forceinline__ static std::byte* target(const counted_launch& c,
                                                      const warp_place<Shape, Lanes>& at) {
    return c.t.codes + at.first_row(c) * c.t.codes_row_bytes + at.first_col(c) +
           codes_of<Shape, Lanes>(c).first();
  }
  /// Stores all codes there, of which each lane has set its own.
  template <shape Shape, int Lanes>
  __device__ __forceinline__ void store(const counted_launch& c, std::byte* to) const {
    const auto lane = codes_of<Shape, Lanes>(c);
#pragma unroll
    for (unsigned half = 0; half < halves; ++half) {
#pragma unroll
      for (unsigned i = 0; i < codes_bytes; i += lane.step) {
        uint4 w;
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w)
                     : "r"(stored + half * half_bytes + i / lane_cols * lane_bytes));
        *reinterpret_cast<uint4*>(to) = w;
        to += lane.to_next(i);
      }
    }
  }
  /// The same for a patch that is partly beyond the matrix, or whose rows start at 8 bytes.
  template <shape Shape, int Lanes>
  __device__ __noinline__ static void store_any(const counted_launch& c,
                                                warp_place<Shape, Lanes> at, unsigned from) {
#pragma unroll 1
    for (int half = 0; half < halves; ++half) {
      const std::uint64_t row = at.row(c, half);
      if (row >= c.t.rows) continue;
      std::byte* const to = c.t.codes + row * c.t.codes_row_bytes + at.col(c);
#pragma unroll 1
      for (unsigned k = 0; k < strips_of_half; ++k) {
        uint2 w;
        asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];"
                     : "=r"(w.x), "=r"(w.y)
                     : "r"((from ^ (k * strip)) + half * half_bytes));
        *reinterpret_cast<uint2*>(to + (k ^ turn()) * strip) = w;
      }
    }
  }

  __device__ __forceinline__ void set_node(int half, const sum_node& of_half) const {
    asm volatile("st.shared.v2.f64 [%0], {%1, %2};" ::"r"(node + half * half_bytes),
                 "d"(of_half.signal), "d"(of_half.noise));
  }
  /// One of the sums over four neighbouring lanes, once all nodes are there: noise in odd lanes, of
  /// half lane / 2 % 2, of the lanes from lane / 4 * 4 on. In such an order that lanes do not meet
  /// in the banks.
  __device__ __forceinline__ double joined_lanes() const {
    double of_lane[4];
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
      // From node_at() of one lane to that of lane ^ i.
      asm volatile("ld.shared.f64 %0, [%1];"
                   : "=d"(of_lane[i])
                   : "r"(sums ^ node_at(i) ^ node_at(0)));
    }
    return __dadd_rn(__dadd_rn(of_lane[0], of_lane[1]), __dadd_rn(of_lane[2], of_lane[3]));
  }

 private:
  static constexpr unsigned codes_bytes = 32 * lane_cols;  // of a half

  // Where a lane's codes and its node are, such that lanes do not meet in the banks: of each 128
  // bytes four lanes' codes take a quarter each, and their nodes what was another's.
  __device__ __forceinline__ static constexpr unsigned codes_at(unsigned lane) {
    return lane * lane_bytes + quarter(lane);
  }
  __device__ __forceinline__ static constexpr unsigned node_at(unsigned lane) {
    return lane * lane_bytes + (quarter(lane) ^ 32) + (lane >> 2 & 1) * 16;
  }
  __device__ __forceinline__ static constexpr unsigned quarter(unsigned lane) {
    return lane_bytes == 64 ? (lane >> 1 & 1) * 32 : (lane & 3) * 32;
  }

  template <shape Shape, int Lanes>
  __device__ __forceinline__ static lane_walk<16> rows_of(const counted_launch& c) {
    return {lane_bytes << warp_place<Shape, Lanes>::lanes(c), c.t.in_row_bytes};
  }
  template <shape Shape, int Lanes>
  __device__ __forceinline__ static lane_walk<16> codes_of(const counted_launch& c) {
    return {lane_cols << warp_place<Shape, Lanes>::lanes(c), c.t.codes_row_bytes};
  }
  __device__ __forceinline__ static void set_codes_at(unsigned at, uint2 of_strip) {
    asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(at), "r"(of_strip.x), "r"(of_strip.y));
  }
  __device__ __forceinline__ static void copy(unsigned to, const std::byte* from, unsigned count) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(count)
                 : "memory");
  }
};

}  // namespace samebits::cuda
