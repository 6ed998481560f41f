// What all files of this library share: the standard library's strings, sequences and algorithms, and
// the one exception with its texts.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensor_file/cat.hpp"
#include "tensor_file/error.hpp"
#include "tensor_file/escape.hpp"
