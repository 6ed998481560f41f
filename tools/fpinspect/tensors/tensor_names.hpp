// How `tensor` and `report` name files and tensors, and match names.
#pragma once

#include <string>
#include <vector>

#include "fpinspect/tensors/selection.hpp"

namespace fpinspect {

/// The tensors' names in the verdict: FILE#NAME if there are several files. FILE is without its
/// folder if the names of the files differ.
std::vector<std::string> names_of(const std::vector<shown_tensor>& tensors);

/// The path of the only file, or "3 files".
std::string heading_of(const std::vector<shown_tensor>& tensors);

/// Refuses a pattern that matches no tensor.
/// @throws usage_error  the message names `option`
void require_match(const char* option, const std::string& pattern,
                   const std::vector<shown_tensor>& tensors);

}  // namespace fpinspect
