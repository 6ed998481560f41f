// Element count and byte size of a shape; refuses every overflow.
#pragma once

#include "tensor_file/tensor_info.hpp"

namespace samebits::tensor_file {

struct tensor_size {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

/// @throws file_error  (malformed) if the product of the shape, from left to right, exceeds 64 bits
/// @throws file_error  (malformed) if the number of bits exceeds 64 bits
/// @throws file_error  (malformed) if packed elements do not fill their last byte
inline tensor_size size_of(dtype type, std::span<const std::uint64_t> shape) {
  std::uint64_t count = 1;
  for (const std::uint64_t extent : shape) {
    malformed_if(__builtin_mul_overflow(count, extent, &count),
                 "the product of the shape exceeds 64 bits");
  }
  std::uint64_t bits = 0;
  malformed_if(__builtin_mul_overflow(count, static_cast<std::uint64_t>(spec_of(type).bits), &bits),
               "the size of the data in bits exceeds 64 bits");
  if (bits % 8 != 0) malformed(count, " elements of ", name(type), " do not fill whole bytes");
  return {count, bits / 8};
}

/// Sets count and bytes, by type and shape.
/// @throws file_error  as size_of()
inline void set_size(tensor_info& info) {
  const tensor_size size = size_of(info.type, info.shape);
  info.count = size.count;
  info.bytes = size.bytes;
}

}  // namespace samebits::tensor_file
