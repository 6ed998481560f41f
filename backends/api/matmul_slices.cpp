// Products whose K is divided into slices: the backend multiplies the slices, this file adds them.
#include "backends/api/matmul_slices.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "backends/dispatch/matmul_element.hpp"
#include "numerics/arithmetic/binary32.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/hardware/k_slices.hpp"

namespace samebits::backends {
namespace {

std::uint32_t rounded(format_id format, std::uint32_t x) {
  return numerics::encode<std::uint32_t>(spec_of(format), cast_rule{}, x, 0).code;
}

/// A copy of the columns `k` of an operand [lines, K].
class columns_of {
 public:
  columns_of(const const_matrix_view& v, const std::vector<std::int64_t>& k, bool to_tf32)
      : format_(to_tf32 ? format_id::tf32 : v.format),
        rows_(v.rows),
        cols_(static_cast<std::int64_t>(k.size())),
        bytes_(static_cast<std::size_t>(rows_ * cols_ * storage_bytes(format_))) {
    const auto identity = [](auto code) { return code; };
    if (to_tf32) {
      copy<std::uint32_t>(v, k, [&](std::uint32_t code) { return rounded(format_, code); });
    } else if (storage_bytes(v.format) == 4) {
      copy<std::uint32_t>(v, k, identity);
    } else if (storage_bytes(v.format) == 2) {
      copy<std::uint16_t>(v, k, identity);
    } else {
      copy<std::uint8_t>(v, k, identity);
    }
  }
  [[nodiscard]] const_matrix_view view() const {
    return {bytes_.data(), format_, rows_, cols_, cols_, 1};
  }

 private:
  template <class Code, class Change>
  void copy(const const_matrix_view& v, const std::vector<std::int64_t>& k, const Change& change) {
    constexpr auto bytes_each = static_cast<std::int64_t>(sizeof(Code));
    std::byte* to = bytes_.data();
    for (std::int64_t r = 0; r < rows_; ++r) {
      const std::byte* const from = element_at(v, r, 0);
      for (const std::int64_t i : k) {
        Code code = 0;
        if (i != numerics::no_element) {
          std::memcpy(&code, from + i * v.col_stride * bytes_each, sizeof(Code));
          code = change(code);
        }
        std::memcpy(to, &code, sizeof(Code));
        to += sizeof(Code);
      }
    }
  }

  format_id format_;
  std::int64_t rows_;
  std::int64_t cols_;
  std::vector<std::byte> bytes_;
};

/// Whether binary32 chains are promoted. Backends promote those of tensor cores.
bool is_promoted(const accumulator& sum) {
  return sum.kind == accumulator_kind::ieee_fp32 && sum.promotion != 0;
}

/// Sums of all elements of D, in row-major order: binary32 bits.
using sums = std::vector<std::uint32_t>;

class sliced_product {
 public:
  sliced_product(const backend& by, const matmul_call& call, const executor& where)
      : by_(by),
        call_(call),
        where_(where),
        slices_(call.sum, call.a.cols,
                call.sum.kind == accumulator_kind::tensor_core ? call.unit.products : 1) {}

  void run() const {
    sums total = call_.sum.slice_sum == slice_sum::halves ? halves() : ascending();
    round_if(slice_rounding::each, total);
    std::size_t at = 0;
    for (std::int64_t i = 0; i < call_.d.rows; ++i) {
      for (std::int64_t j = 0; j < call_.d.cols; ++j) finish_element(call_, i, j, total[at++]);
    }
  }

 private:
  [[nodiscard]] sums sum_of_slice(std::int64_t i) const {
    std::vector<std::int64_t> k;
    slices_.for_each(i, [&](std::int64_t element) { k.push_back(element); });
    if (!is_promoted(call_.sum)) {
      return rounded_if_each(chain(k, i == 0 && has_first_addend(call_)));
    }
    const auto count = static_cast<std::int64_t>(k.size());
    const std::int64_t step = call_.sum.promotion;
    sums s(static_cast<std::size_t>(call_.d.rows * call_.d.cols));  // of +0
    for (std::int64_t from = 0; from < count; from += step) {
      add(s, chain({k.begin() + from, k.begin() + std::min(count, from + step)}, false));
    }
    return rounded_if_each(std::move(s));
  }

  /// The backend's product of the elements `k`.
  [[nodiscard]] sums chain(const std::vector<std::int64_t>& k, bool with_c) const {
    const columns_of a(call_.a, k, call_.sum.fp32_as_tf32);
    const columns_of b(transposed(call_.b), k, call_.sum.fp32_as_tf32);
    sums s(static_cast<std::size_t>(call_.d.rows * call_.d.cols));
    matmul_call part = call_;
    part.a = a.view();
    part.b = transposed(b.view());
    part.d = {s.data(), format_id::fp32, call_.d.rows, call_.d.cols, call_.d.cols, 1};
    part.a_scales.values = part.b_scales.values = {};
    if (!with_c) part.c = {};
    by_.matmul.run(part, where_);
    return s;
  }

  [[nodiscard]] sums rounded_if_each(sums s) const {
    round_if(slice_rounding::each, s);
    return s;
  }

  void round_if(slice_rounding when, sums& s) const {
    if (call_.sum.slice_rounding != when) return;
    const format_id d = call_.d.format;
    for (std::uint32_t& x : s) x = numerics::decode<std::uint32_t>(spec_of(d), rounded(d, x));
  }

  static void add(sums& to, const sums& s) {
    for (std::size_t i = 0; i < s.size(); ++i) to[i] = numerics::binary32::add(to[i], s[i]);
  }

  void add_c(sums& to) const {
    std::size_t at = 0;
    for (std::int64_t i = 0; i < call_.d.rows; ++i) {
      for (std::int64_t j = 0; j < call_.d.cols; ++j, ++at) {
        to[at] = numerics::binary32::add(to[at], binary32_at(call_.c, i, j));
      }
    }
  }

  [[nodiscard]] sums ascending() const {
    sums total = sum_of_slice(0);
    if (call_.c.data != nullptr && call_.c_enters == addend::after_first_slice) add_c(total);
    round_if(slice_rounding::running, total);
    for (std::int64_t i = 1; i < slices_.count(); ++i) {
      add(total, sum_of_slice(i));
      round_if(slice_rounding::running, total);
    }
    return total;
  }

  [[nodiscard]] sums halves() const {
    std::vector<std::int64_t> counts = {slices_.count()};
    while (counts.back() > 1) counts.push_back(counts.back() / 2 + counts.back() % 2);
    return sum_in_halves(counts, counts.size() - 1, 0);
  }

  /// Sum number i of those counts[level] that are left after so many halvings.
  [[nodiscard]] sums sum_in_halves(const std::vector<std::int64_t>& counts, std::size_t level,
                                   std::int64_t i) const {
    if (level == 0) return sum_of_slice(i);
    sums s = sum_in_halves(counts, level - 1, i);
    const std::int64_t other = i + counts[level];
    if (other < counts[level - 1]) add(s, sum_in_halves(counts, level - 1, other));
    return s;
  }

  const backend& by_;
  const matmul_call& call_;
  const executor& where_;
  numerics::k_slices slices_;
};

}  // namespace

bool is_in_slices(const matmul_call& call) {
  return call.sum.slices != 1 || call.sum.residue_tile != 0 || call.sum.fp32_as_tf32 ||
         call.sum.slice_rounding != slice_rounding::none || is_promoted(call.sum) ||
         call.c_enters == addend::after_first_slice;
}

void multiply_in_slices(const backend& by, const matmul_call& call, const executor& where) {
  sliced_product(by, call, where).run();
}

}  // namespace samebits::backends
