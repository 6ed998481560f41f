// Arguments of the C interface as C++ values. Every function throws invalid_argument, naming the
// argument, for a value that is not allowed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "backends/c_api/arguments/enumerations.hpp"
#include "samebits/c/samebits.h"
#include "samebits/samebits.hpp"

namespace samebits::c_api {

/// Throws invalid_argument: `which` must not be null.
[[noreturn]] void refuse_null(const char* which);

/// Returns *pointer. Throws invalid_argument for a null pointer.
template <class T>
T& required(T* pointer, const char* which) {
  if (pointer == nullptr) refuse_null(which);
  return *pointer;
}

/// Throws invalid_argument if an array of count > 0 elements is null.
template <class T>
void check_array(const T* data, std::size_t count, const char* which) {
  if (data == nullptr && count != 0) refuse_null(which);
}

/// Writes *to = from, unless `to` is null.
template <class To, class From>
void write(To* to, const From& from) {
  if (to != nullptr) *to = from;
}

/// Returns a C string as a view; null gives an empty view.
std::string_view text(const char* text);

/// Writes a text into the caller's buffer by the rules of include/samebits/c/scalar.h.
void write_text(std::string_view text, char* buffer, std::size_t size, std::size_t* length);

matrix_view view(const samebits_view* view, const char* which);
/// Returns the C++ view of a C view; null gives a view without data.
matrix_view optional_view(const samebits_view* view, const char* which);

tile_shape tile(const samebits_tile& tile);
random_stream random(const samebits_random_stream& random);
executor where(const samebits_executor* executor);

/// Rounding rule and random bits of one value.
struct value_rule {
  cast_rule rule;
  random_bits random;
};
value_rule rule(const samebits_cast_rule* rule);

convert_options options(const samebits_convert_options* options);
compute_options options(const samebits_compute_options* options);

}  // namespace samebits::c_api
