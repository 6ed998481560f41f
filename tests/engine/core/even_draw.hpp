// Draws of many options for many cases, so that every value of each option meets every value of
// every other one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace samebits::support {

/// Options are chosen one after another, in the same order in each case:
///
///   even_draw draws;
///   for (...) {
///     draws.begin();
///     draws.fix("tile", t, tiles.size());  // chosen by the test, counted
///     const auto rule = draws.draw_as<scale_rule>("rule", enum_count<scale_rule>);
///   }
///   EXPECT_EQ(draws.missing(), "");
///
/// A chosen value is one whose pairs with the case's earlier values are new or, if none is new,
/// have occurred least often; chance decides between equals. The sequence is the same in every run.
class even_draw {
 public:
  /// Begins the next case.
  void begin() { chosen_.clear(); }

  /// A number below `count` for the case's next option.
  std::size_t draw(const char* option, std::size_t count) {
    std::size_t best = 0;
    std::uint64_t minimum = ~std::uint64_t{0};
    for (std::size_t turn = 0, first = random_() % count; turn < count; ++turn) {
      const std::size_t value = (first + turn) % count;
      std::uint64_t uses = 0;
      for (std::size_t earlier = 0; earlier < chosen_.size(); ++earlier) {
        const std::uint64_t of_pair = uses_of(earlier, chosen_[earlier], chosen_.size(), value);
        if (of_pair != 0) uses += 100 + of_pair;
      }
      if (uses < minimum) minimum = uses, best = value;
    }
    fix(option, best, count);
    return best;
  }
  /// The same as a value of an enumeration.
  template <class Enum>
  Enum draw_as(const char* option, int count) {
    return static_cast<Enum>(draw(option, static_cast<std::size_t>(count)));
  }

  /// Counts a value below `count` that the test itself chose for the case's next option.
  void fix(const char* option, std::size_t value, std::size_t count) {
    const std::size_t own = chosen_.size();
    if (own == options_.size()) options_.push_back({option, count, {}});
    std::vector<table>& pairs = options_[own].pairs;
    if (options_[own].name != option || options_[own].count != count || value >= count) {
      throw std::logic_error("even_draw: option " + std::to_string(own) + " is " + option);
    }
    for (std::size_t earlier = 0; earlier < own; ++earlier) {
      if (pairs.size() == earlier) pairs.emplace_back(options_[earlier].count * count);
      ++pairs[earlier][chosen_[earlier] * count + value];
    }
    chosen_.push_back(value);
  }

  /// The first pairs of values that never occurred, by name; empty if there are none.
  [[nodiscard]] std::string missing() const {
    std::string text;
    std::size_t found = 0;
    for (std::size_t b = 0; b < options_.size(); ++b) {
      for (std::size_t a = 0; a < b; ++a) {
        for (std::size_t at = 0; at < options_[a].count * options_[b].count; ++at) {
          if (uses_of(a, at / options_[b].count, b, at % options_[b].count) != 0) continue;
          if (found++ >= 8) continue;
          text += options_[a].name + " " + std::to_string(at / options_[b].count) + " with " +
                  options_[b].name + " " + std::to_string(at % options_[b].count) + "; ";
        }
      }
    }
    return found == 0 ? "" : std::to_string(found) + " pairs never occurred: " + text;
  }

 private:
  using table =
      std::vector<std::uint32_t>;  ///< uses, by value of the earlier and of the own option
  struct option_pairs {
    std::string name;
    std::size_t count;
    std::vector<table> pairs;  ///< with each earlier option
  };

  [[nodiscard]] std::uint64_t uses_of(std::size_t earlier, std::size_t its_value, std::size_t own,
                                      std::size_t value) const {
    if (own >= options_.size() || earlier >= options_[own].pairs.size()) return 0;
    return options_[own].pairs[earlier][its_value * options_[own].count + value];
  }

  std::mt19937_64 random_{1};
  std::vector<option_pairs> options_;
  std::vector<std::size_t> chosen_;  ///< by this case, in order
};

}  // namespace samebits::support
