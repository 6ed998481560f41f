// Binary32 chains: decodes A by rows and B by panels of columns, and calls a kernel for blocks of D.
// Compiled without instruction set flags.
#include "backends/simd/matmul/matmul_chains.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/dispatch/matmul_element.hpp"
#include "backends/reference/functions/function_range.hpp"
#include "backends/simd/lanes/control_register.hpp"
#include "backends/threads/parts.hpp"

namespace samebits::backends {
namespace {

constexpr std::int64_t block_rows = 60;  ///< of D that a kernel computes in one call

/// Loads codes of a row as binary32 bits.
void load_values(const const_matrix_view& v, std::int64_t row, std::int64_t col, std::int64_t count,
                 std::uint32_t* values) {
  load_words(v, row, col, count, values);
  if (v.format == format_id::fp32) return;
  const format_spec format = spec_of(v.format);
  for (std::int64_t i = 0; i < count; ++i) {
    values[i] = numerics::decode<std::uint32_t>(format, values[i]);
  }
}

/// The operands as binary32 bits: A [rows][depth], B [panels][depth][chain_columns]; columns behind
/// the last one are zeros.
struct decoded_panels {
  std::vector<std::uint32_t> a, b;

  decoded_panels(const matmul_call& call, std::int64_t panels, int threads)
      : a(static_cast<std::size_t>(call.d.rows * call.a.cols)),
        b(static_cast<std::size_t>(panels * call.a.cols * chain_columns)) {
    const std::int64_t depth = call.a.cols;
    for_each_item(call.d.rows, depth, threads,
                  [&](std::int64_t i) { load_values(call.a, i, 0, depth, a.data() + i * depth); });
    for_each_item(panels, depth * chain_columns, threads, [&](std::int64_t panel) {
      const std::int64_t column = panel * chain_columns;
      const std::int64_t columns = std::min<std::int64_t>(chain_columns, call.d.cols - column);
      for (std::int64_t k = 0; k < depth; ++k) {
        load_values(call.b, k, column, columns, b.data() + (panel * depth + k) * chain_columns);
      }
    });
  }
};

}  // namespace

bool supports_chains(const matmul_call& call) {
  return call.sum.kind == accumulator_kind::ieee_fp32 && call.sum.order != fp32_order::tree &&
         call.a.cols > 0;
}

void multiply_chains(const matmul_call& call, const executor& where, chain_kernel kernel) {
  const std::int64_t depth = call.a.cols;
  const std::int64_t panels = (call.d.cols + chain_columns - 1) / chain_columns;
  const std::int64_t blocks = (call.d.rows + block_rows - 1) / block_rows;
  const decoded_panels x(call, panels, where.threads);
  const auto multiply_block = [&](std::int64_t panel, std::int64_t row) {
    const std::int64_t rows = std::min(block_rows, call.d.rows - row);
    const std::int64_t column = panel * chain_columns;
    const std::int64_t columns = std::min<std::int64_t>(chain_columns, call.d.cols - column);
    const ieee_control_register ieee;
    std::uint32_t sums[block_rows * chain_columns] = {};
    const auto sum_of = [&](std::int64_t i, std::int64_t j) -> std::uint32_t& {
      return sums[i * chain_columns + j];
    };
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) sum_of(i, j) = start_of(call, row + i, column + j);
    }
    kernel({x.a.data() + row * depth, x.b.data() + panel * depth * chain_columns, sums, rows, depth,
            call.sum.order == fp32_order::ascending_fused});
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        finish_element(call, row + i, column + j, sum_of(i, j));
      }
    }
  };
  for_each_item(panels * blocks, depth * block_rows * chain_columns, where.threads,
                [&](std::int64_t i) { multiply_block(i / blocks, i % blocks * block_rows); });
}

}  // namespace samebits::backends
