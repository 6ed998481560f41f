// Optimizer steps from exact values.
#include "oracle/optimizer.hpp"

#include <algorithm>

#include "oracle/convert.hpp"
#include "oracle/elementary.hpp"
#include "oracle/exact.hpp"
#include "oracle/scale.hpp"
#include "oracle/sum_tree.hpp"

namespace samebits::oracle {
namespace {

const format& bf16() { return format_named("bf16"); }

constexpr std::uint64_t one64 = 0x3FF0000000000000u;

/// A binary32 number whose operators round once.
struct f32 {
  std::uint32_t code;
};
f32 number(std::uint64_t code) { return {static_cast<std::uint32_t>(code)}; }
f32 operator+(f32 a, f32 b) { return number(add(fp32(), a.code, b.code)); }
f32 operator-(f32 a, f32 b) { return number(subtract(fp32(), a.code, b.code)); }
f32 operator*(f32 a, f32 b) { return number(multiply(fp32(), a.code, b.code)); }
f32 operator/(f32 a, f32 b) { return number(divide(fp32(), a.code, b.code)); }
f32 operator-(f32 a) { return {a.code ^ 0x80000000u}; }
f32 fma(f32 a, f32 b, f32 c) { return number(fused(fp32(), a.code, b.code, c.code)); }
f32 sqrt(f32 a) { return number(root(fp32(), a.code)); }
std::uint64_t sqrt64(std::uint64_t a) { return root(fp64(), a); }

f32 rounded(std::uint64_t fp64_code) { return number(convert(fp64(), fp32(), fp64_code, {})); }
std::uint64_t widened(f32 a) { return convert(fp32(), fp64(), a.code, {}); }
std::uint64_t one_minus(std::uint64_t x) { return subtract(fp64(), one64, x); }
std::uint64_t times(std::uint64_t a, std::uint64_t b) { return multiply(fp64(), a, b); }

std::uint64_t power(std::uint64_t base, std::uint64_t t) {
  std::uint64_t r = one64;
  while (true) {
    if (t % 2 == 1) r = times(r, base);
    t /= 2;
    if (t == 0) return r;
    base = times(base, base);
  }
}

constexpr f32 one = {0x3F800000};

/// 1 - beta^t in binary64, of the binary32 beta except for torch_foreach.
std::uint64_t correction(const update_settings& s, std::uint64_t beta, std::uint64_t t) {
  if (s.profile != update_profile::torch_foreach) beta = widened(rounded(beta));
  return one_minus(power(beta, t));
}

/// Rounds to the narrow format and back.
struct narrowing {
  const format* to;
  f32 operator()(f32 x) const {
    if (to == nullptr) return x;
    return number(convert(*to, fp32(), convert(fp32(), *to, x.code, {}), {}));
  }
};

bool decays(const update_settings& s) { return s.weight_decay % (std::uint64_t{1} << 63) != 0; }

/// wd * p + x.
f32 with_l2(const update_settings& s, f32 x, f32 p) {
  const f32 w = rounded(s.weight_decay);
  if (!decays(s)) return x;
  return s.profile == update_profile::strict ? x + (w * p) : fma(w, p, x);
}

f32 decayed(const update_settings& s, f32 p) {
  if (!decays(s)) return p;
  const std::uint64_t product = times(s.lr, s.weight_decay);
  switch (s.profile) {
    case update_profile::strict:
    case update_profile::torch_foreach: return p * rounded(one_minus(product));
    case update_profile::torch_fused: return fma(-(rounded(s.lr) * rounded(s.weight_decay)), p, p);
    default: return fma(-rounded(product), p, p);
  }
}

/// b * old + (1 - b) * x of strict and fma.
f32 averaged(const update_settings& s, f32 b, f32 old, f32 x) {
  const f32 w = one - b;
  return s.profile == update_profile::strict ? (b * old) + (w * x) : fma(b, old, w * x);
}

/// Adam's d of strict, fma and torch_fused.
f32 denominator(const update_settings& s, const update_inputs& in, f32 v) {
  const f32 r = s.profile == update_profile::torch_fused
                    ? sqrt(number(in.fused_correction2))
                    : rounded(sqrt64(correction(s, s.beta2, in.step)));
  return (sqrt(v) / r) + rounded(s.eps);
}

updated foreach_adam(const update_settings& s, const update_inputs& in, const updated& x, f32 g,
                     const narrowing& n) {
  g = n(g);
  f32 p = number(x.weight);
  if (decays(s) && s.rule == update_rule::adamw) p = n(decayed(s, p));
  if (decays(s) && s.rule == update_rule::adam) g = n(fma(rounded(s.weight_decay), p, g));
  f32 m = number(x.first);
  m = n(fma(rounded(one_minus(s.beta1)), g - m, m));
  f32 v = n(number(x.second) * rounded(s.beta2));
  v = n(fma(rounded(one_minus(s.beta2)), g * g, v));
  f32 d = n(sqrt(v));
  d = n(d / rounded(sqrt64(correction(s, s.beta2, in.step))));
  d = n(d + rounded(s.eps));
  const f32 a = -rounded(divide(fp64(), s.lr, correction(s, s.beta1, in.step)));
  return {fma(a, m / d, p).code, m.code, v.code};
}

updated library_adam(const update_settings& s, const update_inputs& in, const updated& x, f32 g) {
  const bool adamw = s.rule == update_rule::adamw;
  const bool apex = s.profile == update_profile::apex_te;
  const f32 p = number(x.weight);
  const f32 b1 = rounded(s.beta1);
  const f32 b2 = rounded(s.beta2);
  if (!adamw) g = with_l2(s, g, p);
  const f32 w2g = (one - b2) * g;
  f32 m = fma(b1, number(x.first), (one - b1) * g);
  f32 v = fma(b2, number(x.second), g * w2g);
  if (apex && adamw) {
    m = fma(one - b1, g, b1 * number(x.first));
    v = fma(g, w2g, b2 * number(x.second));
  }
  const std::uint64_t c1 = correction(s, s.beta1, in.step);
  const std::uint64_t c2 = correction(s, s.beta2, in.step);
  const f32 e = rounded(s.eps);
  f32 u = apex ? (m / rounded(c1)) / (sqrt(v / rounded(c2)) + e) : m / (sqrt(v) + e);
  if (adamw) u = with_l2(s, u, p);
  const f32 a = apex ? rounded(s.lr) : rounded(divide(fp64(), times(s.lr, sqrt64(c2)), c1));
  return {fma(-a, u, p).code, m.code, v.code};
}

updated plain_adam(const update_settings& s, const update_inputs& in, const updated& x, f32 g) {
  f32 p = number(x.weight);
  if (s.rule == update_rule::adamw) p = decayed(s, p);
  if (s.rule == update_rule::adam) g = with_l2(s, g, p);
  const bool fused = s.profile == update_profile::torch_fused;
  const f32 b1 = rounded(s.beta1);
  const f32 b2 = rounded(s.beta2);
  const f32 q = g * g;
  const f32 m =
      fused ? fma(b1, number(x.first), fma(-b1, g, g)) : averaged(s, b1, number(x.first), g);
  const f32 v =
      fused ? fma(b2, number(x.second), fma(-b2, q, q)) : averaged(s, b2, number(x.second), q);
  if (s.rule == update_rule::lamb) return {x.weight, m.code, v.code};
  const f32 a = fused ? rounded(s.lr) / number(in.fused_correction1)
                      : rounded(divide(fp64(), s.lr, correction(s, s.beta1, in.step)));
  return {(p - ((a * m) / denominator(s, in, v))).code, m.code, v.code};
}

updated sgd(const update_settings& s, const update_inputs& in, const updated& x, f32 g,
            const narrowing& narrow) {
  const bool foreach = s.profile == update_profile::torch_foreach;
  const bool strict = s.profile == update_profile::strict;
  const narrowing n = {foreach ? narrow.to : nullptr};
  const f32 p = number(x.weight);
  g = n(g);
  if (decays(s)) g = n(with_l2(s, g, p));
  std::uint32_t stored = x.first;
  if (s.momentum != 0) {
    const f32 mu = rounded(s.momentum);
    const f32 h = rounded(one_minus(s.dampening));
    f32 m = n(mu * number(x.first));
    m = strict ? m + (h * g) : n(fma(h, g, m));
    if (in.step == 1) m = g;
    stored = m.code;
    if (s.nesterov) {
      g = strict ? g + (mu * m) : n(fma(mu, m, g));
    } else {
      g = m;
    }
  }
  const f32 a = rounded(s.lr);
  const f32 after = strict ? p - (a * g) : fma(-a, g, p);
  return {after.code, stored, x.second};
}

updated lion(const update_settings& s, const updated& x, f32 g) {
  const f32 b1 = rounded(s.beta1);
  const f32 m = number(x.first);
  const std::uint32_t c = averaged(s, b1, m, g).code;
  const std::uint32_t size = c & 0x7FFFFFFFu;
  const f32 sign = size == 0            ? f32{0}
                   : size > 0x7F800000u ? f32{c}
                                        : f32{one.code | (c & 0x80000000u)};
  const f32 p = decayed(s, number(x.weight)) - (rounded(s.lr) * sign);
  return {p.code, averaged(s, rounded(s.beta2), m, g).code, x.second};
}

/// A NaN becomes the canonical one.
std::uint32_t canonical(std::uint32_t code) {
  return static_cast<std::uint32_t>(convert(fp32(), fp32(), code, {}));
}

}  // namespace

updated update_element(const update_settings& s, const update_inputs& in, const updated& before,
                       std::uint32_t gradient, const format* narrow) {
  const f32 g = number(gradient) * number(in.grad_mul);
  updated after = before;
  switch (s.rule) {
    case update_rule::sgd: after = sgd(s, in, before, g, {narrow}); break;
    case update_rule::lion: after = lion(s, before, g); break;
    default:
      if (s.profile == update_profile::torch_foreach) {
        after = foreach_adam(s, in, before, g, {narrow});
      } else if (s.profile == update_profile::apex_te || s.profile == update_profile::lightseq) {
        after = library_adam(s, in, before, g);
      } else {
        after = plain_adam(s, in, before, g);
      }
  }
  return {canonical(after.weight), canonical(after.first), canonical(after.second)};
}

std::uint32_t lamb_direction(const update_settings& s, const update_inputs& in, const updated& x) {
  const f32 inverse = rounded(divide(fp64(), one64, correction(s, s.beta1, in.step)));
  const f32 u = (number(x.first) * inverse) / denominator(s, in, number(x.second));
  return with_l2(s, u, number(x.weight)).code;
}

std::vector<std::uint32_t> lamb_weights(const update_settings& s,
                                        const std::vector<std::uint32_t>& weights,
                                        const std::vector<std::uint32_t>& directions) {
  const auto norm = [](const std::vector<std::uint32_t>& x) {
    std::vector<std::uint64_t> squares;
    for (const std::uint32_t code : x) {
      const std::uint64_t wide = widened({code});
      squares.push_back(times(wide, wide));
    }
    return sqrt64(sum_tree(squares));
  };
  const std::uint64_t p = norm(weights);
  const std::uint64_t u = norm(directions);
  constexpr std::uint64_t inf = 0x7FF0000000000000u;
  const bool known = p != 0 && u != 0 && p < inf && u < inf;
  const f32 factor = rounded(times(s.lr, known ? divide(fp64(), p, u) : one64));
  std::vector<std::uint32_t> after;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    after.push_back(canonical((number(weights[i]) - (factor * number(directions[i]))).code));
  }
  return after;
}

halves split(std::uint32_t weight) {
  if ((weight & 0x7FFFFFFFu) > 0x7F800000u) return {0x7FFF, 0};
  const std::uint32_t low = weight % 0x10000u;
  const std::uint32_t high = weight / 0x10000u;
  return {low >= 0x8000u ? (high + 1) % 0x10000u : high, low};
}

std::uint32_t joined(const halves& x) {
  const std::uint32_t high = x.low >= 0x8000u ? x.high + 0xFFFFu : x.high;
  return (high % 0x10000u) * 0x10000u + x.low;
}

halves kahan(std::uint32_t weight) {
  const std::uint64_t high = convert(fp32(), bf16(), weight, {});
  const f32 value = number(convert(bf16(), fp32(), high, {}));
  const bool finite = (value.code & 0x7FFFFFFFu) < 0x7F800000u;
  const std::uint64_t low = convert(fp32(), bf16(), (number(weight) - value).code, {});
  return {static_cast<std::uint32_t>(high), finite ? static_cast<std::uint32_t>(low) : 0};
}

std::uint32_t compensated(const halves& x) {
  return (number(convert(bf16(), fp32(), x.high, {})) + number(convert(bf16(), fp32(), x.low, {})))
      .code;
}

scaled_block stored_block(const format& codes, const std::vector<std::uint32_t>& values) {
  std::uint32_t amax = 0;
  for (const std::uint32_t x : values) amax = std::max(amax, canonical(x) & 0x7FFFFFFFu);
  const bool is_fp16 = codes.storage_bits == 16;
  tile_scale scale;
  if (!is_fp16) {
    scale = scale_of_amax(scale_rule::te, codes, amax);
  } else if (amax != 0) {
    scale.s = (std::max<std::uint32_t>(amax / 0x800000u, 15) - 14) * 0x800000u;
    scale.factor = (one / f32{scale.s}).code;
  }
  scaled_block block{scale.s, {}};
  cast_rule rule;
  if (!is_fp16) rule.overflow = overflow::saturate;
  for (const std::uint32_t x : values) {
    block.codes.push_back(static_cast<std::uint32_t>(
        convert(fp32(), codes, (f32{x} * f32{scale.factor}).code, rule)));
  }
  return block;
}

namespace {

f32 nearest(const cpp_rational& x) { return number(round_exact(fp32(), exact_from(x), {})); }

/// Border j of n parts of [0.1, 1].
f32 part_border(int j, int n) {
  const f32 tenth = nearest(cpp_rational(1, 10));
  const f32 step = (one - tenth) / nearest(n);
  return j < (n + 1) / 2 ? fma(step, nearest(j), tenth) : fma(-step, nearest(n - j), one);
}

/// Dynamic 8-bit codes: the numbers, and the middles between them.
struct dynamic_table {
  std::vector<f32> numbers = {{0}};
  std::vector<cpp_rational> middles;

  explicit dynamic_table(bool is_signed) {
    add_positive(is_signed ? 1 : 2);
    if (is_signed) {
      for (std::size_t k = 1; k < 128; ++k) numbers.insert(numbers.begin(), -numbers[2 * k - 1]);
    }
    for (std::size_t i = 0; i < 255; ++i) {
      const f32 middle = (numbers[i] + numbers[i + 1]) / (one + one);
      middles.push_back(rational_of(decode(fp32(), middle.code)));
    }
  }

 private:
  /// The positive numbers; the lowest decade has `parts`.
  void add_positive(int parts) {
    for (int tens = 1'000'000; tens != 0; tens /= 10, parts *= 2) {
      for (int j = 0; j < parts; ++j) {
        const f32 mean = (part_border(j, parts) + part_border(j + 1, parts)) / (one + one);
        numbers.push_back(nearest(cpp_rational(1, tens)) * mean);
      }
    }
    numbers.push_back(one);
  }
};

const dynamic_table& table_of(bool is_signed) {
  static const dynamic_table tables[2] = {dynamic_table(false), dynamic_table(true)};
  return tables[is_signed ? 1 : 0];
}

/// The nearest code by the rounded middles, ties to the even code; a negative number keeps its sign.
std::uint32_t dynamic_code(bool is_signed, f32 y) {
  const exact_value exact = decode(fp32(), y.code);
  if (exact.kind == value_kind::nan) return 255;
  if (exact.kind == value_kind::infinite) return exact.negative ? 0 : 255;
  const cpp_rational value = rational_of(exact);
  const std::vector<cpp_rational>& middles = table_of(is_signed).middles;
  const auto at = std::lower_bound(middles.begin(), middles.end(), value);
  auto code = static_cast<std::uint32_t>(at - middles.begin());
  if (at != middles.end() && *at == value && code % 2 == 1) ++code;
  return is_signed && value < 0 ? std::min<std::uint32_t>(code, 126) : code;
}

}  // namespace

std::uint32_t dynamic_value(bool is_signed, std::uint32_t code) {
  return table_of(is_signed).numbers[code].code;
}

scaled_block dynamic_block(bool is_signed, const std::vector<std::uint32_t>& values) {
  scaled_block block;
  block.scale = 0x00800000u;
  for (const std::uint32_t x : values) {
    block.scale = std::max(block.scale, canonical(x) & 0x7FFFFFFFu);
  }
  const f32 factor = one / f32{block.scale};
  for (const std::uint32_t x : values) {
    block.codes.push_back(dynamic_code(is_signed, f32{x} * factor));
  }
  return block;
}

}  // namespace samebits::oracle
