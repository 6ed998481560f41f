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
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "numerics/bits/convert.hpp"
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

/// Stochastic conversions, one element after another, by the definition.
template <class To, class From>
__global__ void compare_stochastic_kernel(const To* data, format_spec to, std::int64_t count,
                                          const From* repeated, format_spec from,
                                          std::int64_t period, random_stream random,
                                          difference* seen) {
  for_elements(count, [&](std::int64_t i) {
    const random_bits bits{
        numerics::random_word(random.seed, random.stream,
                              random.offset + static_cast<std::uint64_t>(i), random.bits),
        random.bits};
    const auto expected = numerics::convert_any(from, to, {.rounding = rounding::stochastic},
                                                repeated[i % period], bits);
    if (data[i] != expected.code) note(seen, i);
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
  /// Array i draws from stream random.stream + i. The definition compiled for the device is
  /// compared with the reference around both ends, 2^31 and 2^32.
  void expect_stochastic(chunk_codes& repeated, random_stream random) const {
    const device_bytes chunk(repeated.bytes.data(), repeated.bytes.size());
    for (std::size_t i = 0; i < views_.size(); ++i, ++random.stream) {
      with_code(format_, [&](auto to) {
        with_code(repeated.format, [&](auto from) {
          expect_none(
              [&](difference* seen) {
                compare_stochastic_kernel<<<2048, 256>>>(
                    static_cast<const decltype(to)*>(views_[i].data), spec_of(format_),
                    views_[i].cols, chunk.as<const decltype(from)>(), spec_of(repeated.format),
                    repeated.count(), random, seen);
              },
              i);
        });
      });
      for (const std::int64_t middle :
           {std::int64_t{0}, std::int64_t{1} << 31, std::int64_t{1} << 32, views_[i].cols}) {
        expect_window(views_[i], std::max<std::int64_t>(0, middle - 4000),
                      std::min(views_[i].cols, middle + 4000), repeated, random);
      }
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
  /// Elements [first, last) of an array by the reference.
  static void expect_window(const matrix_view& array, std::int64_t first, std::int64_t last,
                            chunk_codes& repeated, random_stream random) {
    if (first >= last) return;
    chunk_codes in(repeated.format, last - first), expected(array.format, last - first);
    chunk_codes got = expected;
    for (std::int64_t i = first; i < last; ++i) {
      const matrix_view from = repeated.view(i % repeated.count(), 1);
      std::memcpy(in.view(i - first, 1).data, from.data,
                  static_cast<std::size_t>(storage_bytes(from.format)));
    }
    random.offset += static_cast<std::uint64_t>(first);
    convert(in.view(), expected.view(), {.rounding = rounding::stochastic, .random = random},
            {"reference"});
    check_cuda(
        cudaMemcpy(got.bytes.data(),
                   static_cast<const std::byte*>(array.data) + first * storage_bytes(array.format),
                   got.bytes.size(), cudaMemcpyDeviceToHost),
        "window");
    EXPECT_TRUE(got.bytes == expected.bytes) << "from element " << first;
  }

  format_id format_;
  device_bytes memory_;
  std::vector<matrix_view> views_;
};

}  // namespace samebits::support
