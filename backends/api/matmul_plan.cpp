// matmul_plan: checks arguments; a device backend chooses the algorithm and multiplies.
#include "samebits/matmul_plan.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

#include "backends/api/matmul_slices.hpp"
#include "backends/api/run_call.hpp"
#include "backends/dispatch/device_scope.hpp"
#include "backends/dispatch/refuse.hpp"

namespace samebits {
namespace backends {

struct matmul_plan_data {
  matmul_call call;  ///< of its addresses only the alignment is used
  int device;
  std::shared_ptr<const device_product> product;
};

namespace {

void check_device(const const_matrix_view& v, const char* which) {
  refuse_if(v.space != memory_space::device, which,
            ": must lie in device memory; matmul() multiplies on the host");
}

const_matrix_view on_host(const_matrix_view v) {
  v.space = memory_space::host;
  return v;
}

bool is_fp8(format_id f) { return f == format_id::e4m3 || f == format_id::e5m2; }

/// Requires rows or columns without gaps between their elements.
void check_dense(const const_matrix_view& v, const char* which, bool rows, bool cols) {
  const bool by_rows = v.col_stride == 1 && (v.rows == 1 || v.row_stride >= v.cols);
  const bool by_cols = v.row_stride == 1 && (v.cols == 1 || v.col_stride >= v.rows);
  if ((rows && by_rows) || (cols && by_cols)) return;
  refuse(which, ": must be dense in ",
         rows && cols ? "rows or columns"
         : rows       ? "rows"
                      : "columns",
         ", got strides of ", v.row_stride, " and ", v.col_stride, " elements");
}

void check_formats(const const_matrix_view& a, const const_matrix_view& b,
                   const const_matrix_view& d) {
  const bool half =
      a.format == b.format && (a.format == format_id::bf16 || a.format == format_id::fp16);
  refuse_if(!half && !(is_fp8(a.format) && is_fp8(b.format)),
            "a, b: formats must be bf16 twice, fp16 twice, or e4m3 and e5m2, got ", a.format,
            " and ", b.format);
  if (d.format == format_id::fp32 || (half && d.format == a.format)) return;
  if (!half && (d.format == format_id::bf16 || d.format == format_id::fp16)) return;
  refuse("d: format must be fp32 or that of bf16 and fp16 operands, got ", d.format);
}

/// Requires cuBLASLt's layout of an operand's scales; `s` has the operand's lines in rows.
void check_layout(const const_matrix_view& s, const tile_shape& tile, const char* which) {
  if (s.data == nullptr) return;
  check_device(s, which);
  refuse_if(s.format != format_id::fp32, which, ": format must be fp32, got ", s.format);
  refuse_if(alignment_of(s.data) < 16, which, ": must be aligned to 16 bytes");
  const bool square = tile.rows > 1;
  const std::int64_t row = square ? (s.cols + 3) / 4 * 4 : 1, col = square ? 1 : s.rows;
  if ((s.rows == 1 || s.row_stride == row) && (s.cols == 1 || s.col_stride == col)) return;
  refuse(which, ": scales of tiles ", tile, " must have strides of ", row, " and ", col,
         " elements along lines and K, got ", s.row_stride, " and ", s.col_stride);
}

tile_shape turned(const tile_shape& t) { return {t.cols, t.rows}; }

/// The checked call of a product in device memory.
matmul_call device_call(const const_matrix_view& a, const const_matrix_view& b,
                        const matrix_view& d, const matmul_plan_options& options) {
  const operand_scales &of_a = options.a_scales, &of_b = options.b_scales;
  const bool fp8 = is_fp8(a.format);
  const auto along_k = [](const operand_scales& s, std::int64_t tile) {
    return s.values.data != nullptr && tile == 128;
  };
  const bool tiles = along_k(of_a, of_a.tile.cols) || along_k(of_b, of_b.tile.rows);
  refuse_if(options.fast_accumulation && (!fp8 || tiles),
            "options.fast_accumulation: needs FP8 operands without scales along K");
  check_formats(a, b, d);
  refuse_if((of_a.values.data == nullptr) != (of_b.values.data == nullptr),
            "a_scales, b_scales: must be given for both operands or for none");
  refuse_if(!fp8 && of_a.values.data != nullptr, "a_scales, b_scales: need FP8 operands");
  const accumulator sum = accumulator::tensor_core(tensor_unit::hopper_wgmma,
                                                   fp8 && !options.fast_accumulation ? 128 : 0);
  const matrix_view to = {d.data,       d.format,          d.rows, d.cols, d.row_stride,
                          d.col_stride, memory_space::host};
  matmul_call call = checked_matmul(on_host(a), on_host(b), to, sum,
                                    {.a_scales = {on_host(of_a.values), of_a.tile},
                                     .b_scales = {on_host(of_b.values), of_b.tile}});
  check_disjoint(call);
  for (const auto& [v, which] : {std::pair{a, "a"}, {b, "b"}, {const_matrix_view(d), "d"}}) {
    check_device(v, which);
    refuse_if(is_empty(v), which, ": sizes must be at least 1");
  }
  check_dense(a, "a", true, !fp8);
  check_dense(b, "b", !fp8, true);
  check_dense(d, "d", true, false);
  check_layout(of_a.values, of_a.tile, "options.a_scales.values");
  check_layout(transposed(of_b.values), turned(of_b.tile), "options.b_scales.values");
  call.a = a;
  call.b = b;
  call.d = d;
  call.a_scales.values = of_a.values;
  call.b_scales.values = of_b.values;
  return call;
}

/// Requires a view that differs from the plan's in its address alone, and is aligned as well.
void check_planned(const const_matrix_view& v, const const_matrix_view& planned,
                   const char* which) {
  check_shape(v, which, planned.rows, planned.cols);
  check_format_of(v, which, planned, "the plan");
  refuse_if(v.row_stride != planned.row_stride || v.col_stride != planned.col_stride, which,
            ": strides must be those of the plan, ", planned.row_stride, " and ",
            planned.col_stride, ", got ", v.row_stride, " and ", v.col_stride);
  refuse_if(alignment_of(v.data) < alignment_of(planned.data), which, ": must be aligned to ",
            alignment_of(planned.data), " bytes as in the plan, got ", alignment_of(v.data));
}

/// The device that holds all memory of a call, `expected` unless that is no_device.
int device_of_product(const matmul_call& call, int expected) {
  device_finder finder(memory_space::device);
  finder.add_device(expected, "the plan");
  finder.add(call.a.data, "a");
  finder.add(call.b.data, "b");
  finder.add(call.d.data, "d");
  finder.add(call.a_scales.values.data, "options.a_scales.values");
  finder.add(call.b_scales.values.data, "options.b_scales.values");
  return finder.device() != no_device ? finder.device() : current_device_number();
}

}  // namespace
}  // namespace backends

matmul_plan::matmul_plan(const const_matrix_view& a, const const_matrix_view& b,
                         const matrix_view& d, const matmul_plan_options& options,
                         const executor& where) {
  backends::matmul_call call = backends::device_call(a, b, d, options);
  const auto has = [](const backends::backend& one) { return one.plan_product != nullptr; };
  const backends::backend& chosen =
      backends::backend_for(has, memory_space::device, where, "cannot plan products");
  const int device = backends::device_of_product(call, backends::no_device);
  const backends::device_scope on(memory_space::device, device, where.stream,
                                  backends::completion::awaited);
  auto product = chosen.plan_product(call, where.stream);
  data_ = std::make_shared<backends::matmul_plan_data>(
      backends::matmul_plan_data{call, device, std::move(product)});
}

const accumulator& matmul_plan::rule() const { return data_->call.sum; }

const std::string& matmul_plan::algorithm() const { return data_->product->algorithm(); }

void matmul_plan::run(const const_matrix_view& a, const const_matrix_view& b, const matrix_view& d,
                      const matmul_plan_options& options, const executor& where) const {
  const backends::matmul_call call = backends::device_call(a, b, d, options);
  const backends::matmul_call& planned = data_->call;
  backends::check_planned(a, planned.a, "a");
  backends::check_planned(b, planned.b, "b");
  backends::check_planned(d, planned.d, "d");
  refuse_if(
      call.sum.promotion != planned.sum.promotion ||
          (call.a_scales.values.data == nullptr) != (planned.a_scales.values.data == nullptr) ||
          call.a_scales.tile != planned.a_scales.tile ||
          call.b_scales.tile != planned.b_scales.tile,
      "options: accumulation and tiles must be those of the plan");
  const backends::device_scope on(memory_space::device,
                                  backends::device_of_product(call, data_->device), where.stream);
  data_->product->run(call, where.stream);
}

}  // namespace samebits
