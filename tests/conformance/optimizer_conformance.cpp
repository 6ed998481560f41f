// Optimizer steps on every host backend and any number of threads: the reference's bytes.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "samebits/optimizer.hpp"
#include "support/backends.hpp"
#include "support/effort.hpp"
#include "support/optimizer_case.hpp"

namespace samebits {
namespace {

using namespace support;

/// What differs between two cases of equal formats; empty if nothing does.
std::string difference(const optimizer_case& got, const optimizer_case& expected) {
  for (std::size_t i = 0; i < got.tensors.size(); ++i) {
    const tensor_memory& t = got.tensors[i];
    if (t == expected.tensors[i]) continue;
    const optimizer_settings& s = got.groups[t.group];
    return "tensor " + std::to_string(i) + " of " + std::to_string(t.count) + " elements, rule " +
           std::to_string(static_cast<int>(s.rule)) + ", profile " +
           std::to_string(static_cast<int>(s.profile)) + ", weights " +
           std::to_string(static_cast<int>(t.weights.format)) + ", low " +
           std::to_string(static_cast<int>(t.low_kind));
  }
  return "";
}

void check(std::uint64_t seed, tensor_formats formats, std::int64_t max_count, int max_tensors) {
  random_words next(seed);
  optimizer_case given = draw_case(next, formats, max_count, max_tensors);
  optimizer_case expected = given;
  optimizer_step(expected.list(), expected.groups, expected.input, find_executor("reference"));
  for (const std::string& backend : supported_backends()) {
    for (const int threads : {1, 3}) {
      optimizer_case copy = given;
      optimizer_step(copy.list(), copy.groups, copy.input, find_executor(backend, threads));
      EXPECT_EQ(difference(copy, expected), "")
          << backend << ", threads " << threads << ", seed " << seed;
    }
  }
}

TEST(optimizer_conformance, backends_and_threads_give_the_bytes_of_the_reference) {
  for (std::uint64_t seed = 0; seed < 300 / effort_divisor; ++seed) {
    check(seed, tensor_formats::any, 700, 6);
    check(seed, tensor_formats::fp32, 40, 3);
  }
  for (std::uint64_t seed = 0; seed < 12; ++seed) check(seed, tensor_formats::any, 20'000, 3);
  check(1, tensor_formats::any, 60, 2000);
}

/// A store writes what a step writes: the first step of SGD with momentum stores the gradient as the
/// momentum.
TEST(optimizer_conformance, stores_have_the_bytes_of_a_step) {
  using enum stored_format;
  random_words next(7);
  std::vector<std::uint32_t> values(3000);
  for (std::uint32_t& x : values) x = draw_word(next);
  const auto count = static_cast<std::int64_t>(values.size());
  const optimizer_settings sgd = {.rule = update_rule::sgd, .learning_rate = 0, .momentum = 0.5};
  for (int f = 1; f < enum_count<stored_format>; ++f) {
    const auto format = static_cast<stored_format>(f);
    if (format == e4m3_tensor || format == e5m2_tensor) continue;
    const struct {
      stored_format stored;
      format_id id;
    } sources[] = {
        {fp32, format_id::fp32}, {bf16_nearest, format_id::bf16}, {fp16_nearest, format_id::fp16}};
    for (const auto& source : sources) {
      for (const std::uint32_t block : {128u, 256u}) {
        const std::uint64_t first_index = std::uint64_t{block} * 12345;
        std::vector<std::byte> expected(values.size() * 4), codes(values.size() * 4);
        std::vector<float> expected_scales(values.size() / 128 + 1), weights(values.size());
        std::vector<float> scales = expected_scales;
        const optimizer_list list({{.weights = {weights.data(), fp32},
                                    .gradient = {values.data(), source.stored},
                                    .states = {{{expected.data(), format, expected_scales.data()}}},
                                    .count = count,
                                    .first_index = first_index,
                                    .stream = 77,
                                    .block = block}});
        optimizer_step(list, {&sgd, 1}, {.seed = 5}, find_executor("reference"));
        for (const std::string& backend : supported_backends()) {
          for (const int threads : {1, 3}) {
            store(view_of_codes(source.id, values.data(), 1, count),
                  {codes.data(), format, scales.data()},
                  {block, first_index, 5, random_stream_number(stream_purpose::first_state, 77, 1)},
                  find_executor(backend, threads));
            EXPECT_TRUE(codes == expected &&
                        std::memcmp(scales.data(), expected_scales.data(), scales.size() * 4) == 0)
                << backend << ", threads " << threads << ", " << name(format) << " of "
                << name(source.id) << ", block " << block;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace samebits
