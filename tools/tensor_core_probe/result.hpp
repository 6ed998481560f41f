// One result of a tensor core, and its text form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "samebits/core/tensor_unit.hpp"
#include "tensor_core_probe/cases.hpp"

namespace samebits {

/// One result of an instruction on a GPU: D = A * B + C for a row of A and a column of B.
struct tensor_core_result {
  tensor_unit unit;
  backends::tensor_cores::shape operands;
  backends::tensor_cores::case_codes x;
  std::uint32_t d;
};

/// "3F800000"
std::string hexadecimal(std::uint32_t code);

/// Text of a result, one line without its end: unit; formats of A, B and the result; products; then
/// in hexadecimal c, d, and the codes of A and B in turns.
std::string text_of(const tensor_core_result& result);

/// Parses a line of text_of(result).
///
/// @returns the result; nothing if the line is malformed or the unit has no such instruction
/// @note A line may hold fewer codes than products: the missing codes are zeros.
std::optional<tensor_core_result> parse_tensor_core_result(std::string_view line);

}  // namespace samebits
