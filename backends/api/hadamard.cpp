// random_hadamard(): a product with a matrix of 16 x 16.
#include "samebits/hadamard.hpp"

#include <array>
#include <bit>
#include <string>

#include "backends/api/view_checks.hpp"
#include "backends/dispatch/element.hpp"
#include "backends/dispatch/refuse.hpp"
#include "samebits/matmul.hpp"

namespace samebits {
namespace {

constexpr std::int64_t group = 16;
constexpr std::uint16_t quarter = 0x3E80;  // 1 / 4 in bf16
constexpr std::uint16_t minus = 0x8000;

/// diag(signs) * H in bf16. H(i, k) is negative if i and k share an odd number of bits.
std::array<std::uint16_t, group * group> signed_matrix(std::uint16_t signs) {
  std::array<std::uint16_t, group* group> m = {};
  for (unsigned at = 0; at < m.size(); ++at) {
    const unsigned i = at / group, k = at % group;
    const bool negative = (std::popcount(i & k) % 2 != 0) != ((signs >> i & 1) != 0);
    m[at] = negative ? quarter | minus : quarter;
  }
  return m;
}

/// The groups of a row, one a row.
template <class View>
View groups_of(const View& v, std::int64_t row) {
  View groups = backends::part_of(v, row, 0, v.cols / group, group);
  groups.row_stride = group * v.col_stride;
  return groups;
}

}  // namespace

void random_hadamard(const const_matrix_view& in, const matrix_view& out, std::uint16_t signs,
                     const accumulator& sum, const executor& where) {
  namespace b = backends;
  constexpr std::array sources = {format_id::bf16};
  constexpr std::array targets = {format_id::bf16, format_id::fp32};
  b::check_view(in, "in");
  b::check_format(in, "in", sources);
  b::check_view(out, "out");
  b::check_format(out, "out", targets);
  b::check_shape(out, "out", in.rows, in.cols);
  b::check_distinct(out, "out");
  b::check_apart(out, "out", in, "in");
  refuse_if(in.cols % group != 0, "in: columns must be a multiple of 16, got ", in.cols);
  const auto h = signed_matrix(signs);
  const const_matrix_view by =
      view_of_codes(format_id::bf16, static_cast<const void*>(h.data()), group, group);
  const auto is_dense = [](const const_matrix_view& v) {
    return v.row_stride == v.cols * v.col_stride;
  };
  if (is_dense(in) && is_dense(out)) {
    const_matrix_view from = groups_of(in, 0);
    matrix_view to = groups_of(out, 0);
    from.rows *= in.rows;
    to.rows *= in.rows;
    return matmul(from, by, to, sum, {}, where);
  }
  for (std::int64_t row = 0; row < in.rows; ++row) {
    matmul(groups_of(in, row), by, groups_of(out, row), sum, {}, where);
  }
}

}  // namespace samebits
