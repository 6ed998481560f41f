// verify(): finds planted errors, says where, and counts what it compares.
#include "samebits/verify.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "backends/dispatch/calls/quantize.hpp"
#include "backends/reference/reference.hpp"
#include "backends/threads/on_threads.hpp"
#include "backends/verify/checks.hpp"
#include "backends/verify/inputs.hpp"
#include "backends/verify/verify.hpp"
#include "samebits/error.hpp"
#include "samebits/scalar.hpp"

namespace samebits::backends::verification {
namespace {

using enum format_id;
using results = std::vector<samebits::verification>;

constexpr effort little{.fp32_stride = 1 << 16,
                        .patterns = 64,
                        .grid_limit = 512,
                        .stochastic = 1024,
                        .stochastic_slices = 1,
                        .slice = 1 << 14,
                        .quantize_rounds = 1,
                        .amax_stride = 1 << 19};

const backend& reference_backend() { return *compiled().front(); }

results run(const backend& tested, const backend& reference = reference_backend()) {
  const backend* const list[] = {&tested};
  return run_checks(check_conversions, list, reference, little, 2, {});
}

template <void (*Spoil)(const convert_call&, element_range)>
void convert_and_spoil(const convert_call& call, element_range range) {
  reference_convert(call, range);
  Spoil(call, range);
}

/// A backend that converts as the reference does, and then `Spoil` has its way.
template <void (*Spoil)(const convert_call&, element_range)>
backend spoiled(bool (*supports)(const convert_call&)) {
  backend b = reference_backend();
  b.name = "spoiled";
  b.convert = {.supports = supports, .run = convert_on_threads<convert_and_spoil<Spoil>>};
  return b;
}

std::uint64_t total_differed(const results& all) {
  std::uint64_t sum = 0;
  for (const auto& r : all) sum += r.differed;
  return sum;
}

const samebits::verification& entry(const results& all, std::string_view text) {
  const auto it = std::find_if(all.begin(), all.end(), [&](const auto& r) {
    return r.what.find(text) != std::string::npos;
  });
  if (it == all.end()) throw std::out_of_range("no entry with " + std::string(text));
  return *it;
}

std::byte* element(const convert_call& call, std::int64_t i) {
  return static_cast<std::byte*>(call.out.data) +
         ((i / call.out.cols) * call.out.row_stride + (i % call.out.cols) * call.out.col_stride) *
             storage_bytes(call.out.format);
}

/// fp16 2^4 + 2^-6 to e4m3 under one rule of the 36: the last bit of one code.
void spoil_one_code(const convert_call& call, element_range range) {
  constexpr std::uint16_t input = 0x4C10;
  const cast_rule rule{rounding::to_odd, overflow::saturate_finite, nan_policy::preserve_sign};
  if (call.in.format != fp16 || call.out.format != e4m3 || call.rule != rule) return;
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    std::uint16_t code = 0;
    std::memcpy(&code, static_cast<const std::byte*>(call.in.data) + 2 * i, 2);
    if (code == input) *element(call, i) ^= std::byte{1};
  }
}

TEST(Verify, FindsOneWrongCodeUnderOneRule) {
  const results all =
      run(spoiled<spoil_one_code>([](const convert_call& call) { return call.in.format == fp16; }));
  const auto& found = entry(all, "fp16 to 13 formats, all 65536 codes, 36 rules");
  EXPECT_EQ(found.backend, "spoiled");
  EXPECT_EQ(found.compared, 65536u * 13 * 36);
  EXPECT_EQ(found.differed, 1u);
  EXPECT_EQ(found.first_difference,
            "fp16 0x4c10 to e4m3 0x58, expected 0x59; to_odd saturate_finite preserve_sign");
  EXPECT_EQ(total_differed(all), 1u);
}

/// The round-ups of one index of one K, in calls of more than one element.
void spoil_one_index(const convert_call& call, element_range range) {
  if (call.rule.rounding != rounding::stochastic || call.random.bits != 13 || call.in.cols == 1) {
    return;
  }
  if (range.end == call.in.rows * call.in.cols) *element(call, range.end - 1) ^= std::byte{1};
}

TEST(Verify, FindsWrongTailsOfStochasticCalls) {
  const results all = run(spoiled<spoil_one_index>(
      [](const convert_call& call) { return call.rule.rounding == rounding::stochastic; }));
  EXPECT_EQ(entry(all, "stochastic with K = 8").differed, 0u);
  const auto& found = entry(all, "stochastic with K = 13");
  EXPECT_GT(found.differed, 14u);  // 14 pairs, whole and in parts
  EXPECT_NE(found.first_difference.find("stochastic"), std::string::npos);
  EXPECT_NE(found.first_difference.find("K = 13"), std::string::npos);
  EXPECT_GT(entry(all, "column shards").differed, 0u);
  EXPECT_GT(entry(all, "strided").differed, 0u);
}

/// One byte between two elements of a strided view.
void spoil_gap(const convert_call& call, element_range) {
  if (call.out.format == e4m3 && call.out.col_stride == 3) *(element(call, 0) + 1) = std::byte{0};
}

TEST(Verify, FindsWritesBetweenElements) {
  const results all =
      run(spoiled<spoil_gap>([](const convert_call& call) { return call.out.format == e4m3; }));
  const auto& found = entry(all, "strided");
  EXPECT_GT(found.differed, 0u);
  EXPECT_NE(found.first_difference.find("between the elements"), std::string::npos);
  EXPECT_EQ(total_differed(all), found.differed);
}

/// A backend that leaves the last element of long rows alone.
void unwritten(const convert_call& call, element_range range) {
  const bool last = range.end == call.in.rows * call.in.cols;
  const bool skip = last && call.in.cols == 65536 && call.out.format == bf16;
  reference_convert(call, {range.begin, range.end - (skip ? 1 : 0)});
}

TEST(Verify, FindsElementsThatAreNotWritten) {
  backend b = reference_backend();
  b.convert = {.supports = [](const convert_call& call) { return call.in.format == fp16; },
               .run = convert_on_threads<unwritten>};
  const results all = run(b);
  EXPECT_GT(entry(all, "fp16 to 13").differed, 30u);  // of 36, the filling may be right by chance
}

TEST(Verify, SaysWhatAPartialBackendHas) {
  backend b = reference_backend();
  b.convert.supports = [](const convert_call& call) {
    return call.in.format == fp16 && (call.out.format == e4m3 || call.out.format == e5m2) &&
           call.rule == cast_rule{rounding::nearest_even, overflow::saturate};
  };
  const results all = run(b);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].what, "fp16 to e4m3, e5m2, all 65536 codes, 1 rule");
  EXPECT_EQ(all[0].compared, 2u * 65536);
  EXPECT_NE(all[1].what.find("views, 1 rule"), std::string::npos) << all[1].what;
}

// Memory of a device that is the host's, to see that the device path copies and cuts rightly.
std::int64_t allocations = 0;
bool launched_since_synchronize = false;
const device_memory host_as_device = {
    [](std::size_t bytes) {
      ++allocations;
      return std::malloc(bytes);
    },
    [](void* p) noexcept {
      --allocations;
      std::free(p);
    },
    [](void* to, const void* from, std::size_t n) { std::memcpy(to, from, n); },
    [](void* to, const void* from, std::size_t n) {
      EXPECT_FALSE(launched_since_synchronize);
      std::memcpy(to, from, n);
    },
    [](void* to, std::byte value, std::size_t n) { std::memset(to, static_cast<int>(value), n); },
    [] { launched_since_synchronize = false; }};

bool has_two_targets(const convert_call& call) {
  return call.out.format == e4m3 || call.out.format == bf16;
}

backend device_backend() {
  backend b = reference_backend();
  b.name = "host-as-device";
  b.space = memory_space::device;
  b.convert = {.supports = has_two_targets, .run = [](const convert_call& call, const executor&) {
                 EXPECT_EQ(call.in.space, memory_space::device);
                 EXPECT_EQ(call.out.space, memory_space::device);
                 launched_since_synchronize = true;
                 reference_convert(call, {0, call.in.rows * call.in.cols});
               }};
  b.memory = &host_as_device;
  return b;
}

TEST(Verify, RunsBackendsOfDeviceMemory) {
  const results device = run(device_backend());
  EXPECT_EQ(total_differed(device), 0u);
  EXPECT_EQ(allocations, 0);
  backend host = reference_backend();
  host.convert.supports = has_two_targets;
  const results direct = run(host);
  ASSERT_EQ(device.size(), direct.size());
  for (std::size_t i = 0; i < device.size(); ++i) {
    EXPECT_EQ(device[i].what, direct[i].what);
    EXPECT_EQ(device[i].compared, direct[i].compared);
  }
}

TEST(Verify, EveryHostBackendAndTheReferenceItself) {
  for (const backend* b : compiled()) {
    if (b->space != memory_space::host || !b->why_unsupported().empty()) continue;
    const results all = run(*b, b == &reference_backend() ? scalar : reference_backend());
    for (const auto& r : all) {
      EXPECT_EQ(r.differed, 0u) << r.backend << ", " << r.what << ": " << r.first_difference;
      EXPECT_GT(r.compared, 0u);
    }
    EXPECT_EQ(all.size(), 16u);
  }
}

results run_quantize(const backend& tested, const backend& reference = reference_backend()) {
  const backend* const list[] = {&tested};
  return run_checks(check_quantizations, list, reference, little, 2, {});
}

/// A backend that quantizes bf16 to e5m2 as the reference does, and then `Spoil` has its way.
template <void (*Spoil)(const quantize_call&)>
backend spoiled_quantizer() {
  backend b = reference_backend();
  b.name = "spoiled";
  b.quantize = {
      .supports =
          [](const quantize_call& call) { return call.in.format == bf16 && call.to == e5m2; },
      .run =
          [](const quantize_call& call, const executor& where) {
            reference_quantize(call, {"reference", where.threads});
            Spoil(call);
          }};
  return b;
}

void spoil_one_tile(const quantize_call& call) {
  const bool hit = call.grid.tile_rows == 64 && call.grid.tile_cols == 1 &&
                   call.cast.rounding == rounding::nearest_even;
  if (hit) *static_cast<std::byte*>(call.outputs.codes.data) ^= std::byte{2};
}

TEST(VerifyQuantize, FindsOneWrongCodeOfOneTile) {
  const results all = run_quantize(spoiled_quantizer<spoil_one_tile>());
  EXPECT_GT(total_differed(all), 0u);
  EXPECT_LE(total_differed(all), 5u);  // a call for each of 4 scale rules, and one with statistics
  const std::string& text = entry(all, "nearest_even").first_difference;
  EXPECT_EQ(text.find("code [0, 0] is 0x"), 0u) << text;
  EXPECT_NE(text.find("tile 64 x 1 "), std::string::npos) << text;
}

void spoil_scale(const quantize_call& call) {
  if (call.outputs.scales_transposed.data == nullptr || call.in.cols != 270) return;
  const matrix_view& s = call.outputs.scales_transposed;
  *(static_cast<std::byte*>(s.data) +
    4 * ((s.rows - 1) * s.row_stride + (s.cols - 1) * s.col_stride)) ^= std::byte{1};
}

TEST(VerifyQuantize, FindsWrongTransposedScales) {
  const results all = run_quantize(spoiled_quantizer<spoil_scale>());
  EXPECT_GT(entry(all, "row-wise and transposed").differed, 3u);
  EXPECT_NE(entry(all, "row-wise and transposed").first_difference.find("transposed scale ["),
            std::string::npos);
  EXPECT_EQ(total_differed(all), entry(all, "row-wise and transposed").differed);
}

void spoil_quantized_gap(const quantize_call& call) {
  if (call.outputs.codes.col_stride == 3) {
    *(static_cast<std::byte*>(call.outputs.codes.data) + 1) = std::byte{0};
  }
}

TEST(VerifyQuantize, FindsWritesBetweenCodes) {
  const results all = run_quantize(spoiled_quantizer<spoil_quantized_gap>());
  EXPECT_GT(entry(all, "strided").differed, 0u);
  EXPECT_NE(entry(all, "strided").first_difference.find("between the elements of the codes"),
            std::string::npos);
  EXPECT_EQ(total_differed(all), entry(all, "strided").differed);
}

void spoil_statistics(const quantize_call& call) {
  if (call.outputs.statistics != nullptr) ++call.outputs.statistics->saturated;
}

TEST(VerifyQuantize, FindsWrongStatistics) {
  const results all = run_quantize(spoiled_quantizer<spoil_statistics>());
  EXPECT_EQ(entry(all, "statistics").differed, 18u);
  EXPECT_EQ(total_differed(all), 18u);
}

TEST(VerifyQuantize, RunsBackendsOfDeviceMemory) {
  backend b = device_backend();
  b.quantize = {
      .supports = [](const quantize_call& c) { return c.to == e4m3 && c.in.format != fp32; },
      .run =
          [](const quantize_call& call, const executor&) {
            EXPECT_EQ(call.in.space, memory_space::device);
            launched_since_synchronize = true;
            reference_quantize(call, {"reference"});
          }};
  b.dequantize = {.run = [](const dequantize_call& call, const executor&) {
    EXPECT_EQ(call.scales.space, memory_space::device);
    launched_since_synchronize = true;
    reference_dequantize(call, {"reference"});
  }};
  const results all = run_quantize(b);
  EXPECT_EQ(total_differed(all), 0u);
  EXPECT_EQ(allocations, 0);
  ASSERT_EQ(all.size(), 6u);  // no sweep over the amaxes, which are fp32
  EXPECT_EQ(all[0].what, "quantize fp16, bf16 to e4m3, 18 tiles, " +
                             std::to_string(one_level_scale_rules) + " scale rules, nearest_even");
  EXPECT_EQ(all[5].what,
            "dequantize e4m3, e5m2 to fp32, fp16, bf16, 18 tiles, scales of all magnitudes");
  EXPECT_EQ(all[5].compared, 2u * 3 * 18 * 130 * 270);
}

TEST(VerifyQuantize, EveryHostBackendAndTheReferenceItself) {
  for (const backend* b : compiled()) {
    if (b->space != memory_space::host || !b->why_unsupported().empty()) continue;
    const bool is_reference = b == &reference_backend();
    const results all = run_quantize(*b, is_reference ? scalar : reference_backend());
    for (const auto& r : all) {
      EXPECT_EQ(r.differed, 0u) << r.backend << ", " << r.what << ": " << r.first_difference;
      EXPECT_GT(r.compared, 0u);
    }
    EXPECT_EQ(all.size(), is_reference ? 6u : 7u);  // whose statistics have no other reference here
  }
}

TEST(Verify, ThresholdCodesHoldTheTiesAndTheExtremes) {
  const auto has = [](const std::vector<std::uint64_t>& codes, std::uint64_t code) {
    return std::find(codes.begin(), codes.end(), code) != codes.end();
  };
  const auto e4m3_codes = threshold_codes(fp32, e4m3, 127);
  for (const std::uint64_t code : {0x43E80000u, 0x43E80001u, 0xC3E7FFFFu, 0x43F00000u, 0x3A800000u,
                                   0x3A800001u, 0x00000000u, 0x80000000u, 0x3F880000u}) {
    EXPECT_TRUE(has(e4m3_codes, code)) << std::hex << code;  // 464, 480, 2^-10, 1 + 1/16
  }
  EXPECT_EQ(e4m3_codes.size(), 2u * (3 + 254 * 5));
  EXPECT_TRUE(has(threshold_codes(fp64, fp16, 32), 0x40EFFE0000000000u));  // 65520
  EXPECT_TRUE(has(threshold_codes(fp64, fp32, 64), 0x47EFFFFFF0000000u));  // halfway beyond max
  const auto specials = special_codes(fp32);
  EXPECT_TRUE(has(specials, 0x7F800001) && has(specials, 0xFFC00000) && has(specials, 0x7F7FFFFF));
}

TEST(Verify, RefusesWhatItCannotDo) {
  EXPECT_THROW(verify({.backend = "abacus"}), invalid_argument);
  EXPECT_THROW(verify({.threads = -1}), invalid_argument);
  for (const backend* b : compiled()) {
    if (b->why_unsupported().empty()) continue;
    EXPECT_THROW(verify({.backend = b->name}), unsupported);
  }
}

}  // namespace
}  // namespace samebits::backends::verification
