// Reference arithmetic on arrays: applies the definition to one element after another.
#include "backends/dispatch/calls/array_arithmetic.hpp"

#include <cstdint>

#include "backends/reference/cells.hpp"
#include "backends/reference/reference.hpp"
#include "numerics/arithmetic/arithmetic.hpp"

namespace samebits::backends {
namespace {

/// Loads a code of a format that supports arithmetic: 8, 16 or 32 bits.
std::uint64_t load_code(int bits, const std::byte* p) {
  if (bits == 8) return cell<8>::load(p);
  return bits == 16 ? cell<16>::load(p) : cell<32>::load(p);
}
void store_code(int bits, std::byte* p, std::uint64_t code) {
  if (bits == 8) return cell<8>::store(p, static_cast<std::uint8_t>(code));
  if (bits == 16) return cell<16>::store(p, static_cast<std::uint16_t>(code));
  cell<32>::store(p, static_cast<std::uint32_t>(code));
}

template <operation Op>
flags compute_range(const compute_call& call, element_range range) {
  const format_spec to = spec_of(call.out.format);
  format_spec from[max_operands];
  for (int i = 0; i < max_operands; ++i) from[i] = spec_of(call.operands[i].format);
  const bool draws = call.rule.rounding == rounding::stochastic;
  random_sequence random(call.random);
  flags raised = flags::none;
  for_each_arithmetic_segment(call, range, [&](const arithmetic_segment& r) {
    for (std::int64_t i = 0; i < r.count; ++i) {
      numerics::input x[max_operands] = {};
      for (int k = 0; k < operand_count(Op); ++k) {
        x[k] = {from[k], load_code(from[k].storage_bits, r.in[k] + i * r.in_step[k])};
      }
      const std::uint64_t dither =
          draws ? random.dither<std::uint64_t>(r.index + static_cast<std::uint64_t>(i)) : 0;
      const numerics::outcome result =
          numerics::compute<Op>(x[0], x[1], x[2], to, call.rule, dither);
      store_code(to.storage_bits, r.out + i * r.out_step, result.code);
      if (r.each != nullptr) r.each[i * r.each_step] = result.raised;
      raised |= result.raised;
    }
  });
  return call.report == flag_report::wanted ? raised : flags::none;
}

}  // namespace

flags reference_compute(const compute_call& call, element_range range) {
  return with_enumerator(call.op, [&]<operation Op>() { return compute_range<Op>(call, range); });
}

}  // namespace samebits::backends
