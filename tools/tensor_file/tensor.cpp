// An open tensor file: implementation.
#include "tensor_file/tensor.hpp"

#include "tensor_file/codes.hpp"
#include "tensor_file/escape.hpp"
#include "tensor_file/gguf/gguf.hpp"
#include "tensor_file/npy/npy.hpp"
#include "tensor_file/npy/npz.hpp"
#include "tensor_file/safetensors/safetensors.hpp"
#include "tensor_file/torch/torch.hpp"

namespace samebits::tensor_file {

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
    held += (i == 0 ? " " : ", ") + quote(tensors()[i].name);
  }
  if (tensors().size() > listed) held += ", ...";
  throw file_error(error_kind::no_such_tensor, path_ + ": no tensor " + quote(name) + "; it has " +
                                                   std::to_string(tensors().size()) +
                                                   (tensors().empty() ? "" : ":") + held);
}

std::span<const std::byte> tensor_file::part_of(const tensor_info& info) const {
  if (!info.unread.empty()) {
    unsupported(path_ + ": tensor " + quote(info.name) + ": " + info.unread);
  }
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
