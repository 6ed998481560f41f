// list_bench: operations over tensor lists on one CPU thread beside plain reads of the same bytes.
//
//   list_bench [--benchmark_filter=REGEX] [--benchmark_repetitions=N] ...
//
// Interleaved and reported as convert_bench is. Bytes are those read and written.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pages.hpp"
#include "ratio_reporter.hpp"
#include "samebits/samebits.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

using namespace samebits;

constexpr std::int64_t max_bytes = std::int64_t{1} << 28;

#if defined(__x86_64__)
/// The OR of all bytes, four registers at a time.
__attribute__((target("avx512f"))) std::uint64_t or_of(const std::byte* p, std::int64_t bytes) {
  __m512i all[4] = {};
  for (std::int64_t i = 0; i + 256 <= bytes; i += 256) {
    for (int k = 0; k < 4; ++k) {
      all[k] = _mm512_or_si512(all[k], _mm512_loadu_si512(p + i + k * 64));
    }
  }
  const __m512i any =
      _mm512_or_si512(_mm512_or_si512(all[0], all[1]), _mm512_or_si512(all[2], all[3]));
  std::uint64_t words[8];
  _mm512_storeu_si512(words, any);
  return words[0] | words[1] | words[2] | words[3] | words[4] | words[5] | words[6] | words[7];
}
#endif

std::uint64_t or_of_words(const std::byte* p, std::int64_t bytes) {
  const auto* words = reinterpret_cast<const std::uint64_t*>(p);
  std::uint64_t all = 0;
  for (std::int64_t i = 0; i < bytes / 8; ++i) all |= words[i];
  return all;
}

std::uint64_t read_all(const std::byte* p, std::int64_t bytes) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") != 0) return or_of(p, bytes);
#endif
  return or_of_words(p, bytes);
}

/// Gradients in the format that is asked for.
std::byte* elements(format_id format) {
  static const bench::pages fp32(max_bytes), fp16(max_bytes / 2), bf16(max_bytes / 2);
  static const bool filled = [] {
    bench::fill_wide(fp32.data(), max_bytes / 4);
    const const_matrix_view in =
        view_of_codes(format_id::fp32, static_cast<const void*>(fp32.data()), 1, max_bytes / 4);
    convert(in, view_of_codes(format_id::fp16, static_cast<void*>(fp16.data()), 1, in.cols));
    convert(in, view_of_codes(format_id::bf16, static_cast<void*>(bf16.data()), 1, in.cols));
    return true;
  }();
  static_cast<void>(filled);
  return (format == format_id::fp32 ? fp32 : format == format_id::fp16 ? fp16 : bf16).data();
}

/// `tensors` tensors of as many elements each, one behind the other.
tensor_list list_of(format_id format, std::int64_t tensors, std::int64_t each) {
  std::vector<matrix_view> views;
  for (std::int64_t i = 0; i < tensors; ++i) {
    void* const data = elements(format) + i * each * storage_bytes(format);
    views.push_back(view_of_codes(format, data, 1, each));
  }
  return tensor_list(views);
}

struct bench_case {
  const char* operation;
  format_id format;
  std::int64_t tensors;
  std::int64_t each;  ///< elements
  int passes;         ///< over the bytes, read or write
  void (*run)(const tensor_list& list, const executor& where);

  [[nodiscard]] std::int64_t elements() const { return tensors * each; }
  [[nodiscard]] std::int64_t bytes() const { return elements() * storage_bytes(format) * passes; }
  [[nodiscard]] std::string text() const {
    return std::string(operation) + " " + std::string(name(format)) + ", " +
           std::to_string(tensors) + (tensors == 1 ? " tensor" : " tensors");
  }
};

std::vector<bench_case> cases() {
  using enum format_id;
  const auto look = [](const tensor_list& list, const executor& where) {
    benchmark::DoNotOptimize(inspect(list, {}, where));
  };
  const auto look_closely = [](const tensor_list& list, const executor& where) {
    benchmark::DoNotOptimize(inspect(list, {inspect_counts::distribution}, where));
  };
  const auto unscale_by_one = [](const tensor_list& list, const executor& where) {
    benchmark::DoNotOptimize(unscale(list, 1.0f, where));
  };
  std::vector<bench_case> all;
  for (const format_id format : {fp32, fp16, bf16}) {
    all.push_back({"inspect", format, 1, max_bytes / 4, 1, look});
  }
  all.push_back({"inspect", fp32, 10'000, 1'000, 1, look});
  all.push_back({"inspect distribution", fp32, 1, max_bytes / 4, 1, look_closely});
  all.push_back({"unscale", fp32, 1, max_bytes / 4, 2, unscale_by_one});
  all.push_back({"unscale", fp16, 1, max_bytes / 4, 2, unscale_by_one});
  return all;
}

std::function<void()> read_of(std::int64_t bytes) {
  return [bytes, p = elements(format_id::fp32)] {
    for (std::int64_t left = bytes; left > 0; left -= max_bytes) {
      benchmark::DoNotOptimize(read_all(p, std::min(left, max_bytes)));
    }
  };
}

void add_all() {
  bench::measured_by = {"read", read_of};
  bench::for_each_host_backend([](const std::string& backend) {
    for (const bench_case& c : cases()) {
      bench::add(c.text() + ", " + backend, c.bytes(), c.elements(), [=] {
        return [=, list = list_of(c.format, c.tensors, c.each), where = find_executor(backend)] {
          c.run(list, where);
        };
      });
    }
  });
}

}  // namespace

int main(int argc, char** argv) { return bench::run(argc, argv, add_all); }
