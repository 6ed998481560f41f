// Matrix products by definition: exact sums of rationals, chains of oracle instructions and steps.
#include "oracle/matmul.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <stdexcept>

#include "oracle/arithmetic.hpp"
#include "oracle/convert.hpp"
#include "oracle/elementary.hpp"
#include "oracle/sum_tree.hpp"

namespace samebits::oracle {
namespace {

constexpr std::size_t block = 128;

std::uint32_t to_fp32(const format& f, std::uint64_t code) {
  return static_cast<std::uint32_t>(convert(f, fp32(), code, {}));
}

/// The order of a problem's scales, as cuBLASLt applies them where none is named.
std::string_view order_of(const dot_problem& d) {
  if (!d.scale_order.empty()) return d.scale_order;
  if (d.a_tiles != d.b_tiles) return "product_fused";
  if (d.a_tiles == scale_tiles::lines_by_128) return "a_then_b_fused";
  return d.a_tiles == scale_tiles::lines ? "b_then_a" : "product_fused";
}

/// y and p times its scales; without y, where nothing was summed before, only an fma adds (+0).
std::uint32_t scaled(std::string_view order, bool with_y, std::uint32_t y, std::uint32_t p,
                     std::uint32_t a, std::uint32_t b) {
  const auto join = [&](std::uint32_t x) { return with_y ? add32(y, x) : x; };
  const auto fuse = [&](std::uint32_t x, std::uint32_t factor) {
    return static_cast<std::uint32_t>(fused(fp32(), x, factor, with_y ? y : 0));
  };
  if (order == "product_fused") return fuse(p, multiply32(a, b));
  if (order == "product") return join(multiply32(p, multiply32(a, b)));
  if (order == "a_then_b") return join(multiply32(multiply32(p, a), b));
  if (order == "b_then_a") return join(multiply32(multiply32(p, b), a));
  if (order == "a_then_b_fused") return fuse(multiply32(p, a), b);
  if (order == "b_then_a_fused") return fuse(multiply32(p, b), a);
  throw std::invalid_argument("oracle: no such order of scales");
}

/// An exact sum with what is not finite in it.
struct exact_total {
  cpp_rational finite = 0;
  bool nan = false;
  bool plus = false;
  bool minus = false;

  void add(const exact_value& x) {
    if (x.kind == value_kind::nan) {
      nan = true;
    } else if (x.kind == value_kind::infinite) {
      (x.negative ? minus : plus) = true;
    } else {
      finite += rational_of(x);
    }
  }
  [[nodiscard]] exact_value value() const {
    exact_value x;
    if (nan || (plus && minus)) {
      x.kind = value_kind::nan;
    } else if (plus || minus) {
      x.kind = value_kind::infinite;
      x.negative = minus;
    } else {
      x = exact_from(finite);
    }
    return x;
  }
};

exact_value exact_part(const dot_problem& d, std::size_t from, std::size_t to) {
  exact_total total;
  for (std::size_t k = from; k < to; ++k) {
    total.add(exact_product(decode(*d.a_format, d.a[k]), decode(*d.b_format, d.b[k])));
  }
  return total.value();
}

std::uint64_t exact_element(const dot_problem& d) {
  exact_total total;
  const std::size_t depth = d.a.size();
  const std::size_t step = d.scaled_per_block ? d.scale_block : std::max<std::size_t>(depth, 1);
  for (std::size_t k = 0; k < depth; k += step) {
    const exact_value scales =
        exact_product(decode(fp32(), d.a_scales[k]), decode(fp32(), d.b_scales[k]));
    total.add(exact_product(exact_part(d, k, std::min(depth, k + step)), scales));
  }
  if (d.has_c) total.add(decode(*d.c_format, d.c));
  return round_exact(*d.d_format, total.value(), {});
}

std::uint32_t chain(const dot_problem& d, std::size_t from, std::size_t to, std::uint32_t c) {
  const auto products = static_cast<std::size_t>(d.unit.products);
  for (std::size_t k = from; k < to; k += products) {
    std::vector<std::uint32_t> a(products, 0);
    std::vector<std::uint32_t> b(products, 0);
    for (std::size_t i = k; i < std::min(to, k + products); ++i) {
      a[i - k] = d.a[i];
      b[i - k] = d.b[i];
    }
    c = static_cast<std::uint32_t>(
        tensor_instruction(d.unit, *d.a_format, a, *d.b_format, b, *d.sums, c));
  }
  return c;
}

std::uint32_t ieee_sum(const dot_problem& d, std::uint32_t start) {
  std::vector<std::uint32_t> a;
  std::vector<std::uint32_t> b;
  for (std::size_t k = 0; k < d.a.size(); ++k) {
    a.push_back(to_fp32(*d.a_format, d.a[k]));
    b.push_back(to_fp32(*d.b_format, d.b[k]));
  }
  if (d.order == "tree") {
    std::vector<std::uint64_t> products;
    for (std::size_t k = 0; k < a.size(); ++k) products.push_back(multiply32(a[k], b[k]));
    const auto root = static_cast<std::uint32_t>(sum_tree(products, fp32()));
    return d.has_c && d.c_first ? add32(start, root) : root;
  }
  std::uint32_t sum = start;
  for (std::size_t k = 0; k < a.size(); ++k) {
    sum = d.order == "ascending" ? add32(sum, multiply32(a[k], b[k]))
                                 : static_cast<std::uint32_t>(fused(fp32(), a[k], b[k], sum));
  }
  return sum;
}

std::uint32_t sum_of_blocks(const dot_problem& d, std::size_t length, std::uint32_t start) {
  std::uint32_t sum = start;
  for (std::size_t k = 0; k < d.a.size(); k += length) {
    const std::size_t to = std::min(d.a.size(), k + length);
    const auto part =
        d.kind == "tensor_core"
            ? to_fp32(*d.sums, chain(d, k, to, 0))
            : static_cast<std::uint32_t>(round_exact(fp32(), exact_part(d, k, to), {}));
    sum = d.scaled_per_block ? scaled(order_of(d), true, sum, part, d.a_scales[k], d.b_scales[k])
                             : add32(sum, part);
  }
  return sum;
}

/// The elements of each slice that has some: an element's slice follows from its tile.
std::vector<std::vector<std::size_t>> slices_of(const dot_problem& d) {
  const std::size_t tiles = (d.a.size() + d.slice_tile - 1) / d.slice_tile;
  const std::size_t tiles_of_one = std::max<std::size_t>((tiles + d.slices - 1) / d.slices, 1);
  std::vector<std::vector<std::size_t>> all(d.slices);
  for (std::size_t k = 0; k < d.a.size(); ++k) {
    const std::size_t tile = k / d.slice_tile;
    all[d.slice_order == "cyclic" ? tile % d.slices : tile / tiles_of_one].push_back(k);
  }
  std::erase_if(all, [](const auto& slice) { return slice.empty(); });
  if (all.empty()) all.emplace_back();
  return all;
}

/// Chains that start anew, at the sum so far, behind the residue or at each tile of a cyclic slice.
std::uint32_t chains(const dot_problem& d, const std::vector<std::size_t>& slice,
                     std::uint32_t sum) {
  const std::size_t residue = d.residue_tile == 0 ? 0 : slice.size() % d.residue_tile;
  std::size_t from = 0;
  for (std::size_t to = 1; to <= slice.size(); ++to) {
    const bool tile_ends = d.slice_order == "cyclic" && d.slices > 1 && to < slice.size() &&
                           slice[to] / d.slice_tile != slice[to - 1] / d.slice_tile;
    if (to != residue && to != slice.size() && !tile_ends) continue;
    sum = chain(d, from, to, sum);
    from = to;
  }
  return sum;
}

std::uint32_t sum_of_slice(const dot_problem& whole, const std::vector<std::size_t>& slice,
                           std::uint32_t start) {
  dot_problem d = whole;
  if (d.kind == "ieee_fp32" && d.promotion != 0) {
    d.promotion = 0;
    std::uint32_t sum = 0;
    for (std::size_t from = 0; from < slice.size(); from += whole.promotion) {
      const std::size_t count = std::min<std::size_t>(whole.promotion, slice.size() - from);
      const auto part = std::span(slice).subspan(from, count);
      sum = add32(sum, sum_of_slice(d, {part.begin(), part.end()}, 0));
    }
    return sum;
  }
  d.a.clear();
  d.b.clear();
  for (const std::size_t k : slice) {
    d.a.push_back(whole.a[k]);
    d.b.push_back(whole.b[k]);
  }
  if (d.kind == "ieee_fp32") return ieee_sum(d, start);
  if (d.kind == "fp32_per_128") return sum_of_blocks(d, block, start);
  if (d.promotion != 0) return sum_of_blocks(d, d.promotion, start);
  return to_fp32(*d.sums, chains(d, slice, start));
}

std::uint32_t sum_of_slices(const dot_problem& d, std::uint32_t start) {
  const auto round = [&](std::string_view when, std::uint32_t x) {
    return d.slice_rounding == when ? to_fp32(*d.d_format, convert(fp32(), *d.d_format, x, {})) : x;
  };
  std::vector<std::uint32_t> parts;
  for (const auto& slice : slices_of(d)) {
    parts.push_back(round("each", sum_of_slice(d, slice, parts.empty() ? start : 0)));
  }
  if (d.slice_sum == "halves") {
    while (parts.size() > 1) {
      const std::size_t half = (parts.size() + 1) / 2;
      for (std::size_t i = half; i < parts.size(); ++i) {
        parts[i - half] = add32(parts[i - half], parts[i]);
      }
      parts.resize(half);
    }
  }
  std::uint32_t sum = parts[0];
  if (d.has_c && d.c_after_first_slice) sum = add32(sum, to_fp32(*d.c_format, d.c));
  for (std::size_t i = 1; i < parts.size(); ++i) sum = add32(round("running", sum), parts[i]);
  return round("each", round("running", sum));
}

}  // namespace

std::uint64_t element_of_product(const dot_problem& d) {
  if (d.kind == "exact") return exact_element(d);
  std::uint32_t sum = sum_of_slices(d, d.has_c && d.c_first ? d.c : 0);
  if (d.scaled_at_end) {
    sum = scaled(order_of(d), false, 0, sum, d.a_end_scale, d.b_end_scale);
  }
  if (d.has_c && !d.c_first && !d.c_after_first_slice) sum = add32(sum, to_fp32(*d.c_format, d.c));
  return convert(fp32(), *d.d_format, sum, {});
}

}  // namespace samebits::oracle
