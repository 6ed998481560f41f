// Lists of tensors for tests of tensor lists: every tensor in one block of memory, which can be
// copied to wherever an executor works.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/core/choices.hpp"
#include "samebits/core/format.hpp"
#include "samebits/tensor_list.hpp"

namespace samebits::support {

/// What the elements of a list are.
enum class list_content : std::uint8_t {
  ordinary,    ///< of both signs around 1
  small,       ///< zeros of both signs, subnormals, the smallest normal numbers; all finite
  any_bits,    ///< uniform bits, so NaN and Inf too
  every_code,  ///< of casts alone: codes in order
};

/// A code of fp32, fp16, bf16, e4m3 or e5m2.
std::uint32_t draw_list_code(format_id format, list_content content, const word_source& next);

/// What tensors are multiplied by: no NaN, seldom Inf; most are near 1.
float draw_list_factor(const word_source& next);

/// How a list looks.
struct list_shape {
  std::size_t tensors = 0;
  std::int64_t max_elements = 0;   ///< of a tensor; sizes are random, from 0 on
  std::vector<format_id> formats;  ///< in turn, from a random one on
  list_content content = list_content::ordinary;
  std::uint64_t seed = 0;
};

/// The tensors' offsets in the block and its bytes. Lists of equal tensors, max_elements and seed
/// have the same rows and columns, whatever their formats. One tensor in eight has gaps in or
/// between its rows; nearly none is aligned to more than its elements, every other not even to
/// those.
class test_list {
 public:
  explicit test_list(const list_shape& shape);

  /// The list as it lies in a copy of bytes() at `base`.
  [[nodiscard]] tensor_list listed(std::byte* base, memory_space space = memory_space::host) const;
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  struct placed_tensor {
    std::size_t offset;  ///< bytes
    matrix_view view;    ///< without data
  };
  std::vector<placed_tensor> tensors_;
  std::vector<std::byte> bytes_;
};

/// A list and the host memory of its tensors.
struct placed_list {
  explicit placed_list(const list_shape& like) : shape(like), memory(shape.bytes()) {}
  [[nodiscard]] tensor_list listed() { return shape.listed(memory.data()); }

  test_list shape;
  std::vector<std::byte> memory;
};

}  // namespace samebits::support
