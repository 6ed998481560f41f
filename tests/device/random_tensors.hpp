// Lists of random tensors on the host, and copies of them on the device, for tests of tensor lists
// there.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "device/device_copy.hpp"
#include "samebits/samebits.hpp"

namespace samebits::support {

using engine = std::mt19937_64;

enum class content : std::uint8_t { any_bits, finite, zeros };

/// A list of host tensors, and how to place a copy of it on the device.
class tensors {
 public:
  /// `count` matrices of random formats of `among`; of `size` elements each, or with size 0 of
  /// sizes around the borders of chunks; `odd` ones are strided or unaligned as well.
  tensors(engine& random, std::size_t count, std::vector<format_id> among, std::int64_t size,
          content what, bool odd)
      : memory_(count) {
    engine shapes(count);  // rows and columns alike in all lists of as many tensors
    static constexpr std::int64_t sizes[] = {0,    1,    7,    8,     9,     31,     255,   1000,
                                             4095, 4096, 4097, 12289, 40960, 131072, 135169};
    for (std::size_t i = 0; i < count; ++i) {
      const format_id f = among[random() % among.size()];
      const std::int64_t n = size != 0 ? size : sizes[shapes() % std::size(sizes)];
      const bool strided = odd && random() % 3 == 0 && n > 1;
      const auto shift = odd && random() % 3 == 0 ? static_cast<std::int64_t>(random() % 16) : 0;
      const int bytes = storage_bytes(f);
      const std::int64_t rows = odd && n > 2 ? 1 + static_cast<std::int64_t>(shapes() % 3) : 1;
      const std::int64_t cols = n / rows;
      const std::int64_t col_stride = strided ? 1 + static_cast<std::int64_t>(random() % 2) : 1;
      const std::int64_t row_stride = cols * col_stride + (strided ? 3 : 0);
      memory_[i].resize(static_cast<std::size_t>((rows * row_stride + shift + 16) * bytes));
      fill(random, f, memory_[i], what);
      placed_.push_back({{nullptr, f, rows, cols, row_stride, col_stride}, shift * bytes});
    }
  }

  [[nodiscard]] tensor_list listed() {
    std::vector<matrix_view> views;
    for (std::size_t i = 0; i < size(); ++i) {
      views.push_back(view(i, memory_[i].data(), memory_space::host));
    }
    return tensor_list(std::span<const matrix_view>(views));
  }
  [[nodiscard]] std::size_t size() const { return placed_.size(); }
  /// Code `at` of a tensor that is neither strided nor shifted.
  void set(std::size_t tensor, std::size_t at, std::uint32_t code) {
    const auto width = static_cast<std::size_t>(storage_bytes(placed_[tensor].view.format));
    std::memcpy(memory_[tensor].data() + at * width, &code, width);
  }
  [[nodiscard]] const std::vector<std::vector<std::byte>>& memory() const { return memory_; }

  /// The same on the device; download() brings it back into this list.
  class on_device {
   public:
    explicit on_device(tensors& host) {
      std::vector<matrix_view> views;
      for (std::size_t i = 0; i < host.size(); ++i) {
        copies_.push_back(
            std::make_unique<guarded_copy>(host.memory_[i].data(), host.memory_[i].size()));
        views.push_back(
            host.view(i, static_cast<std::byte*>(copies_[i]->data()), memory_space::device));
      }
      list_ = tensor_list(std::span<const matrix_view>(views));
    }
    [[nodiscard]] const tensor_list& listed() const { return list_; }
    void download() const {
      for (const auto& copy : copies_) copy->copy_back();
    }

   private:
    std::vector<std::unique_ptr<guarded_copy>> copies_;
    tensor_list list_;
  };

 private:
  static void fill(engine& random, format_id f, std::vector<std::byte>& memory, content what) {
    if (what == content::zeros) return;
    for (std::byte& b : memory) b = static_cast<std::byte>(random());
    if (what == content::any_bits) return;
    const auto width = static_cast<std::size_t>(storage_bytes(f));
    for (std::size_t i = 0; i + width <= memory.size(); i += width) {
      // No exponent of all ones, and seldom a large one: sums of squares that do not overflow.
      memory[i + width - 1] &= static_cast<std::byte>(width == 1 ? 0xB7 : 0xBB);
    }
  }

  struct placement {
    matrix_view view;
    std::int64_t shift;  ///< bytes
  };

  [[nodiscard]] matrix_view view(std::size_t i, std::byte* memory, memory_space space) const {
    matrix_view v = placed_[i].view;
    v.data = v.rows * v.cols == 0 ? nullptr : memory + placed_[i].shift;
    v.space = space;
    return v;
  }

  std::vector<std::vector<std::byte>> memory_;
  std::vector<placement> placed_;
};

inline const executor reference = {"reference", 0};

/// Runs an operation on a host list and on a copy of it, and compares their bytes.
template <class Operation>
void expect_same_bytes(tensors& host, const tensors& untouched, const Operation& operation,
                       const executor& where) {
  tensors given = untouched;
  const tensors::on_device copy(given);
  operation(host.listed(), reference);
  operation(copy.listed(), where);
  check_cuda(cudaDeviceSynchronize(), "operation");
  copy.download();
  for (std::size_t i = 0; i < host.size(); ++i) {
    const std::vector<std::byte>&got = given.memory()[i], &expected = host.memory()[i];
    const auto at = std::mismatch(got.begin(), got.end(), expected.begin());
    if (at.first == got.end()) continue;
    FAIL() << "tensor " << i << " of " << host.size() << ", byte " << at.first - got.begin()
           << " of " << got.size() << ": " << std::to_integer<int>(*at.first) << ", expected "
           << std::to_integer<int>(*at.second);
  }
}

}  // namespace samebits::support
