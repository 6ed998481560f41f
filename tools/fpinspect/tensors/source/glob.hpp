// Patterns of tensor names: * stands for any text, ? for one byte, [a-cx] for one of these bytes and
// [!a-cx] for any other one, as in Python's fnmatch.
#pragma once

#include "fpinspect/common.hpp"

namespace fpinspect {

/// Whether the whole name matches. * also stands for dots and slashes.
bool matches_glob(std::string_view pattern, std::string_view name);

}  // namespace fpinspect
