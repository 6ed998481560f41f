// reduce_gradients(): messages and refusals. engine.gradients_oracle compares every sum with the oracle.
#include "samebits/distributed.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "samebits/error.hpp"
#include "samebits/testkit/ranks.hpp"
#include "samebits/types.hpp"

namespace samebits {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

TEST(ReduceGradients, EachElementTravelsTwice) {
  std::vector<fp16> a(100);
  std::vector<float> b(8), c(9);
  const auto body = [&](communicator& ranks, const gradient_reduction& how) {
    std::vector<fp16> x = a;
    std::vector<float> y = b, z = c;
    const matrix_view list[] = {view_of(x), view_of(y), view_of(z)};
    reduce_gradients(ranks, list, how);
  };
  using enum testkit::rank_operation;
  // Arguments; then, for each run of one format, contributions and shares of the sums.
  const auto two_bytes = testkit::simulate_ranks(4, [&](communicator& r) { body(r, {}); });
  EXPECT_EQ(two_bytes, (std::vector<testkit::rank_call>{{all_reduce_max, 12},
                                                        {all_to_all, 200},
                                                        {all_gather, 50},
                                                        {all_to_all, 2 * 20},
                                                        {all_gather, 4 * 5}}));
  // One byte, and an amax for each tensor.
  const auto one_byte = testkit::simulate_ranks(
      4, [&](communicator& r) { body(r, {.communication = format_id::e4m3}); });
  EXPECT_EQ(one_byte, (std::vector<testkit::rank_call>{{all_reduce_max, 12},
                                                       {all_reduce_max, 12},
                                                       {all_to_all, 100},
                                                       {all_gather, 50},
                                                       {all_to_all, 20},
                                                       {all_gather, 4 * 5}}));
}

TEST(ReduceGradients, NothingIsAlsoAList) {
  testkit::simulate_ranks(3, [](communicator& ranks) {
    reduce_gradients(ranks, {});
    const matrix_view empty[] = {{.rows = 0, .cols = 5}, {.format = format_id::bf16}};
    reduce_gradients(ranks, empty, {.communication = format_id::e5m2});
  });
}

std::size_t size_of(const view_list& list) { return std::span<const matrix_view>(list).size(); }

TEST(ReduceGradients, ListsOfOneOfSeveralOfRangesAndOfTensorLists) {
  std::vector<float> x(5);
  std::vector<float> y(5);
  const std::vector<matrix_view> both = {view_of(x), view_of(x)};
  EXPECT_EQ(size_of(view_of(x)), 1u);
  EXPECT_EQ(size_of({view_of(x)}), 1u);
  EXPECT_EQ(size_of({view_of(x), view_of(x), view_of(x)}), 3u);
  EXPECT_EQ(size_of(both), 2u);
  EXPECT_EQ(size_of(std::span(both)), 2u);
  EXPECT_EQ(size_of(std::array{view_of(x), view_of(x)}), 2u);
  EXPECT_EQ(size_of({}), 0u);
  EXPECT_EQ(size_of(tensor_list({{view_of(x), "x"}, {view_of(y), "y"}})), 2u);
}

/// What each rank throws, "" for nothing; rank 1 of 3 has arguments of its own.
std::vector<std::string> refusals(const auto& usual, const auto& other) {
  std::vector<std::string> messages(3);
  testkit::simulate_ranks(3, [&](communicator& ranks) {
    try {
      ranks.rank() == 1 ? other(ranks) : usual(ranks);
    } catch (const invalid_argument& error) {
      messages[static_cast<std::size_t>(ranks.rank())] = std::string("own: ") + error.what();
    } catch (const rank_error& error) {
      messages[static_cast<std::size_t>(ranks.rank())] = error.what();
    }
  });
  return messages;
}

TEST(ReduceGradients, WhatOneRankMayNotPassAllRefuse) {
  const auto call = [](std::vector<matrix_view> list, gradient_reduction how = {}) {
    return [list, how](communicator& ranks) { reduce_gradients(ranks, list, how); };
  };
  std::vector<float> x(6, 1.0f);
  std::vector<e4m3> narrow(6);
  std::vector<std::vector<float>> own(3, x);
  const auto good = [&](communicator& ranks) {
    const matrix_view list[] = {view_of(own[static_cast<std::size_t>(ranks.rank())])};
    reduce_gradients(ranks, list);
  };
  const auto expect_refused = [&](const auto& bad, const std::string& why) {
    const auto messages = refusals(good, bad);
    EXPECT_EQ(messages[0],
              "reduce_gradients(): rank 1 refused its arguments; its own error says why");
    EXPECT_EQ(messages[2], messages[0]);
    EXPECT_EQ(messages[1].substr(0, 5), "own: ");
    EXPECT_NE(messages[1].find(why), std::string::npos) << messages[1];
    EXPECT_EQ(own, (std::vector<std::vector<float>>(3, x)));  // nothing was written
  };
  expect_refused(call({view_of(x), view_of(narrow)}), "gradients[1]: format");
  expect_refused(call({on_device(view_of(x))}), "gradients[0]: must lie in host");
  expect_refused(call({view_of(x), view_of(x)}), "worked on twice");
  expect_refused(call({view_of(x)}, {.communication = format_id::fp64}), "how.communication");
  expect_refused(call({view_of(x)}, {.rounding = rounding::upward}), "how.rounding");
  expect_refused(call({view_of(x)}, {.backend = "cuda-native"}), "how.backend");
  expect_refused(call({view_of(x)}, {.factor = inf}), "how.factor");
  expect_refused(call({view_of(x)}, {.factor = nan_value}), "how.factor");
  expect_refused(call({view_of(x)}, {.elements_at_once = 0}), "how.elements_at_once");
  expect_refused(call({view_of(x)}, {.rounding = rounding::stochastic, .random = {.bits = 33}}),
                 "random.bits");
}

TEST(ReduceGradients, ListsThatDifferAreRefused) {
  std::vector<float> x(6, 1.0f);
  std::vector<fp16> half(6);
  const auto usual = [&](communicator& ranks) {
    std::vector<float> mine = x;
    const matrix_view list[] = {view_of(mine)};
    reduce_gradients(ranks, list);
    EXPECT_EQ(mine[0], 3.0f);
  };
  const auto with = [](const matrix_view& view, const gradient_reduction& how = {}) {
    return [=](communicator& ranks) { reduce_gradients(ranks, view, how); };
  };
  for (const auto& other :
       {with(view_of(half)), with(view_of(x.data(), 2, 3)), with(view_of(x.data(), 1, 5)),
        with(view_of(x), {.factor = 0.5f}), with(view_of(x), {.communication = format_id::fp16}),
        with(view_of(x), {.random = {.seed = 1}})}) {
    for (const std::string& message : refusals(usual, other)) {
      EXPECT_EQ(message,
                "reduce_gradients(): the ranks' lists of gradients or their options differ");
    }
    EXPECT_EQ(x, std::vector<float>(6, 1.0f));
  }
}

}  // namespace
}  // namespace samebits
