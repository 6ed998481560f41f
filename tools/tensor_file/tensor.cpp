// An open tensor file: implementation.
#include "tensor_file/tensor.hpp"

#include "tensor_file/codes.hpp"
#include "tensor_file/files/file_cursor.hpp"
#include "tensor_file/gguf/gguf.hpp"
#include "tensor_file/npy/npy.hpp"
#include "tensor_file/npy/npz.hpp"
#include "tensor_file/safetensors/safetensors.hpp"
#include "tensor_file/torch/torch.hpp"

namespace samebits::tensor_file {

// --- The format of a file -----------------------------------------------------------------------

namespace {

using namespace std::string_view_literals;

constexpr const char* zip_hint =
    "a zip archive, but neither of numpy.savez nor of torch.save; unpack it first";
constexpr const char* pickle_hint =
    "a pickle, but not one of torch.save; save arrays with numpy.save or torch.save";
constexpr const char* hdf5_hint =
    "an HDF5 file; save each data set with numpy.save(name, dataset[...])";
constexpr const char* gzip_hint = "compressed with gzip; unpack it first";
constexpr const char* lfs_hint = "a Git LFS pointer, not the file itself; run git lfs pull";
constexpr const char* index_hint =
    "JSON; of a model in several parts, name one of the .safetensors files";

struct known {
  std::string_view mark;  // the first bytes of the file, or the end of its name
  const char* hint;
};

constexpr known contents[] = {
    {"\x89HDF\r\n\x1a\n"sv, hdf5_hint},
    {"\x1f\x8b"sv, gzip_hint},
    {"version https://git-lfs"sv, lfs_hint},
    {"\x80\x02"sv, pickle_hint},
    {"\x80\x03"sv, pickle_hint},
    {"\x80\x04"sv, pickle_hint},
    {"\x80\x05"sv, pickle_hint},
};

constexpr known names[] = {
    {".zip", zip_hint},   {".pkl", pickle_hint}, {".pickle", pickle_hint}, {".h5", hdf5_hint},
    {".hdf5", hdf5_hint}, {".gz", gzip_hint},    {".json", index_hint},
};

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

// Whether the file begins with a plausible header length and the brace that begins every header.
bool looks_like_safetensors(std::string_view content) {
  if (content.size() < 9 || content[8] != '{') return false;
  return little_endian<std::uint64_t>(std::as_bytes(std::span(content)), 0) <=
         safetensors_limits{}.header_bytes;
}

// The format that a file of this name has, if its content does not say.
std::optional<file_format> format_of_name(std::string_view lower_name) {
  using enum file_format;
  constexpr std::pair<std::string_view, file_format> extensions[] = {
      {".npy", npy},    {".npz", npz},  {".safetensors", safetensors},
      {".gguf", gguf},  {".pt", torch}, {".pth", torch},
      {".ckpt", torch}, {".jit", torch}};
  for (const auto& [extension, format] : extensions) {
    if (lower_name.ends_with(extension)) return format;
  }
  return std::nullopt;
}

// The name of a zip archive's first member distinguishes NumPy's archives from PyTorch's [PKWARE
// APPNOTE §4.3.7: 30 bytes, then the name].
file_format format_of_zip(std::string_view content, std::string_view lower_name) {
  constexpr std::size_t name_length_at = 26;
  constexpr std::size_t name_at = 30;
  if (content.size() > name_at) {
    const auto length =
        little_endian<std::uint16_t>(std::as_bytes(std::span(content)), name_length_at);
    const std::string_view member = content.substr(name_at, length);
    if (member.ends_with(".npy")) return file_format::npz;
    if (member.ends_with("data.pkl")) return file_format::torch;
  }
  const auto named = format_of_name(lower_name);
  if (named == file_format::npz || named == file_format::torch) return *named;
  if (lower_name.ends_with(".bin")) return file_format::torch;
  unsupported(zip_hint);
}

// Returns the format of a file, by its first bytes and then by its name: the last part of the path.
// For known formats that are not read, the message says how to convert.
file_format detect_format(std::span<const std::byte> file, std::string_view file_name) {
  const std::string_view content = text_of(file);
  const std::string lower_name = lower_case(file_name);
  if (content.starts_with("\x93NUMPY")) return file_format::npy;
  if (looks_like_safetensors(content)) return file_format::safetensors;
  if (content.starts_with("GGUF")) return file_format::gguf;
  if (is_old_torch_file(file)) return file_format::torch;
  if (content.starts_with("PK\x03\x04") || content.starts_with("PK\x05\x06")) {
    return format_of_zip(content, lower_name);
  }
  for (const known& entry : contents) {
    // A mark of two bytes does not outweigh a file name: the bytes may be the length of a damaged
    // header.
    const bool weak = entry.mark.size() == 2 && lower_name.ends_with(".safetensors");
    if (content.starts_with(entry.mark) && !weak) unsupported(entry.hint);
  }
  if (const auto named = format_of_name(lower_name)) return *named;
  for (const known& entry : names) {
    if (lower_name.ends_with(entry.mark)) unsupported(entry.hint);
  }
  if (content.empty()) unsupported("the file is empty");
  unsupported(
      "no .npy, .npz, .safetensors, GGUF or PyTorch file, by its first bytes and by its name");
}

}  // namespace

// --- An open file --------------------------------------------------------------------------------

tensor_file::tensor_file(mapped_file file, std::string path)
    : file_(std::move(file)), path_(std::move(path)) {}

tensor_file tensor_file::open(const std::filesystem::path& path) {
  const std::string shown = escape_path(path);
  return in_context(shown, [&] {
    tensor_file opened(mapped_file(path), shown);
    opened.read_header(path.filename().native());
    return opened;
  });
}

tensor_file tensor_file::open(int descriptor, std::string_view shown) {
  const std::string name(shown);
  return in_context(name, [&] {
    tensor_file opened(mapped_file(descriptor, name), name);
    opened.read_header({});
    return opened;
  });
}

void tensor_file::read_header(std::string_view file_name) {
  const std::span<const std::byte> content = file_.bytes();
  format_ = detect_format(content, file_name);
  switch (format_) {
    case file_format::npy: contents_.tensors.push_back(parse_npy(content)); break;
    case file_format::npz: contents_ = parse_npz(content); break;
    case file_format::safetensors: contents_ = parse_safetensors(content); break;
    case file_format::gguf: contents_ = parse_gguf(content); break;
    case file_format::torch: contents_ = parse_torch(content); break;
  }
  members_ = std::make_unique<zip_members>(std::move(contents_.members));
}

const tensor_info& tensor_file::find(std::string_view name) const {
  for (const tensor_info& info : tensors()) {
    if (info.name == name) return info;
  }
  constexpr std::size_t listed = 8;
  std::string held;
  for (std::size_t i = 0; i < tensors().size() && i < listed; ++i) {
    held += cat(i == 0 ? " " : ", ", quote(tensors()[i].name));
  }
  if (tensors().size() > listed) held += ", ...";
  throw file_error(error_kind::no_such_tensor,
                   cat(path_, ": no tensor ", quote(name), "; it has ", tensors().size(),
                       tensors().empty() ? "" : ":", held));
}

std::span<const std::byte> tensor_file::part_of(const tensor_info& info) const {
  if (!info.unread.empty()) unsupported(path_, ": tensor ", quote(info.name), ": ", info.unread);
  if (info.part == 0) return file_.bytes();
  return in_context(path_, [&] { return members_->bytes(file_.bytes(), info.part - 1); });
}

std::span<const std::byte> tensor_file::bytes(const tensor_info& info) const {
  return data_bytes(part_of(info), info);
}

void tensor_file::read_codes(const tensor_info& info, std::uint64_t first, std::uint64_t count,
                             std::byte* out) const {
  samebits::tensor_file::read_codes(part_of(info), info, first, count, out);
}

std::optional<std::span<const std::byte>> tensor_file::view_codes(const tensor_info& info) const {
  return samebits::tensor_file::view_codes(part_of(info), info);
}

}  // namespace samebits::tensor_file
