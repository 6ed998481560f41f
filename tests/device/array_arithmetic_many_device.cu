// Array arithmetic on CUDA in numbers: spaces of 8 bits whole and random operands of every
// operation against the reference, all pairs of 16 bits and random operands by both backends.
//
// SAMEBITS_COMPUTE_CASES: how many random cases are compared with the reference, by default 10^9.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "engine/core/sweeps.hpp"
#include "samebits/samebits.hpp"
#include "tests/device/operand_draw.cuh"
#include "tests/device/repeated_arrays.cuh"
#include "tests/support/effort.hpp"

namespace samebits {
namespace {

using enum format_id;
using support::by_effort;
using support::check_cuda;
using support::device_bytes;
using support::difference;
using support::draw;
using support::for_elements;

constexpr format_id formats[] = {fp32, fp16, bf16, e4m3, e5m2};
constexpr overflow policies[] = {overflow::ieee, overflow::saturate, overflow::saturate_finite};

__global__ void compare_kernel(const std::uint32_t* x, const std::uint32_t* y, std::int64_t words,
                               difference* seen) {
  for_elements(words, [&](std::int64_t i) {
    if (x[i] != y[i]) support::note(seen, i);
  });
}

__device__ void put(void* data, int width, std::int64_t i, std::uint32_t code) {
  if (width == 1) {
    static_cast<std::uint8_t*>(data)[i] = static_cast<std::uint8_t>(code);
  } else if (width == 2) {
    static_cast<std::uint16_t*>(data)[i] = static_cast<std::uint16_t>(code);
  } else {
    static_cast<std::uint32_t*>(data)[i] = code;
  }
}

struct operand_arrays {
  void* data[3];
};

/// Operand k of element i is the code of bits [k * bits, (k + 1) * bits) of first + i.
__global__ void count_kernel(operand_arrays out, int bits, std::uint64_t first,
                             std::int64_t count) {
  for_elements(count, [&](std::int64_t i) {
    for (int k = 0; k < 3; ++k) {
      const std::uint64_t number = first + static_cast<std::uint64_t>(i);
      put(out.data[k], bits / 8, i, static_cast<std::uint32_t>(number >> (k * bits)));
    }
  });
}

struct drawing {
  format_spec from[3];
  operation op;
  std::uint64_t seed;
};

__global__ void draw_kernel(operand_arrays out, const drawing d, std::int64_t count) {
  for_elements(count, [&](std::int64_t i) {
    const auto x = draw(d.from, d.op, d.seed, static_cast<std::uint64_t>(i));
    for (int k = 0; k < 3; ++k) put(out.data[k], d.from[k].storage_bits / 8, i, x.code[k]);
  });
}

/// Whether cuda-native has the rule and operation of one format, without flags.
bool native_supports(operation op, format_id f, const compute_options& o) {
  return op != operation::rem && op != operation::rint && o.rounding == rounding::nearest_even &&
         o.overflow != overflow::saturate_finite && (o.nan == nan_policy::canonical || f != e4m3);
}

/// Arrays of operands and results on the device, and their copies on the host.
class bench_of_cases {
 public:
  explicit bench_of_cases(std::int64_t maximum)
      : a_(bytes(maximum)),
        b_(bytes(maximum)),
        c_(bytes(maximum)),
        out_(bytes(maximum)),
        other_(bytes(maximum)),
        each_(static_cast<std::size_t>(maximum)) {}

  operand_arrays operands() const { return {{a_.data(), b_.data(), c_.data()}}; }

  void call(const char* backend, operation op, const format_id (&from)[3], format_id to,
            std::int64_t count, const compute_options& options, bool second = false) {
    compute(op, in(from, count), device_view(to, second ? other_.data() : out_.data(), count),
            options, on_stream(nullptr, backend));
  }
  flags call_with_flags(operation op, const format_id (&from)[3], format_id to, std::int64_t count,
                        const compute_options& options) {
    return compute_with_flags(op, in(from, count), device_view(to, out_.data(), count), options,
                              {each_.as<flags>(), count, 1}, on_stream(nullptr, "cuda-emulated"));
  }

  /// Of the two results: differing words.
  difference compared(std::int64_t bytes) {
    return support::seen_by([&](difference* seen) {
      compare_kernel<<<4096, 256>>>(out_.as<std::uint32_t>(), other_.as<std::uint32_t>(), bytes / 4,
                                    seen);
    });
  }

  /// Operands on the host, for expected().
  void fetch_operands(operation op, const format_id (&from)[3], std::int64_t count) {
    const device_bytes* const arrays[] = {&a_, &b_, &c_};
    for (int k = 0; k < operand_count(op); ++k) {
      host_[k].resize(static_cast<std::size_t>(count * storage_bytes(from[k])));
      fetch(host_[k], *arrays[k]);
    }
  }
  /// What the reference makes of fetched operands.
  flags expect(operation op, const format_id (&from)[3], format_id to, std::int64_t count,
               const compute_options& options) {
    expected_.resize(static_cast<std::size_t>(count * storage_bytes(to)));
    expected_each_.resize(static_cast<std::size_t>(count));
    const auto view = [&](int k) {
      return view_of_codes(from[k], static_cast<const void*>(host_[k].data()), 1, count);
    };
    array_operands in{view(0)};
    if (operand_count(op) > 1) in.b = view(1);
    if (operand_count(op) > 2) in.c = view(2);
    return compute_with_flags(
        op, in, view_of_codes(to, static_cast<void*>(expected_.data()), 1, count), options,
        {reinterpret_cast<flags*>(expected_each_.data()), count, 1}, {"reference", 0});
  }
  /// Whether the device's first results are those of expect(), and its flags if `with_flags`.
  ::testing::AssertionResult agrees(bool with_flags, format_id to) {
    got_.resize(expected_.size());
    fetch(got_, out_);
    const auto width = static_cast<std::size_t>(storage_bytes(to));
    if (std::memcmp(got_.data(), expected_.data(), got_.size()) != 0) return differs(width);
    if (!with_flags) return ::testing::AssertionSuccess();
    got_.resize(expected_each_.size());
    fetch(got_, each_);
    for (std::size_t i = 0; i < got_.size(); ++i) {
      if (got_[i] == expected_each_[i]) continue;
      return ::testing::AssertionFailure() << "flags of element " << i << " are " << int{got_[i]}
                                           << " instead of " << int{expected_each_[i]};
    }
    return ::testing::AssertionSuccess();
  }

 private:
  static std::size_t bytes(std::int64_t elements) { return 4 * static_cast<std::size_t>(elements); }
  static matrix_view device_view(format_id f, void* data, std::int64_t count) {
    return on_device(view_of_codes(f, data, 1, count));
  }
  array_operands in(const format_id (&from)[3], std::int64_t count) const {
    return {device_view(from[0], a_.data(), count), device_view(from[1], b_.data(), count),
            device_view(from[2], c_.data(), count)};
  }
  static void fetch(std::vector<std::uint8_t>& to, const device_bytes& from) {
    check_cuda(cudaMemcpy(to.data(), from.data(), to.size(), cudaMemcpyDeviceToHost), "copy");
  }
  ::testing::AssertionResult differs(std::size_t width) const {
    std::size_t i = 0;
    while (std::memcmp(&got_[i], &expected_[i], width) == 0) i += width;
    std::uint32_t got = 0, expected = 0;
    std::memcpy(&got, &got_[i], width);
    std::memcpy(&expected, &expected_[i], width);
    return ::testing::AssertionFailure()
           << "element " << i / width << " is " << std::hex << got << " instead of " << expected;
  }

  device_bytes a_, b_, c_, out_, other_, each_;
  std::vector<std::uint8_t> host_[3], expected_, expected_each_, got_;
};

std::string text(operation op, const format_id (&from)[3], format_id to, const compute_options& o) {
  return std::string(name(op)) + " of " + std::string(name(from[0])) + ", " +
         std::string(name(from[1])) + ", " + std::string(name(from[2])) + " into " +
         std::string(name(to)) + ", " + std::string(name(o.rounding)) + ", " +
         std::string(name(o.overflow)) + ", " + std::string(name(o.nan));
}

compute_options options_of(const cast_rule& rule) {
  const int bits = 1 + static_cast<int>(rule.rounding) * 5 % 32;
  return {.rounding = rule.rounding,
          .overflow = rule.overflow,
          .nan = rule.nan,
          .random = {.seed = 11, .stream = 3, .offset = 77, .bits = bits}};
}

/// Both backends on operands that are in place, against the reference.
void expect_reference(bench_of_cases& cases, operation op, const format_id (&from)[3], format_id to,
                      std::int64_t count, const compute_options& options) {
  const flags raised = cases.expect(op, from, to, count, options);
  EXPECT_EQ(cases.call_with_flags(op, from, to, count, options), raised)
      << text(op, from, to, options);
  EXPECT_TRUE(cases.agrees(true, to)) << "cuda-emulated: " << text(op, from, to, options);
  const bool one_format = from[0] == to && (operand_count(op) < 2 || from[1] == to) &&
                          (operand_count(op) < 3 || from[2] == to);
  if (!one_format || !native_supports(op, to, options)) return;
  cases.call("cuda-native", op, from, to, count, options);
  EXPECT_TRUE(cases.agrees(false, to)) << "cuda-native: " << text(op, from, to, options);
}

TEST(ComputeMany, AllPairsOf8BitsByEveryRule) {
  constexpr std::int64_t count = 1 << 16;
  bench_of_cases cases(count);
  support::thinned_cases rules(5);
  std::uint64_t compared = 0;
  for (const format_id f : {e4m3, e5m2}) {
    const format_id from[3] = {f, f, f};
    count_kernel<<<256, 256>>>(cases.operands(), 8, 0, count);
    for (int i = 0; i < enum_count<operation>; ++i) {
      const operation op = static_cast<operation>(i);
      if (op == operation::fma) continue;
      cases.fetch_operands(op, from, count);
      for (const cast_rule& rule : support::every_rule()) {
        if (rules.leaves_out()) continue;
        expect_reference(cases, op, from, f, count, options_of(rule));
        if (HasFailure()) return;
        compared += count;
      }
    }
  }
  std::printf("pairs of 8 bits and the reference: %.3g cases, 0 differ\n",
              static_cast<double>(compared));
}

TEST(ComputeMany, AllTriplesOf8BitsByEveryMode) {
  const std::int64_t count = by_effort(1 << 24, 1 << 16);
  bench_of_cases cases(count);
  std::uint64_t compared = 0;
  for (const format_id f : {e4m3, e5m2}) {
    const format_id from[3] = {f, f, f};
    count_kernel<<<4096, 256>>>(cases.operands(), 8, 0, count);
    cases.fetch_operands(operation::fma, from, count);
    for (const cast_rule& rule : support::every_rule()) {
      if (rule.nan != nan_policy::canonical) continue;
      expect_reference(cases, operation::fma, from, f, count, options_of(rule));
      if (HasFailure()) return;
      compared += count;
    }
  }
  std::printf("triples of 8 bits and the reference: %.3g cases, 0 differ\n",
              static_cast<double>(compared));
}

/// cuda-native and cuda-emulated on operands that are in place.
void expect_native(bench_of_cases& cases, operation op, format_id f, std::int64_t count,
                   const compute_options& options) {
  const format_id from[3] = {f, f, f};
  cases.call("cuda-emulated", op, from, f, count, options);
  cases.call("cuda-native", op, from, f, count, options, true);
  const difference seen = cases.compared(count * storage_bytes(f));
  EXPECT_EQ(seen.count, 0u) << text(op, from, f, options) << ": words differ, the first is "
                            << seen.first;
}

TEST(ComputeMany, AllPairsOf16BitsByBothBackends) {
  const auto count = by_effort<std::int64_t>(1 << 27, 1 << 18);
  const std::uint64_t end = by_effort(std::uint64_t{1} << 32, 1 << 20);
  bench_of_cases cases(count);
  std::uint64_t compared = 0;
  for (const format_id f : {fp16, bf16}) {
    for (std::uint64_t first = 0; first < end; first += static_cast<std::uint64_t>(count)) {
      count_kernel<<<4096, 256>>>(cases.operands(), 16, first, count);
      for (const operation op : {operation::add, operation::sub, operation::mul, operation::div}) {
        expect_native(cases, op, f, count, {});
        if (HasFailure()) return;
        compared += count;
      }
    }
  }
  std::printf("pairs of 16 bits, cuda-native and cuda-emulated: %.4g cases, 0 differ\n",
              static_cast<double>(compared));
}

TEST(ComputeMany, RandomOperandsByBothBackends) {
  const auto count = by_effort<std::int64_t>(1 << 27, 1 << 18);
  bench_of_cases cases(count);
  std::uint64_t compared = 0;
  for (const format_id f : formats) {
    for (int i = 0; i < enum_count<operation>; ++i) {
      const operation op = static_cast<operation>(i);
      if (!native_supports(op, f, {})) continue;
      const bool much = op == operation::fma || f == fp32;
      for (std::uint64_t seed = 0; seed < (much ? 4u : 1u); ++seed) {
        draw_kernel<<<4096, 256>>>(cases.operands(),
                                   {{spec_of(f), spec_of(f), spec_of(f)}, op, seed}, count);
        for (const overflow policy : {overflow::ieee, overflow::saturate}) {
          expect_native(cases, op, f, count, {.overflow = policy});
          if (HasFailure()) return;
          compared += count;
        }
      }
    }
  }
  std::printf("random, cuda-native and cuda-emulated: %.4g cases, 0 differ\n",
              static_cast<double>(compared));
}

TEST(ComputeMany, RandomOperandsByEveryRule) {
  const char* const asked = std::getenv("SAMEBITS_COMPUTE_CASES");
  const std::uint64_t wanted = asked != nullptr ? std::strtoull(asked, nullptr, 10)
                                                : by_effort<std::uint64_t>(1'000'000'000, 4 << 20);
  const std::int64_t count = by_effort(1 << 20, 1 << 12);
  constexpr format_id mixes[][4] = {
      {fp32, fp32, fp32, fp32}, {fp16, fp16, fp16, fp16}, {bf16, bf16, bf16, bf16},
      {e4m3, e4m3, e4m3, e4m3}, {e5m2, e5m2, e5m2, e5m2}, {fp16, bf16, fp32, e4m3},
      {e4m3, e5m2, fp32, fp32}, {bf16, bf16, bf16, fp32}, {e5m2, e5m2, fp16, fp16},
      {fp32, fp32, fp32, e5m2}, {fp32, e4m3, bf16, bf16}, {fp16, fp16, fp32, bf16}};
  bench_of_cases cases(count);
  std::uint64_t compared = 0;
  for (std::uint64_t seed = 100; compared < wanted; ++seed) {
    for (const auto& mix : mixes) {
      const format_id from[3] = {mix[0], mix[1], mix[2]};
      for (int i = 0; i < enum_count<operation> && compared < wanted; ++i) {
        const operation op = static_cast<operation>(i);
        draw_kernel<<<1024, 256>>>(cases.operands(),
                                   {{spec_of(mix[0]), spec_of(mix[1]), spec_of(mix[2])}, op, seed},
                                   count);
        cases.fetch_operands(op, from, count);
        for (int mode = 0; mode < enum_count<rounding>; ++mode) {
          // Policies by turns: all of them meet every mode as seeds and operations go on.
          const auto turn = seed + static_cast<std::uint64_t>(i + mode);
          const auto nan = turn / 3 % 2 == 0 ? nan_policy::canonical : nan_policy::preserve_sign;
          expect_reference(cases, op, from, mix[3], count,
                           options_of({static_cast<rounding>(mode), policies[turn % 3], nan}));
          if (HasFailure()) return;
          compared += count;
        }
      }
    }
  }
  std::printf("random, CUDA and the reference: %.4g cases, 0 differ\n",
              static_cast<double>(compared));
}

}  // namespace
}  // namespace samebits
