// The tensors that `tensor` and `report` read: implementation.
#include "fpinspect/tensors/source/selection.hpp"

#include <system_error>

#include "fpinspect/cli/files.hpp"
#include "fpinspect/cli/parallel.hpp"
#include "fpinspect/quantize/quantize_source.hpp"
#include "tensor_file/safetensors/model_json.hpp"

namespace fpinspect {

// --- The tensors that `tensor` reads -------------------------------------------------------------

namespace {

struct opened_file {
  std::shared_ptr<const tensor_reader> file;
  std::filesystem::path path;

  /// A tensor of the file before its elements are interpreted.
  [[nodiscard]] shown_tensor tensor(const tensor_info& info) const {
    return {{file, info, {}}, path};
  }
};

bool has_tensor(const tensor_reader& file, const std::string& name) {
  return contains(file.tensors(), name, &tensor_info::name);
}

/// Adds the tensors of all files with this name, or whose names match this pattern.
void add_named(const std::vector<opened_file>& files, const std::string& name,
               std::vector<shown_tensor>& chosen) {
  const bool exact = std::ranges::any_of(
      files, [&](const opened_file& opened) { return has_tensor(*opened.file, name); });
  const bool is_pattern = name.find_first_of("*?[") != std::string::npos;
  bool any = false;
  for (const opened_file& opened : files) {
    for (const tensor_info& info : opened.file->tensors()) {
      const bool match = exact ? info.name == name : is_pattern && matches_glob(name, info.name);
      const bool there = std::ranges::any_of(chosen, [&](const shown_tensor& c) {
        return c.file == opened.file && c.info.name == info.name;
      });
      any = any || match;
      if (match && (exact || !there)) chosen.push_back(opened.tensor(info));
    }
  }
  if (!any) static_cast<void>(files.front().file->find(name));  // throws and lists the tensors
}

/// Adds the tensor of FILE#TENSOR.
void add_exact(const std::vector<opened_file>& files, const tensor_location& where,
               std::vector<shown_tensor>& chosen) {
  const opened_file* any = nullptr;
  int searched = 0;
  for (const opened_file& opened : files) {
    if (opened.path != where.file) continue;
    any = &opened;
    ++searched;
    if (!has_tensor(*opened.file, *where.tensor)) continue;
    chosen.push_back(opened.tensor(opened.file->find(*where.tensor)));
    return;
  }
  refuse_content_if(searched > 1, where.file, "no tensor ", quote(*where.tensor), " in ", searched,
                    " files");
  if (any != nullptr) static_cast<void>(any->file->find(*where.tensor));  // throws
}

/// The files of tensors in a folder, by the first of these patterns that any file matches: those of a
/// snapshot of Hugging Face, which may hold a model several times, then those of other folders.
std::vector<std::filesystem::path> tensor_files_in(const std::filesystem::path& folder) {
  constexpr std::string_view patterns[] = {"model.safetensors.index.json",
                                           "*.safetensors.index.json",
                                           "*.safetensors",
                                           "pytorch_model.bin.index.json",
                                           "pytorch_model*.bin",
                                           "adapter_model*.bin",
                                           "*.gguf",
                                           "*.pt",
                                           "*.pth",
                                           "*.ckpt",
                                           "*.bin"};
  std::set<std::filesystem::path> all;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    std::error_code ignored;
    const bool broken_link = entry.is_symlink(ignored) && !entry.exists(ignored);
    if (entry.is_regular_file(ignored) || broken_link) all.insert(entry.path());
  }
  for (const std::string_view pattern : patterns) {
    std::vector<std::filesystem::path> found;
    std::ranges::copy_if(all, std::back_inserter(found), [&](const auto& file) {
      return matches_glob(pattern, file.filename().native());
    });
    if (!found.empty()) return found;
  }
  refuse_content(
      folder, failed ? failed.message() : "a folder without .safetensors, .gguf or PyTorch files");
}

/// The files of an index. Each tensor of the index must be in the file that the index names, and in
/// no other one; files may hold more tensors.
std::vector<opened_file> open_shards(const std::filesystem::path& path) {
  note_input(path);
  const tensor_file::shard_map index = tensor_file::read_shard_index(path);
  std::set<std::string> files;
  std::set<std::string> missing;
  for (const auto& [name, file] : index) {
    files.insert(file);
    missing.insert(name);
  }
  std::vector<opened_file> shards;
  for (const std::string& file : files) {
    auto shard = open_file(path.parent_path() / file);
    for (const tensor_info& info : shard->tensors()) {
      const auto listed = index.find(info.name);
      if (listed == index.end()) continue;
      refuse_content_if(listed->second != file, path, "index: tensor ", quoted{info.name},
                        " is in ", quoted{file}, ", but weight_map says ", quoted{listed->second});
      missing.erase(info.name);
    }
    shards.push_back({std::move(shard), path});
  }
  if (!missing.empty()) {
    const std::string& name = *missing.begin();
    refuse_content(path, "index: tensor ", quote(name), " is not in ", quote(index.at(name)),
                   ", which weight_map says");
  }
  return shards;
}

std::vector<opened_file> open_one(const std::filesystem::path& path) {
  return {{open_file(path), path}};
}

/// The files of a folder, which count as one file, the folder. No two of them may have a tensor of
/// the same name.
std::vector<opened_file> open_folder(const std::filesystem::path& path) {
  std::vector<opened_file> opened;
  std::map<std::string, std::string> files;  // by the names of their tensors
  for (const std::filesystem::path& file : tensor_files_in(path)) {
    const bool is_index = tensor_file::is_shard_index(file);
    for (const opened_file& one : is_index ? open_shards(file) : open_one(file)) {
      opened.push_back({one.file, path});
      for (const tensor_info& info : one.file->tensors()) {
        const auto [other, is_new] = files.emplace(info.name, one.file->shown_path());
        if (is_new) continue;
        const std::string which =
            info.name.empty() ? "a tensor without a name" : cat("tensor ", quote(info.name));
        refuse_content(path, which, " is in ", other->second, " and in ", one.file->shown_path(),
                       "; name the files to read");
      }
    }
  }
  return opened;
}

/// The files of one FILE. The files of an index count as one file, the index.
std::vector<opened_file> open_files(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return open_folder(path);
  if (tensor_file::is_shard_index(path)) return open_shards(path);
  return open_one(path);
}

std::vector<shown_tensor> choose(const tensor_selection& wanted) {
  std::vector<opened_file> whole;
  std::vector<shown_tensor> chosen;
  for (const std::string& input : wanted.files) {
    const tensor_location where = locate(input);
    refuse_if(where.tensor && !wanted.tensors.empty(),
              "--tensor: FILE names a tensor already, behind its #; leave one of them out");
    for (const opened_file& opened : open_files(where.file)) {
      whole.push_back(opened);
      if (where.tensor || !wanted.tensors.empty()) continue;
      for (const tensor_info& info : opened.file->tensors()) chosen.push_back(opened.tensor(info));
    }
    if (where.tensor) add_exact(whole, where, chosen);
  }
  if (whole.empty()) return chosen;
  for (const std::string& name : wanted.tensors) add_named(whole, name, chosen);
  return chosen;
}

/// Says how the elements are interpreted, or why they are not.
void interpret(shown_tensor& tensor, const std::string& from, from_scope scope) {
  const auto how = reading_of(tensor.info, "--from", from, scope);
  if (how) tensor.how = *how;
  if (!tensor.info.unread.empty()) {
    tensor.note = tensor.info.unread;
  } else if (!how) {
    tensor.note = "elements are neither floating point nor integers";
  } else if (how->integer_values) {
    if (const auto index = tensor.find_inexact_integer()) {
      tensor.note = cat("integer number ", *index, " has more than 53 significant bits");
    }
  }
}

}  // namespace

std::vector<shown_tensor> tensors_to_show(const tensor_selection& wanted) {
  std::vector<shown_tensor> chosen = choose(wanted);
  const from_scope scope = chosen.size() == 1 ? from_scope::one_tensor : from_scope::integers;
  const bool any_integers = std::ranges::any_of(chosen, [](const shown_tensor& c) {
    return c.info.unread.empty() && holds_integers(c.info);
  });
  refuse_if(!wanted.from.empty() && scope == from_scope::integers && !any_integers,
            "--from: none of the tensors holds integers; leave it out");
  for (shown_tensor& one : chosen) interpret(one, wanted.from, scope);
  return chosen;
}

// --- How `tensor` and `report` name files and tensors --------------------------------------------

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

/// The path of each file with as few of its last folders as tell all files apart: none if the names
/// of the files differ.
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

}  // namespace

std::vector<std::string> names_of(const std::vector<shown_tensor>& tensors) {
  const auto paths = short_paths_of(tensors);
  std::vector<std::string> names;
  for (const shown_tensor& tensor : tensors) {
    const std::string file = escape_path(paths.at(tensor.path));
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

std::string size_text(std::span<const shown_tensor> tensors) {
  std::uint64_t values = 0;
  std::uint64_t unread = 0;
  for (const shown_tensor& tensor : tensors) {
    if (tensor.info.unread.empty()) {
      values += tensor.info.count;
    } else {
      ++unread;  // an entry that may be no tensor
    }
  }
  return cat(number_of(tensors.size() - unread, "tensor"), ", ", number_of(values, "value"),
             unread == 0 ? "" : cat(", ", unread, " not read"));
}

void require_match(const char* option, const std::string& pattern,
                   const std::vector<shown_tensor>& tensors) {
  const bool any = std::ranges::any_of(tensors, [&](const shown_tensor& tensor) {
    return matches_glob(pattern, tensor.plain_name());
  });
  if (any) return;
  throw usage_error(option, ": no tensor matches ", quote(pattern));
}

// --- Statistics of elements ----------------------------------------------------------------------

namespace {

/// Calls f(elements) for the elements of a tensor in C order: a view of the file, or of one part after
/// another that several threads have read.
template <class Function>
void for_each_part(const shown_tensor& tensor, std::size_t threads, const Function& f) {
  const std::uint64_t count = tensor.info.count;
  if (const auto direct = tensor.view()) {
    return f(codes_at(tensor.format(), direct->data(), 1, count));
  }
  constexpr std::uint64_t part = 1 << 20;  // elements
  constexpr std::uint64_t task = 1 << 15;  // of one thread
  const std::size_t bytes = bytes_each(tensor.format());
  std::vector<std::byte> codes(static_cast<std::size_t>(std::min(part, count)) * bytes);
  for (std::uint64_t first = 0; first < count; first += part) {
    const std::uint64_t size = std::min(part, count - first);
    for_each_index(static_cast<std::size_t>((size + task - 1) / task), threads,
                   [&](std::size_t i, std::size_t) {
                     const std::uint64_t at = i * task;
                     tensor.read(first + at, std::min(task, size - at), codes.data() + at * bytes);
                   });
    f(codes_at(tensor.format(), std::as_const(codes).data(), 1, size));
  }
}

}  // namespace

cast_statistics statistics_of(const shown_tensor& tensor, statistics_request request,
                              const executor& where) {
  request.format = tensor.how.format;
  const bool channels = request.row_amax || request.column_amax;
  statistics_pass pass(request,
                       channels ? matrix_of(tensor.info)
                                : matrix_shape{1, static_cast<std::int64_t>(tensor.info.count)},
                       where);
  do {
    for_each_part(tensor, static_cast<std::size_t>(where.threads),
                  [&](const const_matrix_view& part) { pass.add(part); });
  } while (pass.again());
  return pass.result();
}

}  // namespace fpinspect
