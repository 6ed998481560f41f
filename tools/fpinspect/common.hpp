// What all files of fpinspect share: the standard library's strings, sequences and algorithms, texts
// and errors, and the names of the library and of its tensor files.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/table.hpp"
#include "tensor_file/error.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {

using namespace samebits;
using samebits::name;  // of enumerators, beside the names of this tool's own enums

using tensor_file::error_kind;
using tensor_file::escape;
using tensor_file::escape_message;
using tensor_file::escape_path;
using tensor_file::file_error;
using tensor_file::in_context;
using tensor_file::quote;

}  // namespace fpinspect
