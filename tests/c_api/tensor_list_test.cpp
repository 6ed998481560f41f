// Tensor lists and loss scalers in C against C++, bit for bit.
#include "c_api/in_c.hpp"

namespace samebits::in_c {
namespace {

/// Three tensors of different formats, as a C++ list and as a C list.
class both_lists {
 public:
  explicit both_lists(bool numbers, std::uint64_t seed = 1) {
    const format_id formats[] = {format_id::fp16, format_id::fp32, format_id::bf16};
    for (std::size_t i = 0; i < 3; ++i) {
      const std::int64_t cols = 50 + 7 * static_cast<std::int64_t>(i);
      in_cpp.push_back(numbers ? number_matrix(formats[i], 9, cols, seed + i)
                               : random_matrix(formats[i], 9, cols, seed + i));
      copies.push_back(in_cpp.back());
    }
    std::vector<list_tensor> tensors;
    std::vector<samebits_list_tensor> tensors_in_c;
    for (std::size_t i = 0; i < 3; ++i) {
      tensors.push_back({.view = in_cpp[i].cpp(), .name = names[i]});
      tensors_in_c.push_back({copies[i].c(), names[i], 0, 0});
    }
    cpp = tensor_list(tensors);
    EXPECT_OK(samebits_tensor_list_create(tensors_in_c.data(), 3, &c));
  }
  ~both_lists() { samebits_tensor_list_destroy(c); }
  both_lists(const both_lists&) = delete;
  both_lists& operator=(const both_lists&) = delete;

  void expect_same_bits() const {
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(copies[i].bytes, in_cpp[i].bytes) << i;
  }

  tensor_list cpp;
  samebits_tensor_list* c = nullptr;

 private:
  static constexpr const char* names[] = {"embedding", "norm", "head"};
  std::vector<matrix> in_cpp, copies;
};

void expect_same(const samebits_tensor_statistics& got, const tensor_statistics& expected) {
  EXPECT_EQ(got.elements, expected.elements);
  EXPECT_EQ(got.nan, expected.nan);
  EXPECT_EQ(got.inf, expected.inf);
  EXPECT_EQ(got.zeros, expected.zeros);
  EXPECT_EQ(got.subnormals, expected.subnormals);
  EXPECT_EQ(got.amax_bits, expected.amax_bits);
  EXPECT_TRUE(same_bytes(got.squares, expected.squares));
  EXPECT_TRUE(same_bytes(got.norm, expected.norm()));
}

void expect_same(const samebits_unscale_report& got, const unscale_report& expected) {
  EXPECT_EQ(got.elements, expected.elements);
  EXPECT_EQ(got.nonfinite, expected.nonfinite);
  EXPECT_EQ(got.overflowed, expected.overflowed);
  EXPECT_EQ(got.first_bad, expected.first_bad);
  EXPECT_EQ(got.amax_bits, expected.amax_bits);
}

TEST(CTensorList, Inspect) {
  for (const bool numbers : {false, true}) {
    const both_lists lists(numbers);
    for (int k = 0; k < enum_count<inspect_counts>; ++k) {
      const inspect_report expected = inspect(lists.cpp, {static_cast<inspect_counts>(k)});
      samebits_inspect_report got = {};
      samebits_tensor_statistics tensors[3] = {};
      ASSERT_OK(samebits_tensor_list_inspect(lists.c, k, &got, tensors, 3, nullptr));
      expect_same(got.total, expected.total);
      for (std::size_t i = 0; i < 3; ++i) expect_same(tensors[i], expected.tensors[i]);
      EXPECT_EQ(got.first_bad, expected.first_bad);
      EXPECT_EQ(std::memcmp(got.exponents, expected.exponents.data(), sizeof got.exponents), 0);
    }
    const norm_report norms = l2norm(lists.cpp);
    double total = 0, each[3] = {};
    ASSERT_OK(samebits_tensor_list_l2norm(lists.c, &total, each, 3, nullptr));
    EXPECT_TRUE(same_bytes(total, norms.total));
    EXPECT_EQ(std::memcmp(each, norms.tensors.data(), sizeof each), 0);
    EXPECT_REFUSED(samebits_tensor_list_l2norm(lists.c, &total, each, 2, nullptr),
                   SAMEBITS_INVALID_ARGUMENT, "the number of tensors, 3, got 2");
    ASSERT_OK(samebits_tensor_list_l2norm(lists.c, &total, nullptr, 0, nullptr));
  }
}

TEST(CTensorList, SizeAndRefusals) {
  const both_lists lists(true);
  size_t tensors = 0;
  uint64_t elements = 0;
  EXPECT_OK(samebits_tensor_list_size(lists.c, &tensors, &elements));
  EXPECT_EQ(tensors, 3u);
  EXPECT_EQ(elements, lists.cpp.elements());
  samebits_tensor_list* list = nullptr;
  EXPECT_OK(samebits_tensor_list_create(nullptr, 0, &list));
  samebits_tensor_list_destroy(list);
  samebits_tensor_list_destroy(nullptr);
  matrix m(format_id::fp64, 1, 1);
  const samebits_list_tensor wrong = {m.c(), "weight", 0, 0};
  EXPECT_REFUSED(samebits_tensor_list_create(&wrong, 1, &list), SAMEBITS_INVALID_ARGUMENT,
                 "weight");
  EXPECT_REFUSED(samebits_tensor_list_create(nullptr, 1, &list), SAMEBITS_INVALID_ARGUMENT,
                 "tensors: must not be null");
}

TEST(CTensorList, OperationsInPlace) {
  for (const bool numbers : {false, true}) {
    both_lists lists(numbers);
    samebits_unscale_report report = {};
    const unscale_report expected = unscale(lists.cpp, 0.125f);
    ASSERT_OK(samebits_tensor_list_unscale(lists.c, 0.125f, &report, nullptr));
    expect_same(report, expected);
    lists.expect_same_bits();
    scale(lists.cpp, 3.7f);
    ASSERT_OK(samebits_tensor_list_scale(lists.c, 3.7f, nullptr));
    lists.expect_same_bits();
    double norm = 0;
    float factor = 0;
    const clip_report clipped = clip(lists.cpp, 1.0);
    ASSERT_OK(samebits_tensor_list_clip(lists.c, 1.0, &norm, &factor, nullptr));
    EXPECT_TRUE(same_bytes(norm, clipped.norm));
    EXPECT_TRUE(same_bytes(factor, clipped.factor));
    lists.expect_same_bits();
  }
  float factor = 0;
  EXPECT_OK(samebits_clip_factor(3.0, 1.0, &factor));
  EXPECT_EQ(factor, clip_factor(3.0, 1.0));
  EXPECT_REFUSED(samebits_clip_factor(-1.0, 1.0, &factor), SAMEBITS_INVALID_ARGUMENT, "norm");
}

TEST(CTensorList, OperationsOnTwoLists) {
  both_lists x(false, 1), y(true, 10), out(true, 20);
  axpby(0.5f, x.cpp, -2.0f, y.cpp, out.cpp);
  ASSERT_OK(samebits_tensor_list_axpby(0.5f, x.c, -2.0f, y.c, out.c, nullptr));
  out.expect_same_bits();
  const float scales[] = {0.5f, 3.0f, 1.0f};
  accumulate(out.cpp, y.cpp, {.scales = scales});
  ASSERT_OK(samebits_tensor_list_accumulate(out.c, y.c, scales, nullptr));
  out.expect_same_bits();
  accumulate(out.cpp, y.cpp);
  ASSERT_OK(samebits_tensor_list_accumulate(out.c, y.c, nullptr, nullptr));
  out.expect_same_bits();
  samebits_convert_options options = SAMEBITS_CONVERT_OPTIONS_INIT;
  options.rounding = SAMEBITS_ROUNDING_STOCHASTIC;
  options.random.seed = 4;
  cast(x.cpp, out.cpp, {.round = rounding::stochastic, .random = {.seed = 4}});
  ASSERT_OK(samebits_tensor_list_cast(x.c, out.c, &options, nullptr));
  out.expect_same_bits();
}

TEST(CTensorList, Functions) {
  both_lists x(false, 1), grad(true, 10), out(true, 20);
  evaluate(function::tanh, x.cpp, out.cpp);
  ASSERT_OK(samebits_tensor_list_evaluate(SAMEBITS_FUNCTION_TANH, x.c, out.c, nullptr, nullptr));
  out.expect_same_bits();
  samebits_evaluate_options options = SAMEBITS_EVALUATE_OPTIONS_INIT;
  options.rule = SAMEBITS_FUNCTION_RULE_TORCH_2_11;
  options.has_parameter = 1;
  options.parameter = 1.5;
  const evaluate_options in_cpp{.rule = function_rule::torch_2_11, .parameter = 1.5};
  evaluate(function::pow, x.cpp, x.cpp, in_cpp);
  ASSERT_OK(samebits_tensor_list_evaluate(SAMEBITS_FUNCTION_POW, x.c, x.c, &options, nullptr));
  x.expect_same_bits();
  evaluate_gradient(function::pow, grad.cpp, x.cpp, out.cpp, in_cpp);
  ASSERT_OK(samebits_tensor_list_evaluate_gradient(SAMEBITS_FUNCTION_POW, grad.c, x.c, out.c,
                                                   &options, nullptr));
  out.expect_same_bits();
  EXPECT_REFUSED(
      samebits_tensor_list_evaluate(SAMEBITS_FUNCTION_TANH, nullptr, out.c, nullptr, nullptr),
      SAMEBITS_INVALID_ARGUMENT, "in: must not be null");
  EXPECT_REFUSED(samebits_tensor_list_evaluate_gradient(SAMEBITS_FUNCTION_SILU, nullptr, x.c, out.c,
                                                        nullptr, nullptr),
                 SAMEBITS_INVALID_ARGUMENT, "grad: must not be null");
  EXPECT_REFUSED(samebits_tensor_list_evaluate(SAMEBITS_FUNCTION_SIN, x.c, out.c, nullptr, nullptr),
                 SAMEBITS_UNSUPPORTED, "rule exact has no sin");
}

std::string text_of_save(const samebits_loss_scaler* scaler) {
  size_t length = 0;
  EXPECT_OK(samebits_loss_scaler_save(scaler, nullptr, 0, &length));
  std::string text(length + 1, '?');
  EXPECT_OK(samebits_loss_scaler_save(scaler, text.data(), text.size(), nullptr));
  text.pop_back();
  return text;
}

TEST(CLossScaler, EveryPolicyStepForStep) {
  for (int policy = 0; policy < enum_count<scaling_policy>; ++policy) {
    scaling_settings settings = default_settings(static_cast<scaling_policy>(policy));
    loss_scaler expected(settings);
    samebits_loss_scaler* got = nullptr;
    ASSERT_OK(samebits_loss_scaler_create(policy, nullptr, 0, &got));
    int32_t policy_in_c = -1;
    ASSERT_OK(samebits_loss_scaler_policy(got, &policy_in_c));
    EXPECT_EQ(policy_in_c, policy);
    for (std::uint64_t step = 0; step < 12; ++step) {
      float scaled = 0;
      ASSERT_OK(samebits_loss_scaler_scale(got, 0.75f, &scaled));
      EXPECT_EQ(scaled, expected.scale(0.75f));
      both_lists gradients(step % 4 != 3, step);
      samebits_unscale_report report = {};
      ASSERT_OK(samebits_loss_scaler_unscale(got, gradients.c, nullptr, &report, nullptr));
      expect_same(report, expected.unscale(gradients.cpp));
      gradients.expect_same_bits();
      int32_t applied = -1;
      ASSERT_OK(samebits_loss_scaler_step(got, nullptr, nullptr, nullptr, &applied));
      EXPECT_EQ(applied != 0, expected.step([] {}));
      samebits_step_decision decision = {};
      ASSERT_OK(samebits_loss_scaler_update(got, &decision));
      const step_decision d = expected.update();
      EXPECT_EQ(decision.apply != 0, d.apply);
      EXPECT_EQ(decision.cause, static_cast<int32_t>(d.cause));
      EXPECT_EQ(decision.change, static_cast<int32_t>(d.change));
      EXPECT_EQ(text_of_save(got), expected.save());
    }
    double scale = 0;
    float inverse = 0;
    uint64_t updates = 0, steps = 0;
    ASSERT_OK(samebits_loss_scaler_get_scale(got, &scale));
    ASSERT_OK(samebits_loss_scaler_inverse_scale(got, &inverse));
    ASSERT_OK(samebits_loss_scaler_updates(got, &updates));
    ASSERT_OK(samebits_loss_scaler_applied_steps(got, "", &steps));
    EXPECT_EQ(scale, expected.get_scale());
    EXPECT_EQ(inverse, expected.inverse_scale());
    EXPECT_EQ(updates, expected.updates());
    EXPECT_EQ(steps, expected.applied_steps());
    const std::string text = text_of_save(got);
    samebits_loss_scaler_destroy(got);
    ASSERT_OK(samebits_loss_scaler_load(text.c_str(), &got));
    EXPECT_EQ(text_of_save(got), text);
    samebits_loss_scaler_destroy(got);
  }
  samebits_loss_scaler_destroy(nullptr);
}

int32_t count_call(void* user) { return (*static_cast<int*>(user))++ == 0 ? 5 : 0; }

TEST(CLossScaler, AnOptimizerThatFailsMayRunAgain) {
  samebits_loss_scaler* scaler = nullptr;
  const samebits_setting setting = {"init_scale", "8"};
  ASSERT_OK(samebits_loss_scaler_create(SAMEBITS_SCALING_POLICY_TORCH, &setting, 1, &scaler));
  samebits_step_observation observation = SAMEBITS_STEP_OBSERVATION_INIT;
  ASSERT_OK(samebits_loss_scaler_observe(scaler, &observation, "adam"));
  int calls = 0;
  int32_t applied = -1;
  EXPECT_REFUSED(samebits_loss_scaler_step(scaler, "adam", count_call, &calls, &applied),
                 SAMEBITS_CALLBACK_FAILED, "the optimizer returned 5");
  EXPECT_EQ(applied, -1);
  EXPECT_OK(samebits_loss_scaler_step(scaler, "adam", count_call, &calls, &applied));
  EXPECT_EQ(applied, 1);
  EXPECT_EQ(calls, 2);
  EXPECT_REFUSED(samebits_loss_scaler_step(scaler, "adam", count_call, &calls, &applied),
                 SAMEBITS_CALL_ORDER_ERROR, "adam");
  EXPECT_REFUSED(samebits_loss_scaler_save(scaler, nullptr, 0, nullptr), SAMEBITS_CALL_ORDER_ERROR,
                 "loss_scaler");
  size_t length = 0;
  EXPECT_OK(samebits_loss_scaler_describe(scaler, nullptr, 0, &length));
  std::string text(length + 1, '?');
  EXPECT_OK(samebits_loss_scaler_describe(scaler, text.data(), text.size(), nullptr));
  EXPECT_NE(text.find("policy torch\ninit_scale "), std::string::npos) << text;
  EXPECT_NE(text.find("\nstate\nscale "), std::string::npos) << text;
  EXPECT_REFUSED(samebits_loss_scaler_discard(scaler, "adam"), SAMEBITS_CALL_ORDER_ERROR, "adam");
  EXPECT_OK(samebits_loss_scaler_update(scaler, nullptr));
  samebits_loss_scaler_destroy(scaler);
}

TEST(CLossScaler, APolicyThatEndsTheRun) {
  samebits_loss_scaler* scaler = nullptr;
  const samebits_setting settings[] = {{"max_skipped_run", "1"}};
  ASSERT_OK(samebits_loss_scaler_create(SAMEBITS_SCALING_POLICY_NATIVE, settings, 1, &scaler));
  samebits_step_observation observation = SAMEBITS_STEP_OBSERVATION_INIT;
  observation.nonfinite = 1;
  ASSERT_OK(samebits_loss_scaler_observe(scaler, &observation, nullptr));
  ASSERT_OK(samebits_loss_scaler_step(scaler, nullptr, nullptr, nullptr, nullptr));
  EXPECT_REFUSED(samebits_loss_scaler_update(scaler, nullptr), SAMEBITS_SCALE_EXHAUSTED,
                 "ends the run");
  samebits_loss_scaler_destroy(scaler);
}

TEST(CLossScaler, SettingsAndTextThatAreRefused) {
  samebits_loss_scaler* scaler = nullptr;
  const samebits_setting unknown = {"growth", "2"};
  EXPECT_REFUSED(samebits_loss_scaler_create(0, &unknown, 1, &scaler), SAMEBITS_INVALID_ARGUMENT,
                 "'growth' is not a setting");
  const samebits_setting null = {"growth_interval", nullptr};
  EXPECT_REFUSED(samebits_loss_scaler_create(0, &null, 1, &scaler), SAMEBITS_INVALID_ARGUMENT,
                 "must not be null");
  EXPECT_REFUSED(samebits_loss_scaler_create(6, nullptr, 0, &scaler), SAMEBITS_INVALID_ARGUMENT,
                 "samebits_scaling_policy, got 6");
  EXPECT_REFUSED(samebits_loss_scaler_load("nonsense\n", &scaler), SAMEBITS_INVALID_ARGUMENT,
                 "line 1");
  EXPECT_EQ(scaler, nullptr);
}

TEST(CLossScaler, StatesOfOtherLibraries) {
  loss_scaler expected(torch_scaling{});
  samebits_loss_scaler* got = nullptr;
  ASSERT_OK(samebits_loss_scaler_create(SAMEBITS_SCALING_POLICY_TORCH, nullptr, 0, &got));
  size_t count = 0;
  ASSERT_OK(
      samebits_loss_scaler_export_state(got, SAMEBITS_SCALING_POLICY_TORCH, nullptr, 0, &count));
  const std::vector<state_entry> entries = expected.export_state(scaling_policy::torch);
  ASSERT_EQ(count, entries.size());
  std::vector<samebits_state_entry> in_c(count);
  EXPECT_REFUSED(samebits_loss_scaler_export_state(got, SAMEBITS_SCALING_POLICY_TORCH, in_c.data(),
                                                   count - 1, &count),
                 SAMEBITS_INVALID_ARGUMENT, "capacity");
  ASSERT_OK(samebits_loss_scaler_export_state(got, SAMEBITS_SCALING_POLICY_TORCH, in_c.data(),
                                              count, &count));
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(in_c[i].key, entries[i].key);
    EXPECT_EQ(in_c[i].value, entries[i].value);
    if (entries[i].key == "scale") in_c[i].value = 1024;
  }
  ASSERT_OK(
      samebits_loss_scaler_import_state(got, SAMEBITS_SCALING_POLICY_TORCH, in_c.data(), count));
  double scale = 0;
  ASSERT_OK(samebits_loss_scaler_get_scale(got, &scale));
  EXPECT_EQ(scale, 1024);
  samebits_loss_scaler_destroy(got);
}

}  // namespace
}  // namespace samebits::in_c
