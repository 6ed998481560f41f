// The input of `convert`, operands of `arith`: one tensor of a file, and the format its codes are
// in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "samebits/format.hpp"
#include "tensor_file/tensor.hpp"

namespace fpinspect {

struct source_tensor {
  samebits::tensor_file::tensor_file file;
  samebits::tensor_file::tensor_info info;
  samebits::format_id format;
};

/// IN is a .npy file or FILE#TENSOR, split at the last #; a file that is called IN as a whole goes
/// first. A .safetensors file with one tensor needs no name.
///
/// from  --from, or empty: the format of codes that lie in unsigned integers
///
/// Throws file_error, and usage_error where IN or --from does not say what is needed or the two
/// contradict each other.
source_tensor open_source(const std::string& input, std::string_view from);

/// An operand of `arith`, FILE as above: codes of `format` in unsigned integers of its width, or
/// floating-point elements of any format. `which` names it in errors.
source_tensor open_operand(std::string_view which, const std::string& input,
                           samebits::format_id format);

}  // namespace fpinspect
