// Element count and byte size of a shape: implementation.
#include "tensor_file/tensor_size.hpp"

#include <string>

#include "tensor_file/error.hpp"

namespace samebits::tensor_file {

tensor_size size_of(dtype type, std::span<const std::uint64_t> shape) {
  std::uint64_t count = 1;
  for (const std::uint64_t extent : shape) {
    if (__builtin_mul_overflow(count, extent, &count)) {
      malformed("the product of the shape exceeds 64 bits");
    }
  }
  std::uint64_t bits = 0;
  if (__builtin_mul_overflow(count, static_cast<std::uint64_t>(spec_of(type).bits), &bits)) {
    malformed("the size of the data in bits exceeds 64 bits");
  }
  if (bits % 8 != 0) {
    malformed(std::to_string(count) + " elements of " + std::string(name(type)) +
              " do not fill whole bytes");
  }
  return {count, bits / 8};
}

}  // namespace samebits::tensor_file
