// The tensors of one side of a comparison: those of a file, or the values of a quantized one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fpinspect/tensors/source/selection.hpp"
#include "samebits/core/format.hpp"

namespace fpinspect {

/// A tensor with values.
struct compared_tensor {
  std::string name = {};  ///< empty for a .npy file
  std::vector<std::uint64_t> shape = {};
  std::uint64_t count = 0;
  samebits::format_id format = samebits::format_id::fp32;  ///< holds every value exactly
  std::string type;       ///< of the elements in text: "bf16", "U8"
  std::string note = {};  ///< why the elements have no values; empty if they have

  /// The codes of all elements, if they are in memory or in the file in place.
  [[nodiscard]] std::optional<std::span<const std::byte>> in_place() const;
  /// Reads elements [first, first + elements) as codes of the format.
  void read(std::uint64_t first, std::uint64_t elements, std::byte* out) const;

  std::optional<shown_tensor> stored = {};            ///< the tensor in its file
  std::shared_ptr<std::vector<std::byte>> made = {};  ///< else: codes * scales in fp32
};

/// One side of a comparison.
struct compared_file {
  std::string input = {};  ///< the argument
  std::vector<compared_tensor> tensors = {};

  /// The tensor with this name; null if there is none.
  [[nodiscard]] const compared_tensor* find(std::string_view name) const;
};

/// Opens FILE, FILE#TENSOR or an index. The tensors `codes` and `scales` of a file that `quantize`
/// wrote become one tensor `values` in fp32, whose name is that of the quantized tensor.
///
/// @param names  names or patterns of tensors; empty: all
/// @param option  the name of `from` in errors
/// @param from  integers are codes of this format; empty: values
/// @throws usage_error  if `from` or `names` contradicts the file
/// @throws file_error  if a file cannot be read
compared_file open_compared(const std::string& input, const std::vector<std::string>& names,
                            std::string_view option, const std::string& from);

}  // namespace fpinspect
