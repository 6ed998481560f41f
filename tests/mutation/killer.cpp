// Repeats the cases of a file, with their expected results, on numerics/ as it was compiled with:
// killer CASES. The exit status is 1 at the first result that differs, 0 if none does.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "mutation/record.hpp"
#include "numerics/arithmetic/arithmetic.hpp"
#include "numerics/bits/classify.hpp"
#include "numerics/bits/convert.hpp"
#include "numerics/bits/random.hpp"
#include "numerics/bits/word.hpp"

namespace samebits::mutation {
namespace {

using namespace numerics;

// Rules of word.hpp that no recorded case reaches: the leading zeros of 0, and the discarded
// fraction for large shifts.
static_assert(leading_zeros(std::uint32_t{0}) == 32 && leading_zeros(std::uint64_t{0}) == 64);
static_assert(discarded(0x3FFFFFFFu, 62u) == 0 && discarded(0x3FFFFFFFu, 61u) == 1);
static_assert(discarded(0x3FFFFFFFu, 63u) == 0 && discarded(0x3FFFFFFFu, 1000u) == 0);

format_spec spec(std::uint8_t id) { return spec_of(format_at(id)); }

/// Those of the contract, and no other.
bool arithmetic_is_where_it_should_be() {
  for (int i = 0; i < format_count; ++i) {
    const format_id f = format_at(i);
    const bool expected = f == format_id::fp32 || f == format_id::fp16 || f == format_id::bf16 ||
                          f == format_id::e4m3 || f == format_id::e5m2;
    if (has_arithmetic(spec_of(f)) != expected) return false;
  }
  return true;
}

bool agrees(const record& r, std::uint64_t code, flags raised) {
  return code == r.expected && static_cast<std::uint8_t>(raised) == r.flags;
}

bool agrees(const record& r, const outcome& got) { return agrees(r, got.code, got.raised); }

bool compare_agrees(const record& r) {
  if (r.op == 1) {  // formats without arithmetic
    const comparison only = compare(spec(r.format[0]), r.a, r.b);
    return only.less == (r.expected == 0) && only.equal == (r.expected == 1);
  }
  const ordered got = compare_numbers(spec(r.format[0]), r.a, spec(r.format[1]), r.b);
  if (!agrees(r, r.expected, got.raised)) return false;
  if (got.less != (r.expected == 0) || got.equal != (r.expected == 1) ||
      got.greater != (r.expected == 2)) {
    return false;
  }
  if (r.format[0] != r.format[1]) return true;
  const comparison same = compare(spec(r.format[0]), r.a, r.b);
  return same.less == got.less && same.equal == got.equal;
}

/// The value of a code of `a` times 2^n by encode_scaled(), which takes it as an integer and a
/// power of two, and which text and scale rules round with.
bool encode_scaled_agrees(const record& r, const format_spec& a, std::int64_t n,
                          const format_spec& to, const cast_rule& rule, std::uint64_t dither,
                          bool inexact, bool overflow) {
  if (!has_arithmetic(a)) return true;
  const number x = unpack(a, r.a);
  if (x.kind != number_kind::finite && x.kind != number_kind::zero) return true;
  const std::uint64_t sig = x.kind == number_kind::zero ? 0 : x.sig;
  const std::int64_t exponent = n + x.exponent - (number_bits - 1);
  const auto got = encode_scaled(to, rule, x.negative, sig, exponent, dither);
  return got.code == r.expected && got.inexact == inexact && got.overflow == overflow;
}

/// The same conversion with all flags: those of a multiplication by 2^0, which records of scale_b
/// check. The code of a NaN is the conversion's own.
bool convert_number_agrees(const record& r, const format_spec& a, const format_spec& to,
                           const cast_rule& rule, std::uint64_t dither) {
  if (!has_arithmetic(a) || !has_arithmetic(to)) return true;
  const outcome got = convert_number(a, r.a, to, rule, dither);
  const outcome scaled = scale_exponent(a, r.a, 0, to, rule, dither);
  return got.code == r.expected && got.raised == scaled.raised;
}

bool convert_agrees(const record& r, const format_spec& a, const format_spec& to,
                    const cast_rule& rule, const random_bits& random, std::uint64_t dither) {
  const bool inexact = (r.flags & 1) != 0, overflow = (r.flags & 2) != 0;
  const auto got = convert_any(a, to, rule, r.a, random);
  return got.code == r.expected && got.inexact == inexact && got.overflow == overflow &&
         encode_scaled_agrees(r, a, 0, to, rule, dither, inexact, overflow) &&
         convert_number_agrees(r, a, to, rule, dither);
}

bool scale_b_agrees(const record& r, const format_spec& a, const format_spec& to,
                    const cast_rule& rule, std::uint64_t dither) {
  const auto n = static_cast<std::int32_t>(r.b);
  return agrees(r, scale_exponent(a, r.a, n, to, rule, dither)) &&
         encode_scaled_agrees(r, a, n, to, rule, dither, (r.flags & 16) != 0, (r.flags & 4) != 0);
}

bool holds(const record& r) {
  const cast_rule rule{static_cast<rounding>(r.rounding), static_cast<overflow>(r.overflow),
                       static_cast<nan_policy>(r.nan)};
  const format_spec a = spec(r.format[0]);
  const format_spec to = spec(r.to);
  const random_bits random{r.r, r.k == 0 ? 32 : r.k};
  const auto dither = align_random<std::uint64_t>(random.value, random.count);
  const integer_spec integer{r.extra & 0x7F, (r.extra & 0x80) != 0};
  switch (r.kind) {
    case call::compute:
      return agrees(r, compute(static_cast<operation>(r.op), {a, r.a}, {spec(r.format[1]), r.b},
                               {spec(r.format[2]), r.c}, to, rule, dither));
    case call::convert: return convert_agrees(r, a, to, rule, random, dither);
    case call::to_integer: {
      const auto got = to_integer(a, r.a, integer, rule.rounding, dither);
      return agrees(r, got.bits, got.raised);
    }
    case call::from_integer: return agrees(r, from_integer(integer, r.a, to, rule, dither));
    case call::scale_b: return scale_b_agrees(r, a, to, rule, dither);
    case call::log_b: {
      const auto got = exponent_of(a, r.a);
      return agrees(r, got.bits, got.raised);
    }
    case call::compare: return compare_agrees(r);
    case call::total_order: return total_order(a, r.a, r.b) == (r.expected != 0);
    case call::negate: return negate(a, r.a) == r.expected;
    case call::neighbours: return next_up(a, r.a) == r.expected && next_down(a, r.a) == r.c;
    case call::random_word: return random_word(r.a, r.b, r.c, r.k) == r.expected;
  }
  return false;
}

}  // namespace
}  // namespace samebits::mutation

int main(int argc, char** argv) {
  using samebits::mutation::record;
  std::FILE* file = argc == 2 ? std::fopen(argv[1], "rb") : nullptr;
  if (file == nullptr) {
    std::fprintf(stderr, "usage: killer CASES\n");
    return 2;
  }
  if (!samebits::mutation::arithmetic_is_where_it_should_be()) {
    std::printf("has_arithmetic is wrong\n");
    return 1;
  }
  std::vector<record> block(4096);
  std::size_t number = 0;
  while (const std::size_t count = std::fread(block.data(), sizeof(record), block.size(), file)) {
    for (std::size_t i = 0; i < count; ++i, ++number) {
      if (samebits::mutation::holds(block[i])) continue;
      std::printf("case %zu, call %d, operation %d\n", number, static_cast<int>(block[i].kind),
                  static_cast<int>(block[i].op));
      return 1;
    }
  }
  std::printf("%zu cases hold\n", number);
  return number > 0 ? 0 : 2;
}
