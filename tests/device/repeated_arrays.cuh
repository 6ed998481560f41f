// Arrays of any size in device memory, whose elements repeat a chunk of codes: an elementwise
// result repeats with them. The whole of it is compared, on the device, with what the reference
// makes of the chunk. Where its length is no power of two, an index that has lost bits meets other
// elements.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "samebits/samebits.hpp"
#include "tests/device/both_sides.cuh"

namespace samebits::support {

template <class Code>
__global__ void fill_kernel(Code* data, std::int64_t count, const Code* repeated,
                            std::int64_t period) {
  for_elements(count, [&](std::int64_t i) { data[i] = repeated[i % period]; });
}

template <class Code>
__global__ void compare_kernel(const Code* data, std::int64_t count, const Code* repeated,
                               std::int64_t period, difference* seen) {
  for_elements(count, [&](std::int64_t i) {
    if (data[i] != repeated[i % period]) note(seen, i);
  });
}

/// Calls f(Code) with the unsigned type of a format's codes.
template <class Function>
void with_code(format_id f, const Function& function) {
  switch (storage_bytes(f)) {
    case 1: return function(std::uint8_t{});
    case 2: return function(std::uint16_t{});
    default: return function(std::uint32_t{});
  }
}

/// Codes of one chunk on the host.
struct chunk_codes {
  format_id format;
  std::vector<std::byte> bytes;

  chunk_codes(format_id f, std::int64_t count)
      : format(f), bytes(static_cast<std::size_t>(count * storage_bytes(f))) {}
  [[nodiscard]] std::int64_t count() const {
    return static_cast<std::int64_t>(bytes.size()) / storage_bytes(format);
  }
  /// `size` elements from one on.
  [[nodiscard]] matrix_view view(std::int64_t first, std::int64_t size) {
    return view_of_codes(format, static_cast<void*>(bytes.data() + first * storage_bytes(format)),
                         1, size);
  }
  [[nodiscard]] matrix_view view() { return view(0, count()); }
};

/// Random codes; finite ones have no large exponent.
inline chunk_codes random_codes(format_id f, std::int64_t count, std::uint64_t seed, bool finite) {
  std::mt19937_64 random(seed);
  chunk_codes c(f, count);
  for (std::byte& b : c.bytes) b = static_cast<std::byte>(random());
  const auto width = static_cast<std::size_t>(storage_bytes(f));
  for (std::size_t i = width - 1; finite && i < c.bytes.size(); i += width) {
    c.bytes[i] &= std::byte{0xBB};
  }
  return c;
}

/// Arrays on the device, each of which begins with a chunk and repeats it, and guards around them.
class repeated_arrays {
 public:
  /// Arrays begin `shift` elements behind a border of 256 bytes.
  repeated_arrays(const chunk_codes& repeated, std::span<const std::int64_t> sizes,
                  std::int64_t shift = 0)
      : format_(repeated.format), memory_(bytes(format_, sizes)) {
    check_cuda(cudaMemset(memory_.data(), guard, bytes(format_, sizes)), "guards");
    std::int64_t at = 0;
    for (const std::int64_t n : sizes) {
      at += margin;
      views_.push_back({memory_.data() + at + shift * storage_bytes(format_), format_, 1, n, n, 1,
                        memory_space::device});
      at += padded(n * storage_bytes(format_));
    }
    const device_bytes chunk(repeated.bytes.data(), repeated.bytes.size());
    with_code(format_, [&](auto code) {
      using type = decltype(code);
      for (const matrix_view& v : views_) {
        fill_kernel<<<2048, 256>>>(static_cast<type*>(v.data), v.cols, chunk.as<const type>(),
                                   repeated.count());
      }
    });
    check_cuda(cudaGetLastError(), "fill kernel");
    check_cuda(cudaDeviceSynchronize(), "fill");
  }

  [[nodiscard]] const std::vector<matrix_view>& views() const { return views_; }
  [[nodiscard]] const matrix_view& operator[](std::size_t i) const { return views_[i]; }
  [[nodiscard]] tensor_list listed() const {
    return tensor_list(std::span<const matrix_view>(views_));
  }

  /// Every element is the one of `repeated`, and no guard was written.
  void expect(const chunk_codes& repeated) const {
    const device_bytes chunk(repeated.bytes.data(), repeated.bytes.size());
    with_code(format_, [&](auto code) {
      using type = decltype(code);
      for (std::size_t i = 0; i < views_.size(); ++i) {
        expect_none(
            [&](difference* seen) {
              compare_kernel<<<2048, 256>>>(static_cast<const type*>(views_[i].data),
                                            views_[i].cols, chunk.as<const type>(),
                                            repeated.count(), seen);
            },
            i);
      }
    });
    expect_guards();
  }
  /// Array i draws from stream random.stream + i. By the widest host backend, some repetitions of the
  /// chunk at a time, then the rest of it.
  void expect_stochastic(chunk_codes& repeated, random_stream random) const {
    const std::uint64_t begin = random.offset;
    for (const matrix_view& array : views_) {
      for (std::int64_t first = 0; first < array.cols;) {
        const std::int64_t rest = array.cols - first, period = repeated.count();
        matrix_view in = repeated.view(0, std::min(rest, period));
        in.rows = std::clamp<std::int64_t>(rest / period, 1, (1 << 26) / period);
        in.row_stride = 0;
        random.offset = begin + static_cast<std::uint64_t>(first);
        expect_stochastic(array, first, in, random);
        first += in.rows * in.cols;
      }
      ++random.stream;
    }
    expect_guards();
  }

 private:
  static constexpr int guard = 0xC3;
  static constexpr std::int64_t margin = 256;  // bytes

  static std::int64_t padded(std::int64_t n) { return (n + 255) / 256 * 256; }
  static std::size_t bytes(format_id f, std::span<const std::int64_t> sizes) {
    std::int64_t all = 2 * margin;
    for (const std::int64_t n : sizes) all += margin + padded(n * storage_bytes(f));
    return static_cast<std::size_t>(all);
  }

  void expect_guards() const {
    for (const matrix_view& v : views_) {
      auto* const begin = static_cast<const std::byte*>(v.data);
      for (const std::byte* edge : {begin - 16, begin + v.cols * storage_bytes(format_)}) {
        unsigned char bytes[16] = {};
        check_cuda(cudaMemcpy(bytes, edge, sizeof(bytes), cudaMemcpyDeviceToHost), "guards");
        for (const unsigned char b : bytes) EXPECT_EQ(b, guard);
      }
    }
  }
  /// An array's elements from `first` on are those of `in`, row after row.
  static void expect_stochastic(const matrix_view& array, std::int64_t first,
                                const const_matrix_view& in, const random_stream& random) {
    chunk_codes expected(array.format, in.rows * in.cols), got = expected;
    matrix_view out = expected.view(0, in.cols);
    out.rows = in.rows;
    convert(in, out, {.rounding = rounding::stochastic, .random = random}, {"", 0});
    check_cuda(
        cudaMemcpy(got.bytes.data(),
                   static_cast<const std::byte*>(array.data) + first * storage_bytes(array.format),
                   got.bytes.size(), cudaMemcpyDeviceToHost),
        "elements");
    EXPECT_TRUE(got.bytes == expected.bytes) << "from element " << first;
  }

  format_id format_;
  device_bytes memory_;
  std::vector<matrix_view> views_;
};

}  // namespace samebits::support
