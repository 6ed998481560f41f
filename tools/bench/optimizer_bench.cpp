// optimizer_bench: optimizer steps on one CPU thread beside memcpy of the same bytes.
//
//   optimizer_bench [--benchmark_filter=REGEX] [--benchmark_repetitions=N] ...
//
// Interleaved and reported as convert_bench is. Bytes are those read and written.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "pages.hpp"
#include "ratio_reporter.hpp"
#include "samebits/samebits.hpp"

namespace {

using namespace samebits;
using enum stored_format;

constexpr std::int64_t elements = std::int64_t{1} << 24;
constexpr std::uint32_t block = 128;

/// A tensor's formats.
struct layout {
  const char* name;
  stored_format weights, gradient, master, state;
  low_part low;
};
constexpr std::array layouts = {
    layout{"fp32", fp32, fp32, none, fp32, low_part::none},
    layout{"bf16 weights, fp32 master and states", bf16_nearest, bf16_nearest, fp32, fp32,
           low_part::none},
    layout{"bf16 split, fp32 states", bf16_nearest, bf16_nearest, none, fp32, low_part::split},
    layout{"bf16 kahan, bf16 states", bf16_nearest, bf16_nearest, none, bf16_nearest,
           low_part::kahan},
    layout{"bf16 stochastic, bf16 states", bf16_stochastic, bf16_nearest, none, bf16_nearest,
           low_part::none},
    layout{"bf16 weights, e4m3 states", bf16_nearest, bf16_nearest, none, e4m3_scaled,
           low_part::none},
    layout{"bf16 weights, dynamic8 states", bf16_nearest, bf16_nearest, none, dynamic8_signed,
           low_part::none},
};

/// Bytes that a step reads and writes for each element, without scales.
std::int64_t bytes_of(const layout& l) {
  const int low = l.low == low_part::none ? 0 : 2;
  const int read_and_written = code_bytes(l.master == none ? l.weights : l.master) + low;
  const int written = l.master == none ? 0 : code_bytes(l.weights);
  return 2 * read_and_written + written + code_bytes(l.gradient) + 4 * code_bytes(l.state);
}

/// An array of ordinary numbers.
struct array {
  bench::pages codes;
  std::vector<float> scales;
  stored_format format;

  explicit array(stored_format f) : codes(elements * 4), scales(elements / block, 1.0f), format(f) {
    for (std::int64_t i = 0; i < elements * code_bytes(f); ++i) {
      codes.data()[i] = static_cast<std::byte>(i % 4 == 3 ? 0x3D : i % 64);
    }
  }
  stored_array view() {
    return {codes.data(), format, has_block_scales(format) ? scales.data() : nullptr};
  }
};

void step(benchmark::State& state, const layout& l, update_profile profile,
          std::string_view backend) {
  array weights(l.weights), gradient(l.gradient), master(l.master), low(bf16_nearest),
      first(l.state), second(l.state);
  optimizer_tensor tensor = {.weights = weights.view(),
                             .gradient = {gradient.codes.data(), l.gradient},
                             .low_kind = l.low,
                             .states = {first.view(), second.view()},
                             .count = elements,
                             .block = block};
  if (l.master != none) tensor.master = master.view();
  if (l.low != low_part::none) tensor.low = low.codes.data();
  const optimizer_list list({tensor});
  const optimizer_settings settings = {.profile = profile, .weight_decay = 0.1};
  std::uint64_t steps = 0;
  for (auto _ : state) {
    optimizer_step(list, {&settings, 1}, {.applied_steps = ++steps}, find_executor(backend));
  }
  bench::set_counters(state, bytes_of(l) * elements, elements);
}

void copy(benchmark::State& state, std::int64_t bytes) {
  static bench::pages from(elements * 16), to(elements * 16);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), static_cast<std::size_t>(bytes / 2));
    benchmark::ClobberMemory();
  }
  bench::set_counters(state, bytes, bytes / 8);
}

}  // namespace

int main(int argc, char** argv) {
  if (!bench::initialize(argc, argv)) return 1;
  for (const layout& l : layouts) {
    for (const backend_info& b : compiled_backends()) {
      if (b.space != memory_space::host || !b.supported || b.name == "reference") continue;
      const std::string name = std::string(l.name) + ", " + std::string(b.name);
      bench::add("adamw strict, " + name, step, l, update_profile::strict, b.name);
      bench::add("adamw fma, " + name, step, l, update_profile::fma, b.name);
    }
    const std::int64_t bytes = bytes_of(l) * elements;
    bench::add("memcpy/" + std::to_string(bytes), copy, bytes);
  }
  bench::run_all("memcpy");
  return 0;
}
