// Reference conversion: applies the definition to one element after another.
#include <cstdint>
#include <type_traits>

#include "backends/dispatch/visit.hpp"
#include "backends/reference/cells.hpp"
#include "backends/reference/reference.hpp"
#include "backends/threads/segments.hpp"
#include "numerics/bits/convert.hpp"

namespace samebits::backends {
namespace {

template <class Word, int InBits, int OutBits, class Source, class Target, class Mode>
void convert_segment(const row_segment& r, const Source& source, const Target& target,
                     const Mode& mode, const cast_rule& given, random_sequence& random) {
  const cast_rule rule{mode.mode(), given.overflow, given.nan};
  for (std::int64_t i = 0; i < r.count; ++i) {
    const Word code = cell<InBits>::load(r.in + i * r.in_step);
    const Word dither = mode.mode() == rounding::stochastic
                            ? random.dither<Word>(r.index + static_cast<std::uint64_t>(i))
                            : Word{0};
    const auto result =
        numerics::convert<Word>(source.spec(), target.spec(), rule, code, dither).code;
    cell<OutBits>::store(r.out + i * r.out_step,
                         static_cast<typename cell<OutBits>::storage>(result));
  }
}

/// Calls f(std::integral_constant<int, bits>) for the storage width of a format.
template <format_id F, class Function>
void with_width(fixed_format<F>, const Function& f) {
  f(std::integral_constant<int, spec_of(F).storage_bits>{});
}

template <class Function>
void with_width(const any_format& format, const Function& f) {
  switch (format.spec().storage_bits) {
    case 8: return f(std::integral_constant<int, 8>{});
    case 16: return f(std::integral_constant<int, 16>{});
    case 32: return f(std::integral_constant<int, 32>{});
    default: return f(std::integral_constant<int, 64>{});
  }
}

template <class Source, class Target, class Mode>
void convert_range(const convert_call& call, element_range range, const Source& source,
                   const Target& target, const Mode& mode) {
  random_sequence random(call.random);
  for_each_segment(call, range, [&](const row_segment& r) {
    with_width(source, [&](auto in_bits) {
      with_width(target, [&](auto out_bits) {
        constexpr bool wide = in_bits() == 64 || out_bits() == 64;
        using word = std::conditional_t<wide, std::uint64_t, std::uint32_t>;
        convert_segment<word, in_bits(), out_bits()>(r, source, target, mode, call.rule, random);
      });
    });
  });
}

}  // namespace

void reference_convert(const convert_call& call, element_range range) {
  visit_conversion(call.in.format, call.out.format, call.rule.rounding,
                   [&](const auto& source, const auto& target, const auto& mode) {
                     convert_range(call, range, source, target, mode);
                   });
}

}  // namespace samebits::backends
