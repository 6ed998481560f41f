// The elements of a tensor, chunk by chunk, as float or double.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "fpinspect/tensors/meters/chunk_tree.hpp"
#include "fpinspect/tensors/source/source.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"
#include "tensor_file/tensor.hpp"

namespace fpinspect {

/// Converts `count` codes on this thread, by nearest_even, canonical and this overflow policy.
void convert_codes(samebits::format_id from, const void* in, samebits::format_id to, void* out,
                   std::size_t count, samebits::overflow policy, std::string_view backend);

/// The elements of one tensor.
struct element_source {
  const samebits::tensor_file::tensor_file& file;
  const samebits::tensor_file::tensor_info& info;
  const element_reading& how;
  std::optional<std::span<const std::byte>> in_place = view_elements(file, info, how);

  /// Number of chunks of chunk_elements elements; the last one may be shorter.
  [[nodiscard]] std::size_t chunks() const {
    return static_cast<std::size_t>((info.count + chunk_elements - 1) / chunk_elements);
  }
};

/// Reads chunks: the memory of one thread.
class chunk_reader {
 public:
  explicit chunk_reader(std::string_view backend) : backend_(backend) {}

  /// Calls f(elements) with the elements of a chunk: a span of double for fp64, else of float.
  template <class Function>
  void with_elements(const element_source& source, std::size_t chunk, const Function& f) {
    using samebits::format_id;
    const std::uint64_t first = std::uint64_t{chunk} * chunk_elements;
    const auto size = static_cast<std::size_t>(
        std::min<std::uint64_t>(chunk_elements, source.info.count - first));
    const format_id format = source.how.format;
    const void* codes = codes_of(source, first, size);
    if (format == format_id::fp64) return f(std::span(static_cast<const double*>(codes), size));
    if (format != format_id::fp32) {
      floats_.resize(chunk_elements);
      convert_codes(format, codes, format_id::fp32, floats_.data(), size, samebits::overflow::ieee,
                    backend_);
      codes = floats_.data();
    }
    f(std::span(static_cast<const float*>(codes), size));
  }

 private:
  /// Elements [first, first + size) in the file or in memory.
  const void* codes_of(const element_source& source, std::uint64_t first, std::size_t size);

  std::string_view backend_;
  std::vector<double> codes_;  ///< aligned for every format
  std::vector<float> floats_;
};

}  // namespace fpinspect
