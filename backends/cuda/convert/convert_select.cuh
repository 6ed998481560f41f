// Selects the op (convert_ops.cuh) that computes a conversion by the definition.
#pragma once

#include <type_traits>

#include "backends/cuda/convert/convert_ops.cuh"
#include "backends/dispatch/visit.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::cuda {

/// Formats, rule and random bits of a conversion.
struct conversion {
  format_id from, to;
  cast_rule rule;
  random_stream random;
};

namespace detail {

/// Visitor that calls launch(op) with an emulated_op, if the formats and the rule have one.
template <class Launch>
struct fixed_op_choice {
  const conversion& what;
  const Launch& launch;
  bool& done;

  template <format_id From, format_id To, rounding Mode>
  void operator()(backends::fixed_format<From>, backends::fixed_format<To>,
                  backends::fixed_rounding<Mode>) const {
    using source = backends::fixed_format<From>;
    using target = backends::fixed_format<To>;
    if (what.rule.overflow == overflow::saturate_finite || what.rule.nan != nan_policy::canonical) {
      return;
    }
    const auto with_field = [&](auto field) {
      using op = emulated_op<source, target, backends::fixed_rounding<Mode>, field()>;
      done = launch(op{what.rule.overflow == overflow::saturate, source_of(what.random)});
    };
    if constexpr (Mode != rounding::stochastic) {
      with_field(std::integral_constant<int, 0>{});
    } else if constexpr (From != format_id::fp16) {
      switch (numerics::field_bits(what.random.bits)) {
        case 8: return with_field(std::integral_constant<int, 8>{});
        case 16: return with_field(std::integral_constant<int, 16>{});
        default: return with_field(std::integral_constant<int, 32>{});
      }
    }
  }
  template <class Source, class Target, class Mode>
  void operator()(const Source&, const Target&, const Mode&) const {}
};

/// Returns f(bits as a constant); false without a call for widths other than 8, 16 and 32 bits.
template <class Function>
bool with_width(int bits, const Function& f) {
  switch (bits) {
    case 8: return f(std::integral_constant<int, 8>{});
    case 16: return f(std::integral_constant<int, 16>{});
    case 32: return f(std::integral_constant<int, 32>{});
    default: return false;
  }
}

}  // namespace detail

/// Calls launch(op) with formats and rounding mode as constants, for conversions where constants
/// pay: to nearest even, widening, and stochastic rounding of fp32 and bf16. Returns what launch()
/// returns; false without a call for other conversions.
template <class Launch>
bool with_fixed_op(const conversion& c, const Launch& launch) {
  bool done = false;
  backends::visit_conversion(c.from, c.to, c.rule.rounding,
                             detail::fixed_op_choice<Launch>{c, launch, done});
  return done;
}

/// Calls launch(op) with the widths of both formats as constants. Returns what launch() returns;
/// false without a call for widths other than 8, 16 and 32 bits.
template <class Launch>
bool with_general_op(const conversion& c, const Launch& launch) {
  return detail::with_width(spec_of(c.from).storage_bits, [&](auto in) {
    return detail::with_width(spec_of(c.to).storage_bits, [&](auto out) {
      return launch(
          general_op<in(), out()>{spec_of(c.from), spec_of(c.to), c.rule, source_of(c.random)});
    });
  });
}

}  // namespace samebits::cuda
