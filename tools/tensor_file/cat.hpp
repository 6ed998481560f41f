// Concatenates strings, characters and numbers.
#pragma once

#include "samebits/core/cat.hpp"

namespace samebits::tensor_file {

using detail::cat;

}  // namespace samebits::tensor_file
