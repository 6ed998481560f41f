// The description of one tensor in a file: name, element type, shape, and the position of its
// bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor_file/dtype.hpp"

namespace samebits::tensor_file {

enum class byte_order : std::uint8_t { little, big };

/// The index that runs fastest through the bytes: the last one (c) or the first one (fortran).
enum class element_order : std::uint8_t { c, fortran };

/// The description of one tensor in a file.
struct tensor_info {
  std::string name = {};  ///< empty in a .npy file, whose only tensor has no name
  dtype type = dtype::u8;
  std::vector<std::uint64_t> shape = {};  ///< empty for a scalar
  element_order order = element_order::c;
  byte_order bytes_order = byte_order::little;
  std::uint64_t offset = 0;  ///< position of the first data byte in the file, or in its part
  std::uint64_t bytes = 0;   ///< size of the data
  std::uint64_t count = 0;   ///< number of elements: the product of the shape
  /// Where offset counts: 0 is the file, k is its k-th member that is read (.npz).
  std::uint64_t part = 0;
  /// Why the elements are not read; empty if they are. If not empty, only the name is meaningful,
  /// and shape and count if they are known.
  std::string unread = {};

  friend bool operator==(const tensor_info&, const tensor_info&) = default;
};

/// Maximum rank; tensors with more dimensions are refused. NumPy has the same limit.
inline constexpr std::size_t max_rank = 64;

}  // namespace samebits::tensor_file
