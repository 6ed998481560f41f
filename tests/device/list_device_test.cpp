// Operations over tensor lists on each CUDA backend, against the reference: reports and every byte.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/cuda_backends.hpp"
#include "device/device_copy.hpp"
#include "device/random_tensors.hpp"
#include "samebits/samebits.hpp"
#include "support/effort.hpp"

namespace samebits::support {
namespace {

class ListDevice : public ::testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override { initialize(GetParam()); }
  [[nodiscard]] executor here() const { return on_stream(nullptr, GetParam()); }

  std::vector<format_id> wide = {format_id::fp32, format_id::fp16, format_id::bf16};
  std::vector<format_id> any = {format_id::fp32, format_id::fp16, format_id::bf16, format_id::e4m3,
                                format_id::e5m2};
};

/// What differs between two reports, or nothing.
std::string difference(const inspect_report& got, const inspect_report& expected) {
  const auto text = [](const tensor_statistics& s) {
    return std::to_string(s.elements) + " elements, nan " + std::to_string(s.nan) + ", inf " +
           std::to_string(s.inf) + ", zeros " + std::to_string(s.zeros) + ", subnormals " +
           std::to_string(s.subnormals) + ", amax " + std::to_string(s.amax_bits) + ", squares " +
           std::to_string(std::bit_cast<std::uint64_t>(s.squares));
  };
  if (got == expected) return "";
  for (std::size_t i = 0; i < expected.tensors.size(); ++i) {
    if (!(got.tensors[i] == expected.tensors[i])) {
      return "tensor " + std::to_string(i) + ": " + text(got.tensors[i]) + "; expected " +
             text(expected.tensors[i]);
    }
  }
  if (!(got.total == expected.total)) {
    return "total: " + text(got.total) + "; expected " + text(expected.total);
  }
  if (got.first_bad != expected.first_bad) {
    return "first bad " + std::to_string(got.first_bad) + "; expected " +
           std::to_string(expected.first_bad);
  }
  return "exponents";
}

struct shape {
  std::size_t count;
  std::int64_t size;  ///< of each tensor; 0: random
};

TEST_P(ListDevice, InspectsLists) {
  engine random(1);
  for (const shape s : {shape{0, 0}, shape{1, 0}, shape{1, 2'000'000}, shape{3, 8192}, shape{64, 0},
                        shape{423, 100}, shape{424, 0}, shape{425, 33},
                        shape{by_effort<std::size_t>(10'000, 1000), 1000}}) {
    for (const content what : {content::finite, content::any_bits, content::zeros}) {
      for (const bool odd : {false, true}) {
        tensors list(random, s.count, wide, s.size, what, odd);
        const tensors::on_device copy(list);
        for (const inspect_counts counts :
             {inspect_counts::nonfinite, inspect_counts::distribution}) {
          const inspect_report expected = inspect(list.listed(), {counts}, reference);
          const inspect_report got = inspect(copy.listed(), {counts}, here());
          ASSERT_EQ(difference(got, expected), "")
              << s.count << " tensors, content " << static_cast<int>(what) << ", odd " << odd;
        }
      }
    }
  }
}

TEST_P(ListDevice, InspectsEachFormatAtEverySize) {
  engine random(2);
  thinned_cases cases(13);
  for (const format_id f : wide) {
    for (std::int64_t size = 1; size <= 8200; size += size < 300 ? 1 : 61) {
      if (cases.leaves_out()) continue;
      tensors list(random, 1, {f}, size, content::finite, false);
      const tensors::on_device copy(list);
      ASSERT_EQ(
          difference(inspect(copy.listed(), {}, here()), inspect(list.listed(), {}, reference)), "")
          << name(f) << ", " << size;
    }
  }
}

/// Tensors of more chunks than one block joins, one after another and next to small ones, so that
/// their chunks begin anywhere; twice, as what blocks count is left behind by the first call.
TEST_P(ListDevice, CombinesTheSpansOfLargeTensors) {
  engine random(12);
  constexpr std::int64_t chunk = 4096;
  std::vector<std::int64_t> sizes = {3 * chunk,        33 * chunk, 1024 * chunk,
                                     1025 * chunk - 5, 0,          2048 * chunk,
                                     1023 * chunk + 1, 40 * chunk, 2500 * chunk - 8};
  for (int i = 0; i < 700; ++i) sizes.push_back(static_cast<std::int64_t>(random() % 6) * chunk);
  sizes.insert(sizes.end(), {3100 * chunk + 77, 33 * chunk - 1, 1 * chunk});
  std::int64_t elements = 0;
  for (const std::int64_t n : sizes) elements += n + 8;
  std::vector<std::uint64_t> memory(static_cast<std::size_t>(elements) / 2 + 1);
  for (std::uint64_t& word : memory) word = random() & 0xBBFFBBFFBBFFBBFF;  // finite in any format
  auto* const bytes = reinterpret_cast<std::byte*>(memory.data());
  void* device = nullptr;
  check_cuda(cudaMalloc(&device, memory.size() * 8), "cudaMalloc");
  for (const format_id f : wide) {
    const std::int64_t width = storage_bytes(f);
    std::vector<matrix_view> here_views, there_views;
    std::int64_t at = 0;
    for (const std::int64_t n : sizes) {
      here_views.push_back({bytes + at, f, 1, n, n, 1, memory_space::host});
      there_views.push_back(
          {static_cast<std::byte*>(device) + at, f, 1, n, n, 1, memory_space::device});
      at += (n * width + 15) / 16 * 16;
    }
    const tensor_list host{std::span<const matrix_view>(here_views)};
    const tensor_list copy{std::span<const matrix_view>(there_views)};
    for (const bool bad : {false, true}) {
      if (bad) {  // in the last chunk of the last large tensor
        std::memset(static_cast<std::byte*>(here_views[sizes.size() - 3].data) +
                        (sizes[sizes.size() - 3] - 1) * width,
                    0xFF, static_cast<std::size_t>(width));
      }
      check_cuda(cudaMemcpy(device, memory.data(), memory.size() * 8, cudaMemcpyHostToDevice),
                 "to the device");
      const inspect_report expected = inspect(host, {}, {});
      ASSERT_EQ(expected.total.nan, bad ? 1u : 0u);
      for (int turn = 0; turn < 2; ++turn) {
        ASSERT_EQ(difference(inspect(copy, {}, here()), expected), "") << name(f) << ", " << bad;
      }
    }
    std::memset(static_cast<std::byte*>(here_views[sizes.size() - 3].data) +
                    (sizes[sizes.size() - 3] - 1) * width,
                0, static_cast<std::size_t>(width));
  }
  cudaFree(device);
}

/// One NaN or Inf anywhere in a chunk is found and counted.
TEST_P(ListDevice, FindsOneBadElement) {
  engine random(3);
  for (const format_id f : wide) {
    const std::vector<std::uint32_t> bad =
        f == format_id::fp32   ? std::vector<std::uint32_t>{0x7F800000, 0xFF800001, 0x7FFFFFFF}
        : f == format_id::fp16 ? std::vector<std::uint32_t>{0x7C00, 0xFC01, 0x7FFF}
                               : std::vector<std::uint32_t>{0x7F80, 0xFF81, 0x7FFF};
    for (int turn = 0; turn < by_effort(200, 10); ++turn) {
      tensors list(random, 4, {f}, 5000, content::finite, false);
      const std::size_t which = random() % 4, at = random() % 5000;
      const std::uint32_t code = bad[random() % bad.size()];
      list.set(which, at, code);
      const tensors::on_device copy(list);
      const inspect_report got = inspect(copy.listed(), {}, here());
      ASSERT_EQ(got.first_bad, static_cast<std::int64_t>(which)) << name(f) << ", element " << at;
      ASSERT_EQ(got.total.nan + got.total.inf, 1u) << name(f) << ", element " << at;
      ASSERT_EQ(difference(got, inspect(list.listed(), {}, reference)), "");
    }
  }
}

TEST_P(ListDevice, UnscalesWithAReport) {
  engine random(4);
  for (const float factor :
       {0x1p-16f, 1.0f / 50000, 0.0f, 0x1p100f, std::numeric_limits<float>::infinity()}) {
    for (const content what : {content::finite, content::any_bits}) {
      for (const bool odd : {false, true}) {
        const tensors list(random, 100, wide, 0, what, odd);
        tensors host = list;
        unscale_report expected, got;
        const auto run = [&](const tensor_list& given, const executor& where) {
          (where.backend == "reference" ? expected : got) = unscale(given, factor, where);
        };
        expect_same_bytes(host, list, run, here());
        EXPECT_TRUE(got == expected)
            << factor << ": overflowed " << got.overflowed << ", expected " << expected.overflowed
            << "; nonfinite " << got.nonfinite << ", expected " << expected.nonfinite;
      }
    }
  }
}

TEST_P(ListDevice, Scales) {
  engine random(5);
  for (const float factor : {-1.5f, 0x1p-140f, 3.0f}) {
    const tensors list(random, 60, wide, 0, content::any_bits, true);
    tensors host = list;
    expect_same_bytes(
        host, list,
        [&](const tensor_list& given, const executor& where) { scale(given, factor, where); },
        here());
  }
}

TEST_P(ListDevice, AccumulatesEveryPairOfFormats) {
  engine random(6);
  for (const format_id to : wide) {
    for (const format_id from : any) {
      for (const std::int64_t size : {1, 37, 4096, 70'001}) {
        const bool odd = size == 37 || size == 4096;
        const tensors sums(random, 5, {to}, size, content::any_bits, odd);
        tensors gradients(random, 5, {from}, size, content::any_bits, odd);
        const tensors::on_device device_gradients(gradients);
        const std::vector<float> scales = {1.0f, 0x1p-7f, 0.3f, -2.0f,
                                           std::numeric_limits<float>::quiet_NaN()};
        const guarded_copy device_scales(scales.data(), scales.size() * sizeof(float));
        for (const bool scaled : {false, true}) {
          tensors host = sums;
          expect_same_bytes(
              host, sums,
              [&](const tensor_list& acc, const executor& where) {
                const bool on_host = where.backend == "reference";
                const float* const given =
                    on_host ? scales.data() : static_cast<const float*>(device_scales.data());
                accumulate(acc, on_host ? gradients.listed() : device_gradients.listed(),
                           {scaled ? given : nullptr}, where);
              },
              here());
        }
      }
    }
  }
}

TEST_P(ListDevice, CombinesTwoLists) {
  engine random(7);
  int round = 0;
  for (const format_id out_format : wide) {
    for (const format_id x_format : wide) {
      for (const format_id y_format : wide) {
        constexpr std::int64_t size = 9001;
        const bool odd = (round++ & 1) != 0;
        const tensors out(random, 9, {out_format}, size, content::zeros, odd);
        tensors x(random, 9, {x_format}, size, content::any_bits, odd);
        tensors y(random, 9, {y_format}, size, content::any_bits, odd);
        const tensors::on_device device_x(x), device_y(y);
        tensors host = out;
        expect_same_bytes(
            host, out,
            [&](const tensor_list& given, const executor& where) {
              const bool on_host = where.backend == "reference";
              axpby(0.9f, on_host ? x.listed() : device_x.listed(), -1.25f,
                    on_host ? y.listed() : device_y.listed(), given, where);
            },
            here());
      }
    }
  }
}

TEST_P(ListDevice, Clips) {
  engine random(8);
  const tensors list(random, 20, wide, 3000, content::finite, false);
  tensors clipped = list;
  clip_report expected, got;
  expect_same_bytes(
      clipped, list,
      [&](const tensor_list& given, const executor& where) {
        (where.backend == "reference" ? expected : got) = clip(given, 1.0, where);
      },
      here());
  EXPECT_EQ(got.norm, expected.norm);
  EXPECT_EQ(got.factor, expected.factor);
  EXPECT_LT(got.factor, 1.0f);
}

TEST_P(ListDevice, RefusesHostBackendsAndMixedMemory) {
  engine random(9);
  tensors list(random, 2, wide, 100, content::finite, false);
  const tensors::on_device copy(list);
  EXPECT_EQ(copy.listed().space(), memory_space::device);
  EXPECT_THROW(inspect(copy.listed(), {}, reference), invalid_argument);
  EXPECT_THROW(inspect(list.listed(), {}, here()), invalid_argument);
  EXPECT_THROW(accumulate(copy.listed(), list.listed(), {}, here()), invalid_argument);
}

/// More elements in one tensor than 31 bits count.
TEST_P(ListDevice, LargeInspectsMoreThan31Bits) {
  if (GetParam() != "cuda-native") GTEST_SKIP() << "one backend is enough for the size";
  const std::int64_t size = by_effort(std::int64_t{1} << 31, 1 << 22) + 4099;
  void* memory = nullptr;
  check_cuda(cudaMalloc(&memory, static_cast<std::size_t>(size) * 2), "cudaMalloc");
  check_cuda(cudaMemset(memory, 0x3C, static_cast<std::size_t>(size) * 2), "cudaMemset");
  const std::uint16_t last = 0xFC00;  // -Inf
  check_cuda(cudaMemcpy(static_cast<std::byte*>(memory) + (size - 1) * 2, &last, 2,
                        cudaMemcpyHostToDevice),
             "the last element");
  const matrix_view view = {memory, format_id::fp16, 1, size, size, 1, memory_space::device};
  const tensor_list given(std::span<const matrix_view>(&view, 1));
  const inspect_report got = inspect(given, {inspect_counts::distribution}, here());
  EXPECT_EQ(got.total.elements, static_cast<std::uint64_t>(size));
  EXPECT_EQ(got.total.inf, 1u);
  EXPECT_EQ(got.total.nan, 0u);
  EXPECT_EQ(got.first_bad, 0);
  EXPECT_EQ(got.total.amax_bits, 0x7F800000u);
  EXPECT_EQ(got.exponents[127], static_cast<std::uint64_t>(size - 1));  // 3C3C is 1.0586
  cudaFree(memory);
}

INSTANTIATE_TEST_SUITE_P(Backends, ListDevice, cuda_backends(), cuda_backend_name);

}  // namespace
}  // namespace samebits::support
