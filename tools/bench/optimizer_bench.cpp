// optimizer_bench: optimizer steps on one CPU thread beside memcpy of the same bytes.
//
//   optimizer_bench [--benchmark_filter=REGEX] [--benchmark_repetitions=N] ...
//
// Interleaved and reported as convert_bench is. Bytes are those read and written.
#include <array>
#include <cstdint>
#include <memory>
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

/// A step of AdamW on a tensor of its own.
struct work {
  array weights, gradient, master, low{bf16_nearest}, first, second;
  optimizer_settings settings;
  std::uint64_t steps = 0;

  work(const layout& l, update_profile profile)
      : weights(l.weights),
        gradient(l.gradient),
        master(l.master),
        first(l.state),
        second(l.state),
        settings{.profile = profile, .weight_decay = 0.1} {}

  optimizer_list list_of(const layout& l) {
    optimizer_tensor tensor = {.weights = weights.view(),
                               .gradient = {gradient.codes.data(), l.gradient},
                               .low_kind = l.low,
                               .states = {first.view(), second.view()},
                               .count = elements,
                               .block = block};
    if (l.master != none) tensor.master = master.view();
    if (l.low != low_part::none) tensor.low = low.codes.data();
    return optimizer_list({tensor});
  }
};

void add_all() {
  bench::for_each_host_backend([](const std::string& backend) {
    if (backend == "reference") return;
    for (const layout& l : layouts) {
      for (const update_profile profile : {update_profile::strict, update_profile::fma}) {
        const std::string name = profile == update_profile::strict ? "strict" : "fma";
        bench::add(
            "adamw " + name + ", " + l.name + ", " + backend, bytes_of(l) * elements, elements,
            [=] {
              const auto w = std::make_shared<work>(l, profile);
              return [=, list = w->list_of(l), where = find_executor(backend)] {
                optimizer_step(list, {&w->settings, 1}, {.applied_steps = ++w->steps}, where);
              };
            });
      }
    }
  });
}

}  // namespace

int main(int argc, char** argv) { return bench::run(argc, argv, add_all); }
