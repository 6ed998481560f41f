// Arguments of the C interface as values of C++: pointers, names, options in text.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/loss_scaler/text.hpp"
#include "samebits/backend.hpp"
#include "samebits/c/samebits.h"
#include "samebits/core/table.hpp"
#include "samebits/error.hpp"
#include "samebits/quantize.hpp"
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

/// Throws invalid_argument: `which` is not one of the names.
[[noreturn]] void refuse_name(std::string_view which, std::string_view text,
                              const std::vector<std::string_view>& names);

/// Returns the enumerator with a name.
template <listed_enum Enum>
Enum enumerator(std::string_view text, std::string_view which) {
  if (const std::optional<Enum> found = find_enumerator<Enum>(text)) return *found;
  std::vector<std::string_view> names;
  for (const enum_row<Enum>& row : table_of<Enum>) names.push_back(row.name);
  refuse_name(which, text, names);
}

format_id format(std::string_view text, std::string_view which);
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

/// Throws invalid_argument: the value is not what the option takes.
[[noreturn]] void refuse_value(const word& w, std::string_view expected);

/// Returns the words of an option text. Throws invalid_argument for another form, or for a name that
/// stands there twice.
std::vector<word> words_of(const char* options);

// read() sets an option from its word, or throws invalid_argument that says what belongs there.

void read(const word& w, float& to);
void read(const word& w, tile_shape& to);
void read(const word& w, format_id& to);
template <listed_enum Enum>
void read(const word& w, Enum& to) {
  to = enumerator<Enum>(w.value, w.name);
}
template <class Number>
requires(std::integral<Number> || std::same_as<Number, double>) void read(const word& w,
                                                                          Number& to) {
  if (backends::read_value(w.value, to)) return;
  const bool unsigned_number = std::unsigned_integral<Number> && !std::same_as<Number, bool>;
  refuse_value(w, backends::expected(to) + (unsigned_number ? " >= 0" : ""));
}
template <class Value>
void read(const word& w, std::optional<Value>& to) {
  read(w, to.emplace());
}

/// An option: its name, and the function that sets it.
template <class Options>
struct option {
  std::string_view name;
  void (*set)(Options&, const word&);
};

/// The options of random bits, for every struct with a random_stream `random`.
template <class Options>
inline constexpr option<Options> random_options[] = {
    {"seed", [](Options& o, const word& w) { read(w, o.random.seed); }},
    {"random_stream", [](Options& o, const word& w) { read(w, o.random.stream); }},
    {"offset", [](Options& o, const word& w) { read(w, o.random.offset); }},
    {"pitch", [](Options& o, const word& w) { read(w, o.random.pitch); }},
    {"random_bits", [](Options& o, const word& w) { read(w, o.random.bits); }},
};

/// Sets the options that a text names, out of two lists.
template <class Options>
void set_options(Options& to, const char* text, std::span<const option<Options>> own,
                 std::span<const option<Options>> further = {}) {
  std::vector<option<Options>> all(own.begin(), own.end());
  all.insert(all.end(), further.begin(), further.end());
  for (const word& w : words_of(text)) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& o) { return o.name == w.name; });
    if (found == all.end()) {
      std::vector<std::string_view> names;
      for (const option<Options>& o : all) names.push_back(o.name);
      refuse_name("options", w.name, names);
    }
    found->set(to, w);
  }
}

}  // namespace samebits::c_api
