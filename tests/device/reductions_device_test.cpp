// Reductions on each CUDA backend against the reference: every bit of the result, for any layout.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "device/device_copy.hpp"
#include "engine/core/strided_buffer.hpp"
#include "samebits/samebits.hpp"
#include "support/effort.hpp"

namespace samebits::support {
namespace {

constexpr format_id formats[] = {format_id::fp32, format_id::fp16, format_id::bf16, format_id::e4m3,
                                 format_id::e5m2};
const std::string backends[] = {"cuda-native", "cuda-emulated"};
const executor reference = {"reference", 0, nullptr};

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

enum class content : std::uint8_t {
  ordinary,   ///< finite, of both signs, without results that overflow
  any_bits,   ///< NaN and Inf, too
  zeros,      ///< of both signs
  minus_zero  ///< nothing else
};

/// A matrix on the host, and its copy on the device.
class matrix {
 public:
  matrix(format_id f, std::int64_t rows, std::int64_t cols, content what, std::uint64_t seed,
         std::int64_t col_stride = 1, std::int64_t gap = 0, std::size_t shift = 0)
      : memory_(fill(f, rows * (cols * col_stride + gap), what, seed, shift)),
        view_(view_of_codes(f, static_cast<const void*>(memory_.data() + shift), rows, cols)),
        copy_((view_.col_stride = col_stride, view_.row_stride = cols * col_stride + gap, view_),
              edges::exact) {}
  [[nodiscard]] const const_matrix_view& host() const { return view_; }
  [[nodiscard]] const_matrix_view device() const {
    const_matrix_view v = on_device(view_);
    v.data = copy_.data();
    return v;
  }

 private:
  static std::vector<std::byte> fill(format_id f, std::int64_t elements, content what,
                                     std::uint64_t seed, std::size_t shift) {
    const auto width = static_cast<std::size_t>(storage_bytes(f));
    std::vector<std::byte> memory(static_cast<std::size_t>(elements) * width + shift + 64);
    std::mt19937_64 random(seed);
    for (std::size_t i = shift; i + width <= memory.size(); i += width) {
      for (std::size_t k = 0; k < width; ++k) memory[i + k] = static_cast<std::byte>(random());
      std::byte& top = memory[i + width - 1];
      // No exponent of the upper half: sums that round, products that do not overflow.
      if (what == content::ordinary) top &= std::byte{0xBF};
      if (what == content::zeros || what == content::minus_zero) {
        const bool minus = what == content::minus_zero || random() % 4 != 0;
        for (std::size_t k = 0; k < width; ++k) memory[i + k] = std::byte{0};
        top = minus ? std::byte{0x80} : std::byte{0};
      }
    }
    return memory;
  }

  std::vector<std::byte> memory_;
  const_matrix_view view_;
  guarded_copy copy_;
};

constexpr dot_options dots[] = {{accumulation::fp64, sum_order::tree},
                                {accumulation::fp32, sum_order::tree},
                                {accumulation::fp64, sum_order::sequential},
                                {accumulation::fp32, sum_order::sequential}};

std::size_t reductions_compared = 0;

/// Every reduction of x, and the dot products of both.
void expect_same(const matrix& x, const matrix& y, const std::string& what) {
  const std::int64_t elements = x.host().rows * x.host().cols;
  for (const std::string& backend : backends) {
    const executor where = on_stream(nullptr, backend);
    const std::string text = backend + ": " + std::string(name(x.host().format)) + ", " +
                             std::string(name(y.host().format)) + ", " + what;
    EXPECT_EQ(std::bit_cast<std::uint32_t>(amax(x.device(), where)),
              std::bit_cast<std::uint32_t>(amax(x.host(), reference)))
        << text;
    EXPECT_EQ(counts(x.device(), where), counts(x.host(), reference)) << text;
    EXPECT_EQ(bits(sum(x.device(), where)), bits(sum(x.host(), reference))) << text;
    EXPECT_EQ(bits(sum_of_squares(x.device(), where)), bits(sum_of_squares(x.host(), reference)))
        << text;
    for (const dot_options& o : dots) {
      if (o.order == sum_order::sequential && elements > 200'000) continue;  // one thread
      EXPECT_EQ(bits(dot(x.device(), y.device(), o, where)),
                bits(dot(x.host(), y.host(), o, reference)))
          << text << ", precision " << static_cast<int>(o.precision) << ", order "
          << static_cast<int>(o.order);
      ++reductions_compared;
    }
    reductions_compared += 4;
  }
}

// The largest magnitude at each position: in whole vectors of 16 bytes and behind the last one.
TEST(DeviceReductions, AmaxInEveryPlace) {
  for (const format_id f : formats) {
    const auto code = [&](float value) {
      return convert_code(format_id::fp32, f, std::bit_cast<std::uint32_t>(value)).code;
    };
    for (std::int64_t n = 1; n <= 35; ++n) {
      for (std::int64_t position = 0; position < n; ++position) {
        strided_buffer host(f, {1, n, n, 1, 0});
        for (std::int64_t i = 0; i < n; ++i) host.store(i, code(1.0f));
        host.store(position, code(-2.0f));
        const guarded_copy memory(host.view());
        ASSERT_EQ(amax(memory.placed(host.view()), {"cuda-native"}), 2.0f)
            << name(f) << ", element " << position << " of " << n;
      }
    }
  }
}

TEST(DeviceReductions, SizesAroundVectorsTurnsAndChunks) {
  thinned_cases cases(7);
  for (const format_id f : formats) {
    for (const content what :
         {content::ordinary, content::any_bits, content::zeros, content::minus_zero}) {
      for (const std::int64_t around : {1, 4, 8, 16, 128, 512, 2048, 4096, 8192, 12'288}) {
        for (std::int64_t n = around - 1; n <= around + 1; ++n) {
          if (cases.leaves_out()) continue;
          const auto seed = static_cast<std::uint64_t>(n);
          const matrix x(f, 1, n, what, seed), y(f, 1, n, what, seed + 1);
          expect_same(x, y, std::to_string(n) + " elements");
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(DeviceReductions, StridedAndUnalignedViews) {
  thinned_cases cases(7);
  for (const format_id f : formats) {
    for (const content what : {content::ordinary, content::zeros}) {
      for (const std::int64_t col_stride : {1, 2}) {
        for (const std::int64_t gap : {0, 3}) {
          for (const std::size_t shift : {0u, 1u, 4u, 13u}) {
            if (cases.leaves_out()) continue;
            const matrix x(f, 37, 301, what, 5 + shift, col_stride, gap, shift);
            const matrix y(f, 37, 301, what, 6);
            expect_same(x, y, "strided");
            if (HasFailure()) return;
          }
        }
      }
    }
    // Repeated rows, and columns as rows.
    const matrix x(f, 64, 130, content::ordinary, 8);
    const_matrix_view host = x.host(), device = x.device();
    for (const auto& [rows, cols, row_stride, col_stride] :
         {std::array<std::int64_t, 4>{100, 130, 0, 1}, {130, 64, 1, 130}, {100, 100, 0, 0}}) {
      for (const_matrix_view* v : {&host, &device}) {
        v->rows = rows, v->cols = cols, v->row_stride = row_stride, v->col_stride = col_stride;
      }
      for (const std::string& backend : backends) {
        const executor where = on_stream(nullptr, backend);
        EXPECT_EQ(bits(sum(device, where)), bits(sum(host, reference)));
        EXPECT_EQ(bits(dot(device, device, {}, where)), bits(dot(host, host, {}, reference)));
        EXPECT_EQ(counts(device, where), counts(host, reference));
      }
    }
  }
}

TEST(DeviceReductions, DotsOfDifferentFormats) {
  for (const format_id f : formats) {
    for (const format_id g : formats) {
      const matrix x(f, 3, 4099, content::ordinary, 1), y(g, 3, 4099, content::ordinary, 2);
      expect_same(x, y, "of two formats");
    }
  }
}

TEST(DeviceReductions, NothingIsZero) {
  for (const format_id f : formats) {
    const matrix x(f, 0, 7, content::ordinary, 1), y(f, 7, 0, content::ordinary, 1);
    expect_same(x, x, "no rows");
    expect_same(y, y, "no columns");
  }
}

TEST(DeviceReductions, SeveralLevelsOfJoining) {
  // One block combines 4096 chunks; beyond 2^24 elements there is a level more.
  thinned_cases cases(7);
  for (const format_id f : formats) {
    for (const std::int64_t n : {(std::int64_t{1} << 24) + 4097, std::int64_t{1} << 24,
                                 (std::int64_t{1} << 25) + (std::int64_t{1} << 24) - 1}) {
      if (cases.leaves_out()) continue;
      const matrix x(f, 1, n, content::ordinary, 3), y(f, 1, n, content::ordinary, 4);
      expect_same(x, y, std::to_string(n) + " elements");
      if (HasFailure()) return;
    }
  }
}

TEST(DeviceReductions, AreCapturedWithAWorkspaceAndReplayed) {
  initialize("cuda-native");
  constexpr std::int64_t n = 100'001;
  const matrix x(format_id::bf16, 1, n, content::ordinary, 3);
  const matrix y(format_id::bf16, 1, n, content::ordinary, 4);
  struct results {
    double sum = -1, squares = -1, dot = -1;
    element_counts counts;
    float amax = -1;
  } got;
  std::vector<std::byte> memory(reduction_workspace(x.device()));
  const guarded_copy out(&got, sizeof got), room(memory.data(), memory.size());
  auto* const to = static_cast<results*>(out.data());
  const std::span<std::byte> workspace(static_cast<std::byte*>(room.data()), memory.size());
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  check_cuda(cudaStreamCreate(&stream), "cudaStreamCreate");
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin capture");
  const executor where = on_stream(stream);
  enqueue_sum(x.device(), &to->sum, workspace, where);
  enqueue_sum_of_squares(x.device(), &to->squares, workspace, where);
  enqueue_dot(x.device(), y.device(), &to->dot, {}, workspace, where);
  enqueue_counts(x.device(), &to->counts, where);
  enqueue_amax(x.device(), &to->amax, where);
  check_cuda(cudaStreamEndCapture(stream, &graph), "end capture");
  check_cuda(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
  for (int replay = 0; replay < 2; ++replay) check_cuda(cudaGraphLaunch(exec, stream), "replay");
  check_cuda(cudaStreamSynchronize(stream), "synchronize");
  out.copy_back();
  EXPECT_EQ(bits(got.sum), bits(sum(x.host(), reference)));
  EXPECT_EQ(bits(got.squares), bits(sum_of_squares(x.host(), reference)));
  EXPECT_EQ(bits(got.dot), bits(dot(x.host(), y.host(), {}, reference)));
  EXPECT_EQ(got.counts, counts(x.host(), reference));
  EXPECT_EQ(got.amax, amax(x.host(), reference));
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  room.copy_back();  // throws where something was written behind the workspace
}

TEST(DeviceReductions, ArgumentsAreNamed) {
  const matrix x(format_id::fp16, 1, 100, content::ordinary, 3);
  double on_host = 0;
  const guarded_copy out(&on_host, sizeof on_host);
  auto* const result = static_cast<double*>(out.data());
  std::byte on_host_too[16] = {};
  const guarded_copy few(on_host_too, sizeof on_host_too);
  const auto expect_refused = [](const auto& call, const std::string& text) {
    try {
      call();
      ADD_FAILURE() << "nothing was refused; expected: " << text;
    } catch (const invalid_argument& e) {
      EXPECT_EQ(std::string(e.what()).rfind(text, 0), 0u) << e.what();
    }
  };
  expect_refused([&] { enqueue_sum(x.host(), result); }, "in: must lie in device memory");
  expect_refused([&] { enqueue_dot(x.host(), x.host(), result); }, "x: must lie in device memory");
  expect_refused([&] { (void)reduction_workspace(x.host()); }, "in: must lie in device memory");
  expect_refused([&] { enqueue_sum(x.device(), nullptr); }, "result: ");
  expect_refused(
      [&] {
        enqueue_sum(x.device(), reinterpret_cast<double*>(static_cast<std::byte*>(out.data()) + 4));
      },
      "result: ");
  const std::span four(static_cast<std::byte*>(few.data()), 4);
  expect_refused([&] { enqueue_sum(x.device(), result, four); }, "workspace: needs 8 bytes, got 4");
  expect_refused([&] { sum(x.device(), {"reference"}); }, "backend 'reference' works on host");
  expect_refused([&] { sum(x.host(), on_stream(nullptr, "cuda-native")); },
                 "backend 'cuda-native' works on device");
}

/// A whole run must have compared.
class compared_reductions : public ::testing::Environment {
 public:
  void TearDown() override {
    const auto& run = *::testing::UnitTest::GetInstance();
    if (run.test_to_run_count() != run.total_test_count() || smallest_effort()) return;
    EXPECT_GT(reductions_compared, 10'000u);
  }
};
const auto* const environment = ::testing::AddGlobalTestEnvironment(new compared_reductions);

}  // namespace
}  // namespace samebits::support
