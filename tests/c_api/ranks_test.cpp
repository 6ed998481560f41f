// Functions over ranks in C against C++, bit for bit. The ranks are threads.
#include <cmath>

#include "c_api/c_ranks.hpp"
#include "c_api/in_c.hpp"
#include "samebits/testkit/ranks.hpp"

namespace samebits::in_c {
namespace {

constexpr int rank_count = 3;

/// The gradients of one rank, in mixed formats.
std::vector<matrix> gradients_of(int rank) {
  std::vector<matrix> all;
  const format_id formats[] = {format_id::fp32, format_id::bf16, format_id::fp16};
  for (std::size_t i = 0; i < 3; ++i) {
    all.push_back(number_matrix(formats[i], 3, 37 + static_cast<std::int64_t>(i),
                                10 * static_cast<std::uint64_t>(rank) + i));
  }
  return all;
}

TEST(CRanks, ReduceGradients) {
  testkit::simulate_ranks(rank_count, [](communicator& ranks) {
    for (const format_id communication : {format_id::fp32, format_id::bf16, format_id::e4m3}) {
      for (const bool random : {false, true}) {
        std::vector<matrix> expected = gradients_of(ranks.rank()), got = expected;
        std::vector<matrix_view> views;
        std::vector<samebits_view> views_in_c;
        for (matrix& m : expected) views.push_back(m.cpp());
        for (matrix& m : got) views_in_c.push_back(m.c());
        gradient_reduction how = {.communication = communication, .factor = 1.0f / 3.0f};
        samebits_gradient_reduction how_in_c = SAMEBITS_GRADIENT_REDUCTION_INIT;
        how_in_c.communication = static_cast<int32_t>(communication);
        how_in_c.factor = how.factor;
        how.elements_at_once = how_in_c.elements_at_once = 100;
        if (random) {
          how.round = rounding::stochastic;
          how.random.seed = 5;
          how_in_c.rounding = SAMEBITS_ROUNDING_STOCHASTIC;
          how_in_c.random.seed = 5;
        }
        reduce_gradients(ranks, views, how);
        const c_ranks in_c(ranks);
        ASSERT_OK(samebits_reduce_gradients(&in_c.c, views_in_c.data(), 3, &how_in_c));
        for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(got[i].bytes, expected[i].bytes);
      }
    }
  });
}

TEST(CRanks, OneRankNeedsNoFunctions) {
  std::vector<matrix> expected = gradients_of(0), got = expected;
  single_rank alone;
  reduce_gradients(alone, expected[0].cpp());
  const samebits_communicator ranks = SAMEBITS_COMMUNICATOR_INIT;
  const samebits_view view = got[0].c();
  ASSERT_OK(samebits_reduce_gradients(&ranks, &view, 1, nullptr));
  EXPECT_EQ(got[0].bytes, expected[0].bytes);
  std::uint8_t received[3] = {};
  ASSERT_OK(samebits_gather_messages(&ranks, "abc", 3, received));
  EXPECT_EQ(std::memcmp(received, "abc", 3), 0);
}

TEST(CRanks, GatherMessages) {
  testkit::simulate_ranks(rank_count, [](communicator& ranks) {
    const c_ranks in_c(ranks);
    const std::uint8_t sent[2] = {static_cast<std::uint8_t>(ranks.rank()), 7};
    std::uint8_t received[6] = {};
    ASSERT_OK(samebits_gather_messages(&in_c.c, sent, 2, received));
    const std::uint8_t expected[6] = {0, 7, 1, 7, 2, 7};
    EXPECT_TRUE(same_bytes(received, expected));
    EXPECT_OK(samebits_gather_messages(&in_c.c, nullptr, 0, nullptr));
  });
}

TEST(CRanks, Agree) {
  testkit::simulate_ranks(rank_count, [](communicator& ranks) {
    const bool bad = ranks.rank() == 1;
    const rank_observation mine = {.seen = {.nonfinite = bad, .loss_nonfinite = bad, .amax = 5},
                                   .first_bad = bad ? 4 : -1};
    const rank_observation expected = agree(ranks, mine);
    const c_ranks in_c(ranks);
    const samebits_rank_observation mine_in_c = {bad, bad, 0, 5, mine.first_bad, -1};
    samebits_rank_observation got = {};
    ASSERT_OK(samebits_agree(&in_c.c, &mine_in_c, &got));
    EXPECT_EQ(got.nonfinite != 0, expected.seen.nonfinite);
    EXPECT_EQ(got.loss_nonfinite != 0, expected.seen.loss_nonfinite);
    EXPECT_EQ(got.amax_bits, expected.seen.amax);
    EXPECT_EQ(got.first_bad, 4);
    EXPECT_EQ(got.bad_rank, 1);
  });
}

TEST(CRanks, ScalersSkipTogether) {
  testkit::simulate_ranks(rank_count, [](communicator& ranks) {
    const c_ranks in_c(ranks);
    samebits_loss_scaler* scaler = nullptr;
    ASSERT_OK(samebits_loss_scaler_create(SAMEBITS_SCALING_POLICY_TORCH, nullptr, 0, &scaler));
    samebits_rank_observation all = {};
    EXPECT_REFUSED(samebits_loss_scaler_agree(scaler, &in_c.c, "adam", &all),
                   SAMEBITS_CALL_ORDER_ERROR, "adam");
    samebits_step_observation seen = SAMEBITS_STEP_OBSERVATION_INIT;
    seen.nonfinite = ranks.rank() == 2 ? 1 : 0;
    ASSERT_OK(samebits_loss_scaler_observe(scaler, &seen, "adam"));
    ASSERT_OK(samebits_loss_scaler_agree(scaler, &in_c.c, "adam", &all));
    EXPECT_EQ(all.bad_rank, 2);
    int32_t applied = -1;
    ASSERT_OK(samebits_loss_scaler_step(scaler, "adam", nullptr, nullptr, &applied));
    EXPECT_EQ(applied, 0);
    ASSERT_OK(samebits_loss_scaler_update(scaler, nullptr));
    samebits_loss_scaler_destroy(scaler);
    // Another scale on one rank: every rank is told.
    const samebits_setting setting = {"init_scale", ranks.rank() == 0 ? "8" : "16"};
    ASSERT_OK(samebits_loss_scaler_create(SAMEBITS_SCALING_POLICY_TORCH, &setting, 1, &scaler));
    ASSERT_OK(samebits_loss_scaler_observe(scaler, &seen, nullptr));
    EXPECT_REFUSED(samebits_loss_scaler_agree(scaler, &in_c.c, nullptr, nullptr),
                   SAMEBITS_RANK_ERROR, "the ranks' scalers differ");
    samebits_loss_scaler_destroy(scaler);
  });
}

TEST(CRanks, SumShards) {
  std::vector<float> x(rank_count * 3 * 4096 + 100);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1.0f / static_cast<float>(i + 1);
  const double expected = sum_of_squares(view_of(x));
  testkit::simulate_ranks(rank_count, [&](communicator& ranks) {
    const c_ranks in_c(ranks);
    const std::size_t begin = 3 * 4096 * static_cast<std::size_t>(ranks.rank());
    const std::size_t end = ranks.rank() == rank_count - 1 ? x.size() : begin + 3 * 4096;
    samebits_tree_part* part = nullptr;
    ASSERT_OK(samebits_tree_part_create(begin, &part));
    const float* at = x.data() + begin;
    std::size_t left = end - begin;
    if (begin / 4096 % 2 == 1) {  // one chunk by its elements, the next two by their sum
      const samebits_view chunk = samebits_dense_view(SAMEBITS_FORMAT_FP32, at, 1, 4096);
      ASSERT_OK(samebits_tree_part_add_squares(part, &chunk));
      at += 4096;
      left -= 4096;
    }
    const double two = sum_of_squares(view_of(at, 1, 2 * 4096));
    ASSERT_OK(samebits_tree_part_add_subtree(part, 2, two));
    at += 2 * 4096;
    left -= 2 * 4096;
    std::vector<double> squares;
    for (; left > 0; --left, ++at) squares.push_back(static_cast<double>(*at) * *at);
    ASSERT_OK(samebits_tree_part_add(part, squares.data(), squares.size()));
    uint64_t first = 0, count = 0;
    ASSERT_OK(samebits_tree_part_extent(part, &first, &count));
    EXPECT_EQ(first, begin);
    EXPECT_EQ(count, end - begin);
    double sum = 0, total = 0;
    ASSERT_OK(samebits_sum_shards(&in_c.c, &part, 1, &sum, &total));
    EXPECT_TRUE(same_bytes(sum, expected));
    EXPECT_TRUE(same_bytes(total, expected));
    EXPECT_REFUSED(samebits_tree_part_add_subtree(part, 3, 1.0), SAMEBITS_INVALID_ARGUMENT,
                   "power of two");
    samebits_tree_part_destroy(part);
    // A gap: every rank is told.
    ASSERT_OK(samebits_tree_part_create(8192 * static_cast<uint64_t>(ranks.rank()), &part));
    ASSERT_OK(samebits_tree_part_add_subtree(part, 1, 1.0));
    EXPECT_REFUSED(samebits_sum_shards(&in_c.c, &part, 1, &sum, nullptr), SAMEBITS_RANK_ERROR,
                   "tensor 0");
    samebits_tree_part_destroy(part);
  });
  samebits_tree_part* part = nullptr;
  EXPECT_REFUSED(samebits_tree_part_create(4095, &part), SAMEBITS_INVALID_ARGUMENT, "4096");
  samebits_tree_part_destroy(nullptr);
}

TEST(CRanks, ARefusalReachesEveryRank) {
  testkit::simulate_ranks(rank_count, [](communicator& ranks) {
    const c_ranks in_c(ranks);
    const bool wrong = ranks.rank() == 1;
    matrix m = number_matrix(format_id::fp32, 1, 8);
    const matrix before = m;
    samebits_view view = m.c();
    samebits_gradient_reduction how = SAMEBITS_GRADIENT_REDUCTION_INIT;
    const auto expect = [&](samebits_status status, const char* message) {
      EXPECT_EQ(status, wrong ? SAMEBITS_INVALID_ARGUMENT : SAMEBITS_RANK_ERROR);
      EXPECT_NE(std::string(samebits_last_error()).find(wrong ? message : "rank 1 refused"),
                std::string::npos)
          << samebits_last_error();
    };
    // Refused by the C interface, by the C++ function, for a null pointer.
    how.rule = wrong ? 99 : 0;
    expect(samebits_reduce_gradients(&in_c.c, &view, 1, &how), "how.rule");
    how = SAMEBITS_GRADIENT_REDUCTION_INIT;
    how.factor = wrong ? INFINITY : 1.0f;
    expect(samebits_reduce_gradients(&in_c.c, &view, 1, &how), "how.factor");
    expect(samebits_reduce_gradients(&in_c.c, wrong ? nullptr : &view, 1, nullptr), "gradients");
    const samebits_tree_part* const none = nullptr;
    if (wrong) {
      expect(samebits_sum_shards(&in_c.c, &none, 1, nullptr, nullptr), "parts[]");
    } else {
      expect(samebits_sum_shards(&in_c.c, nullptr, 0, nullptr, nullptr), "");
    }
    EXPECT_EQ(m.bytes, before.bytes);
    // Lists that differ
    view.cols = ranks.rank() + 1;
    EXPECT_REFUSED(samebits_reduce_gradients(&in_c.c, &view, 1, nullptr), SAMEBITS_RANK_ERROR,
                   "differ");
  });
}

TEST(CRanks, AFunctionThatFails) {
  testkit::simulate_ranks(1, [](communicator& ranks) {
    matrix m = number_matrix(format_id::fp32, 1, 8);
    const samebits_view view = m.c();
    const c_ranks first(ranks, 0);
    samebits_communicator device = first.c;  // a device needs functions also for one rank
    device.memory = SAMEBITS_MEMORY_DEVICE;
    device.all_gather = nullptr;
    EXPECT_REFUSED(samebits_reduce_gradients(&device, &view, 1, nullptr), SAMEBITS_INVALID_ARGUMENT,
                   "ranks.all_gather: must not be null");
    EXPECT_REFUSED(samebits_reduce_gradients(&first.c, &view, 1, nullptr), SAMEBITS_CALLBACK_FAILED,
                   "all_reduce_max: the caller's function returned 17");
    const c_ranks second(ranks, 1);
    EXPECT_REFUSED(samebits_reduce_gradients(&second.c, &view, 1, nullptr),
                   SAMEBITS_CALLBACK_FAILED, "all_to_all");
    const c_ranks later(ranks, 4);  // the first of two messages is written
    samebits_gradient_reduction how = SAMEBITS_GRADIENT_REDUCTION_INIT;
    how.elements_at_once = 4;
    EXPECT_REFUSED(samebits_reduce_gradients(&later.c, &view, 1, &how), SAMEBITS_INCOMPLETE_WRITE,
                   "all_gather: the caller's function returned 17");
  });
}

TEST(CRanks, ACommunicatorThatIsRefused) {
  samebits_communicator ranks = SAMEBITS_COMMUNICATOR_INIT;
  EXPECT_REFUSED(samebits_reduce_gradients(nullptr, nullptr, 0, nullptr), SAMEBITS_INVALID_ARGUMENT,
                 "ranks: must not be null");
  ranks.size = 0;
  EXPECT_REFUSED(samebits_reduce_gradients(&ranks, nullptr, 0, nullptr), SAMEBITS_INVALID_ARGUMENT,
                 "ranks.size");
  ranks.size = 2;
  ranks.rank = 2;
  EXPECT_REFUSED(samebits_reduce_gradients(&ranks, nullptr, 0, nullptr), SAMEBITS_INVALID_ARGUMENT,
                 "ranks.rank");
  ranks.rank = 1;
  EXPECT_REFUSED(samebits_reduce_gradients(&ranks, nullptr, 0, nullptr), SAMEBITS_INVALID_ARGUMENT,
                 "ranks.all_reduce_max: must not be null");
  ranks.memory = 2;
  EXPECT_REFUSED(samebits_reduce_gradients(&ranks, nullptr, 0, nullptr), SAMEBITS_INVALID_ARGUMENT,
                 "ranks.memory");
}

TEST(CRanks, ShardLayout) {
  testkit::simulate_ranks(2, [](communicator& ranks) {
    const c_ranks in_c(ranks);
    matrix m = number_matrix(format_id::fp32, 1, 4096);
    const samebits_list_tensor tensor = {m.c(), "w", 0, 0};
    samebits_tensor_list* list = nullptr;
    ASSERT_OK(samebits_tensor_list_create(&tensor, 1, &list));
    uint64_t first = 4096 * static_cast<uint64_t>(ranks.rank());
    samebits_shard_layout* layout = nullptr;
    ASSERT_OK(samebits_shard_layout_create(&in_c.c, list, &first, &layout));
    samebits_shard_layout_destroy(layout);
    samebits_shard_layout_destroy(nullptr);
    layout = nullptr;
    first *= 2;
    EXPECT_REFUSED(samebits_shard_layout_create(&in_c.c, list, &first, &layout),
                   SAMEBITS_RANK_ERROR, "w");
    const bool wrong = ranks.rank() == 0;
    EXPECT_EQ(samebits_shard_layout_create(&in_c.c, wrong ? nullptr : list, &first, &layout),
              wrong ? SAMEBITS_INVALID_ARGUMENT : SAMEBITS_RANK_ERROR)
        << samebits_last_error();
    EXPECT_EQ(layout, nullptr);
    samebits_tensor_list_destroy(list);
  });
}

}  // namespace
}  // namespace samebits::in_c
