// Tensor core cases of the library, and every kind of instruction that its rows have.
#pragma once

#include <string>
#include <vector>

#include "samebits/core/format.hpp"
#include "samebits/core/tensor_unit.hpp"
#include "tensor_core_probe/cases.hpp"

namespace samebits::support {

using backends::tensor_cores::max_products;
using backends::tensor_cores::word_stream;
using tensor_case = backends::tensor_cores::case_codes;
inline constexpr int tensor_family_count = backends::tensor_cores::family_count;

/// One instruction of a unit.
struct tensor_instruction {
  tensor_arithmetic row;
  format_id a;
  format_id b;
  format_id result;  ///< fp32 or fp16
  int products;
};

/// "hopper-wgmma e4m3 x e5m2 + fp32, 32 products"
std::string text_of(const tensor_instruction& i);

/// Every unit with every legal pairing, result and number of products.
std::vector<tensor_instruction> all_tensor_instructions();

tensor_case draw_tensor_case(const tensor_instruction& i, int family, word_stream& words);

}  // namespace samebits::support
