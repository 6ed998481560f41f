// A Word (numerics/bits/word.hpp) that computes nothing: each operation adds a line to a script in SMT-LIB 2
// (QF_BV), so that solvers prove what the code of numerics/ returns for all operands.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "numerics/bits/word.hpp"

namespace samebits::proofs {

/// The lines of a script, one for each operation; equal operations share a line.
class script {
 public:
  /// Returns the name of a term of a sort such as Bool or (_ BitVec 32).
  std::string define(std::string_view sort, std::string_view term) {
    const auto [at, is_new] = names_.try_emplace(std::string(term), std::string());
    if (is_new) {
      at->second = "t" + std::to_string(names_.size());
      lines_ += "(define-fun " + at->second + " () " + std::string(sort) + " " + std::string(term) +
                ")\n";
    }
    return at->second;
  }
  /// Adds what must hold wherever C++ defines the code: each shift is below the Word's width.
  void require(std::string condition) { required_.push_back(std::move(condition)); }

  void declare(std::string_view name, int bits) {
    lines_ += "(declare-const " + std::string(name) + " (_ BitVec " + std::to_string(bits) + "))\n";
  }
  /// Declares a function of two words of which nothing is known.
  void declare_function(std::string_view name, int bits) {
    const std::string sort = "(_ BitVec " + std::to_string(bits) + ")";
    lines_ += "(declare-fun " + std::string(name) + " (" + sort + " " + sort + ") " + sort + ")\n";
  }
  void name(std::string_view name, std::string_view sort, std::string_view term) {
    lines_ += "(define-fun " + std::string(name) + " () " + std::string(sort) + " " +
              std::string(term) + ")\n";
  }
  /// Returns the script, in which the condition `defined` says that C++ defines every shift.
  [[nodiscard]] std::string text() const {
    std::string all = "(and true true";
    for (const auto& condition : required_) all += " " + condition;
    return lines_ + "(define-fun defined () Bool " + all + "))\n";
  }

 private:
  std::unordered_map<std::string, std::string> names_;
  std::string lines_;
  std::vector<std::string> required_;
};

/// The script that all terms of the program go to.
inline script& the_script() {
  static script s;
  return s;
}

/// A mask: the name of a term of sort Bool.
struct condition {
  std::string name;

  static condition of(const std::string& term) { return {the_script().define("Bool", term)}; }
  friend condition operator&(const condition& a, const condition& b) {
    return of("(and " + a.name + " " + b.name + ")");
  }
  friend condition operator|(const condition& a, const condition& b) {
    return of("(or " + a.name + " " + b.name + ")");
  }
  friend condition operator!(const condition& a) { return of("(not " + a.name + ")"); }
};

/// A Word as wide as Element: the name of a term, or a constant.
template <class Element>
struct word {
  static constexpr int width = sizeof(Element) * 8;
  std::string name;

  word(Element constant) : name(bits_of(constant)) {}  // NOLINT(google-explicit-constructor)
  /// The low bits of a wider word, or zeros above the bits of a narrower one.
  template <class Other>
  explicit word(const word<Other>& other) : word(Element{0}) {
    constexpr int wider = width - word<Other>::width;
    name = of(wider > 0 ? "((_ zero_extend " + std::to_string(wider) + ") " + other.name + ")"
                        : "((_ extract " + std::to_string(width - 1) + " 0) " + other.name + ")")
               .name;
  }
  static word named(std::string_view name) {
    word w(Element{0});
    w.name = name;
    return w;
  }
  static word of(const std::string& term) { return named(the_script().define(sort(), term)); }
  static std::string sort() { return "(_ BitVec " + std::to_string(width) + ")"; }

  friend word operator+(const word& a, const word& b) { return apply("bvadd", a, b); }
  friend word operator-(const word& a, const word& b) { return apply("bvsub", a, b); }
  friend word operator*(const word& a, const word& b) { return apply("bvmul", a, b); }
  friend word operator&(const word& a, const word& b) { return apply("bvand", a, b); }
  friend word operator|(const word& a, const word& b) { return apply("bvor", a, b); }
  friend word operator^(const word& a, const word& b) { return apply("bvxor", a, b); }
  friend word operator<<(const word& a, const word& b) { return shift("bvshl", a, b); }
  friend word operator>>(const word& a, const word& b) { return shift("bvlshr", a, b); }
  friend condition operator==(const word& a, const word& b) { return compare("=", a, b); }
  friend condition operator!=(const word& a, const word& b) { return !(a == b); }
  friend condition operator<(const word& a, const word& b) { return compare("bvult", a, b); }
  friend condition operator>(const word& a, const word& b) { return compare("bvugt", a, b); }

  friend word select(const condition& m, const word& a, const word& b) {
    return of("(ite " + m.name + " " + a.name + " " + b.name + ")");
  }
  /// One case for each position of the highest set bit.
  friend word leading_zeros(const word& x) {
    std::string zeros = bits_of(Element{width});
    for (int i = 0; i < width; ++i) {  // the highest bit is asked first
      const auto at = std::to_string(i);
      zeros = "(ite (= ((_ extract " + at + " " + at + ") " + x.name + ") #b1) " +
              bits_of(static_cast<Element>(width - 1 - i)) + " " + zeros + ")";
    }
    return of(zeros);
  }

 private:
  static std::string bits_of(Element constant) {
    return "(_ bv" + std::to_string(constant) + " " + std::to_string(width) + ")";
  }
  static word apply(const char* operation, const word& a, const word& b) {
    return of("(" + std::string(operation) + " " + a.name + " " + b.name + ")");
  }
  static condition compare(const char* operation, const word& a, const word& b) {
    return condition::of("(" + std::string(operation) + " " + a.name + " " + b.name + ")");
  }
  static word shift(const char* operation, const word& a, const word& by) {
    the_script().require((by < word(Element{width})).name);
    return apply(operation, a, by);
  }
};

}  // namespace samebits::proofs

template <class Element>
struct samebits::numerics::word_traits<samebits::proofs::word<Element>> {
  using mask = samebits::proofs::condition;
  using element = Element;
};
