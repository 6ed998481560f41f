// The C interface on device memory against the C++ functions on the host, bit for bit.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "c_api/in_c.hpp"
#include "device/captured_graph.hpp"
#include "device/cuda_backends.hpp"
#include "device/device_copy.hpp"

namespace samebits::in_c {
namespace {

using support::guarded_copy;

/// A matrix of the host and its copy on the device, as a C array.
struct device_matrix {
  explicit device_matrix(matrix& m) : copy(m.cpp()), c(array(copy.placed(m.cpp()))) {}
  guarded_copy copy;
  samebits_array c;
};

class CDevice : public testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    backend_ = GetParam();
    where = {backend_.c_str(), 1, stream_.get()};
  }
  void wait() { support::check_cuda(cudaStreamSynchronize(stream_.get()), "calls"); }

  samebits_executor where = {};

 private:
  std::string backend_;
  support::own_stream stream_{cudaStreamDefault};
};

TEST_P(CDevice, IsListed) {
  const char* name = nullptr;
  const char* why = nullptr;
  std::int32_t on_device = 0;
  for (std::int32_t i = 0; samebits_backend(i, &name, &why, &on_device) == SAMEBITS_OK; ++i) {
    if (name == GetParam()) break;
  }
  EXPECT_EQ(name, GetParam());
  EXPECT_STREQ(why, "");
  EXPECT_EQ(on_device, 1);
}

TEST_P(CDevice, ConvertEveryFormat) {
  where.backend = nullptr;  // the default has every conversion
  for (int from = 0; from < format_count; ++from) {
    matrix in = random_matrix(format_at(from), 33, 65);
    const device_matrix x(in);
    for (int to = 0; to < format_count; ++to) {
      matrix expected(format_at(to), 33, 65), got(format_at(to), 33, 65);
      convert(in.cpp(), expected.cpp(), {.overflow = overflow::saturate});
      const device_matrix y(got);
      ASSERT_OK(samebits_convert(&x.c, &y.c, "overflow=saturate", &where));
      wait();
      y.copy.copy_back();
      ASSERT_EQ(got.bytes, expected.bytes) << name(format_at(from)) << name(format_at(to));
    }
  }
}

TEST_P(CDevice, QuantizeAndDequantize) {
  matrix in = random_matrix(format_id::bf16, 130, 300);
  matrix codes(format_id::e4m3, 130, 300), expected_codes = codes;
  matrix scales(format_id::fp32, 130, 3), expected_scales = scales;
  matrix numbers(format_id::fp32, 130, 300), expected_numbers = numbers;
  quantize(in.cpp(), {.codes = expected_codes.cpp(), .scales = expected_scales.cpp()});
  dequantize(expected_codes.cpp(), expected_scales.cpp(), expected_numbers.cpp(), {1, 128});
  const device_matrix x(in), q(codes), s(scales), y(numbers);
  ASSERT_OK(samebits_quantize(&x.c, &q.c, &s.c, nullptr, &where));
  ASSERT_OK(samebits_dequantize(&q.c, &s.c, &y.c, nullptr, &where));
  wait();
  for (const device_matrix* m : {&q, &s, &y}) m->copy.copy_back();
  EXPECT_EQ(codes.bytes, expected_codes.bytes);
  EXPECT_EQ(scales.bytes, expected_scales.bytes);
  EXPECT_EQ(numbers.bytes, expected_numbers.bytes);
}

TEST_P(CDevice, Evaluate) {
  matrix in = random_matrix(format_id::bf16, 33, 65), got(format_id::bf16, 33, 65), expected = got;
  evaluate(function::silu, in.cpp(), expected.cpp());
  const device_matrix x(in), y(got);
  ASSERT_OK(samebits_evaluate("silu", nullptr, &x.c, &y.c, nullptr, &where));
  wait();
  y.copy.copy_back();
  EXPECT_EQ(got.bytes, expected.bytes);
}

TEST_P(CDevice, AScaledOptimizerStep) {
  matrix w = number_matrix(format_id::fp32, 1, 500), g = number_matrix(format_id::fp16, 1, 500, 2);
  matrix v(format_id::fp32, 1, 500), expected_w = w, expected_v = v;
  const device_matrix weights(w), gradient(g), state(v);
  samebits_scaler* scaler = nullptr;
  ASSERT_OK(samebits_scaler_create("torch", "init_scale=256", &scaler));
  double norm = 0;
  std::int32_t apply = 0;
  float grad_mul = 0;
  ASSERT_OK(samebits_scaler_inspect(scaler, &gradient.c, 1, &norm, nullptr, &where));
  EXPECT_EQ(norm, inspect(g.cpp()).total.norm());
  ASSERT_OK(samebits_scaler_step(scaler, &apply, &grad_mul, nullptr));
  EXPECT_EQ(apply, 1);
  EXPECT_EQ(grad_mul, 1.0f / 256);
  samebits_scaler_destroy(scaler);
  samebits_parameter p = {};
  p.count = 500;
  p.weights = {weights.c.data, "fp32", nullptr};
  p.gradient = {gradient.c.data, "fp16_nearest", nullptr};
  p.states[0] = {state.c.data, "fp32", nullptr};
  samebits_optimizer* optimizer = nullptr;
  ASSERT_OK(samebits_optimizer_create(&p, 1, 1, "rule=sgd momentum=0.9", &optimizer));
  ASSERT_OK(samebits_optimizer_step(optimizer, 1, grad_mul, 0.1, &where));
  wait();
  samebits_optimizer_destroy(optimizer);
  const optimizer_list list({{.weights = {expected_w.bytes.data(), stored_format::fp32},
                              .gradient = {g.bytes.data(), stored_format::fp16_nearest},
                              .states = {{{expected_v.bytes.data(), stored_format::fp32}}},
                              .count = 500}});
  const optimizer_settings settings = {
      .rule = update_rule::sgd, .learning_rate = 0.1, .momentum = 0.9};
  optimizer_step(list, {&settings, 1}, {.grad_mul = grad_mul});
  weights.copy.copy_back();
  state.copy.copy_back();
  EXPECT_EQ(w.bytes, expected_w.bytes);
  EXPECT_EQ(v.bytes, expected_v.bytes);
}

INSTANTIATE_TEST_SUITE_P(Backends, CDevice, support::cuda_backends(), support::cuda_backend_name);

}  // namespace
}  // namespace samebits::in_c
