// Element count and byte size of a shape; refuses every overflow.
#pragma once

#include <cstdint>
#include <span>

#include "tensor_file/dtype.hpp"

namespace samebits::tensor_file {

struct tensor_size {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

/// @throws file_error  (malformed) if the product of the shape, from left to right, exceeds 64 bits
/// @throws file_error  (malformed) if the number of bits exceeds 64 bits
/// @throws file_error  (malformed) if packed elements do not fill their last byte
tensor_size size_of(dtype type, std::span<const std::uint64_t> shape);

}  // namespace samebits::tensor_file
