// convert_bench: array conversion on one CPU thread beside memcpy and the vendor's host functions.
//
//   convert_bench [--benchmark_filter=REGEX] [--benchmark_repetitions=N] ...
//
// Runs of all benchmarks are interleaved in random order, so that a machine shared with others
// slows them alike; the table at the end holds medians.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "pages.hpp"
#include "ratio_reporter.hpp"
#include "samebits/samebits.hpp"
#include "peers/vendor.hpp"

namespace {

using namespace samebits;

constexpr std::int64_t count = std::int64_t{1} << 26;

struct buffers {
  bench::pages in{static_cast<std::size_t>(count) * 4};
  bench::pages out{static_cast<std::size_t>(count) * 4};

  /// Values of both signs around 1, spread over 2^-16 to 2^8 as weights and gradients are; the same
  /// bits serve as codes of the narrower sources.
  buffers() {
    auto* words = reinterpret_cast<std::uint32_t*>(in.data());
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint32_t r = random_word(1, 0, static_cast<std::uint64_t>(i));
      const std::uint32_t exponent = 127 - 16 + (r >> 8) % 24;
      words[i] = (r & 0x807FFFFFu) | exponent << 23;
    }
  }
};

buffers& memory() {
  static buffers b;
  return b;
}

void copy(benchmark::State& state, std::int64_t bytes) {
  for (auto _ : state) {
    std::memcpy(memory().out.data(), memory().in.data(), static_cast<std::size_t>(bytes / 2));
    benchmark::ClobberMemory();
  }
  bench::set_counters(state, bytes, count);
}

std::int64_t bytes_of(format_id from, format_id to) {
  return count * (storage_bytes(from) + storage_bytes(to));
}

void convert_array(benchmark::State& state, format_id from, format_id to,
                   const convert_options& options, const executor& where) {
  const const_matrix_view in{memory().in.data(), from, 1, count, count};
  const matrix_view out{memory().out.data(), to, 1, count, count};
  for (auto _ : state) {
    convert(in, out, options, where);
    benchmark::ClobberMemory();
  }
  bench::set_counters(state, bytes_of(from, to), count);
}

void vendor_array(benchmark::State& state, format_id to) {
  const auto loop = bench::vendor_conversion(to);
  for (auto _ : state) {
    loop(reinterpret_cast<const float*>(memory().in.data()), memory().out.data(), count);
    benchmark::ClobberMemory();
  }
  bench::set_counters(state, bytes_of(format_id::fp32, to), count);
}

void add_conversion(const backend_info& backend, format_id from, format_id to,
                    const convert_options& options) {
  std::string what = std::string(name(from)) + " to " + std::string(name(to)) + ", " +
                     std::string(name(options.rounding));
  if (options.rounding == rounding::stochastic) what += " K=" + std::to_string(options.random.bits);
  if (options.overflow != overflow::ieee) what += " " + std::string(name(options.overflow));
  bench::add(what + ", " + std::string(backend.name), convert_array, from, to, options,
             find_executor(backend.name));
}

void add_backend(const backend_info& backend) {
  using enum format_id;
  for (const format_id to : {bf16, fp16, e4m3, e5m2}) {
    add_conversion(backend, fp32, to, {});
  }
  add_conversion(backend, fp32, e4m3, {.overflow = overflow::saturate});
  add_conversion(backend, bf16, e4m3, {.overflow = overflow::saturate});
  add_conversion(backend, e4m3, fp32, {});
  add_conversion(backend, fp32, e4m3, {.rounding = rounding::toward_zero});
  add_conversion(backend, fp32, e2m1, {});
  for (const int k : {8, 16, 32}) {
    for (const format_id to : {bf16, e4m3}) {
      add_conversion(backend, fp32, to,
                     {.rounding = rounding::stochastic, .random = {.seed = 1, .bits = k}});
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (!bench::initialize(argc, argv)) return 2;

  for (const std::int64_t bytes : {3, 5, 6}) {
    bench::add("memcpy/" + std::to_string(bytes), copy, bytes * count);
  }
  for (const format_id to : {format_id::bf16, format_id::fp16, format_id::e4m3, format_id::e5m2}) {
    if (bench::vendor_conversion(to) != nullptr) {
      bench::add("fp32 to " + std::string(name(to)) + ", vendor", vendor_array, to);
    }
  }
  for (const backend_info& backend : compiled_backends()) {
    if (backend.space == memory_space::host && backend.supported) add_backend(backend);
  }
  bench::run_all("memcpy");
}
