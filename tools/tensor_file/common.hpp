// What all files of this library share: the standard library's strings, sequences and algorithms, and
// the one exception with its texts.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensor_file/error.hpp"
#include "tensor_file/escape.hpp"

namespace samebits::tensor_file {

inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Points to the smallest value of(item) that occurs twice; null if all differ.
template <class Item, class Of = std::identity>
auto find_repeated(const std::vector<Item>& items, Of of = {}) {
  using value = std::remove_cvref_t<std::invoke_result_t<Of, const Item&>>;
  const auto content = [](const value* one) -> const value& { return *one; };
  std::vector<const value*> all;
  for (const Item& item : items) all.push_back(&std::invoke(of, item));
  std::ranges::sort(all, {}, content);
  const auto twice = std::ranges::adjacent_find(all, {}, content);
  return twice == all.end() ? nullptr : *twice;
}

}  // namespace samebits::tensor_file
