// Lists of simpler cases than a failing one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "engine/core/layout.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::support {

/// The part of a case that is element i of a vector.
template <class Case, class Elements>
auto element(Elements Case::*all, std::size_t i) {
  return [=](Case & c) -> auto& { return (c.*all)[i]; };
}

/// Cases that differ from one in a single change each, simplest first. Every chain of changes ends.
template <class Case>
class simpler_cases {
 public:
  explicit simpler_cases(const Case& c) : from_(c) {}

  /// The case after change(case).
  template <class Change>
  void change(const Change& change) {
    all_.push_back(from_);
    change(all_.back());
  }
  /// The case with a value in a part, which is a member or a function that returns a reference.
  template <class Part, class Value>
  void set(const Part& part, const Value& value) {
    Case other = from_;
    if (std::invoke(part, other) == value) return;
    std::invoke(part, other) = value;
    all_.push_back(std::move(other));
  }
  /// The same of a member of a part.
  template <class Part, class Whole, class Member, class Value>
  void set(const Part& part, Member Whole::*member, const Value& value) {
    set(
        [&](Case & c) -> auto& { return std::invoke(part, c).*member; }, value);
  }
  /// The same with the default value of members of a part.
  template <class Part, class Whole, class... Members>
  void reset(const Part& part, const Whole& plain, Members Whole::*... members) {
    (set(part, members, plain.*members), ...);
  }
  /// Plain numbers in a random stream.
  template <class Part>
  void reset_random(const Part& part) {
    reset(part, random_stream{}, &random_stream::seed, &random_stream::stream,
          &random_stream::offset, &random_stream::pitch);
  }
  /// The case without one element of a vector, for each element, while more than `minimum` remain.
  template <class Part>
  void without_one(const Part& part, std::size_t minimum = 0) {
    const std::size_t count = std::invoke(part, from_).size();
    for (std::size_t i = 0; i < count && count > minimum; ++i) {
      change([&](Case& c) {
        auto& all = std::invoke(part, c);
        all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
      });
    }
  }
  /// Fewer rows or columns: resize(case, rows, cols) sets them.
  template <class Resize>
  void sizes(std::int64_t rows, std::int64_t cols, const Resize& resize) {
    const auto add = [&](bool smaller, std::int64_t r, std::int64_t k) {
      if (smaller) change([&](Case& c) { resize(c, r, k); });
    };
    add(rows > 1, 1, cols);
    add(cols > 1, rows, 1);
    add(rows > 1, rows / 2, cols);
    add(cols > 1, rows, cols / 2);
    add(rows > 0, rows - 1, cols);
    for (const std::int64_t fewer : {4096, 256, 16, 8}) add(cols > fewer, rows, cols - fewer);
    add(cols > 0, rows, cols - 1);
  }

  [[nodiscard]] std::vector<Case> all() { return std::move(all_); }

 private:
  Case from_;
  std::vector<Case> all_;
};

}  // namespace samebits::support
