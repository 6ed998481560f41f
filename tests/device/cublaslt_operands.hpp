// Operands of the witnesses of cuBLASLt: random numbers, device memory, samples of lines.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/dispatch/calls/matmul.hpp"
#include "device/device_copy.hpp"
#include "samebits/samebits.hpp"

namespace samebits::device_tests {

/// Bell-shaped numbers, the same on every machine.
inline std::vector<std::byte> draw(format_id format, std::int64_t count, std::uint64_t seed) {
  std::vector<float> x(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::uint32_t word = random_word(seed, 0, i);
    int sum = 0;
    for (int k = 0; k < 4; ++k) sum += static_cast<int>((word >> (8 * k)) & 0xFF);
    x[i] = static_cast<float>(sum - 510) / 148.0f;
  }
  std::vector<std::byte> codes(x.size() * static_cast<std::size_t>(storage_bytes(format)));
  convert(view_of(x.data(), 1, count), view_of_codes(format, codes.data(), 1, count), {}, {{}, 0});
  return codes;
}

/// A product in device memory, all dense: A [m, k] in rows, or in columns; B [k, n] in columns, as
/// the transpose of weights is, or in rows; D [m, n] in rows.
struct device_operands {
  std::int64_t m, n, k;
  format_id a, b;
  format_id d = format_id::fp32;
  bool a_columns = false;
  bool b_rows = false;

  [[nodiscard]] const_matrix_view a_view(const void* data) const {
    return on_device(a_columns ? transposed(view_of_codes(a, data, k, m))
                               : view_of_codes(a, data, m, k));
  }
  [[nodiscard]] const_matrix_view b_view(const void* data) const {
    return on_device(b_rows ? view_of_codes(b, data, k, n)
                            : transposed(view_of_codes(b, data, n, k)));
  }
  [[nodiscard]] matrix_view d_view(void* data) const {
    return on_device(view_of_codes(d, data, m, n));
  }
  /// The call, without checks, of sums with promotions after `promotion` elements of K.
  [[nodiscard]] backends::matmul_call call(const void* a_data, const void* b_data, void* d_data,
                                           std::int64_t promotion) const {
    backends::matmul_call c{};
    c.a = a_view(a_data), c.b = b_view(b_data), c.d = d_view(d_data);
    c.sum = accumulator::tensor_core(tensor_unit::hopper_wgmma, promotion);
    return c;
  }
};

/// A copy on the device.
class on_gpu {
 public:
  explicit on_gpu(std::size_t bytes) {
    support::check_cuda(cudaMalloc(&data_, std::max<std::size_t>(bytes, 1)), "cudaMalloc");
  }
  explicit on_gpu(const std::vector<std::byte>& from) : on_gpu(from.size()) {
    support::check_cuda(cudaMemcpy(data_, from.data(), from.size(), cudaMemcpyHostToDevice),
                        "cudaMemcpy");
  }
  ~on_gpu() { cudaFree(data_); }
  on_gpu(const on_gpu&) = delete;
  on_gpu& operator=(const on_gpu&) = delete;
  [[nodiscard]] void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

/// Some of n numbers, evenly, first and last among them.
inline std::vector<std::int64_t> sample(std::int64_t n, std::int64_t maximum) {
  std::vector<std::int64_t> all;
  const std::int64_t count = std::min(n, maximum);
  for (std::int64_t i = 0; i < count; ++i) {
    all.push_back(count == 1 ? 0 : i * (n - 1) / (count - 1));
  }
  return all;
}

/// Lines of `bytes` bytes each, those named.
inline std::vector<std::byte> lines_of(const std::vector<std::byte>& all,
                                       const std::vector<std::int64_t>& which, std::size_t bytes) {
  std::vector<std::byte> lines;
  for (const std::int64_t i : which) {
    const auto first =
        all.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(i) * bytes);
    lines.insert(lines.end(), first, first + static_cast<std::ptrdiff_t>(bytes));
  }
  return lines;
}

}  // namespace samebits::device_tests
