// store() and load(): check the arguments and choose a backend.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backends/api/run_call.hpp"
#include "backends/dispatch/calls/optimizer.hpp"
#include "backends/dispatch/device_scope.hpp"
#include "backends/dispatch/refuse.hpp"
#include "samebits/optimizer.hpp"

namespace samebits {
namespace {

/// A contiguous array of a call.
struct argument {
  std::string name;
  const void* codes;
  std::int64_t count;
  int bytes;  ///< of a code

  [[nodiscard]] auto begin() const { return reinterpret_cast<std::uintptr_t>(codes); }
  [[nodiscard]] auto end() const { return begin() + static_cast<std::uintptr_t>(count * bytes); }
};

/// The format with which a step reads and writes a view's codes.
stored_format format_of_view(const const_matrix_view& v, const char* which) {
  backends::check_view(v, which);
  require(backends::is_dense(v), which, ": must have no gaps between elements");
  switch (v.format) {
    case format_id::fp32: return stored_format::fp32;
    case format_id::bf16: return stored_format::bf16_nearest;
    case format_id::fp16: return stored_format::fp16_nearest;
    default: break;
  }
  refuse(which, ": format must be fp32, bf16 or fp16, got ", v.format);
}

void check_options(const stored_array& a, const std::string& which, const store_options& o) {
  using enum stored_format;
  backends::check_value((which + ".format").c_str(), a.format, "stored_format");
  backends::check_value("options.low_kind", o.low_kind, "low_part");
  require(a.format != none && a.format != e4m3_tensor && a.format != e5m2_tensor, which,
          ".format: must be a format of weights or states");
  require(o.low_kind == low_part::none || a.format == bf16_nearest, "options.low",
          ": needs codes in bf16_nearest");
  require(o.low_kind != low_part::none || o.low == nullptr, "options.low",
          ": must be null, because low_kind is none");
  require(o.block == 128 || o.block == 256, "options.block", ": must be 128 or 256");
  require(!has_block_scales(a.format) || o.first_index % o.block == 0, "options.first_index",
          ": must be a multiple of block, because the array has scales");
}

void check_arrays(const std::vector<argument>& all) {
  for (const argument& a : all) {
    require(a.codes != nullptr, a.name, ": must not be null");
    require(a.begin() % static_cast<std::uintptr_t>(a.bytes) == 0, a.name,
            a.bytes == 4 ? ": must be aligned to 4 bytes" : ": must be aligned to 2 bytes");
    for (const argument* b = all.data(); b != &a; ++b) {
      if (a.end() <= b->begin() || b->end() <= a.begin()) continue;
      refuse(a.name, " overlaps ", b->name);
    }
  }
}

numerics::update_row row_of_array(const stored_array& a, std::int64_t count,
                                  const store_options& options) {
  numerics::update_row row = {};
  row.weights.codes = static_cast<std::byte*>(a.codes);
  if (has_block_scales(a.format)) row.weights.scales = reinterpret_cast<std::uint32_t*>(a.scales);
  row.weights_format = a.format;
  row.low = static_cast<std::byte*>(options.low);
  row.low_kind = options.low_kind;
  row.count = count;
  row.first_index = options.first_index;
  row.block = options.block;
  return row;
}

enum class direction : std::uint8_t { store, load };

void run(direction way, const const_matrix_view& values, const stored_array& stored,
         const store_options& options, const executor& where) {
  const bool stores = way == direction::store;
  const char* const values_name = stores ? "values" : "out";
  const std::string stored_name = stores ? "to" : "from";
  const stored_format format = format_of_view(values, values_name);
  check_options(stored, stored_name, options);
  backends::check_threads(where);
  const std::int64_t count = values.rows * values.cols;
  std::vector<argument> all = {
      {values_name, values.data, count, code_bytes(format)},
      {stored_name + ".codes", stored.codes, count, code_bytes(stored.format)}};
  if (has_block_scales(stored.format)) {
    all.push_back({stored_name + ".scales", stored.scales, (count - 1) / options.block + 1, 4});
  }
  if (options.low_kind != low_part::none) all.push_back({"options.low", options.low, count, 2});
  if (count != 0) check_arrays(all);
  const auto address_of = [&](const argument& a) {
    return backends::named_address{count == 0 ? nullptr : a.codes, a.name.c_str()};
  };
  const backends::device_scope on(
      values.space, {address_of(all[0]), address_of(all[1]), address_of(all.back())}, where.stream);
  // Only load() writes the values, and its view is writable.
  const auto plain = row_of_array({const_cast<void*>(values.data), format}, count, {});
  const auto row = row_of_array(stored, count, options);
  const backends::store_call call = {stores ? plain : row, stores ? row : plain, options.seed,
                                     options.stream};
  backends::run_call(&backends::backend::store, call, values, where, "has no stored values");
}

}  // namespace

void store(const const_matrix_view& values, const stored_array& to, const store_options& options,
           const executor& where) {
  run(direction::store, values, to, options, where);
}

void load(const stored_array& from, const matrix_view& out, const store_options& options,
          const executor& where) {
  run(direction::load, out, from, options, where);
}

}  // namespace samebits
