// Arguments of the C interface as values of C++: pointers, names, options in text.
#include "backends/c_api/arguments.hpp"

namespace samebits::c_api {

memory_space space(std::int32_t on_device, std::string_view which) {
  if (on_device == 0) return memory_space::host;
  if (on_device == 1) return memory_space::device;
  throw invalid_argument(std::string(which) + ": must be 0 or 1, got " + std::to_string(on_device));
}

matrix_view view(const samebits_array* array, std::string_view which) {
  const samebits_array& a = required(array, which);
  const std::string name(which);
  return {a.data,
          named<format_id>(&required(a.format, name + ".format"), name + ".format"),
          a.rows,
          a.cols,
          a.row_stride,
          a.col_stride,
          space(a.on_device, name + ".on_device")};
}

matrix_view optional_view(const samebits_array* array, std::string_view which) {
  return array == nullptr ? matrix_view{} : view(array, which);
}

executor where(const samebits_executor* executor) {
  if (executor == nullptr) return {};
  return {executor->backend == nullptr ? "" : executor->backend, executor->threads,
          executor->stream};
}

std::vector<word> words_of(const char* options) {
  std::vector<word> words;
  std::string_view rest = options == nullptr ? "" : options;
  while (!rest.empty()) {
    const std::string_view text = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(text.size() + 1, rest.size()));
    if (text.empty()) continue;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      throw invalid_argument("options: must be words NAME=VALUE with spaces between, got '" +
                             std::string(text) + "'");
    }
    const word w = {text.substr(0, equals), text.substr(equals + 1)};
    for (const word& before : words) {
      if (before.name == w.name) {
        throw invalid_argument("options: name " + std::string(w.name) + " only once");
      }
    }
    words.push_back(w);
  }
  return words;
}

}  // namespace samebits::c_api
