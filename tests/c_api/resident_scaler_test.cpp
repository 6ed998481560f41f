// Loss scaling in the caller's memory: the reports and bits of the host's loss scaler.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "c_api/in_c.hpp"

namespace samebits::in_c {
namespace {

/// A scaler's handle, and its state in the caller's memory.
struct resident {
  explicit resident(int policy) {
    EXPECT_OK(samebits_loss_scaler_create(policy, nullptr, 0, &handle));
    size_t bytes = 0;
    EXPECT_OK(samebits_resident_size(handle, &bytes));
    state.resize(bytes);
    EXPECT_OK(samebits_resident_store(handle, state.data(), state.size(), &words));
  }
  ~resident() { samebits_loss_scaler_destroy(handle); }
  resident(const resident&) = delete;
  resident& operator=(const resident&) = delete;

  void update(const std::vector<samebits_gradient_report>& reports) {
    EXPECT_OK(samebits_resident_update(handle, SAMEBITS_MEMORY_HOST, state.data(), &words,
                                       reports.data(), reports.size(), ring.data(), capacity,
                                       nullptr));
  }
  /// The next step report.
  samebits_step_report polled() {
    samebits_step_report report = {};
    int32_t arrived = 0;
    EXPECT_OK(samebits_report_ring_poll(ring.data(), capacity, &next, &lost, &report, &arrived));
    EXPECT_EQ(arrived, 1);
    return report;
  }
  /// The text of the scaler's save().
  std::string text() {
    EXPECT_OK(samebits_resident_load(handle, state.data(), state.size()));
    size_t length = 0;
    EXPECT_OK(samebits_loss_scaler_save(handle, nullptr, 0, &length));
    std::string all(length + 1, '?');
    EXPECT_OK(samebits_loss_scaler_save(handle, all.data(), all.size(), nullptr));
    all.pop_back();
    return all;
  }

  static constexpr uint64_t capacity = 4;
  samebits_loss_scaler* handle = nullptr;
  std::vector<std::uint8_t> state;
  samebits_scaler_words words = {};
  std::vector<std::uint64_t> ring =
      std::vector<std::uint64_t>(capacity * SAMEBITS_REPORT_SLOT_BYTES / 8);
  uint64_t next = 0, lost = 0;
};

/// A description of one matrix and an empty tensor before it.
samebits_gradients* described(matrix& m) {
  const samebits_list_tensor tensors[] = {
      {{nullptr, 0, 0, 0, 0, static_cast<int32_t>(m.format), SAMEBITS_MEMORY_HOST}, "none", 0, 0},
      {m.c(), "weight", 0, 0}};
  samebits_gradients* gradients = nullptr;
  EXPECT_OK(samebits_gradients_create(tensors, 2, &gradients));
  return gradients;
}

samebits_gradient_report unscaled(matrix& m, const samebits_scaler_words& words,
                                  const samebits_unscale_options& options) {
  samebits_gradients* const gradients = described(m);
  samebits_gradient_report report = {};
  EXPECT_OK(
      samebits_gradients_unscale(gradients, nullptr, nullptr, &words, &report, &options, nullptr));
  samebits_gradients_destroy(gradients);
  return report;
}

TEST(CResidentScaler, EveryPolicyStepForStep) {
  for (int policy = 0; policy < enum_count<scaling_policy>; ++policy) {
    loss_scaler expected(default_settings(static_cast<scaling_policy>(policy)));
    resident got(policy);
    samebits_unscale_options options = SAMEBITS_UNSCALE_OPTIONS_INIT;
    options.skips_overflow = policy == SAMEBITS_SCALING_POLICY_NATIVE ? 1 : 0;
    options.first = 7;
    for (std::uint64_t step = 0; step < 12; ++step) {
      const bool bad = step % 4 == 3, bad_loss = step == 7;
      EXPECT_EQ(got.words.scale, static_cast<float>(expected.get_scale()));
      EXPECT_EQ(got.words.inverse, expected.inverse_scale());
      matrix x = bad ? random_matrix(format_id::fp16, 9, 100, step)
                     : number_matrix(format_id::bf16, 9, 100, step);
      matrix y = x;
      expected.scale(bad_loss ? std::numeric_limits<float>::quiet_NaN() : 1.0f);
      if (bad_loss) got.words.bad_loss = std::numeric_limits<float>::quiet_NaN();
      const samebits_gradient_report report = unscaled(x, got.words, options);
      const unscale_report wanted = expected.unscale(y.cpp());
      EXPECT_EQ(x.bytes, y.bytes);
      EXPECT_EQ(report.nonfinite != 0, wanted.nonfinite != 0);
      EXPECT_EQ(report.amax_bits, wanted.amax_bits);
      EXPECT_EQ(report.first_bad, bad ? 8 : -1);
      const bool applied = expected.step([] {});
      EXPECT_EQ(report.found_inf, applied ? 0.0f : 1.0f);
      got.update({report});
      const step_decision d = expected.update();
      const samebits_step_report seen = got.polled();
      EXPECT_EQ(seen.step, step);
      EXPECT_EQ(seen.applied != 0, d.apply);
      EXPECT_EQ(seen.cause, static_cast<std::uint8_t>(d.cause));
      EXPECT_EQ(seen.change, static_cast<std::uint8_t>(d.change));
      EXPECT_EQ(got.text(), expected.save());
      EXPECT_EQ(got.words.bad_loss, 0.0f);
    }
  }
}

TEST(CResidentScaler, ClippingHasTheBitsOfTheListFunctions) {
  resident scaler(SAMEBITS_SCALING_POLICY_TORCH);
  for (const double max_norm : {1.0, 1e-3, 1e9, 0.0}) {
    matrix x = number_matrix(format_id::fp32, 33, 65), read = x, y = x;
    samebits_unscale_options options = SAMEBITS_UNSCALE_OPTIONS_INIT;
    options.max_norm = max_norm;
    const samebits_gradient_report report = unscaled(x, scaler.words, options);
    const double norm = l2norm(y.cpp()).total * static_cast<double>(scaler.words.inverse);
    const float clip = clip_factor(norm, max_norm);
    EXPECT_EQ(report.norm, norm);
    EXPECT_EQ(report.factor, scaler.words.inverse * clip);
    EXPECT_EQ(report.divisor, scaler.words.scale / clip);
    scale(y.cpp(), report.factor);
    EXPECT_EQ(x.bytes, y.bytes);

    options.rewrites = 0;
    const matrix before = read;
    const samebits_gradient_report only_read = unscaled(read, scaler.words, options);
    EXPECT_EQ(read.bytes, before.bytes);
    EXPECT_EQ(only_read.factor, report.factor);
    EXPECT_EQ(only_read.writes, 0u);
    scaler.update({report, only_read});
    EXPECT_EQ(scaler.polled().norm, std::sqrt(norm * norm + norm * norm));
  }
}

TEST(CResidentScaler, OnlyClipsLeavesWhatIsNotFinite) {
  const samebits_scaler_words one = {1, 1, 0, 0};
  samebits_unscale_options options = SAMEBITS_UNSCALE_OPTIONS_INIT;
  options.only_clips = 1;
  options.max_norm = 1;
  matrix bad = random_matrix(format_id::fp16, 9, 100);
  const matrix before = bad;
  const samebits_gradient_report report = unscaled(bad, one, options);
  EXPECT_EQ(bad.bytes, before.bytes);
  EXPECT_EQ(report.found_inf, 1.0f);
  EXPECT_EQ(report.writes, 0u);
  matrix good = number_matrix(format_id::fp16, 9, 100), expected = good;
  clip(expected.cpp(), 1);
  EXPECT_EQ(unscaled(good, one, options).writes, 1u);
  EXPECT_EQ(good.bytes, expected.bytes);
}

TEST(CResidentScaler, AFlagSetFromOutsideCounts) {
  resident scaler(SAMEBITS_SCALING_POLICY_TORCH);
  samebits_gradient_report report = {};
  report.found_inf = 1;
  report.first_bad = -1;
  scaler.update({report});
  EXPECT_EQ(scaler.polled().cause, SAMEBITS_STEP_CAUSE_NONFINITE);
  EXPECT_EQ(scaler.words.scale, 32768.0f);
}

TEST(CResidentScaler, ARingThatNobodyReads) {
  resident scaler(SAMEBITS_SCALING_POLICY_TORCH);
  for (int i = 0; i < 7; ++i) scaler.update({samebits_gradient_report{}});
  EXPECT_EQ(scaler.polled().step, 3u);
  EXPECT_EQ(scaler.lost, 3u);
}

TEST(CResidentScaler, WhatIsRefused) {
  resident scaler(SAMEBITS_SCALING_POLICY_TORCH);
  samebits_gradients* gradients = nullptr;
  matrix codes = random_matrix(format_id::e4m3, 2, 3);
  const samebits_list_tensor tensor = {codes.c(), "weight", 0, 0};
  EXPECT_REFUSED(samebits_gradients_create(&tensor, 1, &gradients), SAMEBITS_INVALID_ARGUMENT,
                 "fp32");
  EXPECT_EQ(gradients, nullptr);
  matrix m = number_matrix(format_id::fp32, 2, 3);
  gradients = described(m);
  samebits_gradient_report report = {};
  samebits_unscale_options options = SAMEBITS_UNSCALE_OPTIONS_INIT;
  options.max_norm = -1;
  EXPECT_REFUSED(samebits_gradients_unscale(gradients, nullptr, nullptr, &scaler.words, &report,
                                            &options, nullptr),
                 SAMEBITS_INVALID_ARGUMENT, "options.max_norm");
  EXPECT_REFUSED(
      samebits_gradients_unscale(gradients, nullptr, nullptr, nullptr, &report, nullptr, nullptr),
      SAMEBITS_INVALID_ARGUMENT, "words");
  size_t tables = 1, workspace = 1;
  EXPECT_OK(samebits_gradients_sizes(gradients, &tables, &workspace));
  EXPECT_EQ(tables + workspace, 0u);
  EXPECT_REFUSED(samebits_gradients_write_tables(gradients, nullptr, 8), SAMEBITS_INVALID_ARGUMENT,
                 "size");
  samebits_gradients_destroy(gradients);
  samebits_gradients_destroy(nullptr);
  EXPECT_REFUSED(samebits_resident_store(scaler.handle, scaler.state.data(), 3, &scaler.words),
                 SAMEBITS_INVALID_ARGUMENT, "size: must be");
  EXPECT_REFUSED(
      samebits_resident_update(scaler.handle, SAMEBITS_MEMORY_HOST, scaler.state.data(),
                               &scaler.words, nullptr, 0, scaler.ring.data(), 4, nullptr),
      SAMEBITS_INVALID_ARGUMENT, "count");
  EXPECT_REFUSED(
      samebits_resident_update(scaler.handle, SAMEBITS_MEMORY_HOST, scaler.state.data(),
                               &scaler.words, &report, 1, scaler.ring.data(), 0, nullptr),
      SAMEBITS_INVALID_ARGUMENT, "capacity");
  resident native(SAMEBITS_SCALING_POLICY_NATIVE);
  std::fill(native.state.begin(), native.state.end(), std::uint8_t{0x7F});
  EXPECT_REFUSED(samebits_resident_load(native.handle, native.state.data(), native.state.size()),
                 SAMEBITS_INVALID_ARGUMENT, "exponent");
}

}  // namespace
}  // namespace samebits::in_c
