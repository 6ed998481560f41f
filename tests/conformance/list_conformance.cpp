// Operations over tensor lists on every host backend and any number of threads: the reference's
// bits.
#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "samebits/tensor_list.hpp"
#include "support/backends.hpp"
#include "support/test_list.hpp"

namespace samebits {
namespace {

using support::list_content;
using support::list_shape;
using support::test_list;

const std::vector<format_id> wide = {format_id::fp32, format_id::fp16, format_id::bf16};
const std::vector<format_id> any = {format_id::fp32, format_id::fp16, format_id::bf16,
                                    format_id::e4m3, format_id::e5m2};

/// Numbers of tensors beside those at which other libraries' launches split, and sizes: none, up to
/// some chunks, many small ones, enough for several threads.
std::vector<list_shape> shapes() {
  std::vector<list_shape> all;
  const auto add = [&](std::size_t tensors, std::int64_t maximum, const std::vector<format_id>& f) {
    for (const list_content content :
         {list_content::ordinary, list_content::small, list_content::any_bits}) {
      all.push_back({tensors, maximum, f, content, all.size()});
    }
  };
  add(0, 1, wide);
  for (const format_id format : wide) {
    add(1, 5, {format});
    add(1, 60'000, {format});
    add(7, 9'000, {format});
  }
  for (const std::size_t tensors : {423u, 424u, 425u}) add(tensors, 300, wide);
  add(10'000, 40, wide);
  add(4, 60'000, wide);
  return all;
}

class ListSuite : public ::testing::TestWithParam<std::string> {
 protected:
  /// Runs an operation on copies of lists by the reference and by this backend, and compares what
  /// it returns and every byte.
  template <class Operation>
  static void compare(const list_shape& shape, const std::vector<const test_list*>& lists,
                      const Operation& operation) {
    const auto run = [&](const executor& where, std::vector<std::vector<std::byte>>& memory) {
      std::vector<tensor_list> tensor_lists;
      memory.reserve(lists.size());
      for (const test_list* list : lists) {
        memory.push_back(list->bytes());
        tensor_lists.push_back(list->listed(memory.back().data()));
      }
      return operation(tensor_lists, where);
    };
    std::vector<std::vector<std::byte>> expected_bytes;
    const auto expected = run(find_executor("reference"), expected_bytes);
    for (const int threads : {1, 3}) {
      std::vector<std::vector<std::byte>> bytes;
      const auto got = run(find_executor(GetParam(), threads), bytes);
      const std::string what = std::to_string(shape.tensors) + " tensors of up to " +
                               std::to_string(shape.max_elements) + ", content " +
                               std::to_string(static_cast<int>(shape.content)) + ", " +
                               std::to_string(threads) + " threads";
      EXPECT_TRUE(got == expected) << what;
      EXPECT_TRUE(bytes == expected_bytes) << what;
    }
  }
};

TEST_P(ListSuite, Inspect) {
  for (const list_shape& shape : shapes()) {
    const test_list list(shape);
    for (const inspect_counts counts : {inspect_counts::nonfinite, inspect_counts::distribution}) {
      compare(shape, {&list},
              [&](const std::vector<tensor_list>& tensor_lists, const executor& where) {
                return inspect(tensor_lists[0], {counts}, where);
              });
    }
  }
}

TEST_P(ListSuite, Unscale) {
  for (const list_shape& shape : shapes()) {
    const test_list list(shape);
    for (const float factor : {0x1p-16f, 0.3f, 0x1p100f, 0.0f}) {
      compare(shape, {&list},
              [&](const std::vector<tensor_list>& tensor_lists, const executor& where) {
                return unscale(tensor_lists[0], factor, where);
              });
    }
  }
}

TEST_P(ListSuite, Axpby) {
  for (const list_shape& shape : shapes()) {
    const test_list x(shape);
    list_shape other = shape;
    other.formats = wide;  // by turns another format than x's
    const test_list y(other);
    compare(shape, {&x, &y},
            [&](const std::vector<tensor_list>& tensor_lists, const executor& where) {
              axpby(0.7f, tensor_lists[0], -1.1f, tensor_lists[1], tensor_lists[1], where);
              return true;
            });
  }
}

TEST_P(ListSuite, Accumulate) {
  for (const list_shape& shape : shapes()) {
    const test_list acc(shape);
    list_shape other = shape;
    other.formats = any;
    const test_list gradients(other);
    const std::vector<float> scales(shape.tensors, 0.013f);
    for (const float* given : {scales.data(), static_cast<const float*>(nullptr)}) {
      compare(shape, {&acc, &gradients},
              [&](const std::vector<tensor_list>& tensor_lists, const executor& where) {
                accumulate(tensor_lists[0], tensor_lists[1], {given}, where);
                return true;
              });
    }
  }
}

TEST_P(ListSuite, Cast) {
  for (const list_shape& shape : shapes()) {
    const test_list from(shape);
    list_shape other = shape;
    other.formats = any;
    const test_list to(other);
    for (const rounding round : {rounding::nearest_even, rounding::stochastic}) {
      compare(shape, {&from, &to},
              [&](const std::vector<tensor_list>& tensor_lists, const executor& where) {
                cast(tensor_lists[0], tensor_lists[1],
                     {.rounding = round, .random = {.seed = 3, .bits = 16}}, where);
                return true;
              });
    }
  }
}

TEST_P(ListSuite, Clip) {
  for (const list_shape& shape : shapes()) {
    const test_list list(shape);
    compare(shape, {&list},
            [&](const std::vector<tensor_list>& tensor_lists, const executor& where) {
              const clip_report report = clip(tensor_lists[0], 0.5, where);
              return std::tuple(std::bit_cast<std::uint64_t>(report.norm),
                                std::bit_cast<std::uint32_t>(report.factor));
            });
  }
}

INSTANTIATE_TEST_SUITE_P(Host, ListSuite, ::testing::ValuesIn(support::supported_backends()),
                         [](const auto& given) { return given.param; });

}  // namespace
}  // namespace samebits
