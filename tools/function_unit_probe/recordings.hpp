// Recordings: results of sin, cos, tanh and the 16-bit instructions, for fits by hand and for tests.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "function_unit_probe/device.hpp"

namespace samebits::function_units {

/// Results at the operands first + i * stride, 0 <= i < count.
struct recording {
  std::string_view name;  ///< of the file, without ".bin"
  instruction what;
  std::uint32_t first;   ///< operand bits
  std::uint32_t stride;  ///< modulo 2^32
  std::uint32_t count;
  int bytes;  ///< of each result in the file
};

/// All recordings: less than 8 MiB.
std::span<const recording> recordings();

std::vector<std::uint32_t> operands_of(const recording& r);

/// The low `bytes` bytes of each result, little-endian.
std::string bytes_of(std::span<const std::uint32_t> results, int bytes);

/// One line: file, instruction, first operand, stride, count, bytes.
std::string text_of(const recording& r);

}  // namespace samebits::function_units
