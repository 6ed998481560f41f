// The scalar function as an oracle: no loop, thread or vector code of a backend is involved.
#include <cstdint>
#include <cstring>
#include <string>

#include "backends/threads/on_threads.hpp"
#include "backends/threads/segments.hpp"
#include "backends/verify/codes.hpp"
#include "backends/verify/verify.hpp"
#include "samebits/scalar.hpp"

namespace samebits::backends::verification {
namespace {

/// Converts fp32. The sweep over fp32 takes most of the time; compile-time formats make it several
/// times faster.
template <format_id To>
void convert_fp32(const convert_call& call, const row_segment& r) {
  const cast_rule rule = call.rule;
  for (std::int64_t i = 0; i < r.count; ++i) {
    const auto in = static_cast<std::uint32_t>(load(r.in + i * r.in_step, 4));
    const storage_t<To> code = convert_code<To, format_id::fp32>(in, rule);
    std::memcpy(r.out + i * r.out_step, &code, sizeof code);
  }
}

void convert_any_formats(const convert_call& call, const row_segment& r) {
  const auto in_bytes = static_cast<std::size_t>(storage_bytes(call.in.format));
  const auto out_bytes = static_cast<std::size_t>(storage_bytes(call.out.format));
  for (std::int64_t i = 0; i < r.count; ++i) {
    random_bits random{0, call.random.bits};
    if (call.rule.rounding == rounding::stochastic) {
      random.value = random_word(call.random.seed, call.random.stream,
                                 r.index + static_cast<std::uint64_t>(i), call.random.bits);
    }
    const std::uint64_t code = convert_code(call.in.format, call.out.format,
                                            load(r.in + i * r.in_step, in_bytes), call.rule, random)
                                   .code;
    std::memcpy(r.out + i * r.out_step, &code, out_bytes);
  }
}

void convert_range(const convert_call& call, element_range range) {
  for_each_segment(call, range, [&](const row_segment& r) {
    if (call.in.format == format_id::fp32 && call.rule.rounding != rounding::stochastic) {
      switch (call.out.format) {
        case format_id::fp16: return convert_fp32<format_id::fp16>(call, r);
        case format_id::bf16: return convert_fp32<format_id::bf16>(call, r);
        case format_id::e4m3: return convert_fp32<format_id::e4m3>(call, r);
        case format_id::e5m2: return convert_fp32<format_id::e5m2>(call, r);
        default: break;
      }
    }
    convert_any_formats(call, r);
  });
}

}  // namespace

const backend scalar = {
    .name = "scalar",
    .description = "the scalar functions",
    .space = memory_space::host,
    .why_unsupported = [] { return std::string(); },
    .convert = {.run = convert_on_threads<convert_range>},
    .quantize = {.supports = [](const quantize_call& c) { return c.outputs.statistics == nullptr; },
                 .run = scalar_quantize},
    .dequantize = {.run = scalar_dequantize},
};

}  // namespace samebits::backends::verification
