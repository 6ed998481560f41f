// Lists the instructions of every row, and draws their operands.
#include "tensor_cores/tensor_cases.hpp"

#include <array>

namespace samebits::support {
namespace {

constexpr std::array pairings = {
    std::array{format_id::fp16, format_id::fp16}, std::array{format_id::bf16, format_id::bf16},
    std::array{format_id::tf32, format_id::tf32}, std::array{format_id::e4m3, format_id::e4m3},
    std::array{format_id::e4m3, format_id::e5m2}, std::array{format_id::e5m2, format_id::e4m3},
    std::array{format_id::e5m2, format_id::e5m2}};

}  // namespace

std::string text_of(const tensor_instruction& i) {
  return std::string(name(i.row.unit)) + " " + std::string(name(i.a)) + " x " +
         std::string(name(i.b)) + " + " + std::string(name(i.result)) + ", " +
         std::to_string(i.products) + " products";
}

std::vector<tensor_instruction> all_tensor_instructions() {
  std::vector<tensor_instruction> all;
  for (int r = 0; r < tensor_row_count; ++r) {
    const tensor_arithmetic row = tensor_row(r);
    for (const auto& [a, b] : pairings) {
      if (tensor_operands_of(a, b) != row.operands) continue;
      for (const int products : {row.products, row.narrow_products}) {
        if (products == 0) continue;
        if (row.fp32 != evidence::none) all.push_back({row, a, b, format_id::fp32, products});
        if (row.fp16 != evidence::none) all.push_back({row, a, b, format_id::fp16, products});
      }
    }
  }
  return all;
}

tensor_case draw_tensor_case(const tensor_instruction& i, int family, word_stream& words) {
  return draw_case({i.a, i.b, i.result, i.products}, family, words);
}

}  // namespace samebits::support
