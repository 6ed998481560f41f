// Writes cases and their expected results for the mutation killer: write_cases OUT. The oracle is
// asked here once, so that a mutant needs neither it nor its headers.
#include <cstdint>
#include <cstdio>
#include <random>

#include "mutation/record.hpp"
#include "oracle/convert.hpp"
#include "oracle/philox.hpp"
#include "support/arithmetic_case.hpp"
#include "support/rules.hpp"

namespace samebits::mutation {
namespace {

using namespace support;

class writer {
 public:
  explicit writer(std::FILE* out) : out_(out) {}

  void write_all() {
    for (int i = 0; i < 400000; ++i) computed(i);
    for (int i = 0; i < 300000; ++i) converted();
    for (int i = 0; i < 60000; ++i) {
      const format_id f = any_arithmetic();
      integers(f, any_code(f, f));
    }
    for (int i = 0; i < 60000; ++i) {
      const format_id f = any_arithmetic(), to = any_arithmetic();
      scaled(f, to, any_code(f, to));
    }
    for (int i = 0; i < 60000; ++i) ordered();
    for (int i = 0; i < 3000; ++i) random_words();
    for (const format_id f : all_formats()) {
      if (oracle_of(f).code_bits <= 8) {
        small_format(f);
      } else {
        wide_format(f);
      }
    }
  }

 private:
  std::uint64_t next() { return engine_(); }

  format_id any_arithmetic() { return arithmetic_formats[next() % arithmetic_formats.size()]; }

  std::uint64_t any_code(format_id f, format_id to) {
    return draw_code(static_cast<code_family>(next() % code_family_count), f, to, words_);
  }

  cast_rule any_rule(record& r, const random_bits& random) {
    const cast_rule rule{static_cast<rounding>(next() % enum_count<rounding>),
                         static_cast<overflow>(next() % enum_count<overflow>),
                         static_cast<nan_policy>(next() % enum_count<nan_policy>)};
    r.rounding = static_cast<std::uint8_t>(rule.rounding);
    r.overflow = static_cast<std::uint8_t>(rule.overflow);
    r.nan = static_cast<std::uint8_t>(rule.nan);
    r.k = static_cast<std::uint8_t>(random.count);
    r.r = random.value;
    return rule;
  }

  void put(const record& r) { std::fwrite(&r, sizeof r, 1, out_); }

  void put(record& r, const oracle::rounded_result& j) {
    r.expected = j.code;
    r.flags = static_cast<std::uint8_t>(j.flags);
    put(r);
  }

  static std::uint8_t id(format_id f) { return static_cast<std::uint8_t>(f); }

  void computed(int i) {
    arithmetic_case c;
    c.op = static_cast<operation>(i % enum_count<operation>);
    const format_id one = any_arithmetic();
    const bool mixed = next() % 3 == 0;
    const auto any = [&] { return mixed ? any_arithmetic() : one; };
    const operand_formats from{any(), any(), any()};
    c.to = any();
    c.x = draw_operands(c.op, from, c.to, words_);
    record r{};
    c.random = draw_random(words_);
    if (c.op != operation::rint) {  // whose exact result depends on the bits
      c.rule.rounding = rounding::stochastic;
      c.random = draw_random_at({oracle_of(c.to), exact_result_of(c)}, words_);
    }
    c.rule = any_rule(r, c.random);
    r.kind = call::compute;
    r.op = static_cast<std::uint8_t>(c.op);
    for (int k = 0; k < 3; ++k) r.format[k] = id(from[static_cast<std::size_t>(k)]);
    r.to = id(c.to);
    r.a = c.x.a.code;
    r.b = c.x.b.code;
    r.c = c.x.c.code;
    put(r, expected_result(c));
  }

  void converted() {
    record r{};
    r.kind = call::convert;
    const auto from = format_at(static_cast<int>(next() % format_count));
    const auto to = format_at(static_cast<int>(next() % format_count));
    r.format[0] = id(from);
    r.to = id(to);
    r.a = any_code(from, to);
    const random_bits random = draw_random_bits(from, to, r.a, words_);
    const cast_rule rule = any_rule(r, random);
    const oracle::rounded_code expected =
        oracle::round_with_flags(oracle_of(to), oracle::decode(oracle_of(from), r.a), rule, random);
    r.expected = expected.code;
    r.flags = static_cast<std::uint8_t>((expected.inexact ? 1 : 0) | (expected.overflow ? 2 : 0));
    put(r);
  }

  void integers(format_id f, std::uint64_t code) {
    const int bits = next() % 2 == 0 ? 32 : 64;
    const bool is_signed = next() % 2 == 0;
    const random_bits random = draw_random(words_);
    record r{};
    r.extra = static_cast<std::uint8_t>(bits | (is_signed ? 0x80 : 0));
    const cast_rule rule = any_rule(r, random);
    r.kind = call::to_integer;
    r.format[0] = id(f);
    r.a = code;
    if (next() % 2 == 0 && f == format_id::fp32) {
      r.a = (r.a & 0x80000000u) + ((next() % 70 + 124) << 23) + next() % 5 - 2;
    }
    const auto exact =
        oracle::to_integer({&oracle_of(f), r.a}, bits, is_signed, rule.rounding, random);
    const oracle::cpp_int modulus = oracle::cpp_int(1) << bits;
    r.expected = static_cast<std::uint64_t>((exact.value + modulus) % modulus);
    r.flags = static_cast<std::uint8_t>(exact.flags);
    put(r);

    r.kind = call::from_integer;
    r.to = id(f);
    r.a = next() >> (64 - bits) >> (next() % static_cast<unsigned>(bits));
    if (next() % 3 == 0) r.a = (std::uint64_t{1} << (next() % 64)) + next() % 5 - 2;
    if (bits == 32) r.a &= 0xFFFFFFFFu;
    oracle::cpp_int n = r.a;
    if (is_signed && r.a >> (bits - 1) != 0) n -= modulus;
    put(r, oracle::from_integer(n, oracle_of(f), rule, random));
  }

  void scaled(format_id f, format_id to, std::uint64_t code) {
    record r{};
    r.kind = call::scale_b;
    r.format[0] = id(f);
    r.to = id(to);
    r.a = code;
    const random_bits random = draw_random(words_);
    const cast_rule rule = any_rule(r, random);
    auto n = static_cast<std::int32_t>(next() % 80) - 40;
    if (next() % 4 == 0) n *= 8;
    if (next() % 16 == 0) n = static_cast<std::int32_t>(next());
    r.b = static_cast<std::uint32_t>(n);
    put(r, oracle::scale_b({&oracle_of(f), r.a}, n, oracle_of(to), rule, random));
    r.kind = call::log_b;
    const auto exact = oracle::log_b({&oracle_of(f), r.a});
    r.expected = static_cast<std::uint32_t>(static_cast<std::int32_t>(exact.value));
    r.flags = static_cast<std::uint8_t>(exact.flags);
    put(r);
  }

  void ordered() {
    record r{};
    r.kind = call::compare;
    const format_id f = any_arithmetic();
    const format_id g = next() % 2 == 0 ? f : any_arithmetic();
    r.format[0] = id(f);
    r.format[1] = id(g);
    r.a = any_code(f, g);
    r.b = any_code(g, f);
    if (f == g && next() % 4 == 0) r.b = r.a;
    const auto exact = oracle::compare_values({&oracle_of(f), r.a}, {&oracle_of(g), r.b});
    r.expected = static_cast<std::uint64_t>(exact.order);
    r.flags = static_cast<std::uint8_t>(exact.flags);
    put(r);
    if (f != g) return;
    r.kind = call::total_order;
    r.expected = oracle::total_order(oracle_of(f), r.a, r.b) ? 1 : 0;
    put(r);
  }

  /// A code of 8 or 16 bits as an integer and times a power of two.
  void measured(format_id format, std::uint64_t code) {
    if (!has_arithmetic(format)) return;
    integers(format, code);
    scaled(format, any_arithmetic(), code);
  }

  /// Every code of at most 8 bits, and every pair of them; some with bits above the code set, which
  /// are ignored.
  void small_format(format_id format) {
    const oracle::format& f = oracle_of(format);
    const std::uint64_t codes = std::uint64_t{1} << f.code_bits;
    for (std::uint64_t code = 0; code < codes; ++code) {
      const std::uint64_t ignored = codes < 256 ? next() % (256 / codes) * codes : 0;
      neighbours(format, code, ignored);
      negated(format, code, ignored);
      for (int i = 0; i < 64; ++i) measured(format, code);
      for (std::uint64_t other = 0; other < codes; ++other) compared(format, code, other);
    }
  }

  void compared(format_id format, std::uint64_t a, std::uint64_t b) {
    record r{};
    r.kind = call::compare;
    r.op = 1;
    r.format[0] = r.format[1] = id(format);
    r.a = a;
    r.b = b;
    const oracle::operand x{&oracle_of(format), a}, y{&oracle_of(format), b};
    r.expected = static_cast<std::uint64_t>(oracle::compare_values(x, y).order);
    put(r);
  }

  /// The sign bit flipped, where there is one (contract §2): fnuz has no -0 and one NaN.
  void negated(format_id format, std::uint64_t code, std::uint64_t ignored) {
    record r{};
    r.kind = call::negate;
    r.format[0] = id(format);
    r.a = code | ignored;
    r.expected = mirrored(oracle_of(format), code);
    put(r);
  }

  /// Codes of more bits: all of 16, random ones of more.
  void wide_format(format_id format) {
    const oracle::format& f = oracle_of(format);
    const std::uint64_t low = (std::uint64_t{1} << f.unused_low_bits) - 1;
    for (std::uint64_t i = 0; i < 65536; ++i) {
      const std::uint64_t any = f.code_bits == 16 ? i : any_code(format, format);
      const std::uint64_t code = any & ~low;
      neighbours(format, code, any & low);
      negated(format, code, any & low);
      if (f.code_bits == 16) {
        measured(format, code);
      } else {
        compared(format, code, any_code(format, format));
      }
    }
  }

  /// The code of the negative number; fnuz has no -0 and one NaN.
  static std::uint64_t mirrored(const oracle::format& f, std::uint64_t code) {
    const std::uint64_t sign = std::uint64_t{1} << (f.code_bits - 1);
    const bool one_zero = f.zero == oracle::zeros::positive_only && code % sign == 0;
    return f.sign_bits == 0 || one_zero ? code : code ^ sign;
  }

  /// What contract §5 says lies above: the next number; above the largest Inf, else NaN, else itself.
  /// Nothing lies above Inf, and a NaN gives the canonical one.
  static std::uint64_t up(const oracle::format& f, std::uint64_t code) {
    const std::uint64_t step = std::uint64_t{1} << f.unused_low_bits;
    const oracle::exact_value x = oracle::decode(f, code);
    if (x.kind == oracle::value_kind::nan) return *f.canonical_nan;
    if (f.infinity && code == *f.infinity) return code;
    if (x.kind == oracle::value_kind::finite && x.numerator == 0) return f.min_subnormal;
    if (x.negative) return mirrored(f, mirrored(f, code) - step);
    if (code == f.max_finite && !f.infinity) return f.canonical_nan.value_or(code);
    return code + step;
  }

  /// And below; e8m0's smallest number stays.
  static std::uint64_t down(const oracle::format& f, std::uint64_t code) {
    if (oracle::decode(f, code).kind == oracle::value_kind::nan) return *f.canonical_nan;
    if (f.sign_bits == 0) return code == 0 ? code : code - 1;
    const std::uint64_t above = up(f, mirrored(f, code));
    const bool nan = oracle::decode(f, above).kind == oracle::value_kind::nan;
    return nan ? above : mirrored(f, above);
  }

  void neighbours(format_id id_of_format, std::uint64_t code, std::uint64_t ignored) {
    const oracle::format& f = oracle_of(id_of_format);
    record r{};
    r.kind = call::neighbours;
    r.format[0] = id(id_of_format);
    r.a = code | ignored;
    r.expected = up(f, code);
    r.c = down(f, code);
    put(r);
  }

  void random_words() {
    record r{};
    r.kind = call::random_word;
    r.a = draw_number(words_);
    r.b = draw_number(words_);
    r.c = draw_number(words_);
    r.k = static_cast<std::uint8_t>(1 + next() % 32);
    r.expected = oracle::random_word(r.a, r.b, r.c, r.k);
    put(r);
  }

  std::FILE* out_;
  std::mt19937_64 engine_{2019};
  word_source words_ = [this] { return engine_(); };
};

}  // namespace
}  // namespace samebits::mutation

int main(int argc, char** argv) {
  std::FILE* out = argc == 2 ? std::fopen(argv[1], "wb") : nullptr;
  if (out == nullptr) {
    std::fprintf(stderr, "usage: write_cases OUT\n");
    return 2;
  }
  samebits::mutation::writer(out).write_all();
  return std::fclose(out) == 0 ? 0 : 1;
}
