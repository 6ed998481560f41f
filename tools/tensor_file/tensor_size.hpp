// Element count and byte size of a shape, with every overflow refused.
#pragma once

#include <cstdint>
#include <span>

#include "tensor_file/dtype.hpp"

namespace samebits::tensor_file {

struct tensor_size {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

/// Throws file_error (malformed) when the product of the shape, taken from left to right, or the
/// number of bits leaves 64 bits, or when packed elements do not fill their last byte.
tensor_size size_of(dtype type, std::span<const std::uint64_t> shape);

}  // namespace samebits::tensor_file
