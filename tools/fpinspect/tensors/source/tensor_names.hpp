// How `tensor` and `report` name files and tensors, and match names.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "fpinspect/tensors/source/selection.hpp"

namespace fpinspect {

/// The path of each file with as few of its last folders as tell all files apart: none if the names
/// of the files differ.
std::map<std::filesystem::path, std::filesystem::path> short_paths_of(
    const std::vector<shown_tensor>& tensors);

/// The tensors' names in the verdict: FILE#NAME if there are several files, FILE as by
/// short_paths_of().
std::vector<std::string> names_of(const std::vector<shown_tensor>& tensors);

/// The path of the only file, or "3 files".
std::string heading_of(const std::vector<shown_tensor>& tensors);

/// Refuses a pattern that matches no tensor.
/// @throws usage_error  the message names `option`
void require_match(const char* option, const std::string& pattern,
                   const std::vector<shown_tensor>& tensors);

}  // namespace fpinspect
