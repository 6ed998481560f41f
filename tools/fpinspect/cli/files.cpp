// Files that subcommands read and write: implementation.
#include "fpinspect/cli/files.hpp"

#include <sys/stat.h>

#include <fstream>
#include <iostream>
#include <system_error>

#include "tensor_file/files/staged_file.hpp"

namespace fpinspect {
namespace {

struct noted_input {
  std::filesystem::path path;
  struct stat status {};
};

struct noted_output {
  std::string option;
  std::filesystem::path path;
};

// The files of this process, which runs one subcommand.
std::vector<noted_input> inputs;
std::vector<noted_output> outputs;

/// The whole path of a file that need not exist yet; empty on errors.
std::filesystem::path whole(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::weakly_canonical(std::filesystem::absolute(path, ignored), ignored);
}

/// Whether both are one regular file, or will be: outputs need not exist yet.
bool same_file(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code ignored;
  if (std::filesystem::exists(a, ignored)) {
    return std::filesystem::is_regular_file(a, ignored) &&
           std::filesystem::equivalent(a, b, ignored);
  }
  const std::filesystem::path name = whole(a);
  return !name.empty() && name == whole(b);
}

[[noreturn]] void refuse_input_as(const noted_output& output) {
  throw usage_error(output.option, ": ", quote(output.path.string()),
                    " is read by this command, and would be replaced; name another file");
}

/// Calls f(); errors of the output then name it. Errors of inputs name the input already.
template <class Function>
void writing(const std::string& shown, const Function& f) {
  try {
    f();
  } catch (const file_error& error) {
    if (error.kind() != error_kind::unwritable) throw;
    throw file_error(error.kind(), shown + ": " + error.what());
  }
}

/// The index of the extension in which the path ends.
std::size_t extension_of(std::string_view option, const std::string& path,
                         std::span<const std::string_view> extensions) {
  for (std::size_t i = 0; i < extensions.size(); ++i) {
    if (lower(path).ends_with(extensions[i])) return i;
  }
  throw usage_error(option, ": ", quote(path), " must end in ",
                    joined(extensions, std::identity{}, " or "),
                    ", which says what is written, or be - for standard output");
}

}  // namespace

void note_input(const std::filesystem::path& path) {
  noted_input input = {path == "-" ? "/dev/stdin" : path};
  for (const noted_output& output : outputs) {
    if (same_file(input.path, output.path)) refuse_input_as(output);
  }
  if (::stat(input.path.c_str(), &input.status) == 0) inputs.push_back(std::move(input));
}

void require_whole_inputs() {
  for (const auto& [path, before] : inputs) {
    struct stat now {};
    if (::stat(path.c_str(), &now) != 0) continue;
    const bool same = now.st_dev == before.st_dev && now.st_ino == before.st_ino;
    if (!same || now.st_size >= before.st_size) continue;
    const std::string shown = path == "/dev/stdin" ? "standard input" : escape_path(path);
    throw file_error(error_kind::unreadable,
                     shown + ": cannot be read to its end: the file was shortened meanwhile");
  }
}

std::string read_text_file(const std::string& path) {
  note_input(path);
  std::string text;
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  std::ifstream file(path, std::ios::binary);
  if (!file) throw file_error(error_kind::missing, escape_path(path) + ": cannot be opened");
  std::array<char, 1 << 16> block{};
  while (file.read(block.data(), block.size()) || file.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (!file.eof()) {
    throw file_error(error_kind::unreadable, escape_path(path) + ": cannot be read");
  }
  return text;
}

output_file::output_file(std::string_view option, std::string path,
                         std::initializer_list<std::string_view> extensions)
    : path_(std::move(path)) {
  if (is_standard_output()) return;
  extension_ = extension_of(option, path_, std::span(extensions.begin(), extensions.size()));
  const noted_output noted = {std::string(option), path_};
  for (const noted_input& input : inputs) {
    if (same_file(input.path, noted.path)) refuse_input_as(noted);
  }
  for (const noted_output& other : outputs) {
    if (!same_file(other.path, noted.path)) continue;
    throw usage_error(option, ": ", quote(path_), " is the file of ", other.option,
                      " too; name another file");
  }
  outputs.push_back(noted);
}

void output_file::write(std::span<const std::string_view> parts, output& out) const {
  if (is_standard_output()) {
    for (const std::string_view part : parts) out.write(part);
    return;
  }
  require_whole_inputs();
  writing(shown(), [&] {
    staged_file file(path_);
    for (const std::string_view part : parts) file.write(std::as_bytes(std::span(part)));
    file.commit();
  });
}

// --- Files of a model ----------------------------------------------------------------------------

namespace {

// Files of a model besides its tensors, by their extensions.
constexpr std::string_view model_texts[] = {".json", ".txt", ".model",    ".jinja",
                                            ".py",   ".md",  ".tiktoken", ".jsonl"};

bool is_model_text(const std::filesystem::path& path) {
  return contains(model_texts, path.extension().string());
}

/// Refuses to replace a folder that is more than a model.
void require_model_folder(std::string_view option, const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::filesystem::path& path = entry.path();
    const bool ours = entry.is_regular_file() && !entry.is_symlink() &&
                      (is_model_text(path) || path.extension() == ".safetensors");
    if (ours) continue;
    throw usage_error(option, ": ", quote(folder.string()), " would be replaced, and contains ",
                      quote(path.filename().string()),
                      ", which is no file of a model; name another folder");
  }
}

}  // namespace

output_checkpoint::output_checkpoint(std::string_view option, const std::string& path,
                                     bool one_file)
    : path_(path) {
  std::error_code ignored;
  if (path_.extension() == ".safetensors" && !std::filesystem::is_directory(path_, ignored)) {
    refuse_if(!one_file, option, ": ", quote(path),
              " is one file, and the tensors are in several; name a folder");
    static_cast<void>(output_file(option, path, {".safetensors"}));  // checks the inputs
    return;
  }
  for (const noted_input& input : inputs) {
    if (whole(input.path).parent_path() == whole(path_ / "x").parent_path()) {
      refuse_input_as({std::string(option), path_});
    }
  }
  if (std::filesystem::exists(path_, ignored)) {
    if (!std::filesystem::is_directory(path_, ignored)) {
      throw usage_error(option, ": ", quote(path), " is no folder, and no .safetensors file");
    }
    require_model_folder(option, path_);
  }
  writing(shown(), [&] { folder_ = std::make_unique<tensor_file::staged_folder>(path_); });
}

output_checkpoint::~output_checkpoint() = default;

void output_checkpoint::write(const std::string& name,
                              const std::function<void(staged_file&)>& fill) {
  writing(shown(), [&] {
    staged_file file(is_folder() ? folder_->path() / name : path_);
    fill(file);
    require_whole_inputs();
    file.commit();
  });
}

void output_checkpoint::commit() {
  if (is_folder()) writing(shown(), [&] { folder_->commit(); });
}

std::vector<std::filesystem::path> model_texts_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file(failed) && is_model_text(entry.path()) &&
        !name.ends_with(".index.json")) {
      found.push_back(entry.path());
    }
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace fpinspect
