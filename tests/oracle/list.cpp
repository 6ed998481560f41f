// Operations over tensors of a list, from exact values.
#include "oracle/list.hpp"

#include <algorithm>

#include "oracle/convert.hpp"
#include "oracle/elementary.hpp"
#include "oracle/exact.hpp"
#include "oracle/sum_tree.hpp"

namespace samebits::oracle {
namespace {

std::uint64_t value32(const format& f, std::uint64_t code) { return convert(f, fp32(), code, {}); }

std::uint64_t rounded(const format& to, std::uint64_t fp32_code) {
  return convert(fp32(), to, fp32_code, {});
}

}  // namespace

inspected inspect(const format& f, const std::vector<std::uint64_t>& codes) {
  inspected all;
  std::vector<std::uint64_t> squares;
  for (const std::uint64_t code : codes) {
    const exact_value x = decode(f, code);
    const std::uint64_t wide = convert(f, fp64(), code, {});
    squares.push_back(multiply(fp64(), wide, wide));
    const std::uint64_t magnitude = value32(f, code) % 0x80000000u;
    all.amax = std::max(all.amax, static_cast<std::uint32_t>(magnitude));
    ++all.exponents[magnitude / 0x800000u];
    if (x.kind == value_kind::nan) ++all.nan;
    if (x.kind == value_kind::infinite) ++all.inf;
    if (x.kind != value_kind::finite) continue;
    const cpp_rational size = abs(rational_of(x));
    if (size == 0) ++all.zeros;
    if (size != 0 && size < rational_of(decode(f, f.min_normal))) ++all.subnormals;
  }
  all.squares = sum_tree(squares);
  return all;
}

std::uint64_t scaled(const format& f, std::uint64_t x, std::uint32_t factor) {
  return rounded(f, multiply(fp32(), value32(f, x), factor));
}

std::uint64_t accumulated(const format& acc_format, std::uint64_t acc, const format& x_format,
                          std::uint64_t x, std::uint32_t scale) {
  const std::uint64_t product = multiply(fp32(), value32(x_format, x), scale);
  return rounded(acc_format, add(fp32(), value32(acc_format, acc), product));
}

std::uint64_t combined(const format& out, std::uint32_t a, const format& x_format, std::uint64_t x,
                       std::uint32_t b, const format& y_format, std::uint64_t y) {
  const std::uint64_t left = multiply(fp32(), a, value32(x_format, x));
  const std::uint64_t right = multiply(fp32(), b, value32(y_format, y));
  return rounded(out, add(fp32(), left, right));
}

std::uint32_t clip_factor(std::uint64_t norm, std::uint64_t max_norm) {
  constexpr std::uint64_t one = 0x3FF0000000000000u;
  const cpp_rational minimum(1, 1000000);
  const std::uint64_t small = round_exact(fp64(), exact_from(minimum), {});
  const std::uint64_t quotient = divide(fp64(), max_norm, add(fp64(), norm, small));
  const bool above = decode(fp64(), quotient).kind != value_kind::nan && quotient > one;
  return static_cast<std::uint32_t>(convert(fp64(), fp32(), above ? one : quotient, {}));
}

}  // namespace samebits::oracle
