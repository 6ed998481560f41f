// Visit: dispatches from run-time formats and modes to compile-time types, for conversions,
// quantizations and tensor lists.
#pragma once

#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::backends {

/// A format known at compile time.
template <format_id F>
struct fixed_format {
  static constexpr format_id id = F;
  SAMEBITS_HD static constexpr format_spec spec() { return spec_of(F); }
};

/// A format whose parameters are read at run time.
struct any_format {
  format_spec row;
  [[nodiscard]] SAMEBITS_HD const format_spec& spec() const { return row; }
};

/// A rounding mode known at compile time.
template <rounding R>
struct fixed_rounding {
  SAMEBITS_HD static constexpr rounding mode() { return R; }
};

/// A rounding mode that is read at run time.
struct any_rounding {
  rounding value;
  [[nodiscard]] SAMEBITS_HD rounding mode() const { return value; }
};

namespace detail {

/// Calls f with fixed_format<F> if `id` is among Fs, else with fallback().
template <format_id... Fs, class Function, class Fallback>
void visit_among(format_id id, const Function& f, const Fallback& fallback) {
  const bool found = ((id == Fs ? (f(fixed_format<Fs>{}), true) : false) || ...);
  if (!found) fallback();
}

}  // namespace detail

/// Calls f(source, target, rounding). The common conversions get compile-time types; all others get
/// run-time formats. The common conversions are:
/// - fp32, bf16, fp16 to fp16, bf16, e4m3, e5m2, with nearest_even or stochastic
/// - e4m3, e5m2, fp16, bf16 to fp32
template <class Function>
void visit_conversion(format_id from, format_id to, rounding mode, const Function& f) {
  using enum format_id;
  const auto general = [&] {
    f(any_format{spec_of(from)}, any_format{spec_of(to)}, any_rounding{mode});
  };
  if (to == fp32) {  // widening is exact in every mode
    detail::visit_among<e4m3, e5m2, fp16, bf16>(
        from,
        [&](auto source) {
          f(source, fixed_format<fp32>{}, fixed_rounding<rounding::toward_zero>{});
        },
        general);
    return;
  }
  const auto with_mode = [&](auto source, auto target) {
    if (mode == rounding::nearest_even) {
      f(source, target, fixed_rounding<rounding::nearest_even>{});
    } else if (mode == rounding::stochastic) {
      f(source, target, fixed_rounding<rounding::stochastic>{});
    } else {
      f(source, target, any_rounding{mode});
    }
  };
  detail::visit_among<fp32, bf16, fp16>(
      from,
      [&](auto source) {
        detail::visit_among<fp16, bf16, e4m3, e5m2>(
            to, [&](auto target) { with_mode(source, target); }, general);
      },
      general);
}

/// Calls f(format) with the compile-time type of a format allowed in tensor lists.
template <class Function>
void visit_list_format(format_id id, const Function& f) {
  using enum format_id;
  detail::visit_among<fp32, fp16, bf16, e4m3, e5m2>(id, f, [] {});
}

/// Returns f.operator()<F>(), F the format among Fs that `id` names. The last of Fs stands for every
/// other format. On the host.
template <format_id F, format_id... Others, class Function>
auto with_format(format_id id, const Function& f) {
  if constexpr (sizeof...(Others) != 0) {
    if (id != F) return with_format<Others...>(id, f);
  }
  return f.template operator()<F>();
}

/// with_format() for the formats of tensors that the GPU's and the processor's instructions compute
/// with: fp32, fp16, bf16, e4m3 and e5m2.
template <class Function>
auto with_list_format(format_id id, const Function& f) {
  using enum format_id;
  return with_format<fp32, fp16, bf16, e4m3, e5m2>(id, f);
}

/// with_format() for a tensor in fp32, bf16 or fp16, such as the input of a quantization.
template <class Function>
void visit_quantized(format_id from, const Function& f) {
  with_format<format_id::fp32, format_id::bf16, format_id::fp16>(from, f);
}

/// Calls f.operator()<From, To>() for every format pair of quantization; `Narrow`: with codes of 4 and
/// 6 bits.
template <bool Narrow, class Function>
void visit_quantization(format_id from, format_id to, const Function& f) {
  visit_quantized(from, [&]<format_id From>() {
    if (to == format_id::e4m3) f.template operator()<From, format_id::e4m3>();
    if (to == format_id::e5m2) f.template operator()<From, format_id::e5m2>();
    if constexpr (Narrow) {
      if (to == format_id::e2m1) f.template operator()<From, format_id::e2m1>();
      if (to == format_id::e2m3) f.template operator()<From, format_id::e2m3>();
      if (to == format_id::e3m2) f.template operator()<From, format_id::e3m2>();
    }
  });
}

/// Calls f(source, target, rounding) with compile-time types for every format pair of quantization.
template <bool Narrow, class Function>
void visit_quantization(format_id from, format_id to, rounding mode, const Function& f) {
  visit_quantization<Narrow>(from, to, [&]<format_id From, format_id To>() {
    if (mode == rounding::stochastic) {
      f(fixed_format<From>{}, fixed_format<To>{}, fixed_rounding<rounding::stochastic>{});
    } else {
      f(fixed_format<From>{}, fixed_format<To>{}, fixed_rounding<rounding::nearest_even>{});
    }
  });
}

}  // namespace samebits::backends
