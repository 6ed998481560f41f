// Overlap: whether the elements of strided views share memory, decided exactly.
//
// The bytes of a view are base + i * row_stride + j * col_stride + [0, element). Two views share a
// byte if a sum of up to four bounded multiples of the strides lies in an interval:
//
//   i * s + j * t - k * u - l * v  in  [b - a - (element_a - 1), b - a + (element_b - 1)]
//
// A row without gaps counts as one large element. Terms of equal strides are merged. Dense views
// therefore need no search, and views of one matrix seldom need one. Two terms are solved as in
// Euclid's algorithm. With three or four terms, all values of the term with the fewest possible
// values are tried.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "samebits/view.hpp"

namespace samebits::backends {

/// Whether two views share memory; `undecided` if the search ran out of steps.
enum class sharing : std::uint8_t { none, some, undecided };

/// Maximum number of search steps for two views and for a list of views; both take well under a
/// second. A search without an answer by then returns sharing::undecided.
inline constexpr std::int64_t steps_of_a_pair = 1 << 18;
inline constexpr std::int64_t steps_of_a_list = 1 << 20;

/// Whether two elements of a checked view (check_view) share memory.
bool repeats_elements(const const_matrix_view& v);

/// Whether two checked views share a byte of an element. Subtracts its search steps from `steps`;
/// returns undecided if they run out.
sharing sharing_of(const const_matrix_view& a, const const_matrix_view& b, std::int64_t& steps);

/// The byte range from the first element of a view to the end of its last element, including gaps.
struct extent {
  std::uintptr_t begin;
  std::uintptr_t end;
  std::size_t position;  ///< index of the view in its list
  bool written;
};

/// The extent of a view that is not empty.
extent extent_of(const const_matrix_view& v, std::size_t position, bool written);

inline bool begins_before(const extent& a, const extent& b) { return a.begin < b.begin; }

/// Calls touching(a, b) for every two extents that share bytes if at least one of them is written.
/// The extents must be sorted by begins_before. Time is proportional to the number of extents plus
/// these pairs.
template <class Function>
void for_each_touching_pair(std::span<const extent> sorted, const Function& touching) {
  std::vector<extent> read, written;  // extents that have begun and may not have ended
  const auto meet = [&](std::vector<extent>& begun, const extent& e) {
    std::erase_if(begun, [&](const extent& other) { return other.end <= e.begin; });
    for (const extent& other : begun) touching(other, e);
  };
  std::uintptr_t end = 0;  // largest end of all extents so far
  for (const extent& e : sorted) {
    if (e.begin >= end) {
      read.clear();
      written.clear();
    }
    end = std::max(end, e.end);
    meet(written, e);
    if (e.written) meet(read, e);
    (e.written ? written : read).push_back(e);
  }
}

}  // namespace samebits::backends
