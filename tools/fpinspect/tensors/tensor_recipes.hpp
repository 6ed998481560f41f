// `fpinspect tensor --recipes`: shows what each named recipe does to the tensors of a file.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "fpinspect/output/output.hpp"
#include "fpinspect/output/terminal.hpp"
#include "fpinspect/tensors/source/source.hpp"
#include "fpinspect/verdict/gate/gate.hpp"
#include "samebits/backend.hpp"
#include "samebits/quantize.hpp"
#include "tensor_file/tensor.hpp"

namespace fpinspect {

/// A tensor and the interpretation of its elements.
struct recipe_source {
  std::shared_ptr<const samebits::tensor_file::tensor_file> file;
  samebits::tensor_file::tensor_info info;
  std::optional<element_reading> how;  ///< nothing if the tensor is not quantized
  std::string title;                   ///< its name in text
  std::string name;                    ///< its name among the tensors of all files
  samebits::matrix_shape matrix;       ///< what is quantized
};

/// Quantizes each tensor to e4m3 by each preset, and writes SQNR, underflow and saturation. Scales
/// are computed from the tensor itself. Notes the figures for the conditions; tensors that cannot be
/// quantized fail.
void write_tensor_recipes(std::span<const recipe_source> tensors, gate& conditions,
                          const samebits::executor& where, const terminal& term, output& out);
void write_tensor_recipes_json(std::span<const recipe_source> tensors, gate& conditions,
                               const samebits::executor& where, output& out);

}  // namespace fpinspect
