// The scalar API inside kernels: the same codes and random words as on the host, bit for bit.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "device/both_sides.cuh"
#include "engine/core/sweeps.hpp"
#include "engine/core/text.hpp"
#include "samebits/arithmetic.hpp"
#include "samebits/convert.hpp"
#include "samebits/scalar.hpp"
#include "samebits/types.hpp"
#include "tests/support/effort.hpp"

namespace samebits {
namespace {

using support::by_effort;
using support::check_cuda;
using support::contents_of;
using support::device_bytes;
using support::differing;

/// Inputs are start + i * stride, so that neither side needs an array of them.
struct input_range {
  std::uint64_t start, stride, count;
  SAMEBITS_HD std::uint64_t at(std::uint64_t i) const { return start + i * stride; }
};

/// One conversion of the i-th input; stochastic rounding draws the word of index i.
struct job {
  format_id from, to;
  cast_rule rule;
  std::uint64_t seed;
  int k;
  input_range inputs;

  SAMEBITS_HD std::uint64_t at(std::uint64_t i) const {
    const random_bits random{rule.rounding == rounding::stochastic ? random_word(seed, 3, i, k) : 0,
                             k};
    const converted r = convert_code(from, to, inputs.at(i), rule, random);
    return r.code ^ (std::uint64_t{r.inexact} << 62) ^ (std::uint64_t{r.overflow} << 63);
  }
};

TEST(Device, ConvertsEveryFormatPairAndRuleAsTheHostDoes) {
  const std::uint64_t samples = by_effort(1 << 16, 1 << 10);
  support::thinned_cases cases(11);
  std::uint64_t compared = 0;
  for (int from = 0; from < format_count; ++from) {
    // All codes where there are at most 2^16; elsewhere an odd stride through all of them.
    const int bits = spec_of(format_at(from)).storage_bits;
    const input_range inputs{bits > 16 ? 0x1234567u : 0u,
                             bits == 64   ? 0x0000FFFFFFFFFC5Fu
                             : bits == 32 ? 65519u
                                          : 1u,
                             bits == 8 ? 256u : samples};
    for (int to = 0; to < format_count; ++to) {
      for (const cast_rule& rule : support::every_rule()) {
        if (cases.leaves_out()) continue;
        const int k = static_cast<int>(rule.rounding) * 5 + static_cast<int>(rule.overflow) * 11;
        const job j{format_at(from),     format_at(to),       rule,
                    0x123456789ABCDEF0u, 1 + (k + from) % 32, inputs};
        ASSERT_EQ(differing(j, inputs.count), 0u)
            << name(j.from) << " to " << name(j.to) << ", " << support::text_of(rule);
        compared += inputs.count;
      }
    }
  }
  RecordProperty("compared", std::to_string(compared));
  std::printf("compared %llu, differed 0\n", static_cast<unsigned long long>(compared));
  EXPECT_GT(compared, by_effort(100'000'000u, 300'000u));
}

/// fp32 codes by the call whose formats are constants.
template <format_id To>
struct encoding {
  std::uint64_t first;

  SAMEBITS_HD std::uint32_t at(std::uint64_t i) const {
    return convert_code<To, format_id::fp32>(static_cast<std::uint32_t>(first + i));
  }
};

/// All 2^32 fp32 codes; of 4096 slices one, under the smallest effort.
template <format_id To>
void check_every_fp32_input() {
  const auto slice = by_effort<std::uint64_t>(1 << 26, 1 << 16);
  const auto turns = by_effort<std::uint64_t>(1, 4096);
  for (std::uint64_t first = 0; first < std::uint64_t{1} << 32; first += slice * turns) {
    ASSERT_EQ(differing(encoding<To>{first}, slice), 0u) << name(To) << ", from " << first;
  }
}

TEST(Device, EncodesEveryFp32InputAsTheHostDoes) {
  check_every_fp32_input<format_id::fp16>();
  check_every_fp32_input<format_id::bf16>();
  check_every_fp32_input<format_id::e4m3>();
  check_every_fp32_input<format_id::e5m2>();
}

__global__ void value_type_kernel(float* out) {
  const e4m3 x(0.3f);
  const bf16 y(x);
  out[0] = static_cast<float>(x);
  out[1] = static_cast<float>(-y);
  out[2] = x < e4m3(1.0f) ? 1.0f : 0.0f;
  out[3] = static_cast<float>(e5m2(1.0 + 0x1p-3 + 0x1p-40));
}

TEST(Device, ValueTypesWorkInKernels) {
  const device_bytes buffer(4 * sizeof(float));
  value_type_kernel<<<1, 1>>>(buffer.as<float>());
  check_cuda(cudaGetLastError(), "value_type_kernel");
  EXPECT_EQ(contents_of<float>(buffer), (std::vector<float>{0.3125f, -0.3125f, 1.0f, 1.25f}));
}

/// One operation on codes of pairwise near or unrelated random bits; flags above the code.
struct operation_job {
  operation op;
  format_id from, to;
  cast_rule rule;

  SAMEBITS_HD std::uint64_t at(std::uint64_t i) const {
    const std::uint32_t a = random_word(7, 0, i);
    std::uint32_t b = random_word(7, 1, i);
    std::uint32_t c = random_word(7, 2, i);
    if ((i & 3) == 0) b = a ^ (b & 0x80000003u);  // cancellation; n * b near a
    if ((i & 3) == 1) c = b ^ (c & 0x80008083u);
    const auto r =
        compute(op, {{from, a}, {from, b}, {from, c}}, to, rule, {random_word(7, 3, i, 20), 20});
    return r.code | static_cast<std::uint64_t>(r.raised) << 32;
  }
};

TEST(Device, ComputesEveryOperationAsTheHostDoes) {
  const std::uint64_t samples = by_effort(1 << 14, 1 << 9);
  support::thinned_cases cases(11);
  std::uint64_t compared = 0;
  constexpr std::array formats = {format_id::fp32, format_id::fp16, format_id::bf16,
                                  format_id::e4m3, format_id::e5m2};
  for (const auto& [op, from, to, mode] : support::combinations(
           support::enumerators<operation>(), formats, formats, support::enumerators<rounding>())) {
    if (cases.leaves_out()) continue;
    const int policy = static_cast<int>(mode) + static_cast<int>(op);
    const operation_job j{
        op, from, to, {mode, static_cast<overflow>(policy % enum_count<overflow>)}};
    ASSERT_EQ(differing(j, samples), 0u) << name(j.op) << ' ' << name(j.from) << " to "
                                         << name(j.to) << ' ' << name(j.rule.rounding);
    compared += samples;
  }
  RecordProperty("compared", std::to_string(compared));
}

}  // namespace
}  // namespace samebits
