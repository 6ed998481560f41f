// Elementary operations as arithmetic of one format.
#include "oracle/elementary.hpp"

#include <array>

#include "oracle/arithmetic.hpp"

namespace samebits::oracle {
namespace {

template <class... Codes>
std::uint64_t rounded_once(operation op, const format& f, Codes... codes) {
  const std::array<operand, sizeof...(codes)> operands = {operand{&f, codes}...};
  return arithmetic(op, operands, f, {}).code;
}

std::uint32_t narrow(std::uint64_t code) { return static_cast<std::uint32_t>(code); }

}  // namespace

std::uint64_t add(const format& f, std::uint64_t a, std::uint64_t b) {
  return rounded_once(operation::add, f, a, b);
}
std::uint64_t subtract(const format& f, std::uint64_t a, std::uint64_t b) {
  return rounded_once(operation::sub, f, a, b);
}
std::uint64_t multiply(const format& f, std::uint64_t a, std::uint64_t b) {
  return rounded_once(operation::mul, f, a, b);
}
std::uint64_t divide(const format& f, std::uint64_t a, std::uint64_t b) {
  return rounded_once(operation::div, f, a, b);
}
std::uint64_t fused(const format& f, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  return rounded_once(operation::fma, f, a, b, c);
}
std::uint64_t root(const format& f, std::uint64_t a) { return rounded_once(operation::sqrt, f, a); }

std::uint32_t add32(std::uint32_t a, std::uint32_t b) { return narrow(add(fp32(), a, b)); }
std::uint32_t subtract32(std::uint32_t a, std::uint32_t b) {
  return narrow(subtract(fp32(), a, b));
}
std::uint32_t multiply32(std::uint32_t a, std::uint32_t b) {
  return narrow(multiply(fp32(), a, b));
}
std::uint32_t divide32(std::uint32_t a, std::uint32_t b) { return narrow(divide(fp32(), a, b)); }

}  // namespace samebits::oracle
