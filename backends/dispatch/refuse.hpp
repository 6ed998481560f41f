// Throws errors. The arguments of a message (text, numbers, enumerators, formats, shapes, tiles, items of lists)
// are concatenated only when the error is thrown.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "samebits/core/cat.hpp"
#include "samebits/error.hpp"
#include "samebits/quantize.hpp"

namespace samebits {

/// "[rows, cols]"
inline void append_text(std::string& text, const matrix_shape& shape) {
  text += detail::cat("[", shape.rows, ", ", shape.cols, "]");
}
/// "{rows, cols}"
inline void append_text(std::string& text, const tile_shape& tile) {
  text += detail::cat("{", tile.rows, ", ", tile.cols, "}");
}

/// An item of a list: "tensors[3] 'layer.weight'", or "tensors[3]" if it has no name.
struct list_item {
  const char* list;
  std::size_t position;
  std::string_view name = {};
};
inline void append_text(std::string& text, const list_item& item) {
  text += detail::cat(item.list, "[", item.position, "]");
  if (!item.name.empty()) text += detail::cat(" '", item.name, "'");
}

/// The shape of a view, as a part of messages.
inline matrix_shape shape_of(const const_matrix_view& v) { return {v.rows, v.cols}; }

/// Throws an error with this message.
template <class Error = invalid_argument, class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void refuse(const Parts&... message) {
  throw Error(detail::cat(message...));
}

// Inlined by force, so that a check that passes takes one comparison.
template <class Error = invalid_argument, class... Parts>
[[gnu::always_inline]] inline void refuse_if(bool is_wrong, const Parts&... message) {
  if (is_wrong) refuse<Error>(message...);
}

template <class Error = invalid_argument, class... Parts>
[[gnu::always_inline]] inline void require(bool is_right, const Parts&... message) {
  if (!is_right) refuse<Error>(message...);
}

}  // namespace samebits
