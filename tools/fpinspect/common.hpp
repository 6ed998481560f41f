// What all files of fpinspect share: the standard library's strings, sequences and algorithms, texts
// and errors, and the names of the library and of its tensor files.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/table.hpp"
#include "tensor_file/error.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {

using namespace samebits;
using samebits::name;  // of enumerators, beside the names of this tool's own enums

using tensor_file::error_kind;
using tensor_file::escape;
using tensor_file::escape_message;
using tensor_file::escape_path;
using tensor_file::file_error;
using tensor_file::in_context;
using tensor_file::quote;
using tensor_file::quoted;

/// Whether an element, or its member, is this value.
template <class Range, class Value, class Member = std::identity>
bool contains(const Range& all, const Value& value, Member member = {}) {
  return std::ranges::find(all, value, member) != std::ranges::end(all);
}
/// The first element whose member is this value; null if there is none.
template <class Range, class Value, class Member>
auto find_by(Range& all, const Value& value, Member member) {
  const auto found = std::ranges::find(all, value, member);
  return found == std::ranges::end(all) ? nullptr : &*found;
}
/// Appends a value that the list does not contain yet.
template <class Value>
void add_once(std::vector<Value>& list, const std::type_identity_t<Value>& value) {
  if (!contains(list, value)) list.push_back(value);
}

}  // namespace fpinspect
