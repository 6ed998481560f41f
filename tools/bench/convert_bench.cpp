// convert_bench: array conversion on one CPU thread beside memcpy and the vendor's host functions.
//
//   convert_bench [--benchmark_filter=REGEX] [--benchmark_repetitions=N] ...
//
// Runs of all benchmarks are interleaved in random order, so that a machine shared with others
// slows them alike; the table at the end holds medians.
#include <cstdint>
#include <string>

#include "pages.hpp"
#include "peers/vendor.hpp"
#include "ratio_reporter.hpp"
#include "samebits/samebits.hpp"

namespace {

using namespace samebits;

constexpr std::int64_t count = std::int64_t{1} << 26;

struct buffers {
  bench::pages in{static_cast<std::size_t>(count) *
                  4};  ///< fp32 numbers; codes of narrower sources
  bench::pages out{static_cast<std::size_t>(count) * 4};
  buffers() { bench::fill_wide(in.data(), count); }
};

buffers& memory() {
  static buffers b;
  return b;
}

std::int64_t bytes_of(format_id from, format_id to) {
  return count * (storage_bytes(from) + storage_bytes(to));
}

void add_conversion(const std::string& backend, format_id from, format_id to,
                    const convert_options& options) {
  std::string what = std::string(name(from)) + " to " + std::string(name(to)) + ", " +
                     std::string(name(options.rounding));
  if (options.rounding == rounding::stochastic) what += " K=" + std::to_string(options.random.bits);
  if (options.overflow != overflow::ieee) what += " " + std::string(name(options.overflow));
  bench::add(what + ", " + backend, bytes_of(from, to), count, [=] {
    const const_matrix_view in{memory().in.data(), from, 1, count, count};
    const matrix_view out{memory().out.data(), to, 1, count, count};
    return [=, where = find_executor(backend)] { convert(in, out, options, where); };
  });
}

void add_backend(const std::string& backend) {
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

void add_all() {
  for (const format_id to : {format_id::bf16, format_id::fp16, format_id::e4m3, format_id::e5m2}) {
    const auto loop = bench::vendor_conversion(to);
    if (loop == nullptr) continue;
    bench::add(
        "fp32 to " + std::string(name(to)) + ", vendor", bytes_of(format_id::fp32, to), count, [=] {
          return [=] {
            loop(reinterpret_cast<const float*>(memory().in.data()), memory().out.data(), count);
          };
        });
  }
  bench::for_each_host_backend(add_backend);
}

}  // namespace

int main(int argc, char** argv) { return bench::run(argc, argv, add_all); }
