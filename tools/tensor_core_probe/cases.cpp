// Random operands of tensor core instructions, by family; see cases.hpp.
#include "tensor_core_probe/cases.hpp"

#include <algorithm>

#include "numerics/bits/layout.hpp"

namespace samebits::backends::tensor_cores {
namespace {

/// Random and given codes of one format.
class coder {
 public:
  coder(format_id f, word_stream& words) : f_(spec_of(f)), words_(words) {}

  [[nodiscard]] word_stream& words() const { return words_; }
  [[nodiscard]] int minimum() const { return numerics::min_exponent(f_); }
  [[nodiscard]] int maximum() const {
    return static_cast<int>(numerics::max_finite(f_) >> f_.mantissa_bits) - f_.bias;
  }
  [[nodiscard]] int mantissa_bits() const { return f_.mantissa_bits; }

  std::uint32_t bits() {
    return static_cast<std::uint32_t>(words_.next() >> (64 - f_.storage_bits));
  }
  std::uint32_t finite() {
    return put(words_.next() % static_cast<std::uint64_t>(numerics::max_finite(f_) + 1));
  }
  /// A normal number of an exponent, clamped to the format's; random mantissa and sign.
  std::uint32_t at(int exponent) { return put(field(exponent) | mantissa()); }
  /// A normal number of an exponent around 0.
  std::uint32_t near(int reach) { return at(words_.around(reach)); }
  /// A power of two; in one of four cases with its last bit set. Random sign.
  std::uint32_t plain(int exponent) {
    return put(field(exponent) | (words_.below(4) == 0 ? 1u : 0u));
  }
  [[nodiscard]] std::uint32_t power(int exponent, bool negative) const {
    return put(field(exponent), negative);
  }
  /// A power of two, subnormal ones included; zero below the smallest.
  std::uint32_t small(int exponent) {
    if (exponent >= minimum()) return put(field(exponent));
    const int bit = exponent - minimum() + f_.mantissa_bits;
    return put(bit < 0 ? 0u : 1u << bit);
  }
  [[nodiscard]] std::uint32_t ones(int exponent) const {
    const auto all = field(exponent) | numerics::mantissa_mask(f_);
    return put(std::min<std::uint64_t>(all, numerics::max_finite(f_)), false);
  }
  std::uint32_t subnormal() { return put(mantissa()); }
  std::uint32_t zero() { return put(0); }
  [[nodiscard]] std::uint32_t zero(bool negative) const { return put(0, negative); }
  std::uint32_t largest_finite() { return put(numerics::max_finite(f_)); }
  std::uint32_t infinity() { return put(numerics::infinite_code(f_)); }
  [[nodiscard]] std::uint32_t negated(std::uint32_t code) const {
    return code ^ static_cast<std::uint32_t>(numerics::sign_mask(f_) << f_.padding_bits);
  }

 private:
  [[nodiscard]] std::uint64_t field(int exponent) const {
    const int held = std::clamp(exponent, minimum(), maximum());
    return static_cast<std::uint64_t>(held + f_.bias) << f_.mantissa_bits;
  }
  std::uint64_t mantissa() { return words_.next() & numerics::mantissa_mask(f_); }
  std::uint32_t put(std::uint64_t magnitude) { return put(magnitude, words_.coin()); }
  [[nodiscard]] std::uint32_t put(std::uint64_t magnitude, bool negative) const {
    // e4m3's largest binade ends with a NaN
    magnitude = std::min<std::uint64_t>(magnitude, numerics::magnitude_mask(f_));
    const std::uint64_t sign = negative ? numerics::sign_mask(f_) : 0u;
    return static_cast<std::uint32_t>((magnitude | sign) << f_.padding_bits);
  }

  format_spec f_;
  word_stream& words_;
};

std::uint32_t sparse(coder& f) { return f.words().coin() ? f.zero() : f.near(2); }
std::uint32_t tiny(coder& f) {
  switch (f.words().below(4)) {
    case 0: return f.zero();
    case 1: return f.at(f.minimum() + f.words().below(4));
    case 2: return f.at(f.minimum() + f.words().below(30));
    default: return f.subnormal();
  }
}
std::uint32_t special(coder& f) {
  switch (f.words().below(12)) {
    case 0: return f.infinity();
    case 1: return f.zero();
    case 2: return f.bits();
    default: return f.near(3);
  }
}

/// Builds one case.
class drawing {
 public:
  drawing(const shape& s, word_stream& words)
      : shape_(s), words_(words), a_(s.a, words), b_(s.b, words), c_(s.result, words) {}

  [[nodiscard]] const case_codes& codes() const { return out_; }

  /// Operands by one function, and C by another.
  template <class Operand, class Sum>
  void fill(const Operand& operand, const Sum& sum) {
    each([&](int k) { set(k, operand(a_), operand(b_)); }, sum(c_));
  }
  template <class Code>
  void fill(const Code& code) {
    fill(code, code);
  }

  void huge() {
    each(
        [&](int k) {
          set(k, a_.at(a_.maximum() - words_.below(3)), b_.at(b_.maximum() / 8 * words_.below(9)));
        },
        c_.at(c_.maximum() - words_.below(3)));
  }
  /// Pairs of products that cancel, at random positions, over small products.
  void cancel() {
    const int low = -words_.below(24);
    each([&](int k) { set_random(k, low); }, words_.coin() ? c_.zero() : c_.at(low));
    for (int pairs = 1 + words_.below(3); pairs > 0; --pairs) {
      const int x = random_product();
      const int y = random_product();
      const auto a = a_.near(3);
      const auto b = b_.near(3);
      set(x, a, b);
      if (x != y) set(y, a_.negated(a), b);
    }
  }
  /// One term of a random exponent; the others are powers of two around the last bits that units
  /// keep.
  void edge() {
    const int top = words_.around(6);
    const int below = words_.coin() ? 13 : 24;
    const auto low = [&] { return top - below + words_.around(3); };
    each(
        [&](int k) {
          const int e = low();
          set(k, words_.below(3) == 0 ? a_.zero() : a_.plain(e / 2), b_.plain(e - e / 2));
        },
        words_.coin() ? c_.zero() : c_.plain(low()));
    if (words_.coin()) {
      out_.c = c_.plain(top);
    } else {
      set(random_product(), a_.plain(top / 2), b_.plain(top - top / 2));
    }
  }
  /// 1 + half of a last bit +- something below, for results of 10, 13 and 23 bits.
  void ties() {
    constexpr std::array last = {10, 13, 23};
    const int half = -last[static_cast<std::size_t>(words_.below(3))] - 1;
    clear();
    const auto product = [&](int e) { set_power(random_product(), e, words_.coin()); };
    product(half);
    if (words_.coin()) product(half - 1 - words_.below(3));
    if (words_.coin()) product(half + 1);
    if (words_.coin()) {
      out_.c = c_.power(0, words_.coin());
    } else {
      product(0);
    }
  }
  /// A few of the result's smallest steps, and bits around the last bit kept there.
  void floor() {
    const bool wide = shape_.result == format_id::fp32;
    const int last = wide ? -149 : -25;  // half of the last bit, for rounding to nearest
    const int lowest = wide ? -166 : -54;
    clear();
    set_small(random_product(), last + words_.below(3));
    for (int more = 1 + words_.below(3); more > 0; --more) {
      set_small(random_product(), lowest + words_.below(15));
    }
  }
  /// Zeros times max finite, and small products.
  void zero_by_huge() {
    each(
        [&](int k) {
          if (words_.coin()) return set(k, a_.zero(), b_.largest_finite());
          set_random(k, -words_.below(40));
        },
        words_.coin() ? c_.zero() : c_.at(-words_.below(40)));
  }
  /// A large term T and a small term at a distance of 0 to 40 exponents. In half of the cases also
  /// -T, so that only the small term remains. In half of the cases the small term has more than one
  /// bit.
  void alignment() {
    const int top = std::min({a_.maximum() + b_.maximum(), c_.maximum(), 12}) - words_.below(6);
    const int low = top - words_.below(41);
    const bool negative = words_.coin();
    clear();
    const int one = random_product();
    const int other = random_product_beside(one, one);
    const bool by_c = words_.coin();
    if (by_c) {
      out_.c = c_.power(top, negative);
    } else {
      set_power(one, top, negative);
    }
    if (words_.coin()) set_power(by_c ? one : other, top, !negative);  // -T
    const int small = random_product_beside(one, other);
    set_small(small, low);
    const bool normal = low / 2 >= a_.minimum() && low - low / 2 >= b_.minimum();
    if (normal && words_.coin()) set_random(small, low);
  }
  /// T at one position or in C, -T at another; zeros and numbers near one elsewhere.
  void grouping() {
    const int top = std::min({a_.maximum() + b_.maximum(), c_.maximum(), 15 + words_.below(11)});
    fill(sparse);
    const int one = random_product();
    const bool negative = words_.coin();
    if (words_.below(3) == 0) {
      out_.c = c_.power(top, negative);
    } else {
      set_power(one, top, negative);
    }
    set_power(random_product_beside(one, one), top, !negative);
  }
  /// Zeros of random signs or of one sign; in half of the cases also a product below the smallest
  /// result.
  void signed_zeros() {
    const int signs = words_.below(3);  // random, negative, positive
    const auto zero = [&](coder& f) { return signs == 0 ? f.zero() : f.zero(signs == 1); };
    each([&](int k) { set(k, zero(a_), b_.power(words_.around(3), signs == 0 && words_.coin())); },
         zero(c_));
    const int lowest = shape_.result == format_id::fp32 ? -150 : -26;
    if (words_.coin()) set_small(random_product(), lowest - words_.below(6));
  }
  /// A subnormal power of two times a normal number; in half of the cases also the opposite
  /// product; and small products at every distance below.
  void subnormal_by_great() {
    clear();
    const int one = random_product();
    const int other = random_product_beside(one, one);
    const bool first = words_.coin();  // the subnormal is in A
    coder& low = first ? a_ : b_;
    coder& high = first ? b_ : a_;
    const auto subnormal = low.small(low.minimum() - 1 - words_.below(low.mantissa_bits()));
    const int great = std::min(high.maximum(), -low.minimum() + 12 - words_.below(8));
    const auto normal = high.power(great, words_.coin());
    const auto put = [&](int k, std::uint32_t x) {
      set(k, first ? x : normal, first ? normal : x);
    };
    put(one, subnormal);
    if (words_.coin()) put(other, low.negated(subnormal));
    for (int more = 1 + words_.below(2); more > 0; --more) {
      set_small(random_product_beside(one, other), low.minimum() + great - words_.below(36));
    }
  }

 private:
  template <class Function>
  void each(const Function& product, std::uint32_t c) {
    for (int k = 0; k < shape_.products; ++k) product(k);
    out_.c = c;
  }
  void set(int k, std::uint32_t a, std::uint32_t b) {
    out_.a[static_cast<std::size_t>(k)] = a;
    out_.b[static_cast<std::size_t>(k)] = b;
  }
  /// Zeros times numbers near one.
  void clear() {
    each([&](int k) { set(k, a_.zero(), b_.at(0)); }, c_.zero());
  }
  // Products of one exponent: of any normal numbers, of powers of two, of small powers of two.
  void set_random(int k, int exponent) {
    set(k, a_.at(exponent / 2), b_.at(exponent - exponent / 2));
  }
  void set_power(int k, int exponent, bool negative) {
    set(k, a_.power(exponent / 2, negative), b_.power(exponent - exponent / 2, false));
  }
  void set_small(int k, int exponent) {
    set(k, a_.small(exponent / 2), b_.small(exponent - exponent / 2));
  }
  int random_product() { return words_.below(shape_.products); }
  int random_product_beside(int one, int other) {
    int third = random_product();
    while (third == one || third == other) third = (third + 1) % shape_.products;
    return third;
  }

  const shape& shape_;
  word_stream& words_;
  coder a_;
  coder b_;
  coder c_;
  case_codes out_{};
};

template <int Reach>
std::uint32_t near(coder& f) {
  return f.near(Reach);
}
std::uint32_t great(coder& f) { return f.at(10 + f.words().below(20)); }
std::uint32_t small(coder& f) { return f.at(-10 - f.words().below(20)); }
std::uint32_t ones(coder& f) { return f.ones(f.words().below(2)); }
std::uint32_t any_ones(coder& f) { return f.ones(f.words().around(3)); }

struct family_row {
  std::string_view name;
  void (*draw)(drawing& d);
};
constexpr family_row families[family_count] = {
    {"bits", [](drawing& d) { d.fill([](coder& f) { return f.bits(); }); }},
    {"finite", [](drawing& d) { d.fill([](coder& f) { return f.finite(); }); }},
    {"near_one", [](drawing& d) { d.fill(near<2>, near<4>); }},
    // Exponents far apart, as far as the formats allow.
    {"spread", [](drawing& d) { d.fill(near<15>, near<20>); }},
    {"sparse", [](drawing& d) { d.fill(sparse); }},
    {"cancel", [](drawing& d) { d.cancel(); }},
    {"edge", [](drawing& d) { d.edge(); }},
    {"ties", [](drawing& d) { d.ties(); }},
    {"floor", [](drawing& d) { d.floor(); }},
    {"tiny", [](drawing& d) { d.fill(tiny); }},
    {"huge", [](drawing& d) { d.huge(); }},
    // Significands of ones, equal signs.
    {"carry", [](drawing& d) { d.fill(ones, any_ones); }},
    {"great_sum", [](drawing& d) { d.fill(near<2>, great); }},
    {"small_sum", [](drawing& d) { d.fill(near<2>, small); }},
    {"zero_by_huge", [](drawing& d) { d.zero_by_huge(); }},
    {"special", [](drawing& d) { d.fill(special); }},
    {"alignment", [](drawing& d) { d.alignment(); }},
    {"grouping", [](drawing& d) { d.grouping(); }},
    {"signed_zeros", [](drawing& d) { d.signed_zeros(); }},
    {"subnormal_by_great", [](drawing& d) { d.subnormal_by_great(); }},
};

}  // namespace

std::string_view family_name(int family) { return families[family].name; }

std::uint64_t word_stream::next() {
  state_ += 0x9E3779B97F4A7C15u;
  std::uint64_t x = state_;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

case_codes draw_case(const shape& s, int family, word_stream& words) {
  drawing d(s, words);
  families[family].draw(d);
  return d.codes();
}

}  // namespace samebits::backends::tensor_cores
