// Storages and tensors of a PyTorch pickle: what the calls that make them return.
#include "tensor_file/torch/calls.hpp"

#include "tensor_file/tensor_size.hpp"
#include "tensor_file/torch/torch_types.hpp"

namespace samebits::tensor_file {
namespace {

constexpr std::uint64_t longest_key = 4096;

// The storage of arguments 1 to 4 of a persistent id: class, key, location, number of elements.
torch_storage storage_of(const call_arguments& arguments) {
  torch_storage storage;
  storage.type = arguments.global(1);
  storage.key = arguments.text(2);
  if (storage.key.size() > longest_key) malformed("the key of a storage has more than 4096 bytes");
  storage.has_data = arguments.text(3) != "meta";
  const torch_type* const type = find_torch_storage(storage.type);
  if (type != nullptr) {
    storage.elements = type->elements;
    storage.element_bytes = type->bytes;
  } else if (storage.type == "UntypedStorage") {
    storage.element_bytes = 1;
  } else {
    unsupported("a storage of the class ", quote(storage.type));
  }
  malformed_if(__builtin_mul_overflow(arguments.natural(4), storage.element_bytes, &storage.bytes),
               "the size of a storage exceeds 64 bits");
  return storage;
}

// The index of the storage, which other persistent ids may have named before.
std::uint32_t index_of(object_store& objects, const torch_storage& storage) {
  const auto next = static_cast<std::uint32_t>(objects.storages.size());
  const auto [found, is_new] = objects.storage_of_key.emplace(storage.key, next);
  if (is_new) {
    objects.storages.push_back(storage);
    return next;
  }
  torch_storage& before = objects.storages[found->second];
  // PyTorch saves bytes and an FP8 view of them as one storage with two names.
  const auto is_bytes = [](const torch_storage& s) {
    return s.type == "ByteStorage" || s.type == "UntypedStorage";
  };
  if (is_bytes(before) && is_bytes(storage) && before.bytes == storage.bytes) {
    if (storage.elements) before = storage;
  } else if (before.type != storage.type || before.bytes != storage.bytes) {
    malformed("storage ", quote(storage.key), " has another type or size than before");
  }
  return found->second;
}

// Bits that PyTorch applies when it reads the elements.
bool has_pending_operation(const object_store& objects, const call_arguments& arguments,
                           std::size_t at) {
  if (!arguments.has(at)) return false;
  const std::vector<object_id>& items =
      objects[arguments.id(at, object_kind::dict, "a dict")].items();
  for (std::size_t i = 1; i < items.size(); i += 2) {
    if (items[i] != object_store::no) return true;
  }
  return false;
}

bool is_contiguous(const tensor_info& info) {
  if (info.count <= 1) return true;
  std::uint64_t expected = 1;
  for (std::size_t k = info.shape.size(); k-- > 0;) {
    if (info.shape[k] != 1 && info.strides[k] != expected) return false;
    expected *= info.shape[k];
  }
  return true;
}

// The first byte behind the last element, from the start of the storage.
unsigned __int128 end_of(const tensor_info& info, std::uint64_t first, std::uint64_t width) {
  if (info.count == 0) return 0;
  using wide = unsigned __int128;
  wide elements = wide{first} + 1;
  for (std::size_t k = 0; k < info.shape.size(); ++k) {
    elements += wide{info.shape[k] - 1} * info.strides[k];
  }
  return elements >> 64 != 0 ? elements : elements * width;
}

object_id add_tensor(object_store& objects, torch_tensor tensor) {
  constexpr std::size_t most = 1'000'000;
  constexpr std::uint64_t most_extents = 16'000'000;
  if (objects.tensors.size() == most) unsupported("more than 1000000 tensors");
  objects.extents += tensor.info.shape.size() + tensor.info.strides.size();
  if (objects.extents > most_extents) unsupported("shapes of more than 16000000 extents together");
  objects.tensors.push_back(std::move(tensor));
  return objects.add(object_kind::tensor, static_cast<std::int64_t>(objects.tensors.size() - 1));
}

}  // namespace

object_id add_storage(object_store& objects, object_id persistent_id) {
  const call_arguments arguments(objects, persistent_id, "a persistent id");
  const std::string_view kind = arguments.text(0);
  if (kind == "module") return arguments.id(1, object_kind::global, "a name of a module");
  if (kind != "storage") malformed("a persistent id of the unknown kind ", quote(kind));
  const torch_storage storage = storage_of(arguments);
  storage_view view{index_of(objects, storage), 0, storage.bytes};
  if (arguments.has(5)) {  // of old files: key, offset and size of a part of the storage
    const call_arguments part(objects, arguments.id(5, object_kind::tuple, "a tuple"), "a view");
    malformed_if(__builtin_mul_overflow(part.natural(1), storage.element_bytes, &view.first) ||
                     __builtin_mul_overflow(part.natural(2), storage.element_bytes, &view.bytes) ||
                     view.first > storage.bytes || view.bytes > storage.bytes - view.first,
                 "a view exceeds its storage");
  }
  objects.views.push_back(view);
  return objects.add(object_kind::storage, static_cast<std::int64_t>(objects.views.size() - 1));
}

object_id rebuild_tensor(object_store& objects, const call_arguments& arguments,
                         bool typed_by_argument) {
  const object& of = objects[arguments.id(0, object_kind::storage, "a storage")];
  const storage_view view = objects.views[static_cast<std::size_t>(of.number())];
  const torch_storage& storage = objects.storages[view.storage];
  std::string_view type_name = storage.type;
  std::optional<dtype> type = storage.elements;
  std::uint64_t width = storage.element_bytes;
  if (typed_by_argument && arguments.has(6, object_kind::global)) {
    return add_unread_tensor(objects, "elements are of the type " + escape(arguments.global(6)));
  }
  if (typed_by_argument) {
    type_name = objects[arguments.id(6, object_kind::dtype, "a dtype")].text();
    const torch_type& row = *find_torch_type(type_name);
    type = row.elements;
    width = row.bytes;
  }
  torch_tensor tensor;
  tensor.storage = view.storage;
  tensor_info& info = tensor.info;
  const std::uint64_t first = arguments.natural(1);
  info.shape = arguments.naturals(2);
  info.strides = arguments.naturals(3);
  if (info.strides.size() != info.shape.size()) malformed("a tensor needs a stride by dimension");
  info.type = type.value_or(dtype::u8);
  set_size(info);
  if (end_of(info, first, width) > view.bytes) malformed("a tensor exceeds its storage");
  info.offset = info.count == 0 ? 0 : view.first + first * width;
  if (is_contiguous(info)) info.strides.clear();
  if (!storage.has_data) {
    info.unread = "a tensor of the device meta, which has no elements";
  } else if (!type) {
    info.unread = "elements are of the type " + escape(type_name);
  } else if (has_pending_operation(objects, arguments, typed_by_argument ? 7 : 6)) {
    info.unread = "its conjugate or negative is stored; save x.resolve_conj().resolve_neg()";
  }
  return add_tensor(objects, std::move(tensor));
}

object_id add_unread_tensor(object_store& objects, const std::string& reason) {
  torch_tensor tensor;
  tensor.info.unread = reason;
  return add_tensor(objects, std::move(tensor));
}

}  // namespace samebits::tensor_file
