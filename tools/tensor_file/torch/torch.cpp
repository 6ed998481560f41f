// PyTorch's files: implementation.
#include "tensor_file/torch/torch.hpp"

#include <unordered_map>

#include "tensor_file/files/file_cursor.hpp"
#include "tensor_file/torch/names.hpp"
#include "tensor_file/torch/objects.hpp"
#include "tensor_file/torch/pickle.hpp"
#include "tensor_file/zip/zip.hpp"

namespace samebits::tensor_file {
namespace {

using namespace std::string_view_literals;
using file_bytes = std::span<const std::byte>;

// Where the data of a storage begins, as in tensor_info.
struct place {
  std::uint64_t part = 0;
  std::uint64_t offset = 0;
};

// The tensors below `root`. Strides and paths may repeat elements, so that a small file could claim
// any number of them.
std::vector<tensor_info> tensors_at(object_store& objects, object_id root,
                                    const std::vector<place>& places, byte_order order,
                                    std::uint64_t file_size) {
  for (torch_tensor& tensor : objects.tensors) {
    if (!tensor.info.unread.empty()) continue;
    tensor.info.part = places[tensor.storage].part;
    tensor.info.offset += places[tensor.storage].offset;
    tensor.info.bytes_order = order;
  }
  std::vector<tensor_info> tensors = named_tensors(objects, root);
  constexpr std::uint64_t least_size = std::uint64_t{1} << 20;
  const auto most = static_cast<unsigned __int128>(std::max(file_size, least_size)) * 1024;
  unsigned __int128 bytes = 0;
  for (const tensor_info& info : tensors) {
    bytes += info.unread.empty() ? info.bytes : 0;
    unsupported_if(bytes > most, "tensor ", quoted{info.name},
                   ": the elements of all tensors exceed the file 1024 times");
  }
  return tensors;
}

// --- The zip format -------------------------------------------------------------------------------

// The members of an archive, and the folder that holds those of PyTorch.
struct archive {
  file_bytes file;
  std::vector<zip_member> members;
  std::unordered_map<std::string_view, const zip_member*> by_name;
  std::string folder;  // "NAME/"

  explicit archive(file_bytes bytes) : file(bytes), members(parse_zip(bytes)) {
    for (const zip_member& member : members) by_name.emplace(member.name, &member);
    constexpr std::string_view pickle = "data.pkl";
    const auto is_pickle = [&](const zip_member& member) {
      return member.name == pickle || member.name.ends_with("/data.pkl");
    };
    const auto found = std::find_if(members.begin(), members.end(), is_pickle);
    unsupported_if(found == members.end(),
                   "a zip archive without data.pkl; PyTorch's checkpoints have one");
    folder = found->name.substr(0, found->name.size() - pickle.size());
    unsupported_if(find("constants.pkl") != nullptr,
                   "a TorchScript program; save the state_dict() of the module with torch.save");
  }

  [[nodiscard]] const zip_member* find(std::string_view name) const {
    const auto found = by_name.find(folder + std::string(name));
    return found == by_name.end() ? nullptr : found->second;
  }
};

// torch.save can be told to leave out the CRC-32; the directory then has 0.
zip_member checked_member(zip_member member) {
  const std::string why = unread_reason(member);
  if (!why.empty()) unsupported("member ", quote(member.name), ": ", why);
  member.has_crc32 = member.crc32 != 0;
  return member;
}

byte_order order_of(const archive& zip) {
  const zip_member* const member = zip.find("byteorder");
  if (member == nullptr) return byte_order::little;  // of versions before 2.1
  zip_members whole({checked_member(*member)}, 16);
  const std::string_view text = text_of(whole.bytes(zip.file, 0));
  if (text == "little") return byte_order::little;
  if (text == "big") return byte_order::big;
  malformed("member ", quote(member->name), ": expected little or big");
}

std::vector<place> find_storages(const archive& zip, const object_store& objects,
                                 std::vector<zip_member>& members) {
  std::vector<place> places;
  for (const torch_storage& storage : objects.storages) {
    places.emplace_back();
    if (!storage.has_data) continue;
    const std::string name = "data/" + std::string(storage.key);
    const zip_member* const member = zip.find(name);
    if (member == nullptr) malformed("there is no member ", quote(zip.folder + name));
    members.push_back(checked_member(*member));
    malformed_if(member->bytes < storage.bytes, "member ", quoted{member->name}, ": it has ",
                 member->bytes, " bytes, its storage ", storage.bytes);
    places.back().part = members.size();
  }
  return places;
}

file_contents parse_zip_format(file_bytes file) {
  const archive zip(file);
  const zip_member& member = *zip.find("data.pkl");
  zip_members whole({checked_member(member)}, max_pickle_bytes);
  file_contents contents;
  in_context("member " + quote(member.name), [&] {
    object_store objects;
    const object_id root = pickle_machine(whole.bytes(file, 0), objects).run();
    const std::vector<place> places = find_storages(zip, objects, contents.members);
    contents.tensors = tensors_at(objects, root, places, order_of(zip), file.size());
  });
  return contents;
}

// --- The old format -------------------------------------------------------------------------------

constexpr std::string_view magic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";

// Files of big-endian machines are refused, because none was available to test against.
void require_little_endian(const object_store& objects, object_id system) {
  if (objects[system].kind != object_kind::dict) malformed("the third pickle must be a dict");
  const std::vector<object_id>& items = objects[system].items();
  for (std::size_t i = 0; i < items.size(); i += 2) {
    const object& key = objects[items[i]];
    const bool is_order = key.kind == object_kind::text && key.text() == "little_endian";
    unsupported_if(is_order && items[i + 1] != object_store::yes,
                   "an old PyTorch file of a big-endian machine; save it again with torch.save");
  }
}

// The data of the storages, in the order of `keys`, from `at` on.
std::vector<place> find_storages(file_bytes file, std::uint64_t at, const object_store& objects,
                                 object_id keys) {
  if (objects[keys].kind != object_kind::list) malformed("the fifth pickle must be a list");
  std::vector<place> places(objects.storages.size());
  file_cursor in(file);
  in.skip(at, "the pickles");
  for (const object_id id : objects[keys].items()) {
    if (objects[id].kind != object_kind::text) malformed("the key of a storage is not text");
    const std::string_view key = objects[id].text();
    const auto found = objects.storage_of_key.find(key);
    if (found == objects.storage_of_key.end()) malformed("no tensor has the storage ", quote(key));
    const torch_storage& storage = objects.storages[found->second];
    const auto elements = in.read<std::uint64_t>("the size of a storage");
    malformed_if(elements != storage.bytes / storage.element_bytes, "storage ", quoted{key},
                 " has ", elements, " elements, by the pickle ",
                 storage.bytes / storage.element_bytes);
    place& to = places[found->second];
    if (to.offset != 0) malformed("storage ", quote(key), " occurs twice");
    to.offset = in.at();
    in.skip(storage.bytes, "a storage");
  }
  for (const torch_storage& storage : objects.storages) {
    const bool found = places[objects.storage_of_key.at(storage.key)].offset != 0;
    if (!found && storage.has_data) malformed("storage ", quote(storage.key), " has no data");
  }
  return places;
}

file_contents parse_old_format(file_bytes file) {
  object_store objects;
  pickle_machine machine(file, objects);
  machine.run();  // the magic number
  const object version = objects[machine.run()];
  unsupported_if(version.kind != object_kind::integer || version.number() != 1001,
                 "an old PyTorch file of another version than 1001");
  require_little_endian(objects, machine.run());
  const object_id root = machine.run();
  const object_id keys = machine.run();
  const std::vector<place> places = find_storages(file, machine.at(), objects, keys);
  file_contents contents;
  contents.tensors = tensors_at(objects, root, places, byte_order::little, file.size());
  return contents;
}

}  // namespace

bool is_old_torch_file(file_bytes file) {
  constexpr std::size_t farthest = 32;  // behind PROTO, FRAME and LONG1
  const std::string_view start = text_of(file).substr(0, farthest);
  return start.starts_with('\x80') && start.find(magic) != std::string_view::npos;
}

file_contents parse_torch(file_bytes file) {
  if (is_old_torch_file(file)) return parse_old_format(file);
  if (text_of(file).starts_with("PK"sv)) return parse_zip_format(file);
  unsupported(text_of(file).substr(0, 512).find("ustar"sv) != std::string_view::npos
                  ? "a PyTorch file of before 2018, a tar archive; save it again with torch.save"
                  : "no PyTorch file: neither a zip archive nor a pickle of torch.save");
}

}  // namespace samebits::tensor_file
