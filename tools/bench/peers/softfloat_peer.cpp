// Loops over Berkeley SoftFloat: the only file that includes its header.
#include "softfloat_peer.hpp"

#ifdef SAMEBITS_BENCH_SOFTFLOAT
extern "C" {
#include <softfloat.h>
}
#endif

namespace samebits::bench {

#ifdef SAMEBITS_BENCH_SOFTFLOAT
namespace {

float16_t half(std::uint32_t code) { return {static_cast<std::uint16_t>(code)}; }
float32_t single(std::uint32_t code) { return {code}; }

float16_t half_rint(float16_t x) { return f16_roundToInt(x, softfloat_round_near_even, true); }
float32_t single_rint(float32_t x) { return f32_roundToInt(x, softfloat_round_near_even, true); }

template <auto Operation, auto Make>
void unary(const operand_arrays& x) {
  for (std::size_t i = 0; i < x.count; ++i) x.out[i] = Operation(Make(x.a[i])).v;
}
template <auto Operation, auto Make>
void binary(const operand_arrays& x) {
  for (std::size_t i = 0; i < x.count; ++i) x.out[i] = Operation(Make(x.a[i]), Make(x.b[i])).v;
}
template <auto Operation, auto Make>
void ternary(const operand_arrays& x) {
  for (std::size_t i = 0; i < x.count; ++i) {
    x.out[i] = Operation(Make(x.a[i]), Make(x.b[i]), Make(x.c[i])).v;
  }
}

}  // namespace

arithmetic_loop softfloat_loop(std::string_view op, int bits) {
  const bool h = bits == 16;
  if (op == "add") return h ? binary<f16_add, half> : binary<f32_add, single>;
  if (op == "mul") return h ? binary<f16_mul, half> : binary<f32_mul, single>;
  if (op == "div") return h ? binary<f16_div, half> : binary<f32_div, single>;
  if (op == "fma") return h ? ternary<f16_mulAdd, half> : ternary<f32_mulAdd, single>;
  if (op == "sqrt") return h ? unary<f16_sqrt, half> : unary<f32_sqrt, single>;
  if (op == "rem") return h ? binary<f16_rem, half> : binary<f32_rem, single>;
  if (op == "rint") return h ? unary<half_rint, half> : unary<single_rint, single>;
  return nullptr;
}
#else
arithmetic_loop softfloat_loop(std::string_view, int) { return nullptr; }
#endif

}  // namespace samebits::bench
