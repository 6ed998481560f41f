// Texts of codes and rules.
#include "engine/core/text.hpp"

#include <bit>
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

std::string format_double(const char* pattern, double x) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, x);
  return text;
}

std::string shortest(double x) {
  for (int digits = 1; digits < 17; ++digits) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*g", digits, x);
    double back = 0;
    if (std::sscanf(text, "%lf", &back) == 1 && back == x) return text;
  }
  return format_double("%.17g", x);
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
  return text + " = " + format_double("%a", x) + " = " + shortest(x);
}

std::string text_of(const random_stream& r) {
  return "seed " + std::to_string(r.seed) + " stream " + std::to_string(r.stream) + " offset " +
         std::to_string(r.offset) + " pitch " + (r.pitch ? std::to_string(*r.pitch) : "default") +
         " K " + std::to_string(r.bits);
}

}  // namespace samebits::support
