// The loss scaler and optimizer steps through the C interface: the bytes of the C++ functions.
#include <bit>
#include <cstring>

#include "c_api/in_c.hpp"

namespace samebits::in_c {
namespace {

/// A scaler that is destroyed with the object.
struct scaler {
  scaler(const char* policy, const char* options) {
    EXPECT_OK(samebits_scaler_create(policy, options, &handle));
  }
  explicit scaler(const std::string& text) {
    EXPECT_OK(samebits_scaler_load(text.c_str(), &handle));
  }
  scaler(const scaler&) = delete;
  scaler& operator=(const scaler&) = delete;
  ~scaler() { samebits_scaler_destroy(handle); }

  [[nodiscard]] std::string save() const {
    std::size_t length = 0;
    EXPECT_OK(samebits_scaler_save(handle, nullptr, 0, &length));
    std::string text(length + 1, '?');
    EXPECT_OK(samebits_scaler_save(handle, text.data(), text.size(), nullptr));
    EXPECT_EQ(text.back(), '\0');
    text.pop_back();
    return text;
  }

  samebits_scaler* handle = nullptr;
};

TEST(CScaler, StepsOfAPolicyAndItsCheckpoint) {
  scaler mine("torch", "init_scale=1024 growth_interval=2");
  loss_scaler expected(torch_scaling{.init_scale = 1024, .growth_interval = 2});
  for (int step = 0; step < 8; ++step) {
    matrix a = number_matrix(format_id::fp16, 3, 50, static_cast<std::uint64_t>(step));
    matrix b = number_matrix(format_id::bf16, 1, 9);
    const std::uint16_t inf = 0x7F80;
    const bool bad = step == 4;
    if (bad) std::memcpy(b.bytes.data(), &inf, sizeof inf);
    float scaled = 0, grad_mul = -1;
    EXPECT_OK(samebits_scaler_scale(mine.handle, 0.3f, &scaled));
    EXPECT_EQ(scaled, expected.scale(0.3f));
    const samebits_array gradients[] = {a.c(), b.c()};
    const inspect_report report = inspect({a.cpp(), b.cpp()});
    expected.observe(report.observation());
    double norm = 0, next = 0;
    std::int64_t first_bad = 7;
    std::int32_t apply = 7;
    EXPECT_OK(samebits_scaler_inspect(mine.handle, gradients, 2, &norm, &first_bad, nullptr));
    EXPECT_EQ(std::bit_cast<std::uint64_t>(norm),
              std::bit_cast<std::uint64_t>(report.total.norm()));
    EXPECT_EQ(first_bad, bad ? 1 : -1);
    const float inverse = expected.inverse_scale();
    EXPECT_EQ(expected.step([] {}), !bad);
    expected.update();
    EXPECT_OK(samebits_scaler_step(mine.handle, &apply, &grad_mul, &next));
    EXPECT_EQ(apply, bad ? 0 : 1);
    EXPECT_EQ(grad_mul, bad ? 0 : inverse);
    EXPECT_EQ(next, expected.get_scale());
    EXPECT_EQ(mine.save(), expected.save());
  }
  EXPECT_NE(expected.get_scale(), 1024);
  EXPECT_EQ(scaler(expected.save()).save(), expected.save());
}

TEST(CScaler, Refusals) {
  samebits_scaler* none = nullptr;
  EXPECT_REFUSED(
      samebits_scaler_create("pytorch", nullptr, &none), SAMEBITS_INVALID_ARGUMENT,
      "policy: must be one of native, torch, apex, apex_amp, megatron, deepspeed, got 'pytorch'");
  EXPECT_REFUSED(samebits_scaler_create("torch", "scale=2", &none), SAMEBITS_INVALID_ARGUMENT,
                 "'scale' is not a setting of policy torch; there are: init_scale, growth_factor, "
                 "backoff_factor, growth_interval");
  EXPECT_EQ(samebits_scaler_create("torch", "init_scale=-1", &none), SAMEBITS_INVALID_ARGUMENT);
  EXPECT_EQ(samebits_scaler_load("no checkpoint", &none), SAMEBITS_INVALID_ARGUMENT);
  EXPECT_EQ(none, nullptr);
  EXPECT_REFUSED(samebits_scaler_create("torch", "", nullptr), SAMEBITS_INVALID_ARGUMENT,
                 "scaler: must not be null");
  EXPECT_EQ(samebits_scaler_step(nullptr, nullptr, nullptr, nullptr), SAMEBITS_INVALID_ARGUMENT);
  scaler mine("deepspeed", "init_scale=1 min_scale=1 delayed_shift=1");
  std::int32_t apply = 7;
  EXPECT_EQ(samebits_scaler_step(mine.handle, &apply, nullptr, nullptr), SAMEBITS_CALL_ORDER_ERROR);
  char text[4] = {'?', '?', '?', '?'};
  EXPECT_EQ(samebits_scaler_save(mine.handle, text, sizeof text, nullptr),
            SAMEBITS_INVALID_ARGUMENT);
  EXPECT_EQ(text[0], '?');
  EXPECT_REFUSED(samebits_scaler_inspect(mine.handle, nullptr, 1, nullptr, nullptr, nullptr),
                 SAMEBITS_INVALID_ARGUMENT, "gradients: must not be null");
  matrix bad = number_matrix(format_id::fp16, 1, 2);
  bad.bytes[1] = 0x7C;
  bad.bytes[0] = 0;
  const samebits_array gradient = bad.c();
  EXPECT_OK(samebits_scaler_inspect(mine.handle, &gradient, 1, nullptr, nullptr, nullptr));
  EXPECT_EQ(samebits_scaler_inspect(mine.handle, &gradient, 1, nullptr, nullptr, nullptr),
            SAMEBITS_CALL_ORDER_ERROR);
  EXPECT_EQ(samebits_scaler_step(mine.handle, &apply, nullptr, nullptr), SAMEBITS_SCALE_EXHAUSTED);
  EXPECT_EQ(apply, 7);
  samebits_scaler_destroy(nullptr);
}

samebits_stored in_c(const stored_array& a) { return {a.codes, name(a.format).data(), a.scales}; }

samebits_parameter in_c(const optimizer_tensor& t) {
  const gradient_array& g = t.gradient;
  return {.name = "weight",
          .count = t.count,
          .weights = in_c(t.weights),
          .gradient =
              in_c(stored_array{const_cast<void*>(g.codes), g.format, const_cast<float*>(g.scale)}),
          .master = in_c(t.master),
          .states = {in_c(t.states[0]), in_c(t.states[1])},
          .low = t.low,
          .low_kind = name(t.low_kind).data(),
          .first_index = t.first_index};
}

/// Memory of one parameter: bf16 weights, a scaled and a stochastic state.
struct memory {
  static constexpr std::int64_t count = 300;

  /// With fp32 master weights, or with a low part and a gradient in e4m3.
  [[nodiscard]] optimizer_tensor tensor(bool with_master, std::uint32_t stream = 0) {
    optimizer_tensor t = {
        .weights = {weights.bytes.data(), stored_format::bf16_nearest},
        .gradient = {gradient.bytes.data(), stored_format::bf16_nearest},
        .states = {{{first.bytes.data(), stored_format::e4m3_scaled, scales.data()},
                    {second.bytes.data(), stored_format::bf16_stochastic}}},
        .count = count,
        .first_index = 512,
        .stream = stream,
        .block = 256};
    if (with_master) {
      t.master = {master.bytes.data(), stored_format::fp32};
    } else {
      t.gradient = {narrow_gradient.bytes.data(), stored_format::e4m3_tensor, &gradient_scale};
      t.low = master.bytes.data();
      t.low_kind = low_part::kahan;
    }
    return t;
  }
  [[nodiscard]] std::vector<std::vector<std::uint8_t>> bytes() const {
    const auto* s = reinterpret_cast<const std::uint8_t*>(scales.data());
    return {weights.bytes, master.bytes, first.bytes, second.bytes, {s, s + 4 * scales.size()}};
  }

  matrix weights = number_matrix(format_id::bf16, 1, count, 1);
  matrix gradient = number_matrix(format_id::bf16, 1, count, 2);
  matrix narrow_gradient = number_matrix(format_id::e4m3, 1, count, 6);
  float gradient_scale = 0.3f;
  matrix master = number_matrix(format_id::fp32, 1, count, 3);
  matrix first = random_matrix(format_id::e4m3, 1, count, 4);
  matrix second = number_matrix(format_id::bf16, 1, count, 5);
  std::vector<float> scales = std::vector<float>(2, 0.5f);
};

TEST(COptimizer, StepsWithEveryOptionAndKindOfArray) {
  const auto expect_same = [](const char* text, optimizer_settings settings) {
    memory a, b, expected_a, expected_b;
    const samebits_parameter parameters[] = {in_c(a.tensor(true)), in_c(b.tensor(false))};
    samebits_optimizer* mine = nullptr;
    ASSERT_OK(samebits_optimizer_create(parameters, 2, 0, text, &mine));
    const optimizer_list list({expected_a.tensor(true, 5), expected_b.tensor(false, 6)});
    for (std::uint64_t step = 1; step < 4; ++step) {
      settings.learning_rate = 0.01 * static_cast<double>(step);
      optimizer_step(list, {&settings, 1}, {.applied_steps = step, .grad_mul = 0.5f, .seed = 9});
      ASSERT_OK(samebits_optimizer_step(mine, step, 0.5f, settings.learning_rate, nullptr));
    }
    EXPECT_EQ(a.bytes(), expected_a.bytes()) << text;
    EXPECT_EQ(b.bytes(), expected_b.bytes()) << text;
    EXPECT_NE(a.bytes(), memory().bytes()) << text;
    EXPECT_EQ(samebits_optimizer_step(mine, 0, 1, 0.01, nullptr), SAMEBITS_INVALID_ARGUMENT);
    samebits_optimizer_destroy(mine);
  };
  expect_same(
      "seed=9 block=256 first_parameter=5 rule=adam profile=fma beta1=0.8 beta2=0.99 eps=1e-6 "
      "weight_decay=0.1",
      {.rule = update_rule::adam,
       .profile = update_profile::fma,
       .beta1 = 0.8,
       .beta2 = 0.99,
       .eps = 1e-6,
       .weight_decay = 0.1});
  expect_same("seed=9 block=256 first_parameter=5 rule=sgd momentum=0.9 nesterov=true",
              {.rule = update_rule::sgd, .momentum = 0.9, .nesterov = true});
  expect_same("seed=9 block=256 first_parameter=5 rule=sgd momentum=0.9 dampening=0.25",
              {.rule = update_rule::sgd, .momentum = 0.9, .dampening = 0.25});
}

TEST(COptimizer, Refusals) {
  memory m;
  samebits_parameter p = in_c(m.tensor(true));
  samebits_optimizer* none = nullptr;
  EXPECT_REFUSED(
      samebits_optimizer_create(&p, 1, 0, "lr=1", &none), SAMEBITS_INVALID_ARGUMENT,
      "'lr' is not an option; there are: rule, profile, beta1, beta2, eps, weight_decay, momentum, "
      "dampening, nesterov, seed, block, first_parameter");
  EXPECT_REFUSED(samebits_optimizer_create(&p, 1, 0, "nesterov=yes", &none),
                 SAMEBITS_INVALID_ARGUMENT, "nesterov: must be true or false, got 'yes'");
  p.states[0].format = "e4m3";
  EXPECT_EQ(samebits_optimizer_create(&p, 1, 0, nullptr, &none), SAMEBITS_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(samebits_last_error())
                .find("parameters[0].states[0].format: must be one of none, "),
            0u);
  p = in_c(m.tensor(true));
  p.low_kind = "low";
  EXPECT_REFUSED(samebits_optimizer_create(&p, 1, 0, nullptr, &none), SAMEBITS_INVALID_ARGUMENT,
                 "parameters[0].low_kind: must be one of none, split, kahan, got 'low'");
  EXPECT_REFUSED(samebits_optimizer_create(nullptr, 1, 0, nullptr, &none),
                 SAMEBITS_INVALID_ARGUMENT, "parameters: must not be null");
  p = in_c(m.tensor(true));
  p.count = -1;
  EXPECT_EQ(samebits_optimizer_create(&p, 1, 0, "block=256", &none), SAMEBITS_INVALID_ARGUMENT);
  EXPECT_NE(std::string(samebits_last_error()).find("weight"), std::string::npos);
  EXPECT_EQ(none, nullptr);
  EXPECT_REFUSED(samebits_optimizer_step(nullptr, 1, 1, 0, nullptr), SAMEBITS_INVALID_ARGUMENT,
                 "optimizer: must not be null");
  samebits_optimizer_destroy(nullptr);
}

}  // namespace
}  // namespace samebits::in_c
