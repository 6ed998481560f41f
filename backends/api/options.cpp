// Options by name: values from text.
#include "samebits/options.hpp"

#include <concepts>

#include "backends/api/value_text.hpp"
#include "backends/dispatch/refuse.hpp"
#include "samebits/text.hpp"

namespace samebits::detail {

void refuse_value(std::string_view name, std::string_view text, const std::string& expected) {
  refuse(name, ": must be ", expected, ", got '", text, "'");
}

void refuse_option(std::string_view name, const std::string& what, const std::string& names) {
  refuse("'", name, "' is not ", what, "; there are: ", names);
}

void read_option(std::string_view name, std::string_view text, bool& value) {
  if (!backends::read_value(text, value)) refuse_value(name, text, backends::expected(value));
}

template <option_number Number>
void read_option(std::string_view name, std::string_view text, Number& value) {
  if (backends::read_value(text, value)) return;
  refuse_value(name, text,
               backends::expected(value) + (std::unsigned_integral<Number> ? " >= 0" : ""));
}
template void read_option(std::string_view, std::string_view, std::int32_t&);
template void read_option(std::string_view, std::string_view, std::uint32_t&);
template void read_option(std::string_view, std::string_view, std::int64_t&);
template void read_option(std::string_view, std::string_view, std::uint64_t&);
template void read_option(std::string_view, std::string_view, double&);

void read_option(std::string_view name, std::string_view text, float& value) {
  const parse_result read = parse(format_id::fp32, text);
  if (!read.ok) refuse_value(name, text, "a number");
  value = number_of(static_cast<std::uint32_t>(read.code));
}

void read_option(std::string_view name, std::string_view text, format_id& value) {
  if (backends::read_value(text, value)) return;
  std::string names;
  for (int i = 0; i < format_count; ++i) {
    names += (i == 0 ? "" : ", ") + std::string(samebits::name(format_at(i)));
  }
  refuse_value(name, text, "one of " + names);
}

void read_option(std::string_view name, std::string_view text, tile_shape& value) {
  const std::size_t cross = text.find('x');
  if (cross == std::string_view::npos || !backends::read_value(text.substr(0, cross), value.rows) ||
      !backends::read_value(text.substr(cross + 1), value.cols)) {
    refuse_value(name, text, "ROWSxCOLS, such as 1x128");
  }
}

void read_option(std::string_view name, std::string_view text, const recipe_preset*& value) {
  value = find_recipe(text);
  if (value == nullptr) refuse_value(name, text, "one of " + names_of(recipe_presets));
}

}  // namespace samebits::detail
