// quantize_bench: quantization on one CPU thread beside memcpy of the same bytes.
//
//   quantize_bench [--benchmark_filter=REGEX] [--benchmark_repetitions=N] ...
//
// Interleaved and reported as convert_bench is. Bytes are those of elements, codes and scales.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pages.hpp"
#include "ratio_reporter.hpp"
#include "samebits/samebits.hpp"

namespace {

using namespace samebits;

constexpr std::int64_t side = 8192;
constexpr std::int64_t count = side * side;

struct buffers {
  bench::pages fp32{static_cast<std::size_t>(count) * 4};
  bench::pages bf16{static_cast<std::size_t>(count) * 2};
  bench::pages codes{static_cast<std::size_t>(count)};
  bench::pages scales{static_cast<std::size_t>(count) / 4};

  buffers() {
    bench::fill_wide(fp32.data(), count);
    convert(const_matrix_view{fp32.data(), format_id::fp32, 1, count, count},
            matrix_view{bf16.data(), format_id::bf16, 1, count, count},
            {.rounding = rounding::toward_zero});
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

std::function<void()> run_of(const bench_case& c, const executor& where) {
  const matrix_shape shape = scales_shape(side, side, c.options.tile);
  return [=, options = c.options,
          in = const_matrix_view{memory().elements(c.from), c.from, side, side, side},
          outputs = quantize_outputs{
              .codes = {memory().codes.data(), format_id::e4m3, side, side, side},
              .scales = {memory().scales.data(), format_id::fp32, shape.rows, shape.cols,
                         shape.cols}}] { quantize(in, outputs, options, where); };
}

void add_all() {
  bench::for_each_host_backend([](const std::string& backend) {
    for (const bench_case& c : cases()) {
      bench::add(text_of(c) + ", " + backend, bytes_of(c.from, c.options.tile), count,
                 [=] { return run_of(c, find_executor(backend)); });
    }
  });
}

}  // namespace

int main(int argc, char** argv) { return bench::run(argc, argv, add_all); }
