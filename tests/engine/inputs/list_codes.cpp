// Elements and factors of tensors in lists.
#include "engine/inputs/list_codes.hpp"

#include <bit>

#include "engine/inputs/families.hpp"

namespace samebits::support {

std::uint32_t draw_list_code(format_id format, list_content content, const word_source& next) {
  const format_spec f = spec_of(format);
  const auto bits = static_cast<std::uint32_t>(next());
  const auto width = static_cast<std::uint32_t>(f.storage_bits);
  const std::uint32_t sign = (bits & 1u) << (width - 1);
  const auto mantissa = static_cast<std::uint32_t>(f.mantissa_bits);
  switch (content) {
    case list_content::any_bits:
    case list_content::every_code: return bits >> (32 - width);
    case list_content::small: {
      const std::uint32_t below = (bits >> 8) & ((2u << mantissa) - 1);  // up to twice min normal
      return sign | (bits % 8 < 2 ? 0 : below);
    }
    case list_content::ordinary: break;
  }
  const auto one = static_cast<std::uint32_t>(f.bias) << mantissa;
  const std::uint32_t span = 4u << mantissa;  // 2^-2 to 2^2
  return sign | (one - span / 2 + (bits >> 1) % span);
}

float draw_list_factor(const word_source& next) {
  const auto code =
      static_cast<std::uint32_t>(draw_any_code(format_id::fp32, format_id::bf16, next));
  const float factor = std::bit_cast<float>(code);
  if (factor != factor) return 1.0f;
  return next() % 4 == 0 ? factor : std::bit_cast<float>(0x3F800000u + (code & 0x83FFFFFFu));
}

}  // namespace samebits::support
