// Random operands of tensor core instructions, by family; see cases.hpp.
#include "tensor_core_probe/cases.hpp"

#include <algorithm>

#include "numerics/bits/layout.hpp"

namespace samebits::backends::tensor_cores {
namespace {

std::uint32_t word(word_stream& words) { return static_cast<std::uint32_t>(words.next()); }

/// Random and given codes of one format.
class coder {
 public:
  coder(format_id f, word_stream& words) : f_(spec_of(f)), words_(words) {}

  [[nodiscard]] int minimum() const { return numerics::min_exponent(f_); }
  [[nodiscard]] int maximum() const {
    return static_cast<int>(numerics::max_finite(f_) >> f_.mantissa_bits) - f_.bias;
  }

  [[nodiscard]] int mantissa_bits() const { return f_.mantissa_bits; }

  std::uint32_t bits() {
    const auto all = word(words_);
    return f_.storage_bits == 32 ? all : all & ((1u << f_.storage_bits) - 1);
  }
  std::uint32_t finite() {
    const auto magnitude = static_cast<std::uint32_t>(
        words_.next() % static_cast<std::uint64_t>(numerics::max_finite(f_) + 1));
    return put(magnitude);
  }
  /// A normal number of an exponent, clamped to the format's; random mantissa and sign.
  std::uint32_t at(int exponent) { return put(field(exponent) | mantissa()); }
  /// A power of two; in one of four cases with its last bit set. Random sign.
  std::uint32_t plain(int exponent) {
    return put(field(exponent) | (words_.below(4) == 0 ? 1 : 0));
  }
  std::uint32_t power(int exponent, bool negative) { return put(field(exponent), negative); }
  /// A power of two, subnormal ones included; zero below the smallest.
  std::uint32_t small(int exponent) {
    if (exponent >= minimum()) return put(field(exponent));
    const int bit = exponent - minimum() + f_.mantissa_bits;
    return put(bit < 0 ? 0u : 1u << bit);
  }
  std::uint32_t ones(int exponent) {
    return std::min(put(field(exponent) | max_mantissa(), false),
                    put(static_cast<std::uint32_t>(numerics::max_finite(f_)), false));
  }
  std::uint32_t subnormal() { return put(mantissa()); }
  std::uint32_t zero() { return put(0); }
  [[nodiscard]] std::uint32_t zero(bool negative) const { return put(0, negative); }
  std::uint32_t largest_finite() {
    return put(static_cast<std::uint32_t>(numerics::max_finite(f_)));
  }
  std::uint32_t infinity() { return put(static_cast<std::uint32_t>(numerics::infinite_code(f_))); }
  [[nodiscard]] std::uint32_t negated(std::uint32_t code) const {
    return code ^ static_cast<std::uint32_t>(numerics::sign_mask(f_) << f_.padding_bits);
  }

 private:
  [[nodiscard]] std::uint32_t field(int exponent) const {
    const int held = std::clamp(exponent, minimum(), maximum());
    return static_cast<std::uint32_t>(held + f_.bias) << f_.mantissa_bits;
  }
  [[nodiscard]] std::uint32_t max_mantissa() const {
    return static_cast<std::uint32_t>(numerics::mantissa_mask(f_));
  }
  std::uint32_t mantissa() { return word(words_) & max_mantissa(); }
  std::uint32_t put(std::uint32_t magnitude) { return put(magnitude, words_.below(2) == 1); }
  [[nodiscard]] std::uint32_t put(std::uint32_t magnitude, bool negative) const {
    // e4m3's largest binade ends with a NaN
    magnitude = std::min(magnitude, static_cast<std::uint32_t>(numerics::magnitude_mask(f_)));
    const auto sign = negative ? static_cast<std::uint32_t>(numerics::sign_mask(f_)) : 0u;
    return (magnitude | sign) << f_.padding_bits;
  }

  format_spec f_;
  word_stream& words_;
};

/// Builds one case.
class drawing {
 public:
  drawing(const shape& i, word_stream& words)
      : i_(i), words_(words), a_(i.a, words), b_(i.b, words), c_(i.result, words) {}

  case_codes of(family how) {
    switch (how) {
      case family::bits: fill([&](int k) { set(k, a_.bits(), b_.bits()); }, c_.bits()); break;
      case family::finite:
        fill([&](int k) { set(k, a_.finite(), b_.finite()); }, c_.finite());
        break;
      case family::near_one:
        fill([&](int k) { set(k, a_.at(around(2)), b_.at(around(2))); }, c_.at(around(4)));
        break;
      case family::spread:
        fill([&](int k) { set(k, a_.at(around(15)), b_.at(around(15))); }, c_.at(around(20)));
        break;
      case family::sparse: fill([&](int k) { set(k, sparse(a_), sparse(b_)); }, sparse(c_)); break;
      case family::cancel: cancel(); break;
      case family::edge: edge(); break;
      case family::ties: ties(); break;
      case family::floor: floor(); break;
      case family::tiny: fill([&](int k) { set(k, tiny(a_), tiny(b_)); }, tiny(c_)); break;
      case family::huge:
        fill(
            [&](int k) {
              set(k, a_.at(a_.maximum() - words_.below(3)),
                  b_.at(b_.maximum() / 8 * words_.below(9)));
            },
            c_.at(c_.maximum() - words_.below(3)));
        break;
      case family::carry:
        fill([&](int k) { set(k, a_.ones(words_.below(2)), b_.ones(words_.below(2))); },
             c_.ones(around(3)));
        break;
      case family::great_sum:
        fill([&](int k) { set(k, a_.at(around(2)), b_.at(around(2))); },
             c_.at(10 + words_.below(20)));
        break;
      case family::small_sum:
        fill([&](int k) { set(k, a_.at(around(2)), b_.at(around(2))); },
             c_.at(-10 - words_.below(20)));
        break;
      case family::zero_by_huge: zero_by_huge(); break;
      case family::special:
        fill([&](int k) { set(k, special(a_), special(b_)); }, special(c_));
        break;
      case family::alignment: alignment(); break;
      case family::grouping: grouping(); break;
      case family::signed_zeros: signed_zeros(); break;
      case family::subnormal_by_great: subnormal_by_great(); break;
    }
    return out_;
  }

 private:
  int around(int reach) { return words_.below(2 * reach + 1) - reach; }
  void set(int k, std::uint32_t a, std::uint32_t b) {
    out_.a[static_cast<std::size_t>(k)] = a;
    out_.b[static_cast<std::size_t>(k)] = b;
  }
  template <class Function>
  void fill(const Function& product, std::uint32_t c) {
    for (int k = 0; k < i_.products; ++k) product(k);
    out_.c = c;
  }
  int random_product() { return words_.below(i_.products); }
  int random_product_beside(int one) {
    return (one + 1 + words_.below(i_.products - 1)) % i_.products;
  }
  int random_product_beside(int one, int other) {
    int third = random_product();
    while (third == one || third == other) third = (third + 1) % i_.products;
    return third;
  }
  /// Products of one exponent.
  void set_power(int k, int exponent, bool negative) {
    set(k, a_.power(exponent / 2, negative), b_.power(exponent - exponent / 2, false));
  }
  void set_small_somewhere(int exponent) {
    set(random_product(), a_.small(exponent / 2), b_.small(exponent - exponent / 2));
  }

  std::uint32_t sparse(coder& f) { return words_.below(2) == 0 ? f.zero() : f.at(around(2)); }
  std::uint32_t tiny(coder& f) {
    switch (words_.below(4)) {
      case 0: return f.zero();
      case 1: return f.at(f.minimum() + words_.below(4));
      case 2: return f.at(f.minimum() + words_.below(30));
      default: return f.subnormal();
    }
  }
  std::uint32_t special(coder& f) {
    switch (words_.below(12)) {
      case 0: return f.infinity();
      case 1: return f.zero();
      case 2: return f.bits();
      default: return f.at(around(3));
    }
  }

  /// Pairs of products that cancel, at random positions, over small products.
  void cancel() {
    const int low = -words_.below(24);
    fill([&](int k) { set(k, a_.at(low / 2), b_.at(low - low / 2)); },
         words_.below(2) == 0 ? c_.zero() : c_.at(low));
    for (int pairs = 1 + words_.below(3); pairs > 0; --pairs) {
      const int x = random_product();
      const int y = random_product();
      const auto a = a_.at(around(3));
      const auto b = b_.at(around(3));
      set(x, a, b);
      if (x != y) set(y, a_.negated(a), b);
    }
  }
  /// One term of a random exponent; the others are powers of two around the last bits that units
  /// keep.
  void edge() {
    const int top = around(6);
    const int below = words_.below(2) == 0 ? 13 : 24;
    const auto low = [&] { return top - below + around(3); };
    fill(
        [&](int k) {
          const int e = low();
          set(k, words_.below(3) == 0 ? a_.zero() : a_.plain(e / 2), b_.plain(e - e / 2));
        },
        words_.below(2) == 0 ? c_.zero() : c_.plain(low()));
    if (words_.below(2) == 0) {
      out_.c = c_.plain(top);
    } else {
      set(random_product(), a_.plain(top / 2), b_.plain(top - top / 2));
    }
  }
  /// 1 + half of a last bit +- something below, for results of 10, 13 and 23 bits.
  void ties() {
    constexpr std::array last = {10, 13, 23};
    const int half = -last[static_cast<std::size_t>(words_.below(3))] - 1;
    fill([&](int k) { set(k, a_.zero(), b_.at(0)); }, c_.zero());
    const auto product = [&](int e) {
      const bool negative = words_.below(2) == 1;
      set_power(random_product(), e, negative);
    };
    product(half);
    if (words_.below(2) == 0) product(half - 1 - words_.below(3));
    if (words_.below(2) == 0) product(half + 1);
    if (words_.below(2) == 0) {
      out_.c = c_.power(0, words_.below(2) == 1);
    } else {
      product(0);
    }
  }
  /// A few of the result's smallest steps, and bits around the last bit kept there.
  void floor() {
    const bool wide = i_.result == format_id::fp32;
    const int last = wide ? -149 : -25;  // half of the last bit, for rounding to nearest
    const int lowest = wide ? -166 : -54;
    fill([&](int k) { set(k, a_.zero(), b_.zero()); }, c_.zero());
    set_small_somewhere(last + words_.below(3));
    for (int more = 1 + words_.below(3); more > 0; --more) {
      set_small_somewhere(lowest + words_.below(15));
    }
  }
  void zero_by_huge() {
    fill(
        [&](int k) {
          if (words_.below(2) == 0) return set(k, a_.zero(), b_.largest_finite());
          const int e = -words_.below(40);
          set(k, a_.at(e / 2), b_.at(e - e / 2));
        },
        words_.below(2) == 0 ? c_.zero() : c_.at(-words_.below(40)));
  }

  /// A large term T and a small term at a distance of 0 to 40 exponents. In half of the cases also
  /// -T, so that only the small term remains. In half of the cases the small term has more than one
  /// bit.
  void alignment() {
    const int top = std::min({a_.maximum() + b_.maximum(), c_.maximum(), 12}) - words_.below(6);
    const int distance = words_.below(41);
    const bool negative = words_.below(2) == 1;
    fill([&](int k) { set(k, a_.zero(), b_.at(0)); }, c_.zero());
    const int one = random_product();
    const int other = random_product_beside(one);
    const bool by_c = words_.below(2) == 0;
    if (by_c) {
      out_.c = c_.power(top, negative);
    } else {
      set_power(one, top, negative);
    }
    if (words_.below(2) == 0) {  // -T
      set_power(by_c ? one : other, top, !negative);
    }
    const int small = random_product_beside(one, other);
    const int low = top - distance;
    const auto a = a_.small(low / 2);
    const auto b = b_.small(low - low / 2);
    const bool more =
        words_.below(2) == 0 && low / 2 >= a_.minimum() && low - low / 2 >= b_.minimum();
    set(small, more ? a_.at(low / 2) : a, more ? b_.at(low - low / 2) : b);
  }
  /// T at one position or in C, -T at another; zeros and numbers near one elsewhere.
  void grouping() {
    const int top = std::min({a_.maximum() + b_.maximum(), c_.maximum(), 15 + words_.below(11)});
    fill([&](int k) { set(k, sparse(a_), sparse(b_)); }, sparse(c_));
    const int one = random_product();
    const int other = random_product_beside(one);
    const bool negative = words_.below(2) == 1;
    if (words_.below(3) == 0) {
      out_.c = c_.power(top, negative);
    } else {
      set_power(one, top, negative);
    }
    set_power(other, top, !negative);
  }
  /// A subnormal power of two times a normal number; in half of the cases also the opposite
  /// product; and small products at every distance below.
  void subnormal_by_great() {
    fill([&](int k) { set(k, a_.zero(), b_.zero()); }, c_.zero());
    const int one = random_product();
    const int other = random_product_beside(one);
    const bool first = words_.below(2) == 0;  // the subnormal is in A
    coder& low = first ? a_ : b_;
    coder& high = first ? b_ : a_;
    const int depth = 1 + words_.below(low.mantissa_bits());
    const auto subnormal = low.small(low.minimum() - depth);
    const int great = std::min(high.maximum(), -low.minimum() + 12 - words_.below(8));
    const auto normal = high.power(great, words_.below(2) == 1);
    const auto put = [&](int k, std::uint32_t x, std::uint32_t y) {
      set(k, first ? x : y, first ? y : x);
    };
    put(one, subnormal, normal);
    if (words_.below(2) == 0) put(other, low.negated(subnormal), normal);
    for (int more = 1 + words_.below(2); more > 0; --more) {
      const int small = random_product_beside(one, other);
      const int e = low.minimum() + great - words_.below(36);
      set(small, a_.small(e / 2), b_.small(e - e / 2));
    }
  }
  /// Zeros of random signs or of one sign; in half of the cases also a product below the smallest
  /// result.
  void signed_zeros() {
    const int signs = words_.below(3);  // random, negative, positive
    fill(
        [&](int k) {
          if (signs == 0) return set(k, a_.zero(), b_.power(around(3), words_.below(2) == 1));
          set(k, a_.zero(signs == 1), b_.power(around(3), false));
        },
        signs == 0 ? c_.zero() : c_.zero(signs == 1));
    const int lowest = i_.result == format_id::fp32 ? -150 : -26;
    const int e = lowest - words_.below(6);
    if (words_.below(2) == 0) set_small_somewhere(e);
  }

  const shape& i_;
  word_stream& words_;
  coder a_;
  coder b_;
  coder c_;
  case_codes out_{};
};

}  // namespace

std::string_view name(family f) {
  static constexpr std::array<std::string_view, family_count> names = {
      "bits",    "finite",    "near_one",  "spread",       "sparse",
      "cancel",  "edge",      "ties",      "floor",        "tiny",
      "huge",    "carry",     "great_sum", "small_sum",    "zero_by_huge",
      "special", "alignment", "grouping",  "signed_zeros", "subnormal_by_great"};
  return names[static_cast<std::size_t>(f)];
}

std::uint64_t word_stream::next() {
  state_ += 0x9E3779B97F4A7C15u;
  std::uint64_t x = state_;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

int word_stream::below(int count) {
  return static_cast<int>(next() % static_cast<std::uint64_t>(count));
}

case_codes draw_case(const shape& i, family how, word_stream& words) {
  return drawing(i, words).of(how);
}

}  // namespace samebits::backends::tensor_cores
