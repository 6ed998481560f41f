// The boundary of the C interface: statuses, messages, null pointers, structs of other versions.
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <thread>

#include "c_api/in_c.hpp"

namespace samebits::in_c {
namespace {

TEST(CBoundary, AMessageBelongsToItsThread) {
  EXPECT_REFUSED(samebits_find_backend(nullptr), SAMEBITS_INVALID_ARGUMENT,
                 "backend: must not be null");
  std::thread([] { EXPECT_STREQ(samebits_last_error(), ""); }).join();
  EXPECT_OK(samebits_find_backend("reference"));
  EXPECT_STREQ(samebits_last_error(), "backend: must not be null");
  EXPECT_EQ(samebits_last_cuda_error(), 0);
}

TEST(CBoundary, MessagesAreThoseOfCpp) {
  matrix in(format_id::fp32, 2, 3), out(format_id::bf16, 3, 2);
  const samebits_view x = in.c(), y = out.c();
  try {
    convert(in.cpp(), out.cpp());
    FAIL();
  } catch (const invalid_argument& error) {
    EXPECT_EQ(samebits_convert(&x, &y, nullptr, nullptr), SAMEBITS_INVALID_ARGUMENT);
    EXPECT_STREQ(samebits_last_error(), error.what());
  }
}

TEST(CBoundary, AViewOutsideItsEnumerations) {
  matrix in(format_id::fp32, 1, 1), out(format_id::fp32, 1, 1);
  samebits_view x = in.c(), y = out.c();
  x.format = 256 + SAMEBITS_FORMAT_FP32;  // equals fp32 if only eight bits are read
  EXPECT_REFUSED(samebits_convert(&x, &y, nullptr, nullptr), SAMEBITS_INVALID_ARGUMENT,
                 "in.format: must be a value of samebits_format, got 257");
  x = in.c();
  y.memory = -1;
  EXPECT_REFUSED(samebits_convert(&x, &y, nullptr, nullptr), SAMEBITS_INVALID_ARGUMENT,
                 "out.memory: must be a value of samebits_memory, got -1");
  y = out.c();
  samebits_convert_options options = SAMEBITS_CONVERT_OPTIONS_INIT;
  options.rounding = 7;
  EXPECT_REFUSED(samebits_convert(&x, &y, &options, nullptr), SAMEBITS_INVALID_ARGUMENT,
                 "samebits_rounding, got 7");
  EXPECT_REFUSED(samebits_convert(nullptr, &y, nullptr, nullptr), SAMEBITS_INVALID_ARGUMENT,
                 "in: must not be null");
}

TEST(CBoundary, ADenseView) {
  float x[6] = {};
  const samebits_view v = samebits_dense_view(SAMEBITS_FORMAT_FP32, x, 2, 3);
  EXPECT_TRUE(same_bytes(v, view(view_of(x, 2, 3))));
}

TEST(CBoundary, AnInterruptCheckEndsCalls) {
  constexpr std::int64_t count = 1 << 20;
  matrix in(format_id::fp32, 1, count), out(format_id::bf16, 1, count);
  const samebits_view x = in.c(), y = out.c();
  static int asked = 0;
  const samebits_interrupt_function check = [] { return ++asked > 1 ? 1 : 0; };
  EXPECT_EQ(samebits_set_interrupt_check(check), nullptr);
  samebits_status status = SAMEBITS_OK;
  for (const std::time_t end = std::time(nullptr) + 60;
       status == SAMEBITS_OK && std::time(nullptr) < end;) {
    status = samebits_convert(&x, &y, nullptr, nullptr);
  }
  EXPECT_EQ(status, SAMEBITS_CALLBACK_FAILED);
  EXPECT_STREQ(samebits_last_error(), "the caller's interrupt check ended the call");
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(samebits_convert(&x, &y, nullptr, nullptr), SAMEBITS_CALLBACK_FAILED);
  EXPECT_EQ(asked, 2);
  std::thread([&] { EXPECT_OK(samebits_convert(&x, &y, nullptr, nullptr)); }).join();
  EXPECT_EQ(samebits_set_interrupt_check(nullptr), check);
  EXPECT_OK(samebits_convert(&x, &y, nullptr, nullptr));
}

// --- struct_size -------------------------------------------------------------------------------

/// Converts 1000 to e4m3 with options of which the caller knows `size` bytes.
samebits_status convert_with(const void* options, std::uint8_t& code) {
  const float x = 1000.0f;
  const samebits_view in = samebits_dense_view(SAMEBITS_FORMAT_FP32, &x, 1, 1);
  const samebits_view out = samebits_dense_view(SAMEBITS_FORMAT_E4M3, &code, 1, 1);
  return samebits_convert(&in, &out, static_cast<const samebits_convert_options*>(options),
                          nullptr);
}

TEST(CBoundary, AnOlderStructHasDefaultsForTheRest) {
  struct {
    uint32_t struct_size;
    int32_t rounding;
    int32_t overflow;
    int32_t unread[13];  // fields that neither the caller nor this test sets
  } older = {12, SAMEBITS_ROUNDING_NEAREST_EVEN, SAMEBITS_OVERFLOW_SATURATE, {}};
  for (int32_t& word : older.unread) word = -1;
  std::uint8_t code = 0;
  EXPECT_OK(convert_with(&older, code));
  EXPECT_EQ(code, 0x7E);
  older.struct_size = 8;  // the struct ends before the field overflow
  EXPECT_OK(convert_with(&older, code));
  EXPECT_EQ(code, 0x7F);
}

TEST(CBoundary, ANewerStructIsRefusedIfItAsksForMore) {
  struct {
    samebits_convert_options known;
    int32_t added[2];
  } newer = {SAMEBITS_CONVERT_OPTIONS_INIT, {0, 0}};
  newer.known.struct_size = sizeof newer;
  std::uint8_t code = 0;
  EXPECT_OK(convert_with(&newer, code));
  newer.added[1] = 1;
  EXPECT_REFUSED(convert_with(&newer, code), SAMEBITS_INVALID_ARGUMENT,
                 "options: byte 60 is set, which this version of the library does not know");
}

TEST(CBoundary, AStructThatWasNotInitialized) {
  samebits_convert_options options = {};
  std::uint8_t code = 0;
  EXPECT_REFUSED(convert_with(&options, code), SAMEBITS_INVALID_ARGUMENT, "struct_size");
  options.struct_size = 0xCDCDCDCD;
  EXPECT_REFUSED(convert_with(&options, code), SAMEBITS_INVALID_ARGUMENT, "struct_size");
}

/// Expects that init() writes the bytes of the macro, and only as many as struct_size says.
template <class Options>
void expect_init(samebits_status (*init)(Options*), const Options& macro) {
  Options got;
  std::memset(&got, 0xEE, sizeof got);
  EXPECT_REFUSED(init(&got), SAMEBITS_INVALID_ARGUMENT, "struct_size");
  got.struct_size = sizeof got;
  EXPECT_OK(init(&got));
  EXPECT_TRUE(same_bytes(got, macro));
  std::memset(&got, 0xEE, sizeof got);
  got.struct_size = 8;
  EXPECT_OK(init(&got));
  EXPECT_EQ(got.struct_size, 8u);
  EXPECT_EQ(std::memcmp(reinterpret_cast<const char*>(&got) + 4,
                        reinterpret_cast<const char*>(&macro) + 4, 4),
            0);
  EXPECT_EQ(reinterpret_cast<const unsigned char*>(&got)[8], 0xEE);
  EXPECT_REFUSED(init(nullptr), SAMEBITS_INVALID_ARGUMENT, "must not be null");
}

TEST(CBoundary, InitWritesTheDefaultsOfTheMacros) {
  expect_init(samebits_executor_init, samebits_executor SAMEBITS_EXECUTOR_INIT);
  expect_init(samebits_cast_rule_init, samebits_cast_rule SAMEBITS_CAST_RULE_INIT);
  expect_init(samebits_convert_options_init,
              samebits_convert_options SAMEBITS_CONVERT_OPTIONS_INIT);
  expect_init(samebits_compute_options_init,
              samebits_compute_options SAMEBITS_COMPUTE_OPTIONS_INIT);
  expect_init(samebits_evaluate_options_init,
              samebits_evaluate_options SAMEBITS_EVALUATE_OPTIONS_INIT);
  expect_init(samebits_softmax_options_init,
              samebits_softmax_options SAMEBITS_SOFTMAX_OPTIONS_INIT);
  expect_init(samebits_layer_norm_options_init,
              samebits_layer_norm_options SAMEBITS_LAYER_NORM_OPTIONS_INIT);
  expect_init(samebits_rotary_options_init, samebits_rotary_options SAMEBITS_ROTARY_OPTIONS_INIT);
  expect_init(samebits_dot_options_init, samebits_dot_options SAMEBITS_DOT_OPTIONS_INIT);
  expect_init(samebits_quantize_options_init,
              samebits_quantize_options SAMEBITS_QUANTIZE_OPTIONS_INIT);
  expect_init(samebits_quantize_outputs_init,
              samebits_quantize_outputs SAMEBITS_QUANTIZE_OUTPUTS_INIT);
  expect_init(samebits_scale_layout_options_init,
              samebits_scale_layout_options SAMEBITS_SCALE_LAYOUT_OPTIONS_INIT);
  expect_init(samebits_delayed_settings_init,
              samebits_delayed_settings SAMEBITS_DELAYED_SETTINGS_INIT);
  expect_init(samebits_step_observation_init,
              samebits_step_observation SAMEBITS_STEP_OBSERVATION_INIT);
  expect_init(samebits_device_scaler_options_init,
              samebits_device_scaler_options SAMEBITS_DEVICE_SCALER_OPTIONS_INIT);
  expect_init(samebits_communicator_init, samebits_communicator SAMEBITS_COMMUNICATOR_INIT);
  expect_init(samebits_gradient_reduction_init,
              samebits_gradient_reduction SAMEBITS_GRADIENT_REDUCTION_INIT);
  expect_init(samebits_unscale_options_init,
              samebits_unscale_options SAMEBITS_UNSCALE_OPTIONS_INIT);
  expect_init(samebits_accumulator_init, samebits_accumulator SAMEBITS_ACCUMULATOR_INIT);
  expect_init(samebits_matmul_options_init, samebits_matmul_options SAMEBITS_MATMUL_OPTIONS_INIT);
  expect_init(samebits_verify_options_init, samebits_verify_options SAMEBITS_VERIFY_OPTIONS_INIT);
}

// --- other statuses ----------------------------------------------------------------------------

TEST(CBoundary, AMatrixThatNoMemoryHolds) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer ends the process at an allocation of this size";
#endif
  const float x = 1.0f;
  samebits_view a = samebits_dense_view(SAMEBITS_FORMAT_FP32, &x, 1, int64_t{1} << 50);
  a.col_stride = 0;
  samebits_view b = a;
  b.rows = a.cols;
  b.cols = 1;
  b.row_stride = 0;
  float y = 0;
  const samebits_view d = samebits_dense_view(SAMEBITS_FORMAT_FP32, &y, 1, 1);
  EXPECT_REFUSED(samebits_matmul(&a, &b, &d, nullptr, nullptr, nullptr), SAMEBITS_NO_MEMORY,
                 "out of memory");
}

void throw_error(void*, const samebits_backend*) { throw std::runtime_error("of the caller"); }
void throw_number(void*, const samebits_backend*) { throw 5; }

TEST(CBoundary, NoExceptionOfAnyTypeLeaves) {
  EXPECT_REFUSED(samebits_list_backends(throw_error, nullptr), SAMEBITS_INTERNAL_ERROR,
                 "internal error: of the caller");
  EXPECT_REFUSED(samebits_list_backends(throw_number, nullptr), SAMEBITS_INTERNAL_ERROR,
                 "an exception of an unknown type");
  EXPECT_REFUSED(samebits_list_backends(nullptr, nullptr), SAMEBITS_INVALID_ARGUMENT,
                 "each: must not be null");
}

TEST(CBoundary, DeviceMemoryWithoutAGpu) {
  if (std::getenv("SAMEBITS_REQUIRE_GPU") != nullptr || samebits_has_cuda() != 0) {
    GTEST_SKIP() << "this library has CUDA";
  }
  samebits_view x = samebits_dense_view(SAMEBITS_FORMAT_FP32, nullptr, 0, 0);
  x.memory = SAMEBITS_MEMORY_DEVICE;
  EXPECT_REFUSED(samebits_convert(&x, &x, nullptr, nullptr), SAMEBITS_UNSUPPORTED,
                 "no backend for device memory");
  samebits_device_loss_scaler* scaler = nullptr;
  EXPECT_REFUSED(samebits_device_loss_scaler_create(nullptr, 0, nullptr, 0, nullptr, &scaler),
                 SAMEBITS_UNSUPPORTED, "without CUDA");
  EXPECT_REFUSED(samebits_device_loss_scaler_step(nullptr, nullptr), SAMEBITS_UNSUPPORTED,
                 "without CUDA");
  samebits_device_loss_scaler_destroy(nullptr);
}

}  // namespace
}  // namespace samebits::in_c
