// Single steps of arithmetic on codes: implementation.
#include "fpinspect/explore/demos/step.hpp"

#include <array>
#include <cstddef>

#include "samebits/array_arithmetic.hpp"
#include "samebits/scalar.hpp"
#include "samebits/view.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;

/// Codes as they lie in memory, little-endian.
class code_array {
 public:
  code_array(format_id format, std::size_t count)
      : format_(format),
        bytes_(static_cast<std::size_t>(samebits::storage_bytes(format))),
        memory_(bytes_ * count) {}

  void set(std::size_t i, std::uint64_t code) {
    for (std::size_t k = 0; k < bytes_; ++k) {
      memory_[i * bytes_ + k] = static_cast<std::uint8_t>(code >> (8 * k) & 0xFF);
    }
  }
  [[nodiscard]] std::uint64_t get(std::size_t i) const {
    std::uint64_t code = 0;
    for (std::size_t k = bytes_; k-- > 0;) code = code << 8 | memory_[i * bytes_ + k];
    return code;
  }
  [[nodiscard]] samebits::matrix_view view() {
    const auto count = static_cast<std::int64_t>(memory_.size() / bytes_);
    return samebits::view_of_codes(format_, static_cast<void*>(memory_.data()), 1, count);
  }

 private:
  format_id format_;
  std::size_t bytes_;
  std::vector<std::uint8_t> memory_;
};

const samebits::executor reference{.backend = "reference"};

}  // namespace

number rounded(format_id format, double x) {
  return {
      format,
      samebits::convert_code(format_id::fp64, format, __builtin_bit_cast(std::uint64_t, x)).code};
}

double value_of(const number& x) { return samebits::decode_double(x.format, x.code); }

step_result step(samebits::operation op, format_id to, const step_operands& operands) {
  code_array a(operands.a.format, 1);
  code_array b(operands.b.format, 1);
  code_array result(to, 1);
  a.set(0, operands.a.code);
  b.set(0, operands.b.code);
  const samebits::flags raised =
      samebits::compute_with_flags(op, {a.view(), b.view()}, result.view(), {}, {}, reference);
  return {{to, result.get(0)}, raised};
}

std::vector<std::uint64_t> stochastic_add(format_id format, std::span<const std::uint64_t> codes,
                                          const number& term, std::uint64_t stream) {
  code_array a(format, codes.size());
  code_array b(term.format, 1);
  code_array result(format, codes.size());
  for (std::size_t i = 0; i < codes.size(); ++i) a.set(i, codes[i]);
  b.set(0, term.code);
  samebits::matrix_view terms = b.view();
  terms.cols = static_cast<std::int64_t>(codes.size());
  terms.col_stride = 0;
  samebits::compute_options options{.rounding = samebits::rounding::stochastic};
  options.random.stream = stream;
  samebits::compute(samebits::operation::add, {a.view(), terms}, result.view(), options, reference);
  std::vector<std::uint64_t> sums(codes.size());
  for (std::size_t i = 0; i < codes.size(); ++i) sums[i] = result.get(i);
  return sums;
}

}  // namespace fpinspect
