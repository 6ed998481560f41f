// The fixed sum, one level after the other.
#include "oracle/sum_tree.hpp"

#include <cstddef>
#include <utility>

namespace samebits::oracle {

std::uint64_t sum_tree(std::vector<std::uint64_t> level, const format& f) {
  if (level.empty()) return 0;
  while (level.size() > 1) {
    std::vector<std::uint64_t> next;
    for (std::size_t j = 0; j < level.size(); j += 2) {
      const bool alone = j + 1 == level.size();
      next.push_back(alone ? level[j] : add(f, level[j], level[j + 1]));
    }
    level = std::move(next);
  }
  return level.front();
}

}  // namespace samebits::oracle
