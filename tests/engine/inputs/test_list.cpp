// Lists of tensors for tests of tensor lists.
#include "engine/inputs/test_list.hpp"

#include <bit>
#include <cstring>
#include <random>

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

test_list::test_list(const list_shape& shape) {
  std::mt19937_64 sizes(shape.seed);
  std::mt19937_64 codes(shape.seed + 1);
  const word_source next_code = [&codes] { return codes(); };
  const std::size_t first_format = codes() % shape.formats.size();
  for (std::size_t i = 0; i < shape.tensors; ++i) {
    const format_id format = shape.formats[(first_format + i) % shape.formats.size()];
    const auto count =
        static_cast<std::int64_t>(sizes() % static_cast<std::uint64_t>(shape.max_elements + 1));
    const std::int64_t rows = sizes() % 4 == 0 ? 1 + static_cast<std::int64_t>(sizes() % 5) : 1;
    const std::int64_t cols = count / rows;
    const bool gaps = codes() % 8 == 0;
    const std::int64_t col_stride = gaps && codes() % 2 == 0 ? 2 : 1;
    const std::int64_t row_stride = cols * col_stride + (gaps ? 3 : 0);
    const auto element = static_cast<std::int64_t>(storage_bytes(format));
    const std::size_t offset = bytes_.size() + codes() % 8;
    bytes_.resize(offset + static_cast<std::size_t>(rows * row_stride * element), std::byte{0xA5});
    for (std::int64_t at = 0; at < rows * row_stride; ++at) {
      const std::uint32_t code = draw_list_code(format, shape.content, next_code);
      std::memcpy(bytes_.data() + offset + static_cast<std::size_t>(at * element), &code,
                  static_cast<std::size_t>(element));
    }
    tensors_.push_back({offset, {nullptr, format, rows, cols, row_stride, col_stride}});
  }
}

tensor_list test_list::listed(std::byte* base, memory_space space) const {
  std::vector<matrix_view> views;
  for (const placed_tensor& p : tensors_) {
    views.push_back(p.view);
    views.back().data = base + p.offset;
    views.back().space = space;
  }
  return tensor_list(views);
}

}  // namespace samebits::support
