// The root of the tree of sums (contract §6) over the elements of a chunk, in vectorised loops.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace fpinspect {

/// Number of elements of a chunk: a subtree of contract §6's tree.
inline constexpr std::size_t chunk_elements = std::size_t{1} << 15;

/// The memory for the levels of a tree over up to chunk_elements inputs.
class chunk_tree {
 public:
  /// The root over the inputs input(i), i in [0, size); +0 if size is 0.
  template <class Input>
  double root_over(std::size_t size, const Input& input) {
    std::array<double, chunk_elements / block> roots{};
    std::size_t blocks = 0;
    for (std::size_t first = 0; first < size; first += block) {
      const std::size_t part = std::min(block, size - first);
      const std::size_t pairs = part / 2;
      for (std::size_t i = 0; i < pairs; ++i) {
        inputs_[i] = input(first + 2 * i) + input(first + 2 * i + 1);
      }
      if (part % 2 != 0) inputs_[pairs] = input(first + part - 1);
      roots[blocks++] = root_of_inputs(pairs + part % 2);
    }
    std::copy_n(roots.begin(), blocks, inputs_.begin());
    return root_of_inputs(blocks);
  }

 private:
  static constexpr std::size_t block =
      4096;  // inputs: half as many sums, 16 KiB, stay in the L1 cache

  /// The root over inputs_[0, size).
  double root_of_inputs(std::size_t size) {
    double* from = inputs_.data();
    double* to = sums_.data();
    while (size > 1) {
      if (size % 2 != 0) from[size++] = -0.0;  // x + -0 is x, for -0 too
      size /= 2;
      for (std::size_t i = 0; i < size; ++i) to[i] = from[2 * i] + from[2 * i + 1];
      std::swap(from, to);
    }
    return size == 0 ? 0.0 : from[0];
  }

  std::array<double, block / 2> inputs_{};
  std::array<double, block / 4> sums_{};
};

}  // namespace fpinspect
