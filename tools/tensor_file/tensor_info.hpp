// The description of one tensor in a file: name, element type, shape, and the position of its
// bytes.
#pragma once

#include "tensor_file/dtype.hpp"
#include "tensor_file/zip/zip.hpp"

namespace samebits::tensor_file {

enum class byte_order : std::uint8_t { little, big };

/// Blocks of 32 integers with a scale, in GGUF files. The elements are the products, in fp32.
enum class block_layout : std::uint8_t { none, q8_0, q4_0 };

/// The description of one tensor in a file.
struct tensor_info {
  std::string name = {};  ///< empty in a .npy file, whose only tensor has no name
  dtype type = dtype::u8;
  std::vector<std::uint64_t> shape = {};  ///< empty for a scalar
  /// Elements from one index to the next, by dimension; empty: C order without gaps. Elements may
  /// share bytes.
  std::vector<std::uint64_t> strides = {};
  byte_order bytes_order = byte_order::little;
  block_layout blocks = block_layout::none;
  std::uint64_t offset = 0;  ///< position of the first element in the file, or in its part
  std::uint64_t bytes = 0;   ///< size of all elements, read in C order
  std::uint64_t count = 0;   ///< number of elements: the product of the shape
  /// Where offset counts: 0 is the file, k is its k-th member that is read (archives).
  std::uint64_t part = 0;
  /// Why the elements are not read; empty if they are. If not empty, only the name is meaningful,
  /// and shape and count if they are known.
  std::string unread = {};

  friend bool operator==(const tensor_info&, const tensor_info&) = default;
};

/// What the parser of a file format returns.
struct file_contents {
  /// In the order of tensor_file::tensors().
  std::vector<tensor_info> tensors;
  std::vector<std::pair<std::string, std::string>> metadata;  ///< of .safetensors, sorted by key
  std::vector<zip_member> members;                            ///< of archives, those that are read
};

/// Maximum rank; tensors with more dimensions are refused. NumPy has the same limit.
inline constexpr std::size_t max_rank = 64;

}  // namespace samebits::tensor_file
