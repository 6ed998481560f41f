// Texts of codes and rules.
#include "engine/core/text.hpp"

#include <bit>
#include <charconv>
#include <cstdio>

#include "numerics/bits/decode.hpp"
#include "numerics/bits/layout.hpp"

namespace samebits::support {
namespace {

std::string binary(std::uint64_t code, int low, int count) {
  std::string text;
  for (int i = low + count; i-- > low;) text += (code >> i) % 2 == 1 ? '1' : '0';
  return text;
}

std::string shortest(double x) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, x).ptr};
}

}  // namespace

std::string hex(std::uint64_t code, int storage_bits) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%0*llX", storage_bits / 4,
                static_cast<unsigned long long>(code));
  return text;
}

std::string code_text(format_id format, std::uint64_t code) {
  const format_spec f = spec_of(format);
  std::string text = hex(code, f.storage_bits) + " = ";
  int low = f.padding_bits + numerics::magnitude_bits(f) + (numerics::has_sign(f) ? 1 : 0);
  bool first = true;
  for (const int width :
       {numerics::has_sign(f) ? 1 : 0, f.exponent_bits, f.mantissa_bits, f.padding_bits}) {
    if (width == 0) continue;
    low -= width;
    text += (first ? "" : "|") + binary(code, low, width);
    first = false;
  }
  if (f.storage_bits < 64 && code >> f.storage_bits != 0) return text + " = no code of the format";
  const auto x = std::bit_cast<double>(numerics::decode<std::uint64_t>(f, code));
  char exact[32];
  std::snprintf(exact, sizeof exact, "%a", x);
  return text + " = " + exact + " = " + shortest(x);
}

std::string short_code_text(format_id format, std::uint64_t code) {
  const std::string text = code_text(format, code);
  return text.substr(0, text.find(' ')) + text.substr(text.rfind(" = "));
}

std::string text_of(const random_stream& r) {
  return "seed " + std::to_string(r.seed) + " stream " + std::to_string(r.stream) + " offset " +
         std::to_string(r.offset) + " pitch " + (r.pitch ? std::to_string(*r.pitch) : "default") +
         " K " + std::to_string(r.bits);
}

}  // namespace samebits::support
