// The mark that carries arguments which look like options through the parser.
#pragma once

#include <string>

namespace fpinspect {

/// CLI11 takes "-inf", "-.5" and "-#weight" for options and fails on "--" inside a subcommand. An
/// argument that is certainly a value is therefore prefixed with this character, with which no
/// option starts.
inline constexpr char value_mark = '\x01';

inline void unmark(std::string& text) {
  if (text.starts_with(value_mark)) text.erase(0, 1);
}

}  // namespace fpinspect
