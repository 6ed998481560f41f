// The recordings of sin, cos, tanh and the 16-bit instructions.
#include "function_unit_probe/recordings.hpp"

#include <cstdio>

namespace samebits::function_units {
namespace {

using enum instruction;

constexpr std::uint32_t all16 = 1u << 16;

constexpr recording all_recordings[] = {
    // tanh: from 2^-11 to 16, an odd distance apart; then whole spans of neighbours.
    {"tanh_overview", tanh, 0x3A000000, 1921, all16, 4},
    {"tanh_at_1_2", tanh, 0x3F000000, 1, 1u << 17, 4},
    {"tanh_at_3_4", tanh, 0x3F400000, 1, 1u << 16, 4},
    {"tanh_at_1", tanh, 0x3F800000, 1, 1u << 16, 4},
    {"tanh_at_1_8", tanh, 0x3E000000, 1, 1u << 16, 4},
    {"tanh_all_exponents", tanh, 0x00000000, 65537, all16, 4},
    // sin and cos: from 2^-12 to 16; whole rows of a table of 64 in a quarter turn.
    {"sin_overview", sin_ftz, 0x39800000, 2047, all16, 4},
    {"cos_overview", cos_ftz, 0x39800000, 2047, all16, 4},
    {"sin_at_1", sin_ftz, 0x3F800000, 1, 1u << 18, 4},
    {"cos_at_1", cos_ftz, 0x3F800000, 1, 1u << 18, 4},
    {"sin_at_1_64", sin_ftz, 0x3C800000, 1, 1u << 16, 4},
    {"cos_at_1_64", cos_ftz, 0x3C800000, 1, 1u << 16, 4},
    {"sin_all_exponents", sin_ftz, 0x00000000, 65537, all16, 4},
    {"cos_all_exponents", cos_ftz, 0x00000000, 65537, all16, 4},
    // 16-bit forms: all codes; of pairs the codes i (low) and 65535 - i (high).
    {"ex2_f16", ex2_f16, 0, 1, all16, 2},
    {"ex2_f16x2", ex2_f16x2, 0xFFFF0000, 0xFFFF0001, all16, 4},
    {"ex2_ftz_bf16", ex2_ftz_bf16, 0, 1, all16, 2},
    {"ex2_ftz_bf16x2", ex2_ftz_bf16x2, 0xFFFF0000, 0xFFFF0001, all16, 4},
    {"tanh_f16", tanh_f16, 0, 1, all16, 2},
    {"tanh_f16x2", tanh_f16x2, 0xFFFF0000, 0xFFFF0001, all16, 4},
    {"tanh_bf16", tanh_bf16, 0, 1, all16, 2},
    {"tanh_bf16x2", tanh_bf16x2, 0xFFFF0000, 0xFFFF0001, all16, 4},
};

}  // namespace

std::span<const recording> recordings() { return all_recordings; }

std::vector<std::uint32_t> operands_of(const recording& r) {
  std::vector<std::uint32_t> operands(r.count);
  for (std::uint32_t i = 0; i < r.count; ++i) operands[i] = r.first + i * r.stride;
  return operands;
}

std::string bytes_of(std::span<const std::uint32_t> results, int bytes) {
  std::string text;
  text.reserve(results.size() * static_cast<std::size_t>(bytes));
  for (const std::uint32_t result : results) {
    for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(result >> (8 * i)));
  }
  return text;
}

std::string text_of(const recording& r) {
  char text[160];
  std::snprintf(text, sizeof text, "%s.bin %s first %08X stride %08X count %u bytes %d",
                std::string(r.name).c_str(), std::string(name(r.what)).c_str(), r.first, r.stride,
                r.count, r.bytes);
  return text;
}

}  // namespace samebits::function_units
