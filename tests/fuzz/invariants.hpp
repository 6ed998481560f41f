// What must hold for every tensor that a reader accepts and every refusal that it gives.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "tensor_file/codes.hpp"
#include "tensor_file/error.hpp"
#include "tensor_file/tensor_info.hpp"
#include "tensor_file/utf8.hpp"

namespace samebits::fuzz {

using tensor_file::tensor_info;
using file_bytes = std::span<const std::byte>;

/// Ends the program with a message, which the fuzzer reports as a crash.
inline void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

/// A refusal is one short line of text.
inline void require_message(std::string_view message, std::size_t limit = 600) {
  require(!message.empty() && message.size() < limit, "a message has a length that can be read");
  require(tensor_file::find_invalid_utf8(message) == std::string_view::npos, "a message is UTF-8");
  for (const char c : message) {
    require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f, "a message has no controls");
  }
}

/// Whether read() accepts its input; sets `parsed` to its result.
template <class Parsed, class Read>
bool accepts(Parsed& parsed, const Read& read) {
  try {
    parsed = read();
    return true;
  } catch (const tensor_file::file_error& error) {
    require_message(error.what());
    return false;
  }
}

/// The byte `at` of element i in blocks of GGUF: the scale, which is NaN or a number of 11 bits, times
/// an integer.
inline std::byte naive_byte_of_block(file_bytes data, tensor_file::block_layout blocks,
                                     std::uint64_t i, std::uint64_t at) {
  const bool wide = blocks == tensor_file::block_layout::q8_0;
  const file_bytes block = data.subspan(i / 32 * (wide ? 34 : 18));
  const auto code = std::to_integer<unsigned>(block[0]) | std::to_integer<unsigned>(block[1]) << 8;
  const auto exponent = static_cast<int>(code >> 10 & 31);
  const auto fraction = static_cast<float>(code & 1023);
  float scale =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 31) scale = fraction != 0 ? NAN : HUGE_VALF;
  if (code >> 15 != 0) scale = -scale;
  const auto packed = std::to_integer<int>(block[2 + (wide ? i % 32 : i % 16)]);
  const int nibble = (i % 32 < 16 ? packed % 16 : packed / 16) - 8;
  const float element =
      static_cast<float>(wide ? packed - (packed > 127 ? 256 : 0) : nibble) * scale;
  std::byte bytes[sizeof element];
  std::memcpy(bytes, &element, sizeof element);
  return bytes[at];
}

/// The byte `at` of element i (C order), found by the definition of the layout.
inline std::byte naive_byte(file_bytes file, const tensor_info& info, std::uint64_t i,
                            std::uint64_t at) {
  if (info.blocks != tensor_file::block_layout::none) {
    return naive_byte_of_block(file.subspan(info.offset), info.blocks, i, at);
  }
  const tensor_file::dtype_spec spec = spec_of(info.type);
  if (spec.bits < 8) {
    unsigned code = 0;
    for (unsigned b = 0; b < static_cast<unsigned>(spec.bits); ++b) {
      const std::uint64_t bit = i * static_cast<std::uint64_t>(spec.bits) + b;
      const auto byte = std::to_integer<unsigned>(file[info.offset + bit / 8]);
      code |= (byte >> (bit % 8) & 1u) << b;
    }
    return static_cast<std::byte>(code);
  }
  std::uint64_t position = i;
  if (!info.strides.empty()) {
    position = 0;
    for (std::size_t k = info.shape.size(); k-- > 0;) {
      position += i % info.shape[k] * info.strides[k];
      i /= info.shape[k];
    }
  }
  if (info.bytes_order == tensor_file::byte_order::big) {
    const auto component = static_cast<std::uint64_t>(spec.component_bytes);
    at = at - at % component + (component - 1 - at % component);
  }
  return file[info.offset + position * static_cast<std::uint64_t>(code_bytes(info.type)) + at];
}

inline void require_codes(file_bytes file, const tensor_info& info, std::uint64_t first,
                          std::uint64_t count) {
  const auto width = static_cast<std::uint64_t>(code_bytes(info.type));
  std::string codes(count * width, '\0');
  read_codes(file, info, first, count, reinterpret_cast<std::byte*>(codes.data()));
  for (std::uint64_t k = 0; k < codes.size(); ++k) {
    if (info.blocks != tensor_file::block_layout::none) {  // which NaN is the processor's choice
      float element = 0;
      std::memcpy(&element, codes.data() + k / width * width, sizeof element);
      if (std::isnan(element)) continue;
    }
    const std::byte expected = naive_byte(file, info, first + k / width, k % width);
    require(static_cast<std::byte>(codes[k]) == expected, "a code is what the layout defines");
  }
}

/// The strides of NumPy's Fortran order, or none.
inline void require_fortran_strides(const tensor_info& info) {
  std::uint64_t stride = 1;
  for (std::size_t k = 0; k < info.strides.size(); ++k) {
    require(info.strides[k] == stride, "the first index is the fastest one");
    stride *= info.shape[k];
  }
}

inline void require_tensor(file_bytes file, const tensor_info& info) {
  require(info.shape.size() <= tensor_file::max_rank, "the rank keeps to its limit");
  using wide = unsigned __int128;
  wide extent = info.bytes;
  if (info.blocks != tensor_file::block_layout::none) {
    extent = wide{info.count} / 32 * (info.blocks == tensor_file::block_layout::q8_0 ? 34 : 18);
  }
  if (!info.strides.empty() && info.count != 0) {
    require(info.strides.size() == info.shape.size(), "there is a stride by dimension");
    extent = 1;
    for (std::size_t k = 0; k < info.shape.size(); ++k) {
      extent += wide{info.shape[k] - 1} * info.strides[k];
    }
    extent *= static_cast<unsigned>(code_bytes(info.type));
  }
  require(info.offset <= file.size() && extent <= file.size() - info.offset,
          "the data lies in the file");
  wide product = 1;
  for (const std::uint64_t length : info.shape) {
    product *= length;
    require(product <= ~std::uint64_t{0}, "the product of the shape fits 64 bits");
  }
  require(product == info.count, "the count is the product of the shape");
  require(product * static_cast<unsigned>(spec_of(info.type).bits) == wide{info.bytes} * 8,
          "the size is the count times the bits");

  // The first elements, the last ones, and some across the middle.
  constexpr std::uint64_t part = 64;
  const std::uint64_t length = std::min(part, info.count);
  require_codes(file, info, 0, length);
  require_codes(file, info, info.count - length, length);
  require_codes(file, info, (info.count - length) / 2, length);
  const auto view = view_codes(file, info);
  if (view && info.count > 0) {
    require(view->size() == info.bytes, "a view is the whole tensor");
    require((*view)[0] == naive_byte(file, info, 0, 0), "a view shows the codes");
  }
}

}  // namespace samebits::fuzz
