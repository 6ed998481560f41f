// How `tensor` and `report` name files and tensors: implementation.
#include "fpinspect/tensors/source/tensor_names.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <set>

#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/tensors/source/glob.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {
namespace {

std::set<std::filesystem::path> paths_of(const std::vector<shown_tensor>& tensors) {
  std::set<std::filesystem::path> paths;
  for (const shown_tensor& tensor : tensors) paths.insert(tensor.path);
  return paths;
}

/// The last `parts` parts of a path.
std::filesystem::path tail_of(const std::filesystem::path& path, std::size_t parts) {
  std::filesystem::path tail = path.filename();
  std::filesystem::path folder = path.parent_path();
  for (std::size_t i = 1; i < parts && folder.has_filename(); ++i) {
    tail = folder.filename() / tail;
    folder = folder.parent_path();
  }
  return tail;
}

}  // namespace

std::map<std::filesystem::path, std::filesystem::path> short_paths_of(
    const std::vector<shown_tensor>& tensors) {
  const std::set<std::filesystem::path> paths = paths_of(tensors);
  std::size_t longest = 1;
  for (const std::filesystem::path& path : paths) {
    longest = std::max(longest, static_cast<std::size_t>(std::distance(path.begin(), path.end())));
  }
  for (std::size_t parts = 1; parts < longest; ++parts) {
    std::map<std::filesystem::path, std::filesystem::path> names;
    std::set<std::filesystem::path> different;
    for (const std::filesystem::path& path : paths) {
      different.insert(names[path] = tail_of(path, parts));
    }
    if (different.size() == paths.size()) return names;
  }
  std::map<std::filesystem::path, std::filesystem::path> whole;
  for (const std::filesystem::path& path : paths) whole[path] = path;
  return whole;
}

std::vector<std::string> names_of(const std::vector<shown_tensor>& tensors) {
  const auto paths = short_paths_of(tensors);
  std::vector<std::string> names;
  for (const shown_tensor& tensor : tensors) {
    const std::string file = samebits::tensor_file::escape_path(paths.at(tensor.path));
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
