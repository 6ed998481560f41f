// A tensor of more than 2^32 elements through every operation over tensor lists, and tensors of
// more chunks than one block joins, on each CUDA backend.
//
// Their elements repeat 251 chunks (repeated_arrays.cuh), a prime number of them. A sum of squares
// is put together from the reference's sums of single chunks.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "numerics/tensor_list/inspect.hpp"
#include "samebits/samebits.hpp"
#include "tests/device/cuda_backends.hpp"
#include "tests/device/repeated_arrays.cuh"
#include "tests/support/effort.hpp"

namespace samebits::support {
namespace {

using enum format_id;
using sizes_of_tensors = std::vector<std::int64_t>;

constexpr std::int64_t chunk = numerics::chunk_elements;
constexpr std::int64_t period = 251 * chunk;
/// A large tensor, and small ones before and after it.
const sizes_of_tensors sizes = {5003, by_effort(std::int64_t{1} << 32, 2 * period) + 4099, 4097};

const executor reference = {"reference", 0};

chunk_codes codes_of(format_id f, std::uint64_t seed) {
  return random_codes(f, period, seed, false);
}

class ListLarge : public ::testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    initialize(GetParam());
    std::size_t free = 0, all = 0;
    check_cuda(cudaMemGetInfo(&free, &all), "memory");
    const std::size_t wanted = by_effort(std::size_t{26} << 30, 1 << 30);
    if (free < wanted) GTEST_SKIP() << "needs " << (wanted >> 30) << " GiB of device memory";
  }
  [[nodiscard]] executor here() const { return on_stream(nullptr, GetParam()); }
};

/// The counts of a list from those of one period and of what remains of each tensor after whole
/// ones.
unscale_report expected_report(const chunk_codes& c, float factor) {
  unscale_report all;
  const auto add = [&](std::int64_t size, std::uint64_t times) {
    chunk_codes copy = c;
    const unscale_report seen = unscale(copy.view(0, size), factor, reference);
    all.elements += times * seen.elements;
    all.nonfinite += times * seen.nonfinite;
    all.overflowed += times * seen.overflowed;
    all.amax_bits = std::max(all.amax_bits, seen.amax_bits);
  };
  for (const std::int64_t n : sizes) {
    if (n >= period) add(period, static_cast<std::uint64_t>(n / period));
    add(n % period, 1);
  }
  all.first_bad = 0;
  return all;
}

TEST_P(ListLarge, Unscales) {
  chunk_codes c = codes_of(fp16, 1);
  const repeated_arrays list(c, sizes);
  const unscale_report expected = expected_report(c, 0x1p5f);
  ASSERT_NE(expected.overflowed, 0u);
  const unscale_report got = unscale(list.listed(), 0x1p5f, here());
  EXPECT_TRUE(got == expected) << got.nonfinite << ", expected " << expected.nonfinite
                               << "; overflowed " << got.overflowed << ", expected "
                               << expected.overflowed << "; first bad " << got.first_bad;
  unscale(c.view(), 0x1p5f, reference);
  list.expect(c);
}

TEST_P(ListLarge, Scales) {
  chunk_codes c = codes_of(fp32, 2);
  const repeated_arrays list(c, sizes);
  scale(list.listed(), -0.3f, here());
  scale(c.view(), -0.3f, reference);
  list.expect(c);
}

TEST_P(ListLarge, ScalesUnalignedTensors) {
  chunk_codes c = codes_of(bf16, 3);
  const repeated_arrays list(c, sizes, 3);
  scale(list.listed(), 1.7f, here());
  scale(c.view(), 1.7f, reference);
  list.expect(c);
}

TEST_P(ListLarge, Accumulates) {
  chunk_codes sums = codes_of(fp32, 4), gradients = codes_of(e5m2, 5);
  const repeated_arrays acc(sums, sizes), x(gradients, sizes);
  const std::vector<float> scales(3, 0.37f);
  const device_bytes there(scales.data(), scales.size() * sizeof(float));
  accumulate(acc.listed(), x.listed(), {there.as<const float>()}, here());
  accumulate(sums.view(), gradients.view(), {scales.data()}, reference);
  acc.expect(sums);
  x.expect(gradients);
}

TEST_P(ListLarge, Combines) {
  chunk_codes c = codes_of(bf16, 6), d = codes_of(bf16, 7), e = codes_of(bf16, 8);
  const repeated_arrays x(c, sizes), y(d, sizes), out(e, sizes);
  axpby(0.9f, x.listed(), -1.25f, y.listed(), out.listed(), here());
  axpby(0.9f, c.view(), -1.25f, d.view(), e.view(), reference);
  out.expect(e);
  x.expect(c);
}

struct cast_case {
  format_id from, to;
  samebits::rounding rounding;
  std::int64_t shift;
};

/// By the kernels of one pair of formats, the one of mixed lists, and element by element.
TEST_P(ListLarge, Casts) {
  for (const cast_case t : {cast_case{fp32, bf16, rounding::nearest_even, 0},
                            {fp16, fp32, rounding::nearest_even, 0},
                            {e4m3, bf16, rounding::nearest_even, 0},
                            {fp16, e5m2, rounding::upward, 0},
                            {bf16, e4m3, rounding::nearest_even, 1}}) {
    chunk_codes c = codes_of(t.from, 9), d = codes_of(t.to, 10);
    const repeated_arrays from(c, sizes, t.shift), to(d, sizes);
    const convert_options options = {.rounding = t.rounding};
    cast(from.listed(), to.listed(), options, here());
    cast(c.view(), d.view(), options, reference);
    to.expect(d);
    ASSERT_FALSE(HasFailure()) << name(t.from) << " to " << name(t.to);
  }
}

TEST_P(ListLarge, CastsWithRandomBits) {
  chunk_codes c = codes_of(fp32, 11);
  const repeated_arrays from(c, sizes), to(codes_of(bf16, 12), sizes);
  const random_stream random = {
      .seed = 21, .stream = 3, .offset = std::uint64_t{7} << 32, .bits = 16};
  cast(from.listed(), to.listed(), {.rounding = rounding::stochastic, .random = random}, here());
  check_cuda(cudaDeviceSynchronize(), "cast");
  to.expect_stochastic(c, random);
}

/// What inspect() reports of tensors that repeat chunks, from the reports of single chunks.
class expected_inspection {
 public:
  explicit expected_inspection(chunk_codes& c) : c_(c) {
    for (std::int64_t k = 0; k < period / chunk; ++k) chunks_.push_back(report_of(k, chunk));
  }

  [[nodiscard]] inspect_report of(const sizes_of_tensors& list) const {
    inspect_report all;
    numerics::square_sum squares;
    for (const std::int64_t n : list) {
      tensor_statistics tensor;
      numerics::square_sum sum;
      const auto add_chunk = [&](const inspect_report& r) {
        add(tensor, r.total);
        sum.add(std::bit_cast<std::uint64_t>(r.total.squares));
        for (std::size_t e = 0; e < all.exponents.size(); ++e) all.exponents[e] += r.exponents[e];
      };
      for (std::int64_t k = 0; k < n / chunk; ++k) {
        add_chunk(chunks_[static_cast<std::size_t>(k) % chunks_.size()]);
      }
      if (n % chunk != 0) add_chunk(report_of(n / chunk % (period / chunk), n % chunk));
      tensor.squares = std::bit_cast<double>(sum.value());
      add(all.total, tensor);
      squares.add(sum.value());
      all.tensors.push_back(tensor);
    }
    all.total.squares = std::bit_cast<double>(squares.value());
    return all;
  }

 private:
  [[nodiscard]] inspect_report report_of(std::int64_t first, std::int64_t count) const {
    return inspect(c_.view(first * chunk, count), {inspect_counts::distribution}, reference);
  }
  static void add(tensor_statistics& all, const tensor_statistics& s) {
    all.elements += s.elements;
    all.nan += s.nan;
    all.inf += s.inf;
    all.zeros += s.zeros;
    all.subnormals += s.subnormals;
    all.amax_bits = std::max(all.amax_bits, s.amax_bits);
  }

  chunk_codes& c_;
  std::vector<inspect_report> chunks_;
};

/// Tensors of more chunks than one block joins, one after another and next to small ones, so that
/// their chunks begin anywhere.
sizes_of_tensors many_spans() {
  std::mt19937_64 random(12);
  sizes_of_tensors all = {3 * chunk,    33 * chunk,       1024 * chunk, 1025 * chunk - 5, 0,
                          2048 * chunk, 1023 * chunk + 1, 40 * chunk,   2500 * chunk - 8};
  for (int i = 0; i < 700; ++i) all.push_back(static_cast<std::int64_t>(random() % 6) * chunk);
  all.insert(all.end(), {3100 * chunk + 77, 33 * chunk - 1, 1 * chunk});
  return all;
}

/// Counts and sums of squares; twice, as what blocks count is left behind by the first call. Then
/// with an Inf at the end of the last large tensor.
TEST_P(ListLarge, Inspects) {
  for (const format_id f : {fp32, fp16, bf16}) {
    chunk_codes c = random_codes(f, period, 13, true);
    const expected_inspection by_chunks(c);
    for (const sizes_of_tensors& of : {sizes, many_spans()}) {
      if (f == fp16 && of == sizes) continue;
      const repeated_arrays list(c, of);
      inspect_report expected = by_chunks.of(of);
      const tensor_list tensors = list.listed();
      for (int turn = 0; turn < 2; ++turn) {
        EXPECT_TRUE(inspect(tensors, {inspect_counts::distribution}, here()) == expected)
            << name(f) << ", " << of.size() << " tensors, turn " << turn;
      }
      const norm_report norms = l2norm(tensors, here());
      EXPECT_EQ(norms.total, expected.total.norm());
      list.expect(c);

      const std::size_t last = of.size() - (of == sizes ? 2 : 3);
      const auto width = static_cast<std::size_t>(storage_bytes(f));
      const std::uint32_t inf = f == fp32 ? 0x7F800000u : f == fp16 ? 0x7C00u : 0x7F80u;
      check_cuda(cudaMemcpy(static_cast<std::byte*>(list[last].data) +
                                (of[last] - 1) * static_cast<std::int64_t>(width),
                            &inf, width, cudaMemcpyHostToDevice),
                 "the last element");
      const inspect_report bad = inspect(tensors, {}, here());
      EXPECT_EQ(bad.total.inf, 1u) << name(f);
      EXPECT_EQ(bad.first_bad, static_cast<std::int64_t>(last)) << name(f);
      EXPECT_EQ(bad.total.amax_bits, 0x7F800000u) << name(f);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ListLarge, cuda_backends(), cuda_backend_name);

}  // namespace
}  // namespace samebits::support
