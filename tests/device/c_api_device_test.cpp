// The C interface on device memory against the C++ functions on the host, bit for bit.
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "c_api/c_ranks.hpp"
#include "c_api/in_c.hpp"
#include "device/cuda_backends.hpp"
#include "device/device_copy.hpp"
#include "device/device_ranks.hpp"
#include "samebits/device_loss_scaler.hpp"
#include "samebits/distributed.hpp"
#include "samebits/testkit/ranks.hpp"

namespace samebits::in_c {
namespace {

using support::check_cuda;
using support::guarded_copy;

/// A matrix of the host and its copy on the device, as a C view.
struct device_matrix {
  explicit device_matrix(matrix& m) : copy(m.cpp()), c(view(copy.placed(m.cpp()))) {}
  guarded_copy copy;
  samebits_view c;
};

class CDevice : public testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    backend_ = GetParam();
    where.backend = backend_.c_str();
    ASSERT_OK(samebits_initialize(backend_.c_str()));
    check_cuda(cudaStreamCreate(&stream_), "stream");
    where.stream = stream_;
  }
  void TearDown() override { cudaStreamDestroy(stream_); }
  void wait() { check_cuda(cudaStreamSynchronize(stream_), "calls"); }

  samebits_executor where = SAMEBITS_EXECUTOR_INIT;

 private:
  std::string backend_;
  cudaStream_t stream_ = nullptr;
};

TEST_P(CDevice, ConvertEveryFormat) {
  for (int from = 0; from < format_count; ++from) {
    matrix in = random_matrix(format_at(from), 33, 65);
    const device_matrix x(in);
    for (int to = 0; to < format_count; ++to) {
      matrix expected(format_at(to), 33, 65), got(format_at(to), 33, 65);
      convert(in.cpp(), expected.cpp(), {.on_overflow = overflow::saturate});
      const device_matrix y(got);
      samebits_convert_options options = SAMEBITS_CONVERT_OPTIONS_INIT;
      options.overflow = SAMEBITS_OVERFLOW_SATURATE;
      samebits_executor chosen = where;
      chosen.backend = nullptr;  // the default has every conversion
      ASSERT_OK(samebits_convert(&x.c, &y.c, &options, &chosen));
      wait();
      y.copy.copy_back();
      ASSERT_EQ(got.bytes, expected.bytes) << name(format_at(from)) << name(format_at(to));
    }
  }
}

TEST_P(CDevice, ArithmeticWithFlags) {
  matrix a = random_matrix(format_id::fp32, 20, 50, 1),
         b = random_matrix(format_id::fp32, 20, 50, 2);
  matrix expected(format_id::bf16, 20, 50), got(format_id::bf16, 20, 50);
  const auto raised = static_cast<std::uint32_t>(
      compute_with_flags(operation::mul, {a.cpp(), b.cpp()}, expected.cpp()));
  const device_matrix x(a), y(b), z(got);
  std::uint32_t flags = 0;
  samebits_executor chosen = where;
  if (std::string_view(GetParam()) == "cuda-native") {  // has no flags; the default backend has
    EXPECT_EQ(samebits_compute_with_flags(SAMEBITS_OPERATION_MUL, &x.c, &y.c, nullptr, &z.c,
                                          nullptr, nullptr, &flags, &where),
              SAMEBITS_UNSUPPORTED);
    chosen.backend = nullptr;
  }
  ASSERT_OK(samebits_compute_with_flags(SAMEBITS_OPERATION_MUL, &x.c, &y.c, nullptr, &z.c, nullptr,
                                        nullptr, &flags, &chosen));
  z.copy.copy_back();
  EXPECT_EQ(got.bytes, expected.bytes);
  EXPECT_EQ(flags, raised);
  std::uint32_t enqueued = 0;
  const guarded_copy word(&enqueued, sizeof enqueued);
  ASSERT_OK(samebits_enqueue_compute_with_flags(SAMEBITS_OPERATION_MUL, &x.c, &y.c, nullptr, &z.c,
                                                nullptr, nullptr,
                                                static_cast<std::uint32_t*>(word.data()), &chosen));
  wait();
  word.copy_back();
  EXPECT_EQ(enqueued, raised);
}

TEST_P(CDevice, Reductions) {
  matrix m = number_matrix(format_id::bf16, 77, 991);
  const device_matrix x(m);
  float largest = 0;
  ASSERT_OK(samebits_amax(&x.c, &largest, &where));
  EXPECT_EQ(largest, amax(m.cpp()));
  samebits_element_counts found = {};
  ASSERT_OK(samebits_counts(&x.c, &found, &where));
  EXPECT_TRUE(same_bytes(found, counts(m.cpp())));
  size_t bytes = 0;
  ASSERT_OK(samebits_reduction_workspace(&x.c, &bytes, &where));
  std::vector<std::uint8_t> memory(bytes + 16);
  const guarded_copy workspace(memory.data(), bytes);
  double total = 0;
  const guarded_copy result(&total, sizeof total);
  ASSERT_OK(samebits_enqueue_sum(&x.c, static_cast<double*>(result.data()), workspace.data(), bytes,
                                 &where));
  wait();
  result.copy_back();
  EXPECT_EQ(total, sum(m.cpp()));
}

TEST_P(CDevice, QuantizeWithStatistics) {
  matrix in = random_matrix(format_id::bf16, 130, 300);
  matrix codes(format_id::e4m3, 130, 300), expected_codes(format_id::e4m3, 130, 300);
  matrix scales(format_id::fp32, 130, 3), expected_scales(format_id::fp32, 130, 3);
  quantize_statistics expected;
  quantize(
      in.cpp(),
      {.codes = expected_codes.cpp(), .scales = expected_scales.cpp(), .statistics = &expected});
  const device_matrix x(in), y(codes), s(scales);
  samebits_quantize_statistics statistics = {};
  const guarded_copy statistics_copy(&statistics, sizeof statistics);
  samebits_quantize_outputs outputs = SAMEBITS_QUANTIZE_OUTPUTS_INIT;
  outputs.codes = &y.c;
  outputs.scales = &s.c;
  outputs.statistics = static_cast<samebits_quantize_statistics*>(statistics_copy.data());
  ASSERT_OK(samebits_quantize(&x.c, &outputs, nullptr, &where));
  wait();
  y.copy.copy_back();
  s.copy.copy_back();
  statistics_copy.copy_back();
  EXPECT_EQ(codes.bytes, expected_codes.bytes);
  EXPECT_EQ(scales.bytes, expected_scales.bytes);
  EXPECT_TRUE(same_bytes(statistics, expected));
}

TEST_P(CDevice, TensorLists) {
  matrix a = number_matrix(format_id::fp16, 9, 100), expected = a;
  const device_matrix x(a);
  const samebits_list_tensor tensor = {x.c, "weight", 0, 0};
  samebits_tensor_list* list = nullptr;
  ASSERT_OK(samebits_tensor_list_create(&tensor, 1, &list));
  const unscale_report report = unscale(expected.cpp(), 0.25f);
  samebits_unscale_report report_in_c = {};
  EXPECT_OK(samebits_tensor_list_unscale(list, 0.25f, &report_in_c, &where));
  EXPECT_EQ(report_in_c.amax_bits, report.amax_bits);
  const clip_report clipped = clip(expected.cpp(), 1.0);
  double norm = 0;
  EXPECT_OK(samebits_tensor_list_clip(list, 1.0, &norm, nullptr, &where));
  EXPECT_EQ(norm, clipped.norm);
  wait();
  x.copy.copy_back();
  EXPECT_EQ(a.bytes, expected.bytes);
  samebits_tensor_list_destroy(list);
}

TEST_P(CDevice, LossScaler) {
  matrix a = number_matrix(format_id::fp16, 9, 100);
  const device_matrix x(a);
  const samebits_list_tensor tensor = {x.c, "weight", 0, 0};
  samebits_tensor_list* list = nullptr;
  ASSERT_OK(samebits_tensor_list_create(&tensor, 1, &list));
  samebits_device_scaler_options options = SAMEBITS_DEVICE_SCALER_OPTIONS_INIT;
  options.max_norm = 1.0;
  options.backend = where.backend;
  samebits_device_loss_scaler* scaler = nullptr;
  ASSERT_OK(samebits_device_loss_scaler_create(list, SAMEBITS_SCALING_POLICY_TORCH, nullptr, 0,
                                               &options, &scaler));
  device_loss_scaler expected(x.copy.placed(a.cpp()), torch_scaling{},
                              {.max_norm = 1.0, .backend = GetParam()});
  for (int step = 0; step < 3; ++step) {
    ASSERT_OK(samebits_device_loss_scaler_step(scaler, where.stream));
    expected.step(where.stream);
    wait();
    samebits_step_report report = {};
    int32_t arrived = 0;
    ASSERT_OK(samebits_device_loss_scaler_poll(scaler, &report, &arrived));
    const std::optional<step_report> other = expected.poll();
    ASSERT_TRUE(arrived == 1 && other);
    EXPECT_TRUE(same_bytes(report, *other));
  }
  size_t length = 0;
  ASSERT_OK(samebits_device_loss_scaler_save(scaler, where.stream, nullptr, 0, &length));
  std::string text(length + 1, '?');
  ASSERT_OK(
      samebits_device_loss_scaler_save(scaler, where.stream, text.data(), text.size(), nullptr));
  text.pop_back();
  EXPECT_EQ(text, expected.save(where.stream));
  samebits_device_scaler_state state = {};
  ASSERT_OK(samebits_device_loss_scaler_state(scaler, where.stream, &state));
  EXPECT_EQ(state.steps, 3u);
  samebits_device_loss_scaler_destroy(scaler);
  ASSERT_OK(samebits_device_loss_scaler_load(list, text.c_str(), &options, &scaler));
  samebits_device_loss_scaler_destroy(scaler);
  samebits_tensor_list_destroy(list);
}

TEST_P(CDevice, GradientsOverRanks) {
  constexpr int ranks = 3;
  std::vector<matrix> expected(ranks, matrix(format_id::bf16, 9, 1000));
  const auto gradient = [](int rank) {
    return number_matrix(format_id::bf16, 9, 1000, static_cast<std::uint64_t>(rank));
  };
  testkit::simulate_ranks(ranks, [&](communicator& r) {
    matrix& mine = expected[static_cast<std::size_t>(r.rank())];
    mine = gradient(r.rank());
    reduce_gradients(r, mine.cpp(), {.communication = format_id::e4m3});
  });
  const support::device_streams streams;
  support::simulate_device_ranks(streams, ranks, [&](communicator& r) {
    matrix mine = gradient(r.rank());
    const device_matrix x(mine);
    const c_ranks in_c(r);
    samebits_gradient_reduction how = SAMEBITS_GRADIENT_REDUCTION_INIT;
    how.communication = SAMEBITS_FORMAT_E4M3;
    how.backend = where.backend;
    ASSERT_OK(samebits_reduce_gradients(&in_c.c, &x.c, 1, &how));
    check_cuda(cudaStreamSynchronize(static_cast<cudaStream_t>(r.stream())), "sums");
    x.copy.copy_back();
    EXPECT_EQ(mine.bytes, expected[static_cast<std::size_t>(r.rank())].bytes);
    const auto rank = static_cast<std::uint8_t>(r.rank());
    std::uint8_t everyone[ranks] = {};
    ASSERT_OK(samebits_gather_messages(&in_c.c, &rank, 1, everyone));
    EXPECT_EQ(everyone[2], 2);
  });
}

TEST_P(CDevice, LossScalerOverShards) {
  const support::device_streams streams;
  support::simulate_device_ranks(streams, 2, [&](communicator& r) {
    matrix mine = number_matrix(format_id::fp32, 1, 4096, static_cast<std::uint64_t>(r.rank()));
    const device_matrix x(mine);
    const samebits_list_tensor tensor = {x.c, "weight", 0, 0};
    samebits_tensor_list* list = nullptr;
    ASSERT_OK(samebits_tensor_list_create(&tensor, 1, &list));
    const std::uint64_t first = 4096 * static_cast<std::uint64_t>(r.rank());
    const c_ranks in_c(r);
    samebits_device_scaler_options options = SAMEBITS_DEVICE_SCALER_OPTIONS_INIT;
    samebits_shard_layout* layout = nullptr;
    ASSERT_OK(samebits_shard_layout_create(&in_c.c, list, &first, &layout));
    options.max_norm = 1.0;
    options.backend = where.backend;
    options.shards = layout;
    samebits_device_loss_scaler* scaler = nullptr;
    ASSERT_OK(samebits_device_loss_scaler_create(list, SAMEBITS_SCALING_POLICY_TORCH, nullptr, 0,
                                                 &options, &scaler));
    samebits_shard_layout_destroy(layout);  // the scaler keeps what it needs
    const tensor_list shards(x.copy.placed(mine.cpp()));
    device_loss_scaler expected(
        shards, torch_scaling{},
        {.max_norm = 1.0, .backend = GetParam(), .shards = shard_layout(r, shards, {&first, 1})});
    EXPECT_REFUSED(samebits_device_loss_scaler_step(scaler, r.stream()), SAMEBITS_CALL_ORDER_ERROR,
                   "sharded");
    expected.step(r);
    ASSERT_OK(samebits_device_loss_scaler_step_on_ranks(scaler, &in_c.c));
    check_cuda(cudaStreamSynchronize(static_cast<cudaStream_t>(r.stream())), "step");
    samebits_step_report report = {};
    int32_t arrived = 0;
    ASSERT_OK(samebits_device_loss_scaler_poll(scaler, &report, &arrived));
    const std::optional<step_report> other = expected.poll();
    ASSERT_TRUE(arrived == 1 && other);
    EXPECT_TRUE(same_bytes(report, *other));
    samebits_communicator on_host = in_c.c;
    on_host.memory = SAMEBITS_MEMORY_HOST;
    EXPECT_REFUSED(samebits_device_loss_scaler_agree(scaler, &on_host), SAMEBITS_INVALID_ARGUMENT,
                   "device memory");
    samebits_device_loss_scaler_destroy(scaler);
    samebits_tensor_list_destroy(list);
  });
}

/// Steps of a scaler in device memory, on gradients of two formats: words, reports and gradients
/// have the bits of the same calls on host memory.
TEST_P(CDevice, ResidentScaler) {
  constexpr uint64_t capacity = 8;
  samebits_loss_scaler* scaler = nullptr;
  ASSERT_OK(samebits_loss_scaler_create(SAMEBITS_SCALING_POLICY_NATIVE, nullptr, 0, &scaler));
  size_t bytes = 0;
  ASSERT_OK(samebits_resident_size(scaler, &bytes));
  std::vector<std::uint8_t> state(bytes), got_state(bytes);
  samebits_scaler_words words = {}, got_words = {};
  ASSERT_OK(samebits_resident_store(scaler, state.data(), bytes, &words));
  got_state = state;
  got_words = words;
  std::vector<std::uint64_t> ring(capacity * SAMEBITS_REPORT_SLOT_BYTES / 8);
  void* got_ring = nullptr;
  check_cuda(cudaHostAlloc(&got_ring, ring.size() * 8, cudaHostAllocMapped), "ring");
  std::memset(got_ring, 0, ring.size() * 8);
  const guarded_copy state_copy(got_state.data(), bytes), words_copy(&got_words, sizeof words);
  auto* const device_words = static_cast<samebits_scaler_words*>(words_copy.data());
  uint64_t next = 0, got_next = 0, lost = 0;
  for (std::uint64_t step = 0; step < 12; ++step) {
    matrix a = number_matrix(format_id::fp16, 90, 100, step);
    matrix b = number_matrix(format_id::bf16, 7, 9);
    const std::uint16_t inf = 0x7F80;
    if (step == 5) std::memcpy(b.bytes.data(), &inf, sizeof inf);
    matrix got_a = a, got_b = b;
    const device_matrix x(got_a), y(got_b);
    const samebits_list_tensor on_host[] = {{a.c(), "a", 0, 0}, {b.c(), "b", 0, 0}};
    const samebits_list_tensor on_device[] = {{x.c, "a", 0, 0}, {y.c, "b", 0, 0}};
    samebits_gradients *expected = nullptr, *got = nullptr;
    ASSERT_OK(samebits_gradients_create(on_host, 2, &expected));
    ASSERT_OK(samebits_gradients_create(on_device, 2, &got));
    size_t tables = 0, workspace = 0;
    ASSERT_OK(samebits_gradients_sizes(got, &tables, &workspace));
    std::vector<std::uint64_t> table_bytes(tables / 8 + 1), room(workspace / 8 + 32);
    ASSERT_OK(samebits_gradients_write_tables(got, table_bytes.data(), tables));
    void *device_tables = nullptr, *device_room = nullptr;
    check_cuda(cudaMalloc(&device_tables, tables), "tables");
    check_cuda(cudaMalloc(&device_room, workspace), "workspace");
    check_cuda(cudaMemcpy(device_tables, table_bytes.data(), tables, cudaMemcpyHostToDevice),
               "tables");
    samebits_unscale_options options = SAMEBITS_UNSCALE_OPTIONS_INIT;
    options.skips_overflow = 1;
    if (step % 3 == 1) options.max_norm = 1e-4;
    options.rewrites = step % 3 == 2 ? 0 : 1;
    samebits_gradient_report report = {}, got_report = {};
    const guarded_copy report_copy(&got_report, sizeof report);
    auto* const device_report = static_cast<samebits_gradient_report*>(report_copy.data());
    ASSERT_OK(
        samebits_gradients_unscale(expected, nullptr, nullptr, &words, &report, &options, nullptr));
    ASSERT_OK(samebits_gradients_unscale(got, device_tables, device_room, device_words,
                                         device_report, &options, &where));
    ASSERT_OK(samebits_resident_update(scaler, SAMEBITS_MEMORY_HOST, state.data(), &words, &report,
                                       1, ring.data(), capacity, nullptr));
    ASSERT_OK(samebits_resident_update(scaler, SAMEBITS_MEMORY_DEVICE, state_copy.data(),
                                       device_words, device_report, 1, got_ring, capacity,
                                       where.stream));
    wait();
    x.copy.copy_back();
    y.copy.copy_back();
    words_copy.copy_back();
    state_copy.copy_back();
    report_copy.copy_back();
    EXPECT_EQ(got_a.bytes, a.bytes);
    EXPECT_EQ(got_b.bytes, b.bytes);
    EXPECT_TRUE(same_bytes(got_words, words));
    EXPECT_TRUE(same_bytes(got_report, report));
    EXPECT_EQ(got_state, state);
    samebits_step_report seen = {}, got_seen = {};
    int32_t arrived = 0, got_arrived = 0;
    ASSERT_OK(samebits_report_ring_poll(ring.data(), capacity, &next, &lost, &seen, &arrived));
    ASSERT_OK(
        samebits_report_ring_poll(got_ring, capacity, &got_next, &lost, &got_seen, &got_arrived));
    EXPECT_TRUE(arrived == 1 && got_arrived == 1 && same_bytes(got_seen, seen));
    EXPECT_EQ(seen.applied != 0, step != 5);
    cudaFree(device_tables);
    cudaFree(device_room);
    samebits_gradients_destroy(expected);
    samebits_gradients_destroy(got);
  }
  EXPECT_EQ(lost, 0u);
  cudaFreeHost(got_ring);
  samebits_loss_scaler_destroy(scaler);
}

TEST_P(CDevice, OptimizerTablesMustBeAligned) {
  matrix weights = number_matrix(format_id::fp32, 1, 64), gradient = weights;
  const device_matrix w(weights), g(gradient);
  samebits_optimizer_tensor t = {};
  t.weights = {w.c.data, nullptr, SAMEBITS_STORED_FORMAT_FP32, 0};
  t.gradient = {g.c.data, nullptr, SAMEBITS_STORED_FORMAT_FP32, 0};
  t.count = 64;
  t.block = 128;
  samebits_optimizer_list* list = nullptr;
  ASSERT_OK(samebits_optimizer_list_describe(&t, 1, SAMEBITS_MEMORY_DEVICE, &list));
  size_t bytes = 0;
  ASSERT_OK(samebits_optimizer_list_tables_size(list, &bytes));
  std::vector<std::byte> tables(bytes, std::byte{0x5A});
  void* on_device = nullptr;
  check_cuda(cudaMalloc(&on_device, bytes + 8), "tables");
  EXPECT_REFUSED(samebits_optimizer_list_write_tables(list, tables.data(), bytes,
                                                      static_cast<std::byte*>(on_device) + 8),
                 SAMEBITS_INVALID_ARGUMENT, "on_device: must be a multiple of 16");
  EXPECT_EQ(tables, std::vector<std::byte>(bytes, std::byte{0x5A}));
  EXPECT_OK(samebits_optimizer_list_write_tables(list, tables.data(), bytes, on_device));
  samebits_optimizer_list_destroy(list);
  cudaFree(on_device);
}

INSTANTIATE_TEST_SUITE_P(Backends, CDevice, support::cuda_backends(), support::cuda_backend_name);

}  // namespace
}  // namespace samebits::in_c
