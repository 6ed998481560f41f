// Packing of operands: implementation. Compiled for any machine.
#include "backends/simd/matmul_pack.hpp"

#include <algorithm>

#include "backends/matmul_element.hpp"

namespace samebits::backends {
namespace {

using numerics::number_kind;
using numerics::tensor_operand;

/// One operand at position p of a step; its place says where the words of that position lie.
struct packed_words {
  std::uint32_t* exponent;
  std::uint32_t* significand;
  std::uint32_t* sign;  ///< null: on top of the significand
};

std::uint32_t exponent_of(const tensor_operand& x) {
  return static_cast<std::uint32_t>(x.kind == number_kind::finite ? x.exponent : no_exponent);
}

void put_wide(const packed_words& at, const tensor_operand& x, int shift) {
  const std::uint32_t sign = x.negative ? 0x80000000u : 0u;
  *at.exponent = exponent_of(x);
  *at.significand = (x.significand << shift) | (at.sign == nullptr ? sign : 0u);
  if (at.sign != nullptr) *at.sign = sign;
}

/// Words hold two positions; `half` 0 is the low one and writes the whole word.
void put_narrow(const packed_words& at, const tensor_operand& x, int shift, int half) {
  const auto put = [&](std::uint32_t* word, std::uint32_t bits) {
    bits &= 0xFFFF;
    *word = half == 0 ? bits : *word | (bits << 16);
  };
  put(at.exponent, exponent_of(x));
  put(at.significand, x.significand << shift);
  put(at.sign, x.negative ? 0xFFFF : 0);
}

bool is_special(const tensor_operand& x) {
  return x.kind == number_kind::infinite || x.kind == number_kind::nan;
}

}  // namespace

matmul_steps::matmul_steps(const matmul_call& call, lane_width lanes, int panel_columns)
    : width(lanes),
      columns(panel_columns),
      group(call.unit.group),
      products(call.unit.products),
      count((call.a.cols + call.unit.products - 1) / call.unit.products *
            (call.unit.products / call.unit.group)) {
  for (int p = 0; p < products; ++p) order.push_back(numerics::product_at(call.unit, p));
  const int up = call.unit.alignment_bits - call.unit.a.mantissa_bits - call.unit.b.mantissa_bits;
  b_shift = lanes == lane_width::narrow ? 0 : up / 2;
  a_shift = up - b_shift;
}

std::int64_t matmul_steps::a_words() const {
  return width == lane_width::wide ? 3 * group : 3 * group / 2;
}
std::int64_t matmul_steps::b_words() const {
  return width == lane_width::wide ? std::int64_t{2} * group * columns
                                   : std::int64_t{3} * group / 2 * columns;
}

operand_decoder::operand_decoder(const format_spec& format, int least_exponent)
    : format_(format), least_exponent_(least_exponent) {
  if (format.storage_bits != 8) return;
  for (std::uint32_t code = 0; code < 256; ++code) {
    table_.push_back(numerics::tensor_operand_of(format, least_exponent, code));
  }
}

void pack_rows(const matmul_call& call, const matmul_steps& steps, const operand_decoder& decode,
               std::int64_t first, std::int64_t rows, std::uint32_t* strip, std::uint8_t* special) {
  const int group = steps.group;
  for (std::int64_t r = 0; r < rows; ++r) {
    bool any = false;
    for (std::int64_t step = 0; step < steps.count; ++step) {
      std::uint32_t* words = strip + (step * rows + r) * steps.a_words();
      const std::int64_t instruction = step / steps.steps_per_instruction();
      const auto from = static_cast<std::size_t>(step % steps.steps_per_instruction() * group);
      for (int p = 0; p < group; ++p) {
        const std::int64_t k =
            instruction * steps.products + steps.order[from + static_cast<std::size_t>(p)];
        tensor_operand x{0, 0, false, number_kind::zero};
        if (k < call.a.cols) x = decode(code_at(call.a, first + r, k));
        any = any || is_special(x);
        if (steps.width == lane_width::wide) {
          put_wide({words + group + p, words + p, words + 2 * group + p}, x, steps.a_shift);
        } else {
          const int pairs = group / 2;
          std::uint32_t* pair = words + p / 2;
          put_narrow({pair, pair + pairs, pair + 2 * pairs}, x, steps.a_shift, p % 2);
        }
      }
    }
    special[r] = any ? 1 : 0;
  }
}

void pack_columns(const matmul_call& call, const matmul_steps& steps, const operand_decoder& decode,
                  std::int64_t first, std::uint32_t* panel, std::uint8_t* special) {
  const int group = steps.group;
  const int columns = steps.columns;
  std::fill(special, special + columns, std::uint8_t{0});
  for (std::int64_t step = 0; step < steps.count; ++step) {
    const std::int64_t instruction = step / steps.steps_per_instruction();
    const auto from = static_cast<std::size_t>(step % steps.steps_per_instruction() * group);
    for (int p = 0; p < group; ++p) {
      const std::int64_t k =
          instruction * steps.products + steps.order[from + static_cast<std::size_t>(p)];
      std::uint32_t* words = panel + step * steps.b_words();
      for (int c = 0; c < columns; ++c) {
        tensor_operand x{0, 0, false, number_kind::zero};
        if (k < call.a.cols && first + c < call.b.cols) x = decode(code_at(call.b, k, first + c));
        if (is_special(x)) special[c] = 1;
        if (steps.width == lane_width::wide) {
          std::uint32_t* at = words + 2 * p * columns + c;
          put_wide({at + columns, at, nullptr}, x, steps.b_shift);
        } else {
          std::uint32_t* at = words + 3 * (p / 2) * columns + c;
          put_narrow({at, at + columns, at + 2 * columns}, x, steps.b_shift, p % 2);
        }
      }
    }
  }
}

}  // namespace samebits::backends
