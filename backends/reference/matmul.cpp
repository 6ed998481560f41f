// Reference matrix products: applies the definition to one element after another.
#include "backends/dispatch/calls/matmul.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/dispatch/matmul_element.hpp"
#include "backends/reference/reference.hpp"
#include "backends/threads/parts.hpp"
#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/accumulate.hpp"
#include "numerics/sums/dot.hpp"
#include "numerics/sums/sum_tree.hpp"

namespace samebits::backends {
namespace {

using numerics::tensor_operand;

/// The decoded rows of A and columns of B; the K elements of each are contiguous.
template <class Number>
class decoded_operands {
 public:
  template <class Decode>
  decoded_operands(const matmul_call& call, const Decode& decode) : depth_(call.a.cols) {
    const auto size = [&](std::int64_t n) { return static_cast<std::size_t>(n * depth_); };
    a_.reserve(size(call.a.rows));
    b_.reserve(size(call.b.cols));
    for (std::int64_t i = 0; i < call.a.rows; ++i) {
      for (std::int64_t k = 0; k < depth_; ++k) a_.push_back(decode.a(code_at(call.a, i, k)));
    }
    for (std::int64_t j = 0; j < call.b.cols; ++j) {
      for (std::int64_t k = 0; k < depth_; ++k) b_.push_back(decode.b(code_at(call.b, k, j)));
    }
  }
  [[nodiscard]] std::int64_t depth() const { return depth_; }
  [[nodiscard]] const Number* a_row(std::int64_t i) const { return a_.data() + i * depth_; }
  [[nodiscard]] const Number* b_col(std::int64_t j) const { return b_.data() + j * depth_; }

 private:
  std::int64_t depth_;
  std::vector<Number> a_;
  std::vector<Number> b_;
};

struct decode_to_binary32 {
  format_spec from_a;
  format_spec from_b;
  [[nodiscard]] std::uint32_t a(std::uint32_t code) const { return numerics::decode(from_a, code); }
  [[nodiscard]] std::uint32_t b(std::uint32_t code) const { return numerics::decode(from_b, code); }
};

struct decode_for_unit {
  const numerics::accumulate_rule& rule;
  [[nodiscard]] tensor_operand a(std::uint32_t code) const {
    return numerics::tensor_operand_of(rule.a, rule.subnormal_exponent_a, code);
  }
  [[nodiscard]] tensor_operand b(std::uint32_t code) const {
    return numerics::tensor_operand_of(rule.b, rule.subnormal_exponent_b, code);
  }
};

// --- a tensor core ---

/// Chains instructions along K: each result is the input sum of the next instruction.
std::uint32_t chain(const numerics::accumulate_rule& rule, const tensor_operand* a,
                    const tensor_operand* b, std::int64_t count, std::uint32_t c) {
  for (std::int64_t k = 0; k < count; k += rule.products) {
    const auto products = std::min<std::int64_t>(rule.products, count - k);
    c = numerics::accumulate(rule, a + k, b + k, static_cast<int>(products), c);
  }
  return c;
}

/// The sum of one element. chained(k, count, c) returns the result of the instructions over [k, k +
/// count) with input sum c.
template <class Chained>
std::uint32_t tensor_core_sum(const matmul_call& call, std::int64_t i, std::int64_t j,
                              const Chained& chained) {
  const auto to_binary32 = [&](std::uint32_t sum) {
    return numerics::decode(call.unit.result, sum);
  };
  if (call.sum.promotion == 0) {
    return to_binary32(chained(0, call.a.cols, start_of(call, i, j)));
  }
  return sum_of_blocks(call, i, j, call.sum.promotion, [&](std::int64_t k, std::int64_t count) {
    return to_binary32(chained(k, count, 0u));
  });
}

// --- binary32 and exact ---

numerics::exact_dot exact_part(const std::uint32_t* a, const std::uint32_t* b, std::int64_t count) {
  numerics::exact_dot dot;
  for (std::int64_t k = 0; k < count; ++k) numerics::add_product(dot, a[k], b[k]);
  return dot;
}

std::uint32_t ieee_sum(const matmul_call& call, std::int64_t i, std::int64_t j,
                       const std::uint32_t* a, const std::uint32_t* b) {
  namespace f = numerics::binary32;
  const std::int64_t depth = call.a.cols;
  std::uint32_t sum = start_of(call, i, j);
  switch (call.sum.order) {
    case fp32_order::ascending:
      for (std::int64_t k = 0; k < depth; ++k) sum = f::add(sum, f::multiply(a[k], b[k]));
      return sum;
    case fp32_order::ascending_fused:
      for (std::int64_t k = 0; k < depth; ++k) sum = numerics::binary32_fma(a[k], b[k], sum);
      return sum;
    case fp32_order::tree: break;
  }
  // Passed by its address, f::add, which must be inlined, does not compile at -O1.
  const auto add = [](std::uint32_t x, std::uint32_t y) { return f::add(x, y); };
  std::uint32_t waiting[64];
  std::uint64_t count = 0;
  for (std::int64_t k = 0; k < depth; ++k) {
    numerics::append_input(waiting, count, f::multiply(a[k], b[k]), add);
  }
  const std::uint32_t root = numerics::root_of_tree(waiting, count, 0u, add);
  return has_first_addend(call) ? f::add(sum, root) : root;
}

// --- all elements ---

/// Calls element(i, j) for every element of D, split among threads.
template <class Element>
void for_each_element(const matmul_call& call, const executor& where, const Element& element) {
  const std::int64_t cols = call.d.cols;
  for_each_item(call.d.rows * cols, call.a.cols, where.threads,
                [&](std::int64_t e) { element(e / cols, e % cols); });
}

void multiply_by_unit(const matmul_call& call, const executor& where) {
  const decoded_operands<tensor_operand> x(call, decode_for_unit{call.unit});
  for_each_element(call, where, [&](std::int64_t i, std::int64_t j) {
    const auto chained = [&](std::int64_t k, std::int64_t count, std::uint32_t c) {
      return chain(call.unit, x.a_row(i) + k, x.b_col(j) + k, count, c);
    };
    finish_element(call, i, j, tensor_core_sum(call, i, j, chained));
  });
}

}  // namespace

void reference_matmul(const matmul_call& call, const executor& where) {
  if (call.sum.kind == accumulator_kind::tensor_core) return multiply_by_unit(call, where);
  const decoded_operands<std::uint32_t> x(
      call, decode_to_binary32{spec_of(call.a.format), spec_of(call.b.format)});
  for_each_element(call, where, [&](std::int64_t i, std::int64_t j) {
    const std::uint32_t* a = x.a_row(i);
    const std::uint32_t* b = x.b_col(j);
    const auto part = [&](std::int64_t k, std::int64_t count) {
      return exact_part(a + k, b + k, count);
    };
    switch (call.sum.kind) {
      case accumulator_kind::exact: return exact_element(call, i, j, part);
      case accumulator_kind::ieee_fp32:
        return finish_element(call, i, j, ieee_sum(call, i, j, a, b));
      case accumulator_kind::fp32_per_128:
        return finish_element(call, i, j, fp32_per_128_sum(call, i, j, part));
      case accumulator_kind::tensor_core: break;
    }
  });
}

std::uint32_t reference_tensor_core_sum(const matmul_call& call, std::int64_t row,
                                        std::int64_t col) {
  // On the stack: D is half written here, and a failed allocation must not stop the call.
  constexpr auto max_products = static_cast<std::size_t>([] {
    int maximum = 0;
    for (int i = 0; i < tensor_row_count; ++i) maximum = std::max(maximum, tensor_row(i).products);
    return maximum;
  }());
  const decode_for_unit decode{call.unit};
  return tensor_core_sum(
      call, row, col, [&](std::int64_t first, std::int64_t count, std::uint32_t c) {
        tensor_operand a[max_products];
        tensor_operand b[max_products];
        for (std::int64_t k = 0; k < count; k += call.unit.products) {
          const auto products = std::min<std::int64_t>(call.unit.products, count - k);
          for (std::int64_t p = 0; p < products; ++p) {
            a[p] = decode.a(code_at(call.a, row, first + k + p));
            b[p] = decode.b(code_at(call.b, first + k + p, col));
          }
          c = numerics::accumulate(call.unit, a, b, static_cast<int>(products), c);
        }
        return c;
      });
}

}  // namespace samebits::backends
