// How `tensor` and `report` name files and tensors: implementation.
#include "fpinspect/tensors/tensor_names.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <set>

#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text.hpp"
#include "fpinspect/verdict/glob.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {
namespace {

std::set<std::filesystem::path> paths_of(const std::vector<shown_tensor>& tensors) {
  std::set<std::filesystem::path> paths;
  for (const shown_tensor& tensor : tensors) paths.insert(tensor.path);
  return paths;
}

}  // namespace

std::vector<std::string> names_of(const std::vector<shown_tensor>& tensors) {
  const std::set<std::filesystem::path> paths = paths_of(tensors);
  std::set<std::filesystem::path> short_names;
  for (const std::filesystem::path& path : paths) short_names.insert(path.filename());
  const bool distinct = short_names.size() == paths.size();
  std::vector<std::string> names;
  for (const shown_tensor& tensor : tensors) {
    const std::string file =
        samebits::tensor_file::escape_path(distinct ? tensor.path.filename() : tensor.path);
    if (tensor.info.name.empty()) {
      names.push_back(file);
    } else {
      names.push_back(paths.size() > 1 ? cat(file, "#", tensor.title()) : tensor.title());
    }
  }
  return names;
}

std::string heading_of(const std::vector<shown_tensor>& tensors) {
  const std::size_t files = paths_of(tensors).size();
  if (files != 1) return cat(files, " files");
  return shown_path(tensors.front().path);
}

void require_match(const char* option, const std::string& pattern,
                   const std::vector<shown_tensor>& tensors) {
  const bool any = std::any_of(tensors.begin(), tensors.end(), [&](const shown_tensor& tensor) {
    return matches_glob(pattern, tensor.plain_name());
  });
  if (any) return;
  throw usage_error(cat(option, ": no tensor matches ", samebits::tensor_file::quote(pattern)));
}

}  // namespace fpinspect
