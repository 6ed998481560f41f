// The explorer's arithmetic, compiled to WebAssembly: the library's own conversions.
//
// A page passes codes as 64-bit integers; formats, rounding modes and policies as the numbers of
// their enumerators.
#include <cstdint>

#include "samebits/scalar.hpp"

#define EXPORTED(name) extern "C" __attribute__((export_name(name)))

namespace {

using samebits::format_id;

constexpr std::uint32_t room = 1 << 16;
std::uint64_t buffer[room];

samebits::format_spec spec(std::uint32_t format) {
  return samebits::spec_of(static_cast<format_id>(format));
}

std::uint64_t converted(std::uint32_t from, std::uint32_t to, std::uint64_t code,
                        std::uint32_t round, std::uint32_t overflow) {
  const samebits::cast_rule rule = {.rounding = static_cast<samebits::rounding>(round),
                                    .overflow = static_cast<samebits::overflow>(overflow)};
  const auto source = static_cast<format_id>(from);
  return samebits::convert_code(source, static_cast<format_id>(to), code, rule).code;
}

}  // namespace

EXPORTED("format_count") std::uint32_t format_count() { return samebits::format_count; }

/// The address of the name, which ends with a zero byte.
EXPORTED("format_name") const char* format_name(std::uint32_t format) { return spec(format).name; }

#define PROPERTY(NAME) \
  EXPORTED(#NAME) int NAME(std::uint32_t format) { return spec(format).NAME; }
PROPERTY(exponent_bits)
PROPERTY(mantissa_bits)
PROPERTY(padding_bits)  // low bits that a code has and the format ignores
PROPERTY(storage_bits)

EXPORTED("sign_bits") int sign_bits(std::uint32_t format) {
  return spec(format).special == samebits::specials::scale ? 0 : 1;
}

EXPORTED("convert")
std::uint64_t convert(std::uint32_t from, std::uint32_t to, std::uint64_t code, std::uint32_t round,
                      std::uint32_t overflow) {
  return converted(from, to, code, round, overflow);
}

/// The address of 65536 codes for convert_all().
EXPORTED("codes") std::uint64_t* codes() { return buffer; }

/// Converts the first `count` codes in place.
EXPORTED("convert_all")
void convert_all(std::uint32_t from, std::uint32_t to, std::uint32_t count, std::uint32_t round,
                 std::uint32_t overflow) {
  for (std::uint32_t i = 0; i < count && i < room; ++i) {
    buffer[i] = converted(from, to, buffer[i], round, overflow);
  }
}
