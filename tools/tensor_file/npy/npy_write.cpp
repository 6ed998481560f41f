// The header of .npy files to write.
#include <stdexcept>

#include "tensor_file/npy/npy.hpp"
#include "tensor_file/tensor_size.hpp"

namespace samebits::tensor_file {
namespace {

std::string tuple_of(std::span<const std::uint64_t> shape) {
  std::string text = "(";
  for (std::size_t k = 0; k < shape.size(); ++k) text += cat(k > 0 ? ", " : "", shape[k]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

// NumPy leaves room for the first extent to grow to 21 digits in place, then pads the header to a
// multiple of 64 bytes [numpy.lib.format, GROWTH_AXIS_MAX_DIGITS and ARRAY_ALIGN].
std::string header_of(dtype type, std::span<const std::uint64_t> shape) {
  const dtype_spec spec = spec_of(type);
  std::string dict = "{'descr': '";
  dict += spec.bits == 8 ? '|' : '<';
  dict += spec.npy;
  dict += "', 'fortran_order': False, 'shape': " + tuple_of(shape) + ", }";
  constexpr std::size_t growth_digits = 21;
  if (!shape.empty()) dict.append(growth_digits - std::to_string(shape[0]).size(), ' ');

  constexpr std::size_t alignment = 64;
  constexpr std::size_t prefix_bytes = 10;  // magic, version, length
  dict.append(alignment - (prefix_bytes + dict.size() + 1) % alignment, ' ');
  dict += '\n';

  std::string header = "\x93NUMPY";
  header += '\x01';
  header += '\x00';
  header += static_cast<char>(dict.size() & 0xff);
  header += static_cast<char>(dict.size() >> 8);
  return header + dict;
}

void require_writable(dtype type, std::span<const std::uint64_t> shape,
                      std::span<const std::byte> data) {
  if (std::string_view(spec_of(type).npy).empty()) {
    throw std::invalid_argument("npy_start: type must be one that .npy has, not " +
                                std::string(name(type)));
  }
  if (shape.size() > max_rank) throw std::invalid_argument("npy_start: shape must have rank <= 64");
  std::uint64_t bytes = 0;
  try {
    bytes = size_of(type, shape).bytes;
  } catch (const file_error& error) {
    throw std::invalid_argument(std::string("npy_start: shape: ") + error.what());
  }
  if (data.size() != bytes) {
    throw std::invalid_argument(
        cat("npy_start: data must have ", bytes, " bytes for its shape, not ", data.size()));
  }
}

}  // namespace

std::string npy_start(dtype type, std::span<const std::uint64_t> shape,
                      std::span<const std::byte> data) {
  require_writable(type, shape, data);
  return header_of(type, shape);
}

}  // namespace samebits::tensor_file
