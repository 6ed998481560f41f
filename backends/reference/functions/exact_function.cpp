// Reference functions of the rule `exact`: applies the definition to one element after another.
#include "backends/dispatch/calls/exact_function.hpp"

#include <cstdint>

#include "backends/reference/cells.hpp"
#include "backends/reference/reference.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/functions/exact_function.hpp"

namespace samebits::backends {
namespace {

namespace real = numerics::real;

std::uint64_t number_of(format_id format, std::uint32_t code) {
  return numerics::decode<std::uint64_t>(spec_of(format), code);
}

void reference_codes(const exact_call& call, exact_chunk& chunk, int count) {
  real::with_function(call.f, [&]<real::exact_function F>() {
    for (int i = 0; i < count; ++i) {
      std::uint64_t y = real::value_at<F>(number_of(call.in.format, chunk.x[i]));
      if (call.grad.data != nullptr) {
        const std::uint64_t d = numerics::binary64::widen(static_cast<std::uint32_t>(
            real::destination_code(spec_of(format_id::fp32), cast_rule{}, y, std::uint64_t{0})));
        y = real::gradient_product(number_of(call.grad.format, chunk.grad[i]), d);
      }
      chunk.codes[i] = static_cast<std::uint32_t>(
          real::destination_code(spec_of(call.out.format), call.rule, y, chunk.dither[i]));
    }
  });
}

}  // namespace

void reference_exact(const exact_call& call, element_range range) {
  random_sequence sequence(call.random);
  auto random = [&](std::uint64_t index) { return sequence.dither<std::uint64_t>(index); };
  exact_range(call, range, reference_codes, random);
}

}  // namespace samebits::backends
