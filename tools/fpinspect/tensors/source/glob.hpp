// Patterns of tensor names: * stands for any text, ? for one byte.
#pragma once

#include <string_view>

namespace fpinspect {

/// Whether the whole name matches. * also stands for dots and slashes.
bool matches_glob(std::string_view pattern, std::string_view name);

}  // namespace fpinspect
