// Array arithmetic by cuda-native and by cuda-emulated on more operands than the reference could take:
// all pairs of 16 bits, and random operands of every operation, made and compared on the device.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include "samebits/samebits.hpp"
#include "tests/device/both_sides.cuh"
#include "tests/device/operand_draw.cuh"
#include "tests/support/effort.hpp"

namespace samebits {
namespace {

using enum format_id;
using support::by_effort;
using support::device_bytes;
using support::difference;
using support::for_elements;

__global__ void compare_kernel(const std::uint32_t* x, const std::uint32_t* y, std::int64_t words,
                               difference* seen) {
  for_elements(words, [&](std::int64_t i) {
    if (x[i] != y[i]) support::note(seen, i);
  });
}

__global__ void count_kernel(std::uint16_t* a, std::uint16_t* b, std::uint64_t first,
                             std::int64_t count) {
  for_elements(count, [&](std::int64_t i) {
    const std::uint64_t pair = first + static_cast<std::uint64_t>(i);
    a[i] = static_cast<std::uint16_t>(pair);
    b[i] = static_cast<std::uint16_t>(pair >> 16);
  });
}

template <class Code>
__global__ void draw_kernel(Code* a, Code* b, Code* c, format_spec f, operation op,
                            std::uint64_t seed, std::int64_t count) {
  for_elements(count, [&](std::int64_t i) {
    const auto x = support::draw({f, f, f}, op, seed, static_cast<std::uint64_t>(i));
    a[i] = static_cast<Code>(x.code[0]);
    b[i] = static_cast<Code>(x.code[1]);
    c[i] = static_cast<Code>(x.code[2]);
  });
}

class NativeArithmetic : public ::testing::Test {
 protected:
  ~NativeArithmetic() override {
    std::printf("cuda-native and cuda-emulated: %.4g cases\n", static_cast<double>(compared_));
  }

  void draw_operands(format_id f, operation op, std::uint64_t seed) {
    const auto draw_codes = [&](auto code) {
      using type = decltype(code);
      draw_kernel<<<4096, 256>>>(a_.as<type>(), b_.as<type>(), c_.as<type>(), spec_of(f), op, seed,
                                 count);
    };
    switch (storage_bytes(f)) {
      case 1: return draw_codes(std::uint8_t{});
      case 2: return draw_codes(std::uint16_t{});
      default: return draw_codes(std::uint32_t{});
    }
  }
  /// Both backends on the operands that are in place.
  void expect_same(operation op, format_id f, overflow policy = overflow::ieee) {
    const auto view = [&](const device_bytes& codes) {
      return on_device(view_of_codes(f, codes.as<void>(), 1, count));
    };
    const array_operands in = {view(a_), view(b_), view(c_)};
    compute(op, in, view(emulated_), {.overflow = policy}, on_stream(nullptr, "cuda-emulated"));
    compute(op, in, view(native_), {.overflow = policy}, on_stream(nullptr, "cuda-native"));
    const difference seen = support::seen_by([&](difference* differing) {
      compare_kernel<<<4096, 256>>>(emulated_.as<std::uint32_t>(), native_.as<std::uint32_t>(),
                                    count * storage_bytes(f) / 4, differing);
    });
    ASSERT_EQ(seen.count, 0u) << name(op) << " of " << name(f) << ", " << name(policy)
                              << ": words differ, the first is " << seen.first;
    compared_ += count;
  }

  static const inline std::int64_t count = by_effort<std::int64_t>(1 << 27, 1 << 18);
  static const inline std::size_t bytes = 4 * static_cast<std::size_t>(count);
  device_bytes a_{bytes}, b_{bytes}, c_{bytes};

 private:
  device_bytes emulated_{bytes}, native_{bytes};
  std::int64_t compared_ = 0;
};

TEST_F(NativeArithmetic, OfAllPairsOf16Bits) {
  const std::uint64_t end = by_effort(std::uint64_t{1} << 32, 1 << 20);
  for (const format_id f : {fp16, bf16}) {
    for (std::uint64_t first = 0; first < end; first += static_cast<std::uint64_t>(count)) {
      count_kernel<<<4096, 256>>>(a_.as<std::uint16_t>(), b_.as<std::uint16_t>(), first, count);
      for (const operation op : {operation::add, operation::sub, operation::mul, operation::div}) {
        ASSERT_NO_FATAL_FAILURE(expect_same(op, f));
      }
    }
  }
}

TEST_F(NativeArithmetic, OfRandomOperands) {
  for (const format_id f : {fp32, fp16, bf16, e4m3, e5m2}) {
    for (int i = 0; i < enum_count<operation>; ++i) {
      const operation op = static_cast<operation>(i);
      if (op == operation::rem || op == operation::rint) continue;  // which cuda-native lacks
      const bool much = op == operation::fma || f == fp32;
      for (std::uint64_t seed = 0; seed < (much ? 4u : 1u); ++seed) {
        draw_operands(f, op, seed);
        for (const overflow policy : {overflow::ieee, overflow::saturate}) {
          ASSERT_NO_FATAL_FAILURE(expect_same(op, f, policy));
        }
      }
    }
  }
}

}  // namespace
}  // namespace samebits
