// Calls that the Python package lacks, for bench.py, which loads this library by ctypes: results without flags,
// lists that are made once, reductions and statistics that stay on the device. Options come by their names. An
// exception ends the process with its message.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "samebits/samebits.hpp"

namespace {

using namespace samebits;

/// Where a call runs. SAMEBITS_BACKEND names the backend.
struct place {
  void* stream;
  std::int32_t threads;
  std::int32_t on_device;

  [[nodiscard]] executor where() const { return {{}, threads, stream}; }
  [[nodiscard]] matrix_view view(void* data, format_id format, std::int64_t rows,
                                 std::int64_t cols) const {
    const matrix_view v = view_of_codes(format, data, rows, cols);
    return on_device != 0 ? samebits::on_device(v) : v;
  }
};

template <class Enum>
Enum named(const char* text) {
  return find_enumerator<Enum>(text).value();
}

}  // namespace

extern "C" {

/// Converts from fp32 to bf16: the time of a small call without Python's share.
void bench_convert(void* in, void* out, std::int64_t count, const place* p) {
  convert(p->view(in, format_id::fp32, 1, count), p->view(out, format_id::bf16, 1, count), {},
          p->where());
}

/// Computes `op` of the operands [3], without flags.
void bench_compute(const char* op, const char* format, const char* rounding_name,
                   const char* overflow_name, void* const* in, void* out, std::int64_t count,
                   const place* p) {
  const auto view = [&](void* data) {
    return p->view(data, find_format(format).value(), 1, count);
  };
  compute(named<operation>(op), {view(in[0]), view(in[1]), view(in[2])}, view(out),
          {.rounding = named<rounding>(rounding_name),
           .overflow = named<overflow>(overflow_name),
           .random = {.seed = 1}},
          p->where());
}

/// Enqueues a reduction of device memory. `result` has room for element_counts.
void bench_reduce(const char* what, const char* format, void* x, void* y, std::int64_t count,
                  void* result, const place* p) {
  const const_matrix_view a = p->view(x, find_format(format).value(), 1, count);
  const const_matrix_view b = p->view(y, a.format, 1, count);
  const std::string_view name = what;
  auto* const to = static_cast<double*>(result);
  if (name == "amax") {
    enqueue_amax(a, static_cast<float*>(result), p->where());
  } else if (name == "counts") {
    enqueue_counts(a, static_cast<element_counts*>(result), p->where());
  } else if (name == "sum") {
    enqueue_sum(a, to, {}, p->where());
  } else if (name == "sum_of_squares") {
    enqueue_sum_of_squares(a, to, {}, p->where());
  } else {
    enqueue_dot(a, b, to, {name == "fp32 dot" ? accumulation::fp32 : accumulation::fp64}, {},
                p->where());
  }
}

/// Quantizes a matrix by rule te into e4m3, with statistics.
void bench_statistics(const char* from, void* in, std::int64_t rows, std::int64_t cols,
                      std::int64_t tile_rows, std::int64_t tile_cols, void* codes, void* scales,
                      void* statistics, const place* p) {
  const tile_shape tile = {tile_rows, tile_cols};
  const matrix_shape grid = scales_shape(rows, cols, tile);
  quantize(p->view(in, find_format(from).value(), rows, cols),
           {.codes = p->view(codes, format_id::e4m3, rows, cols),
            .scales = p->view(scales, format_id::fp32, grid.rows, grid.cols),
            .statistics = static_cast<quantize_statistics*>(statistics)},
           {.tile = tile}, p->where());
}

/// Returns a list of tensors, which stays until the process ends.
const tensor_list* bench_tensors(const char* format, void* const* data, const std::int64_t* sizes,
                                 std::int64_t count, const place* p) {
  std::vector<matrix_view> views;
  for (std::int64_t i = 0; i < count; ++i) {
    views.push_back(p->view(data[i], find_format(format).value(), 1, sizes[i]));
  }
  return new tensor_list(views);
}

/// Runs an operation on a list; `other` are sums or results.
void bench_list(const char* what, const tensor_list* list, const tensor_list* other,
                const char* rounding_name, const place* p) {
  const std::string_view name = what;
  if (name == "inspect") {
    inspect(*list, {}, p->where());
  } else if (name == "unscale") {
    unscale(*list, 1.0f, p->where());
  } else if (name == "scale") {
    scale(*list, 1.0f, p->where());
  } else if (name == "accumulate") {
    accumulate(*other, *list, {}, p->where());
  } else {
    cast(*list, *other,
         {.rounding = named<rounding>(rounding_name), .random = {.seed = 1, .bits = 16}},
         p->where());
  }
}

/// Returns a list of matrices [sizes[2 i], sizes[2 i + 1]] with memory for e4m3 codes and their scales.
const quantize_list* bench_matrices(const char* format, void* const* data, void* const* codes,
                                    void* const* scales, const std::int64_t* sizes,
                                    std::int64_t count, std::int64_t tile_rows,
                                    std::int64_t tile_cols, const char* rule, const place* p) {
  const tile_shape tile = {tile_rows, tile_cols};
  const auto scale = named<scale_rule>(rule);
  std::vector<quantize_item> items;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t rows = sizes[2 * i], cols = sizes[2 * i + 1];
    const matrix_shape grid = scales_shape(rows, cols, tile);
    const format_id scale_format = is_mx(scale) ? format_id::e8m0 : format_id::fp32;
    items.push_back(
        {.in = p->view(data[i], find_format(format).value(), rows, cols),
         .outputs = {.codes = p->view(codes[i], format_id::e4m3, rows, cols),
                     .scales = p->view(scales[i], scale_format, grid.rows, grid.cols)}});
  }
  return new quantize_list(std::move(items),
                           {.tile = tile, .scale = scale, .nonfinite = nonfinite::skip_nan});
}

void bench_quantize(const quantize_list* list, const place* p) { quantize(*list, p->where()); }

}  // extern "C"
