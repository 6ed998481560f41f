// quantize_bench: quantization on one CPU thread beside memcpy of the same bytes.
//
//   quantize_bench [--benchmark_filter=REGEX] [--benchmark_repetitions=N] ...
//
// Interleaved and reported as convert_bench is. Bytes are those of elements, codes and scales.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "pages.hpp"
#include "ratio_reporter.hpp"
#include "samebits/samebits.hpp"

namespace {

using namespace samebits;

constexpr std::int64_t side = 8192;
constexpr std::int64_t count = side * side;

/// Values of both signs around 1, spread over 2^-16 to 2^8 as activations are.
struct buffers {
  bench::pages fp32{static_cast<std::size_t>(count) * 4};
  bench::pages bf16{static_cast<std::size_t>(count) * 2};
  bench::pages codes{static_cast<std::size_t>(count) * 4};
  bench::pages scales{static_cast<std::size_t>(count) / 4};

  buffers() {
    auto* words = reinterpret_cast<std::uint32_t*>(fp32.data());
    auto* halves = reinterpret_cast<std::uint16_t*>(bf16.data());
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint32_t r = random_word(1, 0, static_cast<std::uint64_t>(i));
      const std::uint32_t exponent = 127 - 16 + (r >> 8) % 24;
      words[i] = (r & 0x807FFFFFu) | exponent << 23;
      halves[i] = static_cast<std::uint16_t>(words[i] >> 16);
    }
  }

  [[nodiscard]] const std::byte* elements(format_id format) const {
    return (format == format_id::fp32 ? fp32 : bf16).data();
  }
};

buffers& memory() {
  static buffers b;
  return b;
}

std::int64_t bytes_of(format_id from, const tile_shape& tile) {
  const matrix_shape scales = scales_shape(side, side, tile);
  return count * (storage_bytes(from) + 1) + scales.rows * scales.cols * 4;
}

void copy(benchmark::State& state, std::int64_t bytes) {
  for (auto _ : state) {
    std::memcpy(memory().codes.data(), memory().fp32.data(), static_cast<std::size_t>(bytes / 2));
    benchmark::ClobberMemory();
  }
  bench::set_counters(state, bytes, count);
}

void quantize_matrix(benchmark::State& state, format_id from, const quantize_options& options,
                     const executor& where) {
  const const_matrix_view in{memory().elements(from), from, side, side, side};
  const matrix_shape shape = scales_shape(side, side, options.tile);
  const quantize_outputs outputs = {
      .codes = {memory().codes.data(), format_id::e4m3, side, side, side},
      .scales = {memory().scales.data(), format_id::fp32, shape.rows, shape.cols, shape.cols}};
  for (auto _ : state) {
    quantize(in, outputs, options, where);
    benchmark::ClobberMemory();
  }
  bench::set_counters(state, bytes_of(from, options.tile), count);
}

struct bench_case {
  format_id from;
  quantize_options options;
};

std::vector<bench_case> cases() {
  using enum format_id;
  std::vector<bench_case> all;
  for (const tile_shape& tile :
       {tile_shape{1, 128}, {128, 128}, {128, 1}, {1, 16}, {1, 0}, {0, 0}}) {
    all.push_back({bf16, {.tile = tile}});
  }
  all.push_back({fp32, {}});
  for (const scale_rule rule : {scale_rule::div, scale_rule::rcp, scale_rule::pow2}) {
    all.push_back({bf16, {.scale = rule}});
  }
  for (const int k : {8, 16, 32}) {
    all.push_back({bf16, {.rounding = rounding::stochastic, .random = {.seed = 1, .bits = k}}});
  }
  return all;
}

std::string text_of(const bench_case& c) {
  const quantize_options& o = c.options;
  std::string what = std::string(name(c.from)) + " to e4m3, " + std::to_string(o.tile.rows) + "x" +
                     std::to_string(o.tile.cols) + ", " + std::string(name(o.scale));
  if (o.rounding == rounding::stochastic) what += ", stochastic K=" + std::to_string(o.random.bits);
  return what;
}

}  // namespace

int main(int argc, char** argv) {
  if (!bench::initialize(argc, argv)) return 2;

  std::vector<std::int64_t> copied;
  for (const bench_case& c : cases()) {
    const std::int64_t bytes = bytes_of(c.from, c.options.tile);
    if (std::find(copied.begin(), copied.end(), bytes) != copied.end()) continue;
    copied.push_back(bytes);
    bench::add("memcpy/" + std::to_string(bytes), copy, bytes);
  }
  for (const backend_info& backend : compiled_backends()) {
    if (backend.space != memory_space::host || !backend.supported) continue;
    for (const bench_case& c : cases()) {
      bench::add(text_of(c) + ", " + std::string(backend.name), quantize_matrix, c.from, c.options,
                 find_executor(backend.name));
    }
  }
  bench::run_all("memcpy");
}
