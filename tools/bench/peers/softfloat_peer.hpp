// Loops over Berkeley SoftFloat's operations, where it was given to the build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace samebits::bench {

/// Operands in words of 32 bits, one code each; results likewise.
struct operand_arrays {
  const std::uint32_t* a;
  const std::uint32_t* b;
  const std::uint32_t* c;
  std::uint32_t* out;
  std::size_t count;
};

using arithmetic_loop = void (*)(const operand_arrays&);

/// The loop of "add", "mul", "fma", "div", "sqrt", "rem" or "rint" in 16 or 32 bits; null without
/// SoftFloat. Flags gather in SoftFloat's global.
arithmetic_loop softfloat_loop(std::string_view op, int bits);

}  // namespace samebits::bench
