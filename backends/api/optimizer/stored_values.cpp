// store() and load(): check the arguments and choose a backend.
#include <cstdint>
#include <string>
#include <vector>

#include "backends/api/view_checks.hpp"
#include "backends/dispatch/calls/optimizer.hpp"
#include "backends/dispatch/device_scope.hpp"
#include "samebits/error.hpp"
#include "samebits/optimizer.hpp"

namespace samebits {
namespace {

/// One of a call's arrays, as a view of codes of the same size.
struct viewed_array {
  const_matrix_view codes;
  std::string name;
};

[[noreturn]] void refuse(const std::string& which, const std::string& what) {
  throw invalid_argument(which + ": " + what);
}

/// The format with which a step reads and writes a view's codes.
stored_format format_of_view(const const_matrix_view& v, const std::string& which) {
  backends::check_view(v, which.c_str());
  const bool is_dense =
      (v.cols <= 1 || v.col_stride == 1) && (v.rows <= 1 || v.row_stride == v.cols);
  if (!is_dense && !backends::is_empty(v)) {
    refuse(which, "must have no gaps between elements, got shape " +
                      backends::shape_text(v.rows, v.cols) + " with row_stride " +
                      std::to_string(v.row_stride) + ", col_stride " +
                      std::to_string(v.col_stride));
  }
  switch (v.format) {
    case format_id::fp32: return stored_format::fp32;
    case format_id::bf16: return stored_format::bf16_nearest;
    case format_id::fp16: return stored_format::fp16_nearest;
    default: refuse(which, "format must be fp32, bf16 or fp16, got " + std::string(name(v.format)));
  }
}

void check_options(const stored_array& a, const std::string& which, const store_options& options) {
  backends::check_value((which + ".format").c_str(), a.format, "stored_format");
  backends::check_value("options.low_kind", options.low_kind, "low_part");
  if (a.format == stored_format::none || a.format == stored_format::e4m3_tensor ||
      a.format == stored_format::e5m2_tensor) {
    refuse(which + ".format",
           "must be a format of weights or states, got " + std::string(name(a.format)));
  }
  if (options.low_kind != low_part::none && a.format != stored_format::bf16_nearest) {
    refuse("options.low", "needs codes in bf16_nearest, got " + std::string(name(a.format)));
  }
  if (options.low_kind == low_part::none && options.low != nullptr) {
    refuse("options.low", "must be null, because low_kind is none");
  }
  if (options.block != 128 && options.block != 256) {
    refuse("options.block", "must be 128 or 256, got " + std::to_string(options.block));
  }
  if (has_block_scales(a.format) && options.first_index % options.block != 0) {
    refuse("options.first_index", "must be a multiple of block, because the array has scales");
  }
}

/// Requires arrays that are not null, are aligned, and do not overlap.
void check_arrays(const std::vector<viewed_array>& arrays) {
  for (const viewed_array& a : arrays) {
    if (backends::is_empty(a.codes)) continue;
    const auto bytes = static_cast<std::uintptr_t>(storage_bytes(a.codes.format));
    if (a.codes.data == nullptr) refuse(a.name, "must not be null");
    if (reinterpret_cast<std::uintptr_t>(a.codes.data) % bytes != 0) {
      refuse(a.name, "must be aligned to " + std::to_string(bytes) + " bytes");
    }
    for (const viewed_array* b = arrays.data(); b != &a; ++b) {
      backends::check_apart(a.codes, a.name, b->codes, b->name);
    }
  }
}

numerics::update_row row_of_array(const stored_array& a, std::int64_t count,
                                  const store_options& options) {
  numerics::update_row row = {};
  row.weights = {static_cast<std::byte*>(a.codes),
                 has_block_scales(a.format) ? reinterpret_cast<std::uint32_t*>(a.scales) : nullptr};
  row.weights_format = a.format;
  row.low = static_cast<std::byte*>(options.low);
  row.low_kind = options.low_kind;
  row.count = count;
  row.first_index = options.first_index;
  row.block = options.block;
  return row;
}

/// The arrays of a call with checked formats and options.
struct checked_arrays {
  numerics::update_row values;
  numerics::update_row stored;
  std::vector<viewed_array> all;
};

checked_arrays checked(const const_matrix_view& values, const std::string& values_name,
                       const stored_array& stored, const std::string& stored_name,
                       const store_options& options) {
  // load() alone writes the values; its view is writable.
  const stored_array plain = {const_cast<void*>(values.data), format_of_view(values, values_name)};
  check_options(stored, stored_name, options);
  const std::int64_t count = values.rows * values.cols;
  checked_arrays arrays = {
      row_of_array(plain, count, {}), row_of_array(stored, count, options), {}};
  const auto add = [&](const void* codes, int bytes, std::int64_t n, const std::string& name) {
    const format_id format = bytes == 4   ? format_id::fp32
                             : bytes == 2 ? format_id::bf16
                                          : format_id::e4m3;
    arrays.all.push_back({{codes, format, 1, n, n, 1, values.space}, name});
  };
  add(plain.codes, code_bytes(plain.format), count, values_name);
  add(stored.codes, code_bytes(stored.format), count, stored_name + ".codes");
  if (has_block_scales(stored.format)) {
    const std::int64_t blocks = count / options.block + (count % options.block != 0 ? 1 : 0);
    add(stored.scales, 4, blocks, stored_name + ".scales");
  } else if (options.low_kind != low_part::none) {
    add(options.low, 2, count, "options.low");
  }
  return arrays;
}

void run(const backends::store_call& call, const std::vector<viewed_array>& arrays,
         const executor& where) {
  backends::check_threads(where);
  check_arrays(arrays);
  const auto argument = [](const viewed_array& a) {
    return backends::named_address{backends::address_of(a.codes), a.name.c_str()};
  };
  const memory_space space = arrays[0].codes.space;
  const backends::device_scope on(
      space, {argument(arrays[0]), argument(arrays[1]), argument(arrays.back())}, where.stream);
  const auto has = [&](const backends::backend& b) { return b.store.has(call); };
  const backends::backend& chosen = backends::resolve(where, space, has);
  backends::check_memory(chosen, space);
  if (!has(chosen)) {
    throw unsupported("backend '" + std::string(chosen.name) + "' has no stored values");
  }
  if (call.to.count != 0) chosen.store.run(call, where);
}

}  // namespace

void store(const const_matrix_view& values, const stored_array& to, const store_options& options,
           const executor& where) {
  const checked_arrays arrays = checked(values, "values", to, "to", options);
  run({arrays.values, arrays.stored, options.seed, options.stream}, arrays.all, where);
}

void load(const stored_array& from, const matrix_view& out, const store_options& options,
          const executor& where) {
  const checked_arrays arrays = checked(out, "out", from, "from", options);
  run({arrays.stored, arrays.values, options.seed, options.stream}, arrays.all, where);
}

}  // namespace samebits
