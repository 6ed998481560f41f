// Reference unscale: element after element, products and rounding in integers.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/view_checks.hpp"
#include "numerics/binary32.hpp"
#include "numerics/decode.hpp"
#include "numerics/encode.hpp"
#include "samebits/error.hpp"
#include "samebits/loss_scaler.hpp"
#include "samebits/rounding.hpp"

namespace samebits {
namespace {

/// A tensor that stands in the list twice, as tied weights do, would be unscaled twice.
void check_no_repetition(std::span<const matrix_view> tensors) {
  std::vector<std::pair<const void*, std::size_t>> starts;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!backends::is_empty(tensors[i])) starts.emplace_back(tensors[i].data, i);
  }
  std::sort(starts.begin(), starts.end());
  for (std::size_t i = 1; i < starts.size(); ++i) {
    if (starts[i - 1].first != starts[i].first) continue;
    throw invalid_argument("tensors[" + std::to_string(starts[i - 1].second) + "] and tensors[" +
                           std::to_string(starts[i].second) +
                           "] begin at the same element, which would be unscaled twice");
  }
}

void check(std::span<const matrix_view> tensors, float inverse_scale) {
  if (!(inverse_scale >= 0)) {
    throw invalid_argument("inverse_scale: must be a number >= 0");
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const matrix_view& t = tensors[i];
    const std::string which = "tensors[" + std::to_string(i) + "]";
    backends::check_view(t, which.c_str());
    if (t.format != format_id::fp32 && t.format != format_id::fp16 && t.format != format_id::bf16) {
      throw invalid_argument(which + ": format must be fp32, fp16 or bf16, got " +
                             std::string(name(t.format)));
    }
    if (t.space != memory_space::host) {
      throw invalid_argument(which + ": must lie in host memory");
    }
    backends::check_distinct(t, which.c_str());
  }
  check_no_repetition(tensors);
}

/// One element's code, unscaled; what it was and became goes into the report.
template <class Storage>
Storage unscaled(const format_spec& format, Storage code, std::uint32_t inverse,
                 unscale_report& report) {
  const auto x = numerics::decode<std::uint32_t>(format, code);
  const std::uint32_t magnitude = numerics::binary32::magnitude(x);
  const std::uint32_t counted =
      magnitude > numerics::binary32::inf ? numerics::binary32::nan : magnitude;
  report.amax = report.amax < counted ? counted : report.amax;
  const std::uint32_t product = numerics::binary32::multiply(x, inverse);
  const auto result =
      static_cast<Storage>(numerics::encode<std::uint32_t>(format, cast_rule{}, product, 0).code);
  const std::uint32_t after =
      numerics::binary32::magnitude(numerics::decode<std::uint32_t>(format, result));
  if (magnitude >= numerics::binary32::inf) {
    ++report.nonfinite;
  } else if (after >= numerics::binary32::inf) {
    ++report.overflowed;
  }
  return result;
}

template <class Storage>
void unscale_tensor(const matrix_view& t, std::uint32_t inverse, unscale_report& report) {
  const format_spec& format = spec_of(t.format);
  auto* const data = static_cast<std::byte*>(t.data);
  for (std::int64_t r = 0; r < t.rows; ++r) {
    for (std::int64_t c = 0; c < t.cols; ++c) {
      std::byte* const at =
          data + (r * t.row_stride + c * t.col_stride) * static_cast<std::int64_t>(sizeof(Storage));
      Storage code;
      std::memcpy(&code, at, sizeof code);
      code = unscaled(format, code, inverse, report);
      std::memcpy(at, &code, sizeof code);
    }
  }
}

}  // namespace

unscale_report unscale(std::span<const matrix_view> tensors, float inverse_scale) {
  check(tensors, inverse_scale);
  const auto inverse = std::bit_cast<std::uint32_t>(inverse_scale);
  unscale_report report;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const matrix_view& t = tensors[i];
    const std::uint64_t bad_before = report.nonfinite + report.overflowed;
    if (t.format == format_id::fp32) {
      unscale_tensor<std::uint32_t>(t, inverse, report);
    } else {
      unscale_tensor<std::uint16_t>(t, inverse, report);
    }
    report.count += static_cast<std::uint64_t>(t.rows) * static_cast<std::uint64_t>(t.cols);
    const bool bad = report.nonfinite + report.overflowed != bad_before;
    if (bad && report.first_bad < 0) report.first_bad = static_cast<std::int64_t>(i);
  }
  return report;
}

}  // namespace samebits
