// matmul(): checks arguments and chooses a backend.
#include "backends/dispatch/calls/matmul.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "backends/api/matmul_slices.hpp"
#include "backends/api/run_call.hpp"
#include "backends/dispatch/refuse.hpp"

namespace samebits {
namespace backends {
namespace {

void check_operand(const const_matrix_view& v, const char* which) {
  check_view(v, which);
  check_host(v, which);
  refuse_if(v.format == format_id::fp64 || v.format == format_id::e8m0, which,
            ": format must be any but fp64 and e8m0, got ", v.format);
}

constexpr std::array exact_formats = {format_id::fp32, format_id::fp16, format_id::bf16,
                                      format_id::fp64};

/// The tensor core row for this accumulator, if it has one. Checks every field of `sum`.
std::optional<tensor_arithmetic> row_of(const accumulator& sum, format_id a, format_id b) {
  check_value("sum.kind", sum.kind, "accumulator_kind");
  check_value("sum.order", sum.order, "fp32_order");
  refuse_if(sum.fp32_as_tf32 && (sum.kind != accumulator_kind::tensor_core ||
                                 a != format_id::fp32 || b != format_id::fp32),
            "sum.fp32_as_tf32 needs fp32 operands of a tensor_core, got ", a, " and ", b);
  if (sum.kind != accumulator_kind::tensor_core) return std::nullopt;
  check_value("sum.unit", sum.unit, "tensor_unit");
  refuse_if(sum.result != format_id::fp32 && sum.result != format_id::fp16,
            "sum.result must be fp32 or fp16, got ", sum.result);
  const auto operands = sum.fp32_as_tf32 ? tensor_operands::tf32 : tensor_operands_of(a, b);
  const auto row = operands ? find_tensor_row(sum.unit, *operands) : std::nullopt;
  const bool wide = sum.result == format_id::fp32;
  refuse_if<unsupported>(!row || (wide ? row->fp32 : row->fp16) == evidence::none, sum.unit,
                         " does not multiply ", a, " by ", b, " into ", sum.result);
  if (sum.products != 0 && sum.products != row->products &&
      (sum.products != row->narrow_products || sum.products < 0)) {
    const int narrow = row->narrow_products;
    refuse("sum.products must be 0, ", row->products,
           narrow != 0 ? detail::cat(" or ", narrow) : "", ", got ", sum.products);
  }
  const int products = sum.products != 0 ? sum.products : row->products;
  refuse_if(sum.promotion < 0 || sum.promotion % products != 0,
            "sum.promotion must be 0 or a multiple of the ", products,
            " products of an instruction, got ", sum.promotion);
  return row;
}

/// Checks the members of `sum` that divide K into slices.
void check_slices(const accumulator& sum) {
  check_value("sum.slice_order", sum.slice_order, "slice_order");
  check_value("sum.slice_sum", sum.slice_sum, "slice_sum");
  check_value("sum.slice_rounding", sum.slice_rounding, "slice_rounding");
  check_at_least("sum.slices", sum.slices, 1);
  check_at_least("sum.slice_tile", sum.slice_tile, 1);
  check_at_least("sum.residue_tile", sum.residue_tile, 0);
  const bool unit = sum.kind == accumulator_kind::tensor_core;
  if (sum.kind == accumulator_kind::ieee_fp32) check_at_least("sum.promotion", sum.promotion, 0);
  const bool divided = sum.slices != 1 || sum.slice_rounding != slice_rounding::none;
  refuse_if(divided && !unit && sum.kind != accumulator_kind::ieee_fp32,
            "sum.slices: slices need ieee_fp32 or tensor_core, got ", sum.kind);
  const bool cyclic = sum.slices != 1 && sum.slice_order == slice_order::cyclic;
  refuse_if(sum.residue_tile != 0 && (!unit || cyclic),
            "sum.residue_tile: a residue needs tensor_core and contiguous slices");
  refuse_if(sum.slice_sum == slice_sum::halves && sum.slice_rounding == slice_rounding::running,
            "sum.slice_rounding: a running sum needs ascending slices");
  if (!unit || (!divided && sum.residue_tile == 0)) return;
  refuse_if(sum.result != format_id::fp32, "sum.result must be fp32 with slices or a residue, got ",
            sum.result);
  refuse_if(sum.promotion != 0 && (cyclic || sum.residue_tile != 0),
            "sum.promotion must be 0 with cyclic slices or a residue, got ", sum.promotion);
}

/// Elements of K with one scale: the second extent of A's tiles and the first extent of B's. 0: all.
std::int64_t along_k(const tile_shape& tile, bool of_a) { return of_a ? tile.cols : tile.rows; }

/// Whether an operand [lines, K] may have scales of these tiles.
bool allows_tile(const tile_shape& tile, bool exact) {
  if (tile == tile_shape{0, 0} || tile == tile_shape{1, 0}) return true;
  const std::int64_t side = tile.cols;
  const bool allowed =
      exact ? side == 16 || side == 32 || side == 64 || side == 128 || side == 256 : side == 128;
  return allowed && (tile.rows == 1 || tile.rows == side);
}

scale_source checked_scales(const operand_scales& s, const char* values_name, const char* tile_name,
                            const const_matrix_view& operand, bool of_a, bool exact) {
  if (s.values.data == nullptr) return {{}, {1, 1, 0, 0}};
  constexpr std::array formats = {format_id::fp32, format_id::e8m0, format_id::e4m3};
  if (!allows_tile(of_a ? s.tile : tile_shape{s.tile.cols, s.tile.rows}, exact)) {
    const std::string g = exact ? "G" : "128";
    refuse(tile_name, " must be ",
           of_a ? "{0, 0}, {1, 0}, {1, " + g + "} or {" + g + ", " + g + "}"
                : "{0, 0}, {0, 1}, {" + g + ", 1} or {" + g + ", " + g + "}",
           exact ? " with G in 16, 32, 64, 128, 256" : "", ", got ", s.tile);
  }
  check_view(s.values, values_name);
  check_host(s.values, values_name);
  check_format(s.values, values_name, std::span(formats).first(exact ? 3 : 2));
  const tile_grid grid = grid_of(operand.rows, operand.cols, s.tile);
  check_shape(s.values, values_name, grid.rows, grid.cols);
  return {s.values, grid, s.tile};
}

/// Checks the scales of both operands, and sets where they change along K.
void set_scales(matmul_call& call, const matmul_options& options) {
  const bool exact = call.sum.kind == accumulator_kind::exact;
  const operand_scales &a = options.a_scales, &b = options.b_scales;
  call.a_scales =
      checked_scales(a, "options.a_scales.values", "options.a_scales.tile", call.a, true, exact);
  call.b_scales =
      checked_scales(b, "options.b_scales.values", "options.b_scales.tile", call.b, false, exact);
  for (const auto& [scales, block] :
       {std::pair{&a, along_k(a.tile, true)}, std::pair{&b, along_k(b.tile, false)}}) {
    if (scales->values.data == nullptr || block == 0) continue;
    call.exact_block = call.scaled_along_k ? std::min(call.exact_block, block) : block;
    call.scaled_along_k = true;
  }
  if (call.a.cols == 0) {  // then the scales have no elements either
    call.a_scales.values = {};
    call.b_scales.values = {};
  }
}

void check_scales_fit(const matmul_call& call) {
  if (!call.scaled_along_k) return;
  const accumulator& sum = call.sum;
  const bool fits = sum.kind == accumulator_kind::exact ||
                    sum.kind == accumulator_kind::fp32_per_128 ||
                    (sum.kind == accumulator_kind::tensor_core && sum.promotion == scale_block);
  refuse_if(fits && is_in_slices(call),
            "options: scales that change along K need one slice without a residue or fp32_as_tf32");
  if (fits) return;
  refuse(
      "options: scales that change along K need exact, fp32_per_128, or tensor_core with "
      "sum.promotion 128, got ",
      sum.kind,
      sum.kind == accumulator_kind::tensor_core ? detail::cat(" with ", sum.promotion) : "");
}

void check_addend(const matmul_call& call) {
  if (call.c.data == nullptr) return;
  check_view(call.c, "options.c");
  check_host(call.c, "options.c");
  check_shape(call.c, "options.c", call.d.rows, call.d.cols);
  check_format(call.c, "options.c", number_formats);
  const bool after_first = call.c_enters == addend::after_first_slice;
  const accumulator_kind kind = call.sum.kind;
  refuse_if(
      after_first &&
          (call.sum.slice_sum == slice_sum::halves ||
           (kind != accumulator_kind::ieee_fp32 && kind != accumulator_kind::tensor_core)),
      "options.c_enters: after_first_slice needs ascending slices of ieee_fp32 or tensor_core");
  if (call.c_enters == addend::last || kind == accumulator_kind::exact) return;
  refuse_if(call.a_scales.values.data != nullptr || call.b_scales.values.data != nullptr,
            "options.c_enters: a c that does not come last takes no scales");
  if (after_first) return;
  refuse_if(kind == accumulator_kind::ieee_fp32 && call.sum.promotion != 0,
            "options.c_enters: a c that comes first takes no promotion of ieee_fp32");
  const bool of_unit = kind == accumulator_kind::tensor_core && call.sum.promotion == 0;
  const std::array one = {of_unit ? call.sum.result : format_id::fp32};
  check_format(call.c, "options.c", one);
}

}  // namespace

void check_disjoint(const matmul_call& call) {
  const auto check = [&](const const_matrix_view& v, const char* which) {
    if (v.data != nullptr) check_apart(call.d, "d", v, which);
  };
  check(call.a, "a");
  check(call.b, "b");
  check(call.a_scales.values, "options.a_scales.values");
  check(call.b_scales.values, "options.b_scales.values");
  check(call.c, "options.c");
}

matmul_call checked_matmul(const const_matrix_view& a, const const_matrix_view& b,
                           const matrix_view& d, const accumulator& sum,
                           const matmul_options& options) {
  check_operand(a, "a");
  check_operand(b, "b");
  check_shape(b, "b", a.cols, b.cols);
  check_view(d, "d");
  check_host(d, "d");
  check_shape(d, "d", a.rows, b.cols);
  check_distinct(d, "d");
  matmul_call call{};
  call.a = a;
  call.b = b;
  call.d = d;
  call.sum = sum;
  if (const auto row = row_of(sum, a.format, b.format)) {
    const int products = sum.products != 0 ? sum.products : row->products;
    const auto multiplied = [&](format_id f) { return sum.fp32_as_tf32 ? format_id::tf32 : f; };
    call.unit = numerics::accumulate_rule_of(*row, multiplied(a.format), multiplied(b.format),
                                             sum.result, products);
  }
  check_slices(sum);
  const bool exact = sum.kind == accumulator_kind::exact;
  check_format(d, "d", std::span(exact_formats).first(exact ? 4 : 3));
  call.order =
      options.scale_order.value_or(cublaslt_order(options.a_scales.tile, options.b_scales.tile));
  check_value("options.scale_order", call.order, "scale_order");
  check_value("options.c_enters", options.c_enters, "addend");
  set_scales(call, options);
  call.c = options.c;
  call.c_enters = options.c_enters;
  check_scales_fit(call);
  check_addend(call);
  return call;
}

}  // namespace backends

void matmul(const const_matrix_view& a, const const_matrix_view& b, const matrix_view& d,
            const accumulator& sum, const matmul_options& options, const executor& where) {
  const backends::matmul_call call = backends::checked_matmul(a, b, d, sum, options);
  backends::check_disjoint(call);
  const backends::backend& chosen = backends::backend_for(
      &backends::backend::matmul, call, memory_space::host, where, "cannot multiply matrices");
  if (backends::is_empty(call.d)) return;
  if (backends::is_in_slices(call)) return backends::multiply_in_slices(chosen, call, where);
  chosen.matmul.run(call, where);
}

evidence evidence_of(const accumulator& sum, format_id a, format_id b) {
  const auto row = backends::row_of(sum, a, b);
  if (!row) return evidence::none;
  return sum.result == format_id::fp32 ? row->fp32 : row->fp16;
}

}  // namespace samebits
