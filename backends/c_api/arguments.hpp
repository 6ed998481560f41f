// Arguments of the C interface as values of C++: pointers, names, options in text.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "samebits/backend.hpp"
#include "samebits/c/samebits.h"
#include "samebits/core/table.hpp"
#include "samebits/error.hpp"
#include "samebits/options.hpp"
#include "samebits/view.hpp"

namespace samebits::c_api {

/// Returns *pointer; throws invalid_argument for a null pointer.
template <class T>
T& required(T* pointer, std::string_view which) {
  if (pointer == nullptr) throw invalid_argument(std::string(which) + ": must not be null");
  return *pointer;
}

/// Returns the array of an argument; throws invalid_argument for a null pointer with a count.
template <class T>
std::span<T> array_of(T* first, std::size_t count, std::string_view which) {
  if (count != 0) (void)required(first, which);
  return {first, count};
}

/// Writes a result that the caller may not want.
template <class T, class V>
void write(T* to, const V& value) {
  if (to != nullptr) *to = static_cast<T>(value);
}

/// Returns the value that a text names: an enumerator or a format.
template <class Value>
Value named(std::string_view text, std::string_view which) {
  Value value{};
  detail::read_option(which, text, value);
  return value;
}

memory_space space(std::int32_t on_device, std::string_view which);
matrix_view view(const samebits_array* array, std::string_view which);
/// Returns the view, or a view without data for a null pointer.
matrix_view optional_view(const samebits_array* array, std::string_view which);
executor where(const samebits_executor* executor);

// --- options -------------------------------------------------------------------------------------

/// One word NAME=VALUE of an option text.
struct word {
  std::string_view name;
  std::string_view value;
};

/// Returns the words of an option text. Throws invalid_argument for another form, or for a name that
/// stands there twice.
std::vector<word> words_of(const char* options);

/// Sets the options that a text names.
template <class Options>
void set_options(Options& to, const char* text) {
  for (const word& w : words_of(text)) set_option(to, w.name, w.value);
}

}  // namespace samebits::c_api
