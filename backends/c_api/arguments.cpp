// Arguments of the C interface as values of C++: pointers, names, options in text.
#include "backends/c_api/arguments.hpp"

#include "samebits/text.hpp"

namespace samebits::c_api {

void refuse_name(std::string_view which, std::string_view text,
                 const std::vector<std::string_view>& names) {
  std::string list;
  for (const std::string_view name : names) list += (list.empty() ? "" : ", ") + std::string(name);
  throw invalid_argument(std::string(which) + ": must be one of " + list + ", got '" +
                         std::string(text) + "'");
}

format_id format(std::string_view text, std::string_view which) {
  if (const std::optional<format_id> found = find_format(text)) return *found;
  std::vector<std::string_view> names;
  for (int i = 0; i < format_count; ++i) names.push_back(name(format_at(i)));
  refuse_name(which, text, names);
}

memory_space space(std::int32_t on_device, std::string_view which) {
  if (on_device == 0) return memory_space::host;
  if (on_device == 1) return memory_space::device;
  throw invalid_argument(std::string(which) + ": must be 0 or 1, got " + std::to_string(on_device));
}

matrix_view view(const samebits_array* array, std::string_view which) {
  const samebits_array& a = required(array, which);
  const std::string name(which);
  return {a.data,
          format(&required(a.format, name + ".format"), name + ".format"),
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

void refuse_value(const word& w, std::string_view expected) {
  throw invalid_argument(std::string(w.name) + ": must be " + std::string(expected) + ", got '" +
                         std::string(w.value) + "'");
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

void read(const word& w, float& to) {
  const parse_result read = parse(format_id::fp32, w.value);
  if (!read.ok) refuse_value(w, "a number");
  to = detail::number_of(static_cast<std::uint32_t>(read.code));
}

void read(const word& w, tile_shape& to) {
  const std::size_t cross = w.value.find('x');
  if (cross == std::string_view::npos || !backends::read_value(w.value.substr(0, cross), to.rows) ||
      !backends::read_value(w.value.substr(cross + 1), to.cols)) {
    refuse_value(w, "ROWSxCOLS, such as 1x128");
  }
}

void read(const word& w, format_id& to) { to = format(w.value, w.name); }

}  // namespace samebits::c_api
