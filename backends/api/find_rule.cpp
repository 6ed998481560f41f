// find_rule(): multiplies a sample of the product by one rule after another.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "backends/api/matmul_slices.hpp"
#include "backends/api/view_checks.hpp"
#include "backends/dispatch/matmul_element.hpp"
#include "numerics/bits/classify.hpp"
#include "samebits/product_rule.hpp"

namespace samebits {
namespace backends {
namespace {

bool is_nan_or_equal(format_id format, std::uint32_t x, std::uint32_t y) {
  const format_spec f = spec_of(format);
  return x == y || (numerics::split(f, x).is_nan && numerics::split(f, y).is_nan);
}

/// Evenly spaced rows and columns of a product.
class sampled_product {
 public:
  sampled_product(const const_matrix_view& a, const const_matrix_view& b,
                  const const_matrix_view& d, const find_rule_options& options,
                  const executor& where)
      : a_(a), b_(b), d_(d), known_(options.known), where_(where) {
    const auto count = [&](std::int64_t n) {
      return options.sample == 0 ? n : std::min(n, options.sample);
    };
    rows_ = count(d.rows);
    cols_ = count(d.cols);
    // Scales of square tiles allow no step: a row of scales belongs to 128 rows.
    if (known_.a_scales.tile.rows <= 1 && rows_ > 0) row_step_ = d.rows / rows_;
    if (known_.b_scales.tile.cols <= 1 && cols_ > 0) col_step_ = d.cols / cols_;
  }

  /// Whether the rule gives the sample. Most rules fail early: first at elements that other rules
  /// failed to give, which depend on the order of additions, then at 1 element, 2 x 2, 4 x 4, ...
  [[nodiscard]] bool fits(const product_rule& rule) {
    for (std::size_t i = 0; i < hard_.size(); ++i) {
      if (!first_difference(rule, {hard_[i].row, hard_[i].col, 1, 1})) continue;
      std::swap(hard_[i], hard_[i / 2]);
      return false;
    }
    for (std::int64_t n = 1;; n *= 2) {
      const part all = {0, 0, std::min(n, rows_), std::min(n, cols_)};
      if (const auto other = first_difference(rule, all)) {
        hard_.insert(hard_.begin(), *other);
        if (hard_.size() > max_hard) hard_.pop_back();
        return false;
      }
      if (all.rows == rows_ && all.cols == cols_) return true;
    }
  }

 private:
  static constexpr std::size_t max_hard = 8;
  struct element {
    std::int64_t row, col;
  };
  /// Rows and columns of the sample.
  struct part {
    std::int64_t row, col, rows, cols;
  };

  static const_matrix_view part_of(const const_matrix_view& whole, element first,
                                   matrix_shape shape, element step) {
    const_matrix_view v = backends::part_of(whole, first.row, first.col, shape.rows, shape.cols);
    v.row_stride *= step.row;
    v.col_stride *= step.col;
    return v;
  }
  static void reduce(operand_scales& s, element first, matrix_shape of, element step) {
    if (s.values.data == nullptr) return;
    const auto in_tiles = [](std::int64_t i, std::int64_t tile) {
      return tile == 0 ? 0 : i / tile;
    };
    first = {in_tiles(first.row, s.tile.rows), in_tiles(first.col, s.tile.cols)};
    s.values = part_of(s.values, first, scales_shape(of.rows, of.cols, s.tile), step);
  }

  /// The first element of a part that the rule does not give.
  [[nodiscard]] std::optional<element> first_difference(const product_rule& rule,
                                                        const part& p) const {
    const std::int64_t depth = a_.cols;
    const std::int64_t row = p.row * row_step_;
    const std::int64_t col = p.col * col_step_;
    const auto of_result = [&](const const_matrix_view& v) {
      return part_of(v, {row, col}, {p.rows, p.cols}, {row_step_, col_step_});
    };
    const const_matrix_view expected = of_result(d_);
    std::vector<std::byte> bytes(
        static_cast<std::size_t>(p.rows * p.cols * storage_bytes(expected.format)));
    const matrix_view got = {bytes.data(), expected.format, p.rows, p.cols, p.cols, 1};
    matmul_options options = known_;
    reduce(options.a_scales, {row, 0}, {p.rows, depth}, {row_step_, 1});
    reduce(options.b_scales, {0, col}, {depth, p.cols}, {1, col_step_});
    if (options.c.data != nullptr) options.c = of_result(options.c);
    matmul(part_of(a_, {row, 0}, {p.rows, depth}, {row_step_, 1}),
           part_of(b_, {0, col}, {depth, p.cols}, {1, col_step_}), got, rule, options, where_);
    for (std::int64_t i = 0; i < p.rows; ++i) {
      for (std::int64_t j = 0; j < p.cols; ++j) {
        if (!is_nan_or_equal(got.format, code_at(got, i, j), code_at(expected, i, j))) {
          return element{p.row + i, p.col + j};
        }
      }
    }
    return std::nullopt;
  }

  const const_matrix_view& a_;
  const const_matrix_view& b_;
  const const_matrix_view& d_;
  const matmul_options& known_;
  const executor& where_;
  std::int64_t rows_ = 0;
  std::int64_t cols_ = 0;
  std::int64_t row_step_ = 1;
  std::int64_t col_step_ = 1;
  std::vector<element> hard_;
};

constexpr std::array contiguous_tiles = {64, 32, 16, 8, 4, 128, 256, 1};
constexpr std::array cyclic_tiles = {8, 16, 32, 64, 4, 128, 1};
constexpr std::array thread_promotions = {8, 16, 32, 64};
constexpr std::array residue_tiles = {0, 8, 16, 32, 64, 128};

/// Whether steps of two rows with the same number of products compute alike.
bool compute_alike(const tensor_arithmetic& x, const tensor_arithmetic& y) {
  return x.group == y.group && x.alignment_bits == y.alignment_bits &&
         x.fraction_bits == y.fraction_bits && x.floor_fp32 == y.floor_fp32 && x.path == y.path;
}

class rule_search {
 public:
  rule_search(const matmul_call& call, const find_rule_options& options, sampled_product& product)
      : call_(call), options_(options), product_(product), chains_(chains()) {}

  [[nodiscard]] std::vector<product_rule> run() && {
    divide(accumulator::exact(), {call_.a.cols});
    for (std::int64_t slices = 2; fits_.empty() && slices <= max_slices(); ++slices) {
      divide_contiguously(slices);
      if (fits_.empty()) divide_cyclically(slices);
    }
    return std::move(fits_);
  }

 private:
  /// An accumulation of K as a whole, with the products of its instructions.
  struct chain {
    accumulator sum;
    std::int64_t products;
  };

  [[nodiscard]] std::vector<chain> chains() const {
    std::vector<chain> all;
    const chain fused = {accumulator::ieee_fp32(fp32_order::ascending_fused), 1};
    const bool fp32 = call_.a.format == format_id::fp32 && call_.b.format == format_id::fp32;
    if (fp32 && !call_.scaled_along_k) all.push_back(fused);
    add_units(fp32 ? tensor_operands::tf32 : tensor_operands_of(call_.a.format, call_.b.format),
              fp32, all);
    if (!fp32 && !call_.scaled_along_k) all.push_back(fused);
    for (const std::int64_t promotion : thread_promotions) {
      all.push_back(fused);
      all.back().sum.promotion = promotion;
    }
    return all;
  }

  void add_units(std::optional<tensor_operands> operands, bool as_tf32,
                 std::vector<chain>& all) const {
    std::vector<std::pair<tensor_arithmetic, int>> seen;
    for (const tensor_unit unit : options_.units) {
      const auto row = operands ? find_tensor_row(unit, *operands) : std::nullopt;
      if (!row || row->fp32 == evidence::none) continue;
      for (const int products : {0, row->narrow_products}) {
        const int count = products == 0 ? row->products : products;
        const int step = row->path == tensor_path::fused ? std::min(count, row->group) : count;
        const auto alike = [&](const auto& x) {
          return x.second == step && compute_alike(x.first, *row);
        };
        if (std::any_of(seen.begin(), seen.end(), alike)) continue;
        seen.emplace_back(*row, step);
        for (const std::int64_t promotion : {std::int64_t{0}, scale_block}) {
          const bool is_promoted = promotion != 0;
          if (call_.scaled_along_k ? !is_promoted
                                   : is_promoted && *operands != tensor_operands::fp8) {
            continue;
          }
          all.push_back(
              {accumulator::tensor_core(unit, promotion, format_id::fp32, products), count});
          all.back().sum.fp32_as_tf32 = as_tf32;
        }
      }
    }
  }

  [[nodiscard]] std::int64_t max_slices() const {
    return call_.scaled_along_k ? 1 : std::min(options_.max_slices, call_.a.cols);
  }

  void divide_contiguously(std::int64_t slices) {
    const std::int64_t depth = call_.a.cols;
    const auto up = [](std::int64_t n, std::int64_t by) { return (n + by - 1) / by; };
    std::set<std::int64_t> seen;
    for (const std::int64_t tile : contiguous_tiles) {
      const std::int64_t length = up(up(depth, tile), slices) * tile;
      if (up(depth, length) != slices || !seen.insert(length).second) continue;
      accumulator sum = accumulator::exact();
      sum.slices = slices;
      sum.slice_tile = tile;
      divide(sum, {length, depth - (slices - 1) * length});
    }
  }

  void divide_cyclically(std::int64_t slices) {
    for (const std::int64_t tile : cyclic_tiles) {
      if (tile * (slices - 1) >= call_.a.cols) continue;
      if (tile == 1 && !std::has_single_bit(static_cast<std::uint64_t>(slices))) continue;
      accumulator sum = accumulator::exact();
      sum.slices = slices;
      sum.slice_tile = tile;
      sum.slice_order = slice_order::cyclic;
      divide(sum, {});
      sum.slice_sum = slice_sum::halves;
      if (slices > 2) divide(sum, {});
    }
  }

  /// Tries a division of K with every chain and residue. `lengths` are those of contiguous slices.
  void divide(const accumulator& division, const std::vector<std::int64_t>& lengths) {
    const bool cyclic = division.slice_order == slice_order::cyclic;
    for (const chain& c : chains_) {
      // Kernels without tensor cores deal single elements of K to threads, which promote their sums.
      const bool by_threads = c.sum.promotion != 0 && c.sum.kind == accumulator_kind::ieee_fp32;
      if (by_threads != (cyclic && division.slice_tile == 1)) continue;
      if (cyclic && c.sum.promotion != 0 && !by_threads) continue;
      std::set<std::vector<std::int64_t>> seen;
      for (const std::int64_t tile : residue_tiles) {
        std::vector<std::int64_t> residues;  // 0: instructions are those without a residue
        for (const std::int64_t length : lengths) {
          const std::int64_t residue = tile == 0 ? 0 : length % tile;
          residues.push_back(residue % c.products == 0 || residue == length ? 0 : residue);
        }
        if (!seen.insert(residues).second || (tile != 0 && c.sum.promotion != 0)) continue;
        accumulator sum = c.sum;
        sum.slices = division.slices;
        sum.slice_order = division.slice_order;
        sum.slice_tile = division.slice_tile;
        sum.slice_sum = division.slice_sum;
        sum.residue_tile = tile;
        end(sum);
      }
    }
  }

  /// Tries a sum with every rounding of its slices and place of C.
  void end(accumulator sum) {
    const bool has_c = call_.c.data != nullptr;
    const bool scaled =
        call_.a_scales.values.data != nullptr || call_.b_scales.values.data != nullptr;
    const bool ascending = sum.slice_sum == slice_sum::ascending;
    for (int i = 0; i < enum_count<slice_rounding>; ++i) {
      sum.slice_rounding = static_cast<slice_rounding>(i);
      const bool rounded = sum.slice_rounding != slice_rounding::none;
      if (rounded && (call_.d.format == format_id::fp32 || call_.scaled_along_k)) continue;
      if (rounded && sum.slices == 1 && (!has_c || sum.slice_rounding != slice_rounding::each)) {
        continue;
      }
      if (sum.slice_rounding == slice_rounding::running && !ascending) continue;
      try_rule({sum, addend::last});
      if (!has_c || scaled) continue;
      if (sum.slices > 1 && ascending) try_rule({sum, addend::after_first_slice});
      const bool takes_first = sum.kind == accumulator_kind::tensor_core || sum.promotion == 0;
      if (!rounded && takes_first && call_.c.format == format_id::fp32) {
        try_rule({sum, addend::first});
      }
    }
  }

  void try_rule(const product_rule& rule) {
    if (product_.fits(rule)) fits_.push_back(rule);
  }

  const matmul_call& call_;
  const find_rule_options& options_;
  sampled_product& product_;
  std::vector<chain> chains_;
  std::vector<product_rule> fits_;
};

}  // namespace
}  // namespace backends

std::vector<product_rule> find_rule(const const_matrix_view& a, const const_matrix_view& b,
                                    const const_matrix_view& d, const find_rule_options& options,
                                    const executor& where) {
  // The arguments have the same checks as those of the product; d is not written.
  const matrix_view result = {
      const_cast<void*>(d.data), d.format, d.rows, d.cols, d.row_stride, d.col_stride, d.space};
  const matmul_options& known = options.known;
  const backends::matmul_call call = backends::checked_matmul(
      a, b, result, accumulator::exact(),
      {known.a_scales, known.b_scales, known.scale_order, known.c, addend::last});
  backends::check_format(d, "d", backends::number_formats);
  backends::check_at_least("options.max_slices", options.max_slices, 1);
  backends::check_at_least("options.sample", options.sample, 0);
  for (const tensor_unit unit : options.units) {
    backends::check_value("options.units", unit, "tensor_unit");
  }
  backends::sampled_product product(a, b, d, options, where);
  return backends::rule_search(call, options, product).run();
}

}  // namespace samebits
