// matmul_bench: matrix products as tensor cores compute them, multiply-adds per second.
//
//   matmul_bench [--benchmark_filter=REGEX] ...
//
// 768^3 on each backend, one thread and two; the reference 128^3. items_per_second counts
// multiply-adds. Time is that of the process's threads together for one thread, else of the clock.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "samebits/samebits.hpp"

namespace {

using namespace samebits;

/// A square matrix of codes with values of both signs in some binades around 1.
std::vector<std::byte> draw(format_id format, std::int64_t n, std::uint64_t stream) {
  const auto width = static_cast<std::size_t>(storage_bytes(format));
  std::vector<std::byte> codes(static_cast<std::size_t>(n * n) * width);
  for (std::int64_t i = 0; i < n * n; ++i) {
    const std::uint32_t r = random_word(stream, 0, static_cast<std::uint64_t>(i));
    const std::uint32_t value = (r & 0x807FFFFFu) | ((122 + (r >> 23) % 8) << 23);
    const std::uint64_t code =
        convert_code(format_id::fp32, format, value, {.overflow = overflow::saturate}).code;
    std::memcpy(codes.data() + static_cast<std::size_t>(i) * width, &code, width);
  }
  return codes;
}

void multiply(benchmark::State& state, format_id format, accumulator sum, std::int64_t n,
              const executor& where) {
  const std::vector<std::byte> a = draw(format, n, 1);
  const std::vector<std::byte> b = draw(format, n, 2);
  std::vector<float> d(static_cast<std::size_t>(n * n));
  const const_matrix_view x = view_of_codes(format, a.data(), n, n);
  const const_matrix_view y = transposed(view_of_codes(format, b.data(), n, n));
  for (auto _ : state) {
    matmul(x, y, view_of(d.data(), n, n), sum, {}, where);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * n * n * n);
}

struct work {
  const char* what;
  format_id format;
  accumulator sum;
};

const std::vector<work>& all_work() {
  using enum tensor_unit;
  static const std::vector<work> all = {
      {"e4m3, hopper-wgmma", format_id::e4m3, accumulator::tensor_core(hopper_wgmma, 0)},
      {"e4m3, hopper-wgmma, promotion 128", format_id::e4m3,
       accumulator::tensor_core(hopper_wgmma, 128)},
      {"e5m2, hopper-wgmma", format_id::e5m2, accumulator::tensor_core(hopper_wgmma, 0)},
      {"e4m3, hopper-mma-sync", format_id::e4m3, accumulator::tensor_core(hopper_mma_sync, 0)},
      {"fp16, hopper-wgmma", format_id::fp16, accumulator::tensor_core(hopper_wgmma, 0)},
      {"bf16, hopper-wgmma", format_id::bf16, accumulator::tensor_core(hopper_wgmma, 0)},
      {"tf32, hopper-wgmma", format_id::tf32, accumulator::tensor_core(hopper_wgmma, 0)},
      {"fp16, ampere-mma", format_id::fp16, accumulator::tensor_core(ampere_mma, 0)},
      {"e4m3, exact", format_id::e4m3, accumulator::exact()},
      {"e4m3, fp32_per_128", format_id::e4m3, accumulator::fp32_per_128()},
      {"bf16, ieee_fp32 ascending", format_id::bf16,
       accumulator::ieee_fp32(fp32_order::ascending)},
  };
  return all;
}

void add_benchmarks() {
  for (const backend_info& backend : compiled_backends()) {
    if (backend.space != memory_space::host || !backend.supported) continue;
    for (const work& w : all_work()) {
      for (const int threads : {1, 2}) {
        const std::int64_t n = backend.name == "reference" ? 128 : 768;
        const std::string name = std::string(w.what) + ", " + std::string(backend.name) +
                                 (threads == 1 ? "" : ", 2 threads");
        auto* one = benchmark::RegisterBenchmark(
            name.c_str(), [=, where = executor{backend.name, threads}](benchmark::State& state) {
              multiply(state, w.format, w.sum, n, where);
            });
        one->Unit(benchmark::kMillisecond);
        if (threads > 1) one->UseRealTime();
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  add_benchmarks();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
