// Parts of a tensor on several ranks: in order, without gap and overlap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "samebits/error.hpp"

namespace samebits::backends {

/// Leaves [first, first + count) of a tensor, which a rank holds; count > 0.
struct rank_part {
  std::uint64_t first;
  std::uint64_t count;
  std::size_t rank;
};

/// Sorts parts, of a type with rank_part's members, by their leaves. Throws rank_error, whose
/// message begins with `tensor`, unless together they are [0, n); `leaves` is what it calls them.
template <class Part>
void order_parts(std::vector<Part>& parts, const std::string& tensor, std::string_view leaves) {
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.first < b.first; });
  const auto text_of = [&](const Part& p) {
    return "rank " + std::to_string(p.rank) + " holds " + std::string(leaves) + " [" +
           std::to_string(p.first) + ", " + std::to_string(p.first + p.count) + ")";
  };
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& p = parts[i];
    if (p.first < end) {
      throw rank_error(tensor + ": " + text_of(parts[i - 1]) + " and " + text_of(p) +
                       ", which overlap");
    }
    if (p.first > end) {
      throw rank_error(tensor + ": no rank holds " + std::string(leaves) + " [" +
                       std::to_string(end) + ", " + std::to_string(p.first) + "), where " +
                       text_of(p));
    }
    end = p.first + p.count;
  }
}

}  // namespace samebits::backends
