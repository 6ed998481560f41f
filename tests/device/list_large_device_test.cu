// A tensor of more than 2^32 elements through every operation over tensor lists, on each CUDA
// backend.
//
// Its elements repeat the first 251 chunks: a prime number of them, so that an index which has lost
// bits, and with them a power of two of elements, meets others. An elementwise result repeats with
// them, and the whole of it is compared, on the device, with what the reference makes of the first
// 251 chunks. A sum of squares is put together from the reference's sums of single chunks. Random
// bits do not repeat: those casts are compared with the definition compiled for the device, and
// with the reference around both ends, 2^31 and 2^32.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "numerics/bits/convert.hpp"
#include "numerics/tensor_list/inspect.hpp"
#include "samebits/samebits.hpp"
#include "tests/device/cuda_backends.hpp"
#include "tests/device/device_copy.hpp"
#include "tests/support/effort.hpp"

namespace samebits {
namespace {

using support::check_cuda;
using support::cuda_backend_name;
using support::cuda_backends;
using enum format_id;

constexpr std::int64_t chunk = numerics::chunk_elements;
constexpr std::int64_t period = 251 * chunk;
const std::int64_t large = support::by_effort(std::int64_t{1} << 32, 2 * period) + 4099;
/// Small tensors before and after it.
const std::int64_t sizes[] = {5003, large, 4097};

const executor reference = {"reference", 0};

struct difference {
  unsigned long long count;
  unsigned long long first;
};

template <class Code>
__global__ void fill_kernel(Code* data, std::int64_t count, const Code* repeated) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    data[i] = repeated[i % period];
  }
}

__device__ void note(difference* seen, std::int64_t i) {
  atomicAdd(&seen->count, 1ull);
  atomicMin(&seen->first, static_cast<unsigned long long>(i));
}

template <class Code>
__global__ void compare_kernel(const Code* data, std::int64_t count, const Code* repeated,
                               difference* seen) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    if (data[i] != repeated[i % period]) note(seen, i);
  }
}

/// Stochastic casts of fp32 to bf16, one element after another, by the definition.
__global__ void compare_stochastic_kernel(const std::uint16_t* data, std::int64_t count,
                                          const std::uint32_t* repeated, std::uint64_t seed,
                                          std::uint64_t stream, std::uint64_t offset, int k,
                                          difference* seen) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const random_bits bits{
        numerics::random_word(seed, stream, offset + static_cast<std::uint64_t>(i), k), k};
    const auto expected =
        numerics::convert_any(spec_of(fp32), spec_of(bf16), {.rounding = rounding::stochastic},
                              repeated[i % period], bits);
    if (data[i] != expected.code) note(seen, i);
  }
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

class device_bytes {
 public:
  explicit device_bytes(std::size_t bytes) { check_cuda(cudaMalloc(&data_, bytes), "cudaMalloc"); }
  device_bytes(const void* host, std::size_t bytes) : device_bytes(bytes) {
    check_cuda(cudaMemcpy(data_, host, bytes, cudaMemcpyHostToDevice), "to the device");
  }
  ~device_bytes() { cudaFree(data_); }
  device_bytes(const device_bytes&) = delete;
  device_bytes& operator=(const device_bytes&) = delete;
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  void* data_ = nullptr;
};

/// Codes of one period.
using codes = std::vector<std::byte>;

codes random_codes(format_id f, std::uint64_t seed, bool finite) {
  std::mt19937_64 random(seed);
  const auto width = static_cast<std::size_t>(storage_bytes(f));
  codes c(static_cast<std::size_t>(period) * width);
  for (std::byte& b : c) b = static_cast<std::byte>(random());
  // No exponent of all ones, and no large one.
  for (std::size_t i = width - 1; finite && i < c.size(); i += width) c[i] &= std::byte{0xBB};
  return c;
}

matrix_view host_view(codes& c, format_id f, std::int64_t size = period) {
  return {c.data(), f, 1, size, size, 1, memory_space::host};
}
tensor_list host_list(codes& c, format_id f, std::int64_t size = period) {
  return tensor_list(std::vector<matrix_view>{host_view(c, f, size)});
}

/// Three tensors on the device, each of which begins with a period and repeats it, and guards
/// around them.
class large_list {
 public:
  /// Tensors begin `shift` elements behind a border of 256 bytes.
  large_list(format_id f, const codes& repeated, std::int64_t shift = 0)
      : format_(f), memory_(bytes(f)) {
    check_cuda(cudaMemset(memory_.data(), guard, bytes(f)), "guards");
    std::int64_t at = 0;
    for (const std::int64_t n : sizes) {
      at += margin;
      views_.push_back(
          {memory_.data() + at + shift * storage_bytes(f), f, 1, n, n, 1, memory_space::device});
      at += padded(n * storage_bytes(f));
    }
    list_ = tensor_list(std::span<const matrix_view>(views_));
    const device_bytes period_codes(repeated.data(), repeated.size());
    with_code(f, [&](auto code) {
      using type = decltype(code);
      for (const matrix_view& v : views_) {
        fill_kernel<<<2048, 256>>>(static_cast<type*>(v.data), v.cols,
                                   reinterpret_cast<const type*>(period_codes.data()));
      }
    });
    check_cuda(cudaGetLastError(), "fill kernel");
    check_cuda(cudaDeviceSynchronize(), "fill");
  }

  [[nodiscard]] const tensor_list& listed() const { return list_; }
  [[nodiscard]] const matrix_view& operator[](std::size_t i) const { return views_[i]; }

  /// Every element is the one of `repeated`, and no guard was written.
  void expect(const codes& repeated) const {
    const device_bytes expected(repeated.data(), repeated.size());
    with_code(format_, [&](auto code) {
      using type = decltype(code);
      for (std::size_t i = 0; i < views_.size(); ++i) {
        expect_none(i, [&](difference* seen) {
          compare_kernel<<<2048, 256>>>(static_cast<const type*>(views_[i].data), views_[i].cols,
                                        reinterpret_cast<const type*>(expected.data()), seen);
        });
      }
    });
    expect_guards();
  }

  /// compare(difference*) finds nothing in tensor i.
  template <class Compare>
  static void expect_none(std::size_t i, const Compare& compare) {
    difference seen = {0, ~0ull};
    const device_bytes there(&seen, sizeof(seen));
    compare(reinterpret_cast<difference*>(there.data()));
    check_cuda(cudaGetLastError(), "compare kernel");
    check_cuda(cudaMemcpy(&seen, there.data(), sizeof(seen), cudaMemcpyDeviceToHost), "compare");
    EXPECT_EQ(seen.count, 0u) << "tensor " << i << ", first at element " << seen.first;
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

 private:
  static constexpr int guard = 0xC3;
  static constexpr std::int64_t margin = 256;  // bytes

  static std::int64_t padded(std::int64_t n) { return (n + 255) / 256 * 256; }
  static std::size_t bytes(format_id f) {
    std::int64_t all = 2 * margin;
    for (const std::int64_t n : sizes) all += margin + padded(n * storage_bytes(f));
    return static_cast<std::size_t>(all);
  }

  format_id format_;
  device_bytes memory_;
  std::vector<matrix_view> views_;
  tensor_list list_;
};

class ListLarge : public ::testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    initialize(GetParam());
    std::size_t free = 0, all = 0;
    check_cuda(cudaMemGetInfo(&free, &all), "memory");
    const std::size_t wanted = support::by_effort(std::size_t{26} << 30, 1 << 30);
    if (free < wanted) GTEST_SKIP() << "needs " << (wanted >> 30) << " GiB of device memory";
  }
  [[nodiscard]] executor here() const { return on_stream(nullptr, GetParam()); }
};

/// The counts of a list from those of one period and of what remains of each tensor after whole
/// ones.
unscale_report expected_report(codes c, format_id f, float factor) {
  unscale_report all;
  const auto add = [&](std::int64_t size, std::uint64_t times) {
    codes copy = c;
    const unscale_report seen = unscale(host_list(copy, f, size), factor, reference);
    all.elements += times * seen.elements;
    all.nonfinite += times * seen.nonfinite;
    all.overflowed += times * seen.overflowed;
    all.amax_bits = std::max(all.amax_bits, seen.amax_bits);
  };
  for (const std::int64_t n : sizes) {
    if (n >= period) add(period, static_cast<std::uint64_t>(n / period));
    add(n % period, 1);
  }
  all.first_bad = 0;
  return all;
}

TEST_P(ListLarge, Unscales) {
  codes c = random_codes(fp16, 1, false);
  const large_list list(fp16, c);
  const unscale_report expected = expected_report(c, fp16, 0x1p5f);
  ASSERT_NE(expected.overflowed, 0u);
  const unscale_report got = unscale(list.listed(), 0x1p5f, here());
  EXPECT_TRUE(got == expected) << got.nonfinite << ", expected " << expected.nonfinite
                               << "; overflowed " << got.overflowed << ", expected "
                               << expected.overflowed << "; first bad " << got.first_bad;
  unscale(host_list(c, fp16), 0x1p5f, reference);
  list.expect(c);
}

TEST_P(ListLarge, Scales) {
  codes c = random_codes(fp32, 2, false);
  const large_list list(fp32, c);
  scale(list.listed(), -0.3f, here());
  scale(host_list(c, fp32), -0.3f, reference);
  list.expect(c);
}

TEST_P(ListLarge, ScalesUnalignedTensors) {
  codes c = random_codes(bf16, 3, false);
  const large_list list(bf16, c, 3);
  scale(list.listed(), 1.7f, here());
  scale(host_list(c, bf16), 1.7f, reference);
  list.expect(c);
}

TEST_P(ListLarge, Accumulates) {
  codes sums = random_codes(fp32, 4, false), gradients = random_codes(e5m2, 5, false);
  const large_list acc(fp32, sums), x(e5m2, gradients);
  const std::vector<float> scales(3, 0.37f);
  const device_bytes there(scales.data(), scales.size() * sizeof(float));
  accumulate(acc.listed(), x.listed(), {reinterpret_cast<const float*>(there.data())}, here());
  accumulate(host_list(sums, fp32), host_list(gradients, e5m2), {scales.data()}, reference);
  acc.expect(sums);
  x.expect(gradients);
}

TEST_P(ListLarge, Combines) {
  codes c = random_codes(bf16, 6, false), d = random_codes(bf16, 7, false),
        e = random_codes(bf16, 8, false);
  const large_list x(bf16, c), y(bf16, d), out(bf16, e);
  axpby(0.9f, x.listed(), -1.25f, y.listed(), out.listed(), here());
  axpby(0.9f, host_list(c, bf16), -1.25f, host_list(d, bf16), host_list(e, bf16), reference);
  out.expect(e);
  x.expect(c);
}

struct cast_case {
  format_id from, to;
  samebits::rounding rounding;
  std::int64_t shift;
};

/// By the kernels of one pair of formats, the one of mixed lists, and element by element.
TEST_P(ListLarge, Casts) {
  for (const cast_case t : {cast_case{fp32, bf16, rounding::nearest_even, 0},
                            {fp16, fp32, rounding::nearest_even, 0},
                            {e4m3, bf16, rounding::nearest_even, 0},
                            {fp16, e5m2, rounding::upward, 0},
                            {bf16, e4m3, rounding::nearest_even, 1}}) {
    codes c = random_codes(t.from, 9, false), d = random_codes(t.to, 10, false);
    const large_list from(t.from, c, t.shift), to(t.to, d);
    const convert_options options = {.rounding = t.rounding};
    cast(from.listed(), to.listed(), options, here());
    cast(host_list(c, t.from), host_list(d, t.to), options, reference);
    to.expect(d);
    ASSERT_FALSE(HasFailure()) << name(t.from) << " to " << name(t.to);
  }
}

TEST_P(ListLarge, CastsWithRandomBits) {
  codes c = random_codes(fp32, 11, false), d = random_codes(bf16, 12, false);
  const large_list from(fp32, c), to(bf16, d);
  const random_stream random = {
      .seed = 21, .stream = 3, .offset = std::uint64_t{7} << 32, .bits = 16};
  cast(from.listed(), to.listed(), {.rounding = rounding::stochastic, .random = random}, here());
  check_cuda(cudaDeviceSynchronize(), "cast");
  const device_bytes repeated(c.data(), c.size());
  for (std::size_t i = 0; i < 3; ++i) {
    large_list::expect_none(i, [&](difference* seen) {
      compare_stochastic_kernel<<<2048, 256>>>(
          static_cast<const std::uint16_t*>(to[i].data), to[i].cols,
          reinterpret_cast<const std::uint32_t*>(repeated.data()), random.seed, random.stream + i,
          random.offset, random.bits, seen);
    });
  }
  constexpr std::int64_t window = 8000;
  for (const std::int64_t first : {std::int64_t{0}, large / 2 - window / 2,  // around 2^31
                                   large - 4099 - window / 2, large - window}) {
    std::vector<std::uint32_t> in(window);
    std::vector<std::uint16_t> expected(window), got(window);
    for (std::int64_t i = 0; i < window; ++i) {
      std::memcpy(&in[static_cast<std::size_t>(i)],
                  c.data() + (first + i) % period * storage_bytes(fp32), 4);
    }
    random_stream own = random;
    own.stream += 1;
    own.offset += static_cast<std::uint64_t>(first);
    convert({in.data(), fp32, 1, window, window, 1}, {expected.data(), bf16, 1, window, window, 1},
            {.rounding = rounding::stochastic, .random = own}, reference);
    check_cuda(cudaMemcpy(got.data(), static_cast<const std::uint16_t*>(to[1].data) + first,
                          window * 2, cudaMemcpyDeviceToHost),
               std::to_string(first).c_str());
    EXPECT_TRUE(got == expected) << "from element " << first;
  }
  to.expect_guards();
}

/// The sums of squares of tensors and list, from the reference's sums of chunks.
TEST_P(ListLarge, Norms) {
  for (const format_id f : {fp32, bf16}) {
    codes c = random_codes(f, 13, true);
    const auto sum_of = [&](std::int64_t first, std::int64_t count) {
      std::byte* const data = c.data() + first * chunk * storage_bytes(f);
      const matrix_view v = {data, f, 1, count, count, 1, memory_space::host};
      return std::bit_cast<std::uint64_t>(
          inspect(tensor_list(std::vector<matrix_view>{v}), {}, reference).total.squares);
    };
    std::vector<std::uint64_t> sums;
    for (std::int64_t k = 0; k < period / chunk; ++k) sums.push_back(sum_of(k, chunk));
    norm_report expected;
    numerics::square_sum all;
    for (const std::int64_t n : sizes) {
      numerics::square_sum tensor;
      for (std::int64_t k = 0; k < n / chunk; ++k) {
        tensor.add(sums[static_cast<std::size_t>(k) % sums.size()]);
      }
      if (n % chunk != 0) tensor.add(sum_of(n / chunk % (period / chunk), n % chunk));
      all.add(tensor.value());
      expected.tensors.push_back(std::bit_cast<double>(numerics::norm_of(tensor.value())));
    }
    expected.total = std::bit_cast<double>(numerics::norm_of(all.value()));
    const large_list list(f, c);
    const norm_report got = l2norm(list.listed(), here());
    EXPECT_EQ(got.tensors, expected.tensors) << name(f);
    EXPECT_EQ(got.total, expected.total) << name(f);
    list.expect(c);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ListLarge, cuda_backends(), cuda_backend_name);

}  // namespace
}  // namespace samebits
