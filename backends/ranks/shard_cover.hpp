// Shard cover: checks that the parts of a tensor on several ranks cover it without gap or overlap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backends/dispatch/refuse.hpp"

namespace samebits::backends {

/// Inputs [first, first + count) of a tensor's sum, held by one rank; count > 0.
struct rank_part {
  std::uint64_t first;
  std::uint64_t count;
  std::size_t rank;
};

/// Sorts parts by their first input. Part must have the members of rank_part. Throws rank_error
/// unless the parts cover [0, n) exactly. The message begins with `tensor` and calls the inputs
/// `inputs`.
template <class Part>
void order_parts(std::vector<Part>& parts, const std::string& tensor, std::string_view inputs) {
  std::sort(parts.begin(), parts.end(),
            [](const Part& a, const Part& b) { return a.first < b.first; });
  const auto text_of = [&](const Part& p) {
    return detail::cat("rank ", p.rank, " holds ", inputs, " [", p.first, ", ", p.first + p.count,
                       ")");
  };
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& p = parts[i];
    if (p.first < end) {
      refuse<rank_error>(tensor, ": ", text_of(parts[i - 1]), " and ", text_of(p),
                         ", which overlap");
    }
    if (p.first > end) {
      refuse<rank_error>(tensor, ": no rank holds ", inputs, " [", end, ", ", p.first, "), where ",
                         text_of(p));
    }
    end = p.first + p.count;
  }
}

}  // namespace samebits::backends
