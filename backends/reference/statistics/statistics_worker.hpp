// What one thread of a pass owns: memory for a chunk in several forms, and its counts.
#pragma once

#include <string_view>
#include <type_traits>
#include <vector>

#include "backends/dispatch/element.hpp"
#include "backends/reference/statistics/chunk_loops.hpp"
#include "backends/reference/statistics/element_counters.hpp"
#include "samebits/convert.hpp"

namespace samebits::backends {

template <class Value>
constexpr format_id format_of_values = sizeof(Value) == 4 ? format_id::fp32 : format_id::fp64;

template <class Value>
class statistics_worker {
 public:
  statistics_worker(std::string_view backend, std::size_t cols)
      : columns(cols, -1), backend_(backend) {}

  /// The elements [first, first + count) of a view in row-major order: in place, or converted.
  std::span<const Value> load(const const_matrix_view& v, std::int64_t first, std::int64_t count) {
    const auto size = static_cast<std::size_t>(count);
    const bool dense = v.col_stride == 1 && (v.rows == 1 || v.row_stride == v.cols);
    if (dense && v.format == format_of_values<Value> &&
        reinterpret_cast<std::uintptr_t>(v.data) % sizeof(Value) == 0) {
      return {static_cast<const Value*>(v.data) + first, size};
    }
    values_.resize(statistics_chunk);
    Value* out = values_.data();
    while (count > 0) {
      const std::int64_t row = dense ? 0 : first / v.cols, col = dense ? first : first % v.cols;
      const std::int64_t cols = dense ? count : std::min(count, v.cols - col);
      const const_matrix_view part =
          part_of(v, row, col, cols == v.cols ? count / v.cols : 1, cols);
      convert_to(format_of_values<Value>, out, part);
      out += part.rows * part.cols;
      first += part.rows * part.cols;
      count -= part.rows * part.cols;
    }
    return std::span<const Value>(values_).first(size);
  }

  /// Calls f(products_) with the elements times 2^log2: as float if all products are exact and finite,
  /// else as double.
  template <class Function>
  void with_products(std::span<const Value> exact, int log2, const Function& f) {
    if constexpr (std::is_same_v<Value, float>) {
      bool fits = log2 >= 0;  // else a product may be subnormal and inexact
      products_.resize(statistics_chunk);
      const float factor = std::ldexp(1.0f, log2);
      for (std::size_t i = 0; i < exact.size(); ++i) {
        products_[i] = exact[i] * factor;
        fits = fits && std::isfinite(products_[i]);
      }
      if (fits) return f(std::span<const float>(products_).first(exact.size()));
    }
    // Products outside binary64 stay numbers that overflow, or underflow, in every format of casts_.
    using limits = std::numeric_limits<double>;
    doubles_.resize(statistics_chunk);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const auto x = static_cast<double>(exact[i]);
      double product = std::ldexp(x, log2);
      if (std::isfinite(x) && std::isinf(product)) product = std::copysign(limits::max(), x);
      if (x != 0 && product == 0) product = std::copysign(limits::denorm_min(), x);
      doubles_[i] = product;
    }
    f(std::span<const double>(doubles_).first(exact.size()));
  }

  /// The elements rounded to a format.
  template <class Exact>
  std::span<const float> rounded(format_id to, std::span<const Exact> exact, overflow policy) {
    constexpr format_id from = format_of_values<Exact>;
    if constexpr (from == format_id::fp32) {
      if (to == from) return exact;
    }
    const auto cols = static_cast<std::int64_t>(exact.size());
    casts_.resize(statistics_chunk);
    codes_.resize(statistics_chunk * sizeof(float));
    const bool is_float = to == format_id::fp32;
    void* const out = is_float ? static_cast<void*>(casts_.data()) : codes_.data();
    convert_to(to, out, view_of_codes(from, static_cast<const void*>(exact.data()), 1, cols),
               policy);
    if (!is_float) {
      convert_to(format_id::fp32, casts_.data(),
                 view_of_codes(to, static_cast<const void*>(codes_.data()), 1, cols));
    }
    return std::span<const float>(casts_).first(exact.size());
  }

  chunk_tree tree;
  chunk_range range;
  std::uint64_t first_nonfinite = ~std::uint64_t{0};
  binade_counter<Value> binades;
  amax_words<Value> columns;
  std::vector<std::uint64_t> counters;  ///< of percentiles

 private:
  void convert_to(format_id to, void* out, const const_matrix_view& in,
                  overflow policy = overflow::ieee) const {
    convert(in, view_of_codes(to, out, in.rows, in.cols), {.overflow = policy}, {backend_, 1});
  }

  std::string_view backend_;
  std::vector<Value> values_;
  std::vector<std::byte> codes_;
  std::vector<float> products_, casts_;
  std::vector<double> doubles_;
};

}  // namespace samebits::backends
