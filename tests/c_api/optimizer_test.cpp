// Optimizer steps through the C interface: the bytes of the C++ function.
#include "samebits/optimizer.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "c_api/in_c.hpp"

namespace samebits::in_c {
namespace {

/// Memory of one tensor: bf16 weights and gradients, fp32 master weights, and scaled states.
struct memory {
  static constexpr std::int64_t count = 300;
  static constexpr std::int64_t blocks = 3;
  matrix weights = random_matrix(format_id::bf16, 1, count, 1);
  matrix gradient = number_matrix(format_id::bf16, 1, count, 2);
  matrix master = number_matrix(format_id::fp32, 1, count, 3);
  matrix first = random_matrix(format_id::e4m3, 1, count, 4);
  matrix second = number_matrix(format_id::fp32, 1, count, 5);
  std::vector<float> scales = std::vector<float>(blocks, 0.5f);

  samebits_optimizer_tensor c() {
    samebits_optimizer_tensor t = {};
    t.weights = {weights.bytes.data(), nullptr, SAMEBITS_STORED_FORMAT_BF16_NEAREST, 0};
    t.gradient = {gradient.bytes.data(), nullptr, SAMEBITS_STORED_FORMAT_BF16_NEAREST, 0};
    t.master = {master.bytes.data(), nullptr, SAMEBITS_STORED_FORMAT_FP32, 0};
    t.states[0] = {first.bytes.data(), scales.data(), SAMEBITS_STORED_FORMAT_E4M3_SCALED, 0};
    t.states[1] = {second.bytes.data(), nullptr, SAMEBITS_STORED_FORMAT_FP32, 0};
    t.count = count;
    t.name = "weight";
    t.stream = 7;
    t.group = 1;
    t.block = 128;
    return t;
  }
  optimizer_tensor cpp() {
    return {.weights = {weights.bytes.data(), stored_format::bf16_nearest},
            .gradient = {gradient.bytes.data(), stored_format::bf16_nearest},
            .master = {master.bytes.data(), stored_format::fp32},
            .states = {{{first.bytes.data(), stored_format::e4m3_scaled, scales.data()},
                        {second.bytes.data(), stored_format::fp32}}},
            .count = count,
            .stream = 7,
            .group = 1,
            .name = "weight"};
  }
  [[nodiscard]] bool operator==(const memory& other) const {
    return weights.bytes == other.weights.bytes && master.bytes == other.master.bytes &&
           first.bytes == other.first.bytes && second.bytes == other.second.bytes &&
           std::memcmp(scales.data(), other.scales.data(), sizeof(float) * scales.size()) == 0;
  }
};

/// A list of one tensor, destroyed with the object.
struct list_of_one {
  explicit list_of_one(const samebits_optimizer_tensor& t) {
    EXPECT_OK(samebits_optimizer_list_create(&t, 1, SAMEBITS_MEMORY_HOST, &handle));
  }
  ~list_of_one() { samebits_optimizer_list_destroy(handle); }
  list_of_one(const list_of_one&) = delete;
  list_of_one& operator=(const list_of_one&) = delete;
  samebits_optimizer_list* handle = nullptr;
};

/// Settings of a rule, in C and in C++, with no value at its default.
samebits_optimizer_settings settings_in_c(int rule) {
  samebits_optimizer_settings s = SAMEBITS_OPTIMIZER_SETTINGS_INIT;
  s.rule = rule;
  s.profile = SAMEBITS_UPDATE_PROFILE_FMA;
  s.learning_rate = 0.01;
  s.beta1 = 0.8;
  s.beta2 = 0.95;
  s.epsilon = 1e-6;
  s.weight_decay = 0.1;
  s.momentum = 0.7;
  s.nesterov = 1;
  return s;
}
optimizer_settings settings_in_cpp(int rule) {
  return {.rule = static_cast<update_rule>(rule),
          .profile = update_profile::fma,
          .learning_rate = 0.01,
          .beta1 = 0.8,
          .beta2 = 0.95,
          .epsilon = 1e-6,
          .weight_decay = 0.1,
          .momentum = 0.7,
          .nesterov = true};
}

TEST(COptimizer, EveryRuleStepForStep) {
  for (int rule = 0; rule < enum_count<update_rule>; ++rule) {
    memory got, expected;
    const list_of_one in_c(got.c());
    const optimizer_list in_cpp({expected.cpp()});
    const samebits_optimizer_settings groups[] = {SAMEBITS_OPTIMIZER_SETTINGS_INIT,
                                                  settings_in_c(rule)};
    const optimizer_settings expected_groups[] = {{}, settings_in_cpp(rule)};
    for (std::uint64_t step = 1; step <= 3; ++step) {
      samebits_step_input input = SAMEBITS_STEP_INPUT_INIT;
      input.applied_steps = step;
      input.grad_mul = 0.25f;
      input.seed = 9;
      EXPECT_OK(samebits_optimizer_step(in_c.handle, groups, 2, &input, nullptr));
      optimizer_step(in_cpp, expected_groups,
                     {.applied_steps = step, .grad_mul = 0.25f, .seed = 9});
      EXPECT_TRUE(got == expected) << "rule " << rule << ", step " << step;
    }
  }
}

TEST(COptimizer, ADecisionAndLearningRatesInMemory) {
  memory got, expected;
  const list_of_one list(got.c());
  const samebits_optimizer_settings groups[] = {settings_in_c(0), settings_in_c(0)};
  samebits_step_report decision = {};
  const float learning_rates[] = {1.0f, 0.5f};
  samebits_step_input input = SAMEBITS_STEP_INPUT_INIT;
  input.decision = &decision;
  input.learning_rates = learning_rates;
  EXPECT_OK(samebits_optimizer_step(list.handle, groups, 2, &input, nullptr));
  EXPECT_TRUE(got == expected) << "a step that is not applied changed a byte";
  decision.applied = 1;
  decision.applied_steps = 3;
  decision.grad_mul = 0.5f;
  EXPECT_OK(samebits_optimizer_step(list.handle, groups, 2, &input, nullptr));
  optimizer_settings same = settings_in_cpp(0);
  same.learning_rate = 0.5;
  optimizer_step(optimizer_list({expected.cpp()}), std::vector{same, same},
                 {.applied_steps = 3, .grad_mul = 0.5f});
  EXPECT_TRUE(got == expected);
}

TEST(COptimizer, GroupsOfALongerStruct) {
  struct longer {
    samebits_optimizer_settings known;
    std::uint64_t unknown;
  };
  memory got, expected;
  longer groups[] = {{settings_in_c(0), 0}, {settings_in_c(3), 0}};
  for (longer& g : groups) g.known.struct_size = sizeof(longer);
  const list_of_one list(got.c());
  EXPECT_OK(samebits_optimizer_step(list.handle, &groups[0].known, 2, nullptr, nullptr));
  optimizer_step(optimizer_list({expected.cpp()}),
                 std::vector{settings_in_cpp(0), settings_in_cpp(3)});
  EXPECT_TRUE(got == expected);
  groups[1].known.struct_size = 12;
  EXPECT_REFUSED(samebits_optimizer_step(list.handle, &groups[0].known, 2, nullptr, nullptr),
                 SAMEBITS_INVALID_ARGUMENT, "groups[1]: struct_size");
}

TEST(COptimizer, SizesStatesAndStreams) {
  memory m;
  const list_of_one list(m.c());
  std::size_t tensors = 0;
  std::uint64_t elements = 0;
  EXPECT_OK(samebits_optimizer_list_size(list.handle, &tensors, &elements));
  EXPECT_EQ(tensors, 1u);
  EXPECT_EQ(elements, 300u);
  for (int rule = 0; rule < enum_count<update_rule>; ++rule) {
    const samebits_optimizer_settings s = settings_in_c(rule);
    std::int32_t states = -1;
    EXPECT_OK(samebits_optimizer_state_count(&s, &states));
    EXPECT_EQ(states, state_count(settings_in_cpp(rule)));
  }
  std::uint64_t stream = 0;
  EXPECT_OK(samebits_random_stream_number(SAMEBITS_STREAM_PURPOSE_DROPOUT, 5, 6, &stream));
  EXPECT_EQ(stream, random_stream_number(stream_purpose::dropout, 5, 6));
  EXPECT_REFUSED(samebits_random_stream_number(0, 1u << 24, 0, &stream), SAMEBITS_INVALID_ARGUMENT,
                 "tensor");
}

TEST(COptimizer, Checkpoints) {
  memory m, other;
  const list_of_one list(m.c()), into(other.c());
  const samebits_optimizer_settings groups[] = {settings_in_c(0), settings_in_c(2)};
  const samebits_step_input input = SAMEBITS_STEP_INPUT_INIT;
  EXPECT_OK(samebits_optimizer_step(list.handle, groups, 2, &input, nullptr));
  std::size_t length = 0;
  const auto in_c = [&](void* bytes, std::size_t size) {
    return samebits_optimizer_list_save(list.handle, groups, 2, 5, 9, bytes, size, &length);
  };
  EXPECT_OK(in_c(nullptr, 0));
  std::vector<std::byte> bytes(length);
  EXPECT_OK(in_c(bytes.data(), bytes.size()));
  EXPECT_EQ(bytes,
            save(optimizer_list({m.cpp()}), {{settings_in_cpp(0), settings_in_cpp(2)}, 5, 9}));
  EXPECT_REFUSED(in_c(bytes.data(), length - 1), SAMEBITS_INVALID_ARGUMENT, "size");

  std::uint64_t steps = 0, seed = 0;
  std::size_t count = 0;
  samebits_optimizer_settings loaded[] = {SAMEBITS_OPTIMIZER_SETTINGS_INIT,
                                          SAMEBITS_OPTIMIZER_SETTINGS_INIT};
  EXPECT_OK(samebits_optimizer_list_load(into.handle, bytes.data(), length, &steps, &seed, loaded,
                                         2, &count));
  EXPECT_EQ(steps, 5u);
  EXPECT_EQ(seed, 9u);
  EXPECT_EQ(count, 2u);
  EXPECT_TRUE(same_bytes(loaded[0], groups[0]) && same_bytes(loaded[1], groups[1]));
  other.weights = m.weights;
  EXPECT_TRUE(m == other);
  EXPECT_REFUSED(samebits_optimizer_list_load(into.handle, bytes.data(), length - 1, &steps, &seed,
                                              nullptr, 0, nullptr),
                 SAMEBITS_INVALID_ARGUMENT, "bytes");
}

TEST(COptimizer, LoadChecksGroupsBeforeItWrites) {
  memory saved, other;
  const memory before = other;
  const list_of_one list(saved.c()), into(other.c());
  const samebits_optimizer_settings groups[] = {settings_in_c(0), settings_in_c(2)};
  const samebits_step_input input = SAMEBITS_STEP_INPUT_INIT;
  EXPECT_OK(samebits_optimizer_step(list.handle, groups, 2, &input, nullptr));
  std::size_t length = 0;
  EXPECT_OK(samebits_optimizer_list_save(list.handle, groups, 2, 5, 9, nullptr, 0, &length));
  std::vector<std::byte> bytes(length);
  EXPECT_OK(
      samebits_optimizer_list_save(list.handle, groups, 2, 5, 9, bytes.data(), length, &length));

  std::uint64_t steps = 77, seed = 78;
  std::size_t count = 79;
  samebits_optimizer_settings loaded[] = {settings_in_c(1), settings_in_c(1)};
  const auto refused = [&](std::size_t position, std::uint32_t size, const char* message) {
    loaded[position].struct_size = size;
    EXPECT_REFUSED(samebits_optimizer_list_load(into.handle, bytes.data(), length, &steps, &seed,
                                                loaded, 2, &count),
                   SAMEBITS_INVALID_ARGUMENT, message);
    loaded[position].struct_size = sizeof loaded[position];
    EXPECT_TRUE(other == before) << message;
    EXPECT_TRUE(same_bytes(loaded[0], settings_in_c(1))) << message;
    EXPECT_EQ(steps, 77u);
    EXPECT_EQ(seed, 78u);
    EXPECT_EQ(count, 79u);
  };
  refused(0, 0, "groups[0]: struct_size");
  refused(0, 1u << 20, "groups[0]: struct_size");
  refused(1, 0, "groups[1]: struct_size");
  refused(1, sizeof loaded[1] - 8, "groups[1]: struct_size must be that of groups[0]");
}

TEST(COptimizer, TablesOfHostLists) {
  memory m;
  const samebits_optimizer_tensor t = m.c();
  samebits_optimizer_list* list = nullptr;
  EXPECT_OK(samebits_optimizer_list_describe(&t, 1, SAMEBITS_MEMORY_HOST, &list));
  std::size_t bytes = 1;
  EXPECT_OK(samebits_optimizer_list_tables_size(list, &bytes));
  EXPECT_EQ(bytes, 0u);
  EXPECT_OK(samebits_optimizer_list_write_tables(list, nullptr, 0, nullptr));
  EXPECT_REFUSED(samebits_optimizer_list_write_tables(list, nullptr, 8, nullptr),
                 SAMEBITS_INVALID_ARGUMENT, "size");
  samebits_optimizer_list_destroy(list);
  samebits_optimizer_list_destroy(nullptr);
}

TEST(COptimizer, WhatIsRefused) {
  memory m;
  samebits_optimizer_tensor t = m.c();
  samebits_optimizer_list* list = nullptr;
  const auto refused = [&](const char* message) {
    EXPECT_REFUSED(samebits_optimizer_list_create(&t, 1, SAMEBITS_MEMORY_HOST, &list),
                   SAMEBITS_INVALID_ARGUMENT, message);
    t = m.c();
  };
  t.master.format = 99;
  refused("tensors[0].master.format");
  t.low_kind = -1;
  refused("tensors[0].low_kind");
  t.count = -1;
  refused("'weight'");
  EXPECT_EQ(list, nullptr);
  const list_of_one good(t);
  samebits_optimizer_settings s = SAMEBITS_OPTIMIZER_SETTINGS_INIT;
  EXPECT_REFUSED(samebits_optimizer_step(good.handle, &s, 1, nullptr, nullptr),
                 SAMEBITS_INVALID_ARGUMENT, "group 1");
  s.rule = 5;
  EXPECT_REFUSED(samebits_optimizer_step(good.handle, &s, 1, nullptr, nullptr),
                 SAMEBITS_INVALID_ARGUMENT, "groups[0].rule");
}

}  // namespace
}  // namespace samebits::in_c
