// array_arithmetic_bench: array arithmetic on one CPU thread beside memcpy of the same bytes.
//
//   array_arithmetic_bench [--benchmark_filter=REGEX] [--benchmark_repetitions=N] ...
//
// Runs of all benchmarks are interleaved in random order, so that a machine shared with others
// slows them alike; the table at the end holds medians.
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "pages.hpp"
#include "ratio_reporter.hpp"
#include "samebits/samebits.hpp"

namespace {

using namespace samebits;

constexpr std::int64_t count = std::int64_t{1} << 26;
constexpr std::int64_t max_bytes = count * 4;

struct buffers {
  std::array<bench::pages, 3> in{bench::pages{static_cast<std::size_t>(max_bytes)},
                                 bench::pages{static_cast<std::size_t>(max_bytes)},
                                 bench::pages{static_cast<std::size_t>(max_bytes)}};
  bench::pages out{static_cast<std::size_t>(max_bytes)};

  /// Codes of values of both signs around 1, spread over 16 binades or what the format has.
  void fill(format_id format) {
    const std::int64_t width = storage_bytes(format);
    const format_id small = format == format_id::e4m3 ? format_id::e4m3 : format_id::e5m2;
    for (std::size_t k = 0; k < in.size(); ++k) {
      for (std::int64_t i = 0; i < 4096; ++i) {
        const std::uint32_t r = random_word(k, 0, static_cast<std::uint64_t>(i));
        const std::uint32_t code = (r & 0x80u) | (0x20u + r % 0x28u);
        const auto bits = convert_code(small, format, code, {}).code;
        const std::uint64_t low = format == small ? 0 : (r >> 8) & 0x7Fu;
        const std::uint64_t word = bits | low;
        std::memcpy(in[k].data() + i * width, &word, static_cast<std::size_t>(width));
      }
      for (std::int64_t at = 4096 * width; at < count * width; at += 4096 * width) {
        std::memcpy(in[k].data() + at, in[k].data(), static_cast<std::size_t>(4096 * width));
      }
    }
  }
};

buffers& memory() {
  static buffers b;
  return b;
}

void add_operation(const std::string& backend, operation op, format_id format,
                   const compute_options& options = {}) {
  std::string what = std::string(name(op)) + " " + std::string(name(format));
  if (options.rounding != rounding::nearest_even)
    what += ", " + std::string(name(options.rounding));
  if (options.overflow != overflow::ieee) what += ", " + std::string(name(options.overflow));
  bench::add(
      what + ", " + backend, count * storage_bytes(format) * (operand_count(op) + 1), count, [=] {
        buffers& m = memory();
        m.fill(format);
        const auto in = [&](std::size_t k) {
          return const_matrix_view{m.in[k].data(), format, 1, count, count};
        };
        const array_operands operands = {in(0), in(1), in(2)};
        const matrix_view out{m.out.data(), format, 1, count, count};
        return [=, where = find_executor(backend)] { compute(op, operands, out, options, where); };
      });
}

void add_backend(const std::string& backend) {
  using enum format_id;
  for (const format_id format : {fp32, fp16, bf16, e4m3, e5m2}) {
    for (const operation op :
         {operation::add, operation::mul, operation::fma, operation::div, operation::sqrt}) {
      add_operation(backend, op, format);
    }
  }
  add_operation(backend, operation::add, e4m3, {.overflow = overflow::saturate});
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run(argc, argv, [] { bench::for_each_host_backend(add_backend); });
}
