// Matrix products, predictions, self-test and backends in C against C++, bit for bit.
#include "c_api/in_c.hpp"

namespace samebits::in_c {
namespace {

constexpr std::int64_t m = 9, n = 7, k = 256;

/// Returns the C accumulator of a C++ accumulator.
samebits_accumulator in_c(const accumulator& a) {
  return {sizeof(samebits_accumulator),
          static_cast<int32_t>(a.kind),
          static_cast<int32_t>(a.order),
          static_cast<int32_t>(a.unit),
          a.promotion,
          static_cast<int32_t>(a.result),
          a.products};
}

std::vector<accumulator> accumulators() {
  std::vector<accumulator> all = {accumulator::exact(), accumulator::fp32_per_128()};
  for (int i = 0; i < enum_count<fp32_order>; ++i) {
    all.push_back(accumulator::ieee_fp32(static_cast<fp32_order>(i)));
  }
  for (int i = 0; i < enum_count<tensor_unit>; ++i) {
    all.push_back(accumulator::tensor_core(static_cast<tensor_unit>(i), 0));
    all.push_back(accumulator::tensor_core(static_cast<tensor_unit>(i), 128));
  }
  return all;
}

TEST(CMatmul, EveryAccumulator) {
  for (const format_id f : {format_id::fp16, format_id::bf16, format_id::tf32, format_id::e4m3}) {
    matrix a = number_matrix(f, m, k, 1);
    matrix b = number_matrix(f, k, n, 2);
    for (const accumulator& sum : accumulators()) {
      matrix expected(format_id::fp32, m, n), got(format_id::fp32, m, n);
      const samebits_view x = a.c(), y = b.c(), d = got.c();
      const samebits_accumulator sum_in_c = in_c(sum);
      try {
        matmul(a.cpp(), b.cpp(), expected.cpp(), sum);
      } catch (const unsupported& error) {
        EXPECT_REFUSED(samebits_matmul(&x, &y, &d, &sum_in_c, nullptr, nullptr),
                       SAMEBITS_UNSUPPORTED, error.what());
        continue;
      }
      ASSERT_OK(samebits_matmul(&x, &y, &d, &sum_in_c, nullptr, nullptr));
      EXPECT_EQ(got.bytes, expected.bytes);
      int32_t level = -1;
      ASSERT_OK(samebits_evidence_of(&sum_in_c, static_cast<int32_t>(f), static_cast<int32_t>(f),
                                     &level));
      EXPECT_EQ(level, static_cast<int32_t>(evidence_of(sum, f, f)));
    }
  }
}

TEST(CMatmul, ScalesOrdersAndC) {
  matrix a = number_matrix(format_id::e4m3, m, k, 1);
  matrix b = number_matrix(format_id::e4m3, k, n, 2);
  matrix c = number_matrix(format_id::fp32, m, n, 3);
  matrix a_scales = number_matrix(format_id::fp32, m, 2, 4);
  matrix b_scales = number_matrix(format_id::fp32, 2, n, 5);
  const accumulator sum = accumulator::tensor_core(tensor_unit::hopper_wgmma, 128);
  const samebits_accumulator sum_in_c = in_c(sum);
  const samebits_view x = a.c(), y = b.c(), z = c.c();
  const samebits_view xs = a_scales.c(), ys = b_scales.c();
  for (int order = SAMEBITS_SCALE_ORDER_AS_CUBLASLT; order < enum_count<scale_order>; ++order) {
    matrix expected(format_id::bf16, m, n), got(format_id::bf16, m, n);
    matmul_options options = {.a_scales = {a_scales.cpp(), {1, 128}},
                              .b_scales = {b_scales.cpp(), {128, 1}},
                              .c = c.cpp()};
    if (order >= 0) options.order = static_cast<scale_order>(order);
    matmul(a.cpp(), b.cpp(), expected.cpp(), sum, options);
    samebits_matmul_options options_in_c = SAMEBITS_MATMUL_OPTIONS_INIT;
    options_in_c.a_scales = &xs;
    options_in_c.a_tile = {1, 128};
    options_in_c.b_scales = &ys;
    options_in_c.b_tile = {128, 1};
    options_in_c.c = &z;
    options_in_c.order = order;
    const samebits_view d = got.c();
    ASSERT_OK(samebits_matmul(&x, &y, &d, &sum_in_c, &options_in_c, nullptr));
    EXPECT_EQ(got.bytes, expected.bytes);

    const prediction p = predict(a.cpp(), b.cpp(), expected.cpp(), sum, options);
    int32_t level = -1;
    samebits_product_error error = {};
    ASSERT_OK(samebits_predict(&x, &y, &d, &sum_in_c, &options_in_c, &level, &error, nullptr));
    EXPECT_EQ(got.bytes, expected.bytes);
    EXPECT_EQ(level, static_cast<int32_t>(p.level));
    EXPECT_TRUE(same_bytes(error, p.error));
  }
}

TEST(CMatmul, TheDefaultIsExact) {
  matrix a = number_matrix(format_id::fp16, m, k, 1);
  matrix b = number_matrix(format_id::fp16, k, n, 2);
  matrix exact(format_id::fp64, m, n), got(format_id::fp64, m, n), rounded(format_id::bf16, m, n);
  matmul(a.cpp(), b.cpp(), exact.cpp(), accumulator::exact());
  const samebits_view x = a.c(), y = b.c(), d = got.c(), r = rounded.c();
  ASSERT_OK(samebits_matmul(&x, &y, &d, nullptr, nullptr, nullptr));
  EXPECT_EQ(got.bytes, exact.bytes);
  ASSERT_OK(samebits_matmul(&x, &y, &r, nullptr, nullptr, nullptr));
  samebits_product_error error = {};
  ASSERT_OK(samebits_product_error_of(&r, &d, &error));
  EXPECT_TRUE(same_bytes(error, error_of(rounded.cpp(), exact.cpp())));
  samebits_matmul_options options = SAMEBITS_MATMUL_OPTIONS_INIT;
  options.order = 6;
  EXPECT_REFUSED(samebits_matmul(&x, &y, &d, nullptr, &options, nullptr), SAMEBITS_INVALID_ARGUMENT,
                 "samebits_scale_order, got 6");
}

void append_backend(void* user, const samebits_backend* backend) {
  static_cast<std::vector<std::string>*>(user)->push_back(
      std::string(backend->name) + "|" + backend->description + "|" + backend->why_unsupported +
      "|" + std::to_string(backend->memory) + std::to_string(backend->supported) +
      std::to_string(backend->is_default));
}

TEST(CBackends, ListAndFind) {
  std::vector<std::string> got;
  ASSERT_OK(samebits_list_backends(append_backend, &got));
  std::size_t hosts = 0;
  for (const backend_info& b : compiled_backends()) {
    if (b.space != memory_space::host) continue;
    ASSERT_LT(hosts, got.size());
    EXPECT_EQ(got[hosts++], std::string(b.name) + "|" + std::string(b.description) + "|" +
                                b.why_unsupported + "|0" +
                                std::to_string(static_cast<int>(b.supported)) +
                                std::to_string(static_cast<int>(b.is_default)));
  }
  EXPECT_EQ(got.size() > hosts, samebits_has_cuda() != 0);
  EXPECT_OK(samebits_find_backend("reference"));
  EXPECT_REFUSED(samebits_find_backend("abacus"), SAMEBITS_INVALID_ARGUMENT, "reference");
}

TEST(CBackends, Version) {
  EXPECT_EQ(samebits_interface(), SAMEBITS_C_INTERFACE);
  EXPECT_STREQ(samebits_version_text(), SAMEBITS_VERSION);
  EXPECT_EQ(samebits_version(),
            SAMEBITS_VERSION_MAJOR * 10000 + SAMEBITS_VERSION_MINOR * 100 + SAMEBITS_VERSION_PATCH);
}

void append_check(void* user, const samebits_self_test_result* result) {
  EXPECT_EQ(result->passed, 1) << result->detail;
  static_cast<std::vector<std::string>*>(user)->push_back(std::string(result->backend) + " " +
                                                          result->check);
}

TEST(CBackends, SelfTestAndInitialize) {
  std::vector<std::string> got;
  int32_t failed = -1;
  ASSERT_OK(samebits_self_test("reference", append_check, &got, &failed));
  EXPECT_EQ(failed, 0);
  const std::vector<self_test_result> expected = self_test("reference");
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i], std::string(expected[i].backend) + " " + std::string(expected[i].check));
  }
  EXPECT_OK(samebits_initialize("reference"));
  EXPECT_REFUSED(samebits_self_test("abacus", nullptr, nullptr, nullptr), SAMEBITS_INVALID_ARGUMENT,
                 "abacus");
  EXPECT_REFUSED(samebits_initialize("abacus"), SAMEBITS_INVALID_ARGUMENT, "abacus");
}

void count_entry(void* user, const samebits_verification* entry) {
  EXPECT_STREQ(entry->first_difference, "") << entry->what;
  *static_cast<uint64_t*>(user) += entry->compared;
}

TEST(CVerify, ComparesBackendsAndReportsEachResult) {
  samebits_verify_options options = SAMEBITS_VERIFY_OPTIONS_INIT;
  options.backend = "abacus";
  EXPECT_REFUSED(samebits_verify(&options, nullptr, nullptr, nullptr, nullptr),
                 SAMEBITS_INVALID_ARGUMENT, "abacus");
  options.backend = "reference";
  uint64_t seen = 0, compared = 0, differed = 1;
  ASSERT_OK(samebits_verify(&options, count_entry, &seen, &compared, &differed));
  EXPECT_GT(compared, 0u);
  EXPECT_EQ(seen, compared);
  EXPECT_EQ(differed, 0u);
}

}  // namespace
}  // namespace samebits::in_c
