// The tensors that `tensor` reads: implementation.
#include "fpinspect/tensors/source/selection.hpp"

#include <algorithm>
#include <utility>

#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/files.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/tensors/source/glob.hpp"
#include "tensor_file/error.hpp"
#include "tensor_file/escape.hpp"
#include "tensor_file/safetensors/shard_index.hpp"

namespace fpinspect {
namespace {

using samebits::tensor_file::tensor_info;
using reader = samebits::tensor_file::tensor_file;

/// A tensor before its elements are interpreted.
struct chosen_tensor {
  std::shared_ptr<const reader> file;
  std::filesystem::path path;
  tensor_info info;
};

struct opened_file {
  std::shared_ptr<const reader> file;
  std::filesystem::path path;
};

bool has_tensor(const reader& file, const std::string& name) {
  return std::any_of(file.tensors().begin(), file.tensors().end(),
                     [&](const tensor_info& info) { return info.name == name; });
}

/// Adds the tensors of all files with this name, or whose names match this pattern.
void add_named(const std::vector<opened_file>& files, const std::string& name,
               std::vector<chosen_tensor>& chosen) {
  const bool exact = std::any_of(files.begin(), files.end(), [&](const opened_file& opened) {
    return has_tensor(*opened.file, name);
  });
  bool any = false;
  for (const opened_file& opened : files) {
    for (const tensor_info& info : opened.file->tensors()) {
      const bool match = exact ? info.name == name : is_glob(name) && matches_glob(name, info.name);
      const bool there = std::any_of(chosen.begin(), chosen.end(), [&](const chosen_tensor& c) {
        return c.file == opened.file && c.info.name == info.name;
      });
      any = any || match;
      if (match && (exact || !there)) chosen.push_back({opened.file, opened.path, info});
    }
  }
  if (!any) static_cast<void>(files.front().file->find(name));  // throws and lists the tensors
}

/// Adds the tensor of FILE#TENSOR.
void add_exact(const std::vector<opened_file>& files, const tensor_location& where,
               std::vector<chosen_tensor>& chosen) {
  const opened_file* any = nullptr;
  for (const opened_file& opened : files) {
    if (opened.path != where.file) continue;
    any = &opened;
    if (!has_tensor(*opened.file, *where.tensor)) continue;
    chosen.push_back({opened.file, opened.path, opened.file->find(*where.tensor)});
    return;
  }
  if (any != nullptr) static_cast<void>(any->file->find(*where.tensor));  // throws
}

/// The files of one FILE. The files of an index count as one file, the index.
std::vector<opened_file> open_files(const std::filesystem::path& path) {
  if (!samebits::tensor_file::is_shard_index(path)) {
    return {{std::make_shared<const reader>(open_file(path)), path}};
  }
  note_input(path);
  std::vector<opened_file> shards;
  for (const std::filesystem::path& shard : samebits::tensor_file::read_shard_index(path)) {
    shards.push_back({std::make_shared<const reader>(open_file(shard)), path});
  }
  return shards;
}

std::vector<chosen_tensor> choose(const tensor_arguments& arguments) {
  std::vector<opened_file> whole;
  std::vector<chosen_tensor> chosen;
  for (const std::string& input : arguments.files) {
    const tensor_location where = locate(input);
    if (where.tensor && !arguments.tensors.empty()) {
      throw usage_error(
          "--tensor: FILE names a tensor already, behind its #; leave one of them out");
    }
    for (const opened_file& opened : open_files(where.file)) {
      const auto& [file, path] = opened;
      whole.push_back(opened);
      if (where.tensor || !arguments.tensors.empty()) continue;
      for (const tensor_info& info : file->tensors()) chosen.push_back({file, path, info});
    }
    if (where.tensor) add_exact(whole, where, chosen);
  }
  if (whole.empty()) return chosen;
  for (const std::string& name : arguments.tensors) add_named(whole, name, chosen);
  return chosen;
}

shown_tensor shown(const chosen_tensor& chosen, const std::string& from, from_scope scope) {
  const auto& [file, path, info] = chosen;
  shown_tensor tensor = {file, path, info, reading_of(info, "--from", from, scope), {}};
  if (!info.unread.empty()) {
    tensor.note = info.unread;
  } else if (!tensor.how) {
    tensor.note = "elements are neither floating point nor integers";
  } else if (tensor.how->integer_values) {
    if (const auto index = find_inexact_integer(*file, info)) {
      tensor.how = std::nullopt;
      tensor.note = cat("integer number ", *index, " has more than 53 significant bits");
    }
  }
  return tensor;
}

}  // namespace

std::string shown_tensor::title() const {
  return info.name.empty() ? shown_path(path) : samebits::tensor_file::escape(info.name, 256);
}

std::string shown_tensor::plain_name() const {
  return info.name.empty() ? path.stem().string() : info.name;
}

std::vector<shown_tensor> tensors_to_show(const tensor_arguments& arguments) {
  const std::vector<chosen_tensor> chosen = choose(arguments);
  const from_scope scope = chosen.size() == 1 ? from_scope::one_tensor : from_scope::integers;
  const bool any_integers = std::any_of(chosen.begin(), chosen.end(), [](const chosen_tensor& c) {
    return c.info.unread.empty() && holds_integers(c.info);
  });
  if (!arguments.from.empty() && scope == from_scope::integers && !any_integers) {
    throw usage_error("--from: none of the tensors holds integers; leave it out");
  }
  std::vector<shown_tensor> all;
  for (const chosen_tensor& one : chosen) all.push_back(shown(one, arguments.from, scope));
  return all;
}

}  // namespace fpinspect
