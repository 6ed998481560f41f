// Packing of operands: implementation. Compiled without instruction set flags.
#include "backends/simd/matmul/matmul_pack.hpp"

#include <algorithm>
#include <cstring>

#include "backends/reference/cells.hpp"

namespace samebits::backends {
namespace {

using numerics::number_kind;

/// Reads the codes of a view of one code width.
template <class Code>
class code_source {
 public:
  explicit code_source(const const_matrix_view& v)
      : data_(static_cast<const std::byte*>(v.data)),
        row_(v.row_stride * static_cast<std::int64_t>(sizeof(Code))),
        col_(v.col_stride * static_cast<std::int64_t>(sizeof(Code))) {}

  [[nodiscard]] Code at(std::int64_t r, std::int64_t c) const {
    Code code;
    std::memcpy(&code, data_ + r * row_ + c * col_, sizeof code);
    return code;
  }

 private:
  const std::byte* data_;
  std::int64_t row_;
  std::int64_t col_;
};

/// Decodes the operand at index k; at(k) reads its code. Operands at k >= depth are zeros.
template <class Code, class At>
lane_words lane_at(const lane_decoder& decode, std::int64_t k, std::int64_t depth, const At& at) {
  const Code zero = 0;
  return decode(k < depth ? at(k) : zero);
}

/// The index along K of the product at position p of a step.
class step_positions {
 public:
  step_positions(const matmul_steps& steps, std::int64_t step)
      : first_(step / steps.steps_per_instruction() * steps.products),
        order_(steps.order.data() + step % steps.steps_per_instruction() * steps.group) {}
  [[nodiscard]] std::int64_t k(int p) const { return first_ + order_[p]; }

 private:
  std::int64_t first_;
  const int* order_;
};

/// Packs one step of one row; lanes(p) decodes position p.
///
/// - Wide lanes: one position per word; first all significands, then all exponents, then all signs.
/// - Narrow lanes: two positions per word; first all exponents, then all significands, then all
///   signs.
///
/// @returns 1 if any of the step's codes is NaN or Inf, else 0
template <class Lanes>
std::uint32_t pack_row_step(const matmul_steps& steps, std::uint32_t* words, const Lanes& lanes) {
  const int group = steps.group;
  std::uint32_t special = 0;
  if (steps.width == lane_width::wide) {
    for (int p = 0; p < group; ++p) {
      const lane_words x = lanes(p);
      words[p] = x.significand;
      words[group + p] = x.exponent;
      words[2 * group + p] = x.sign;
      special |= x.special;
    }
    return special;
  }
  const int pairs = group / 2;
  for (int p = 0; p < pairs; ++p) {
    const lane_words x = lanes(2 * p);
    const lane_words y = lanes(2 * p + 1);
    words[p] = x.exponent | y.exponent << 16;
    words[pairs + p] = x.significand | y.significand << 16;
    words[2 * pairs + p] = x.sign | y.sign << 16;
    special |= x.special | y.special;
  }
  return special;
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

lane_decoder::lane_decoder(const format_spec& format, int subnormal_exponent, int shift,
                           lane_width width)
    : format_(format), subnormal_exponent_(subnormal_exponent), shift_(shift), width_(width) {
  if (format.storage_bits != 8) return;
  for (std::uint32_t code = 0; code < 256; ++code) table_.push_back(decoded(code));
}

lane_words lane_decoder::decoded(std::uint32_t code) const {
  const numerics::tensor_operand x =
      numerics::tensor_operand_of(format_, subnormal_exponent_, code);
  const bool finite = x.kind == number_kind::finite;
  lane_words w{static_cast<std::uint32_t>(finite ? x.exponent : no_exponent),
               x.significand << shift_, x.negative ? 0x80000000u : 0u,
               x.kind == number_kind::infinite || x.kind == number_kind::nan ? 1u : 0u};
  if (width_ == lane_width::narrow) {
    w.exponent &= 0xFFFF;
    w.sign = x.negative ? 0xFFFF : 0;
  }
  return w;
}

void pack_rows(const matmul_call& call, const matmul_steps& steps, const lane_decoder& decode,
               std::int64_t first, std::int64_t rows, std::uint32_t* row_panel,
               std::uint8_t* special) {
  const std::int64_t depth = call.a.cols;
  with_code_of(call.a.format, [&]<class Code>(Code) {
    const code_source<Code> codes(call.a);
    std::fill(special, special + rows, std::uint8_t{0});
    // The loop over steps is the outer one: the row panel is written from its first word to its
    // last.
    for (std::int64_t step = 0; step < steps.count; ++step) {
      const step_positions positions(steps, step);
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto any =
            pack_row_step(steps, row_panel + (step * rows + r) * steps.a_words(), [&](int p) {
              return lane_at<Code>(decode, positions.k(p), depth,
                                   [&](std::int64_t k) { return codes.at(first + r, k); });
            });
        special[r] |= static_cast<std::uint8_t>(any);
      }
    }
  });
}

void pack_columns(const matmul_call& call, const matmul_steps& steps, const lane_decoder& decode,
                  std::int64_t first, std::uint32_t* panel, std::uint8_t* special) {
  const std::int64_t depth = call.a.cols;
  const std::int64_t columns = steps.columns;
  const std::int64_t present = std::min(columns, call.b.cols - first);
  const bool wide = steps.width == lane_width::wide;
  std::fill(special, special + columns, std::uint8_t{0});
  if (present < columns) std::fill(panel, panel + steps.count * steps.b_words(), 0u);
  with_code_of(call.b.format, [&]<class Code>(Code) {
    const code_source<Code> codes(call.b);
    for (std::int64_t step = 0; step < steps.count; ++step) {
      const step_positions positions(steps, step);
      std::uint32_t* words = panel + step * steps.b_words();
      for (std::int64_t c = 0; c < present; ++c) {
        const auto lanes = [&](int p) {
          return lane_at<Code>(decode, positions.k(p), depth,
                               [&](std::int64_t k) { return codes.at(k, first + c); });
        };
        std::uint32_t any = 0;
        if (wide) {
          for (int p = 0; p < steps.group; ++p) {
            const lane_words x = lanes(p);
            words[std::int64_t{2} * p * columns + c] = x.significand | x.sign;
            words[(std::int64_t{2} * p + 1) * columns + c] = x.exponent;
            any |= x.special;
          }
        } else {
          for (int p = 0; p < steps.group / 2; ++p) {
            const lane_words x = lanes(2 * p);
            const lane_words y = lanes(2 * p + 1);
            std::uint32_t* at = words + std::int64_t{3} * p * columns + c;
            at[0] = x.exponent | y.exponent << 16;
            at[columns] = x.significand | y.significand << 16;
            at[2 * columns] = x.sign | y.sign << 16;
            any |= x.special | y.special;
          }
        }
        special[c] |= static_cast<std::uint8_t>(any);
      }
    }
  });
}

}  // namespace samebits::backends
