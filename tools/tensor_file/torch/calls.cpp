// What the calls in a PyTorch pickle mean: implementation.
#include "tensor_file/torch/calls.hpp"

#include "tensor_file/torch/torch_types.hpp"

namespace samebits::tensor_file {
namespace {

enum class meaning : std::uint8_t {
  dict,       // an empty dict, or that of the pairs in a list
  pass,       // the first argument
  plain,      // a value that is no tensor
  inert,      // an object that is listed
  tensor,     // a tensor over a storage
  parameter,  // the tensor that is the first argument
  subclass,   // what the function in the first argument returns for the third
  unread,     // a tensor that is not read
};

struct known_name {
  std::string_view module;
  std::string_view name;
  meaning what;
  const char* reason = "";  // of unread tensors
};

constexpr const char* quantized = "a quantized tensor";
constexpr const char* sparse = "a sparse tensor";
constexpr const char* converted = "a tensor that needs its device";

// Classes that training frameworks put beside tensors are inert.
constexpr known_name known_names[] = {
    {"collections", "OrderedDict", meaning::dict},
    {"collections", "defaultdict", meaning::dict},
    {"torch", "Size", meaning::pass},
    {"torch", "device", meaning::plain},
    {"torch.serialization", "_get_layout", meaning::plain},
    {"torch._utils", "_rebuild_tensor", meaning::tensor},
    {"torch._utils", "_rebuild_tensor_v2", meaning::tensor},
    {"torch._utils", "_rebuild_tensor_v3", meaning::tensor},
    {"torch._utils", "_rebuild_parameter", meaning::parameter},
    {"torch._utils", "_rebuild_parameter_with_state", meaning::parameter},
    {"torch._tensor", "_rebuild_from_type", meaning::subclass},
    {"torch._tensor", "_rebuild_from_type_v2", meaning::subclass},
    {"torch._utils", "_rebuild_qtensor", meaning::unread, quantized},
    {"torch._utils", "_rebuild_sparse_tensor", meaning::unread, sparse},
    {"torch._utils", "_rebuild_sparse_csr_tensor", meaning::unread, sparse},
    {"torch._utils", "_rebuild_nested_tensor", meaning::unread, "a nested tensor"},
    {"torch.nn.parameter", "UninitializedParameter", meaning::unread,
     "a parameter without a shape"},
    {"torch.nn.parameter", "UninitializedBuffer", meaning::unread, "a buffer without a shape"},
    {"torch._utils", "_rebuild_meta_tensor_no_storage", meaning::unread,
     "a tensor of the device meta, which has no elements"},
    {"torch._utils", "_rebuild_wrapper_subclass", meaning::unread,
     "a tensor of a subclass without a storage"},
    {"torch._utils", "_rebuild_device_tensor_from_numpy", meaning::unread, converted},
    {"torch._utils", "_rebuild_device_tensor_from_cpu_tensor", meaning::unread, converted},
    {"torch._utils", "_rebuild_xla_tensor", meaning::unread, converted},
    {"collections", "Counter", meaning::inert},
    {"collections", "deque", meaning::inert},
    {"builtins", "set", meaning::inert},
    {"builtins", "frozenset", meaning::inert},
    {"builtins", "bytearray", meaning::inert},
    {"builtins", "complex", meaning::inert},
    {"builtins", "range", meaning::inert},
    {"builtins", "slice", meaning::inert},
    {"_codecs", "encode", meaning::plain},
    {"_io", "BytesIO", meaning::inert},
    {"argparse", "Namespace", meaning::inert},
    {"types", "SimpleNamespace", meaning::inert},
    {"pathlib", "Path", meaning::inert},
    {"pathlib", "PosixPath", meaning::inert},
    {"pathlib", "PurePosixPath", meaning::inert},
    {"pathlib", "WindowsPath", meaning::inert},
    {"pathlib", "PureWindowsPath", meaning::inert},
    {"datetime", "datetime", meaning::inert},
    {"datetime", "timedelta", meaning::inert},
    {"uuid", "UUID", meaning::inert},
    {"numpy", "dtype", meaning::inert},
    {"numpy", "ndarray", meaning::inert},
    {"numpy.core.multiarray", "scalar", meaning::inert},
    {"numpy.core.multiarray", "_reconstruct", meaning::inert},
    {"numpy._core.multiarray", "scalar", meaning::inert},
    {"numpy._core.multiarray", "_reconstruct", meaning::inert},
    {"pytorch_lightning.utilities.parsing", "AttributeDict", meaning::inert},
    {"lightning_fabric.utilities.data", "AttributeDict", meaning::inert},
    {"lightning.fabric.utilities.data", "AttributeDict", meaning::inert},
    {"omegaconf.base", "ContainerMetadata", meaning::inert},
    {"omegaconf.base", "Metadata", meaning::inert},
    {"omegaconf.dictconfig", "DictConfig", meaning::inert},
    {"omegaconf.listconfig", "ListConfig", meaning::inert},
    {"omegaconf.nodes", "AnyNode", meaning::inert},
};

const known_name* find_name(const object_store& objects, object_id id) {
  const std::vector<object_id>& texts = objects[id].items();
  std::string_view module = objects[texts[0]].text();
  if (module == "__builtin__") module = "builtins";  // of Python 2
  const std::string_view name = objects[texts[1]].text();
  const auto* const end = std::end(known_names);
  const auto* const found = std::find_if(std::begin(known_names), end, [&](const known_name& row) {
    return row.name == name && row.module == module;
  });
  return found == end ? nullptr : found;
}

// OrderedDict and defaultdict. Python 2 gives an OrderedDict its items as a list of pairs.
object_id new_dict(object_store& objects, const call_arguments& arguments) {
  std::vector<object_id> items;
  if (arguments.has(0, object_kind::list)) {
    for (const object_id pair : objects[arguments.id(0, object_kind::list, "a list")].items()) {
      const object& one = objects[pair];
      const bool holds = one.kind == object_kind::list || one.kind == object_kind::tuple;
      if (!holds || one.items().size() != 2) malformed("a dict's items must be pairs");
      unsupported_if(++objects.copied_pairs > 10'000'000,
                     "more than 10000000 items of dicts in calls");
      items.insert(items.end(), one.items().begin(), one.items().end());
    }
  } else if (arguments.has(0, object_kind::dict) || arguments.has(0, object_kind::tuple)) {
    unsupported("a dict made of another object than a list of pairs");
  }
  return objects.add(object_kind::dict, std::move(items));
}

object_id call_known(object_store& objects, const known_name& known, object_id callee,
                     object_id tuple);

// A subclass of Tensor, by a function that is not itself about subclasses.
object_id new_subclass(object_store& objects, const call_arguments& arguments) {
  const object_id function = arguments.id(0, object_kind::global, "a name of a module");
  const known_name* const inner = find_name(objects, function);
  const bool makes_tensors =
      inner != nullptr && (inner->what == meaning::tensor || inner->what == meaning::parameter ||
                           inner->what == meaning::unread);
  if (!makes_tensors) {
    unsupported("a tensor of a subclass, made by ", name_of_global(objects, function));
  }
  return call_known(objects, *inner, function, arguments.id(2, object_kind::tuple, "a tuple"));
}

object_id call_known(object_store& objects, const known_name& known, object_id callee,
                     object_id tuple) {
  const call_arguments arguments(objects, tuple, known.name);
  switch (known.what) {
    case meaning::dict: return new_dict(objects, arguments);
    case meaning::pass: return arguments.id(0, object_kind::tuple, "a tuple");
    case meaning::plain: return objects.add(object_kind::plain, std::string_view());
    case meaning::inert: return objects.add(object_kind::inert, std::int64_t{callee});
    case meaning::tensor: return rebuild_tensor(objects, arguments, known.name.ends_with("_v3"));
    case meaning::parameter: return arguments.id(0, object_kind::tensor, "a tensor");
    case meaning::subclass: return new_subclass(objects, arguments);
    case meaning::unread: break;
  }
  return add_unread_tensor(objects, known.reason);
}

}  // namespace

std::string name_of_global(const object_store& objects, object_id id) {
  const std::vector<object_id>& texts = objects[id].items();
  return escape(objects[texts[0]].text()) + "." + escape(objects[texts[1]].text());
}

object_id add_global(object_store& objects, std::string_view module, std::string_view name) {
  if (module == "torch" && find_torch_type(name) != nullptr) {
    return objects.add(object_kind::dtype, name);
  }
  const object_id first = objects.add(object_kind::text, module);
  const object_id second = objects.add(object_kind::text, name);
  return objects.add(object_kind::global, std::vector<object_id>{first, second});
}

object_id add_inert(object_store& objects, std::string_view module, std::string_view name) {
  return objects.add(object_kind::inert, std::int64_t{add_global(objects, module, name)});
}

object_id call(object_store& objects, object_id callee, object_id arguments) {
  if (objects[callee].kind != object_kind::global) malformed("the pickle calls what is no name");
  const known_name* const known = find_name(objects, callee);
  if (known == nullptr) {
    unsupported("the pickle calls ", name_of_global(objects, callee),
                ", which was not run; save tensors in dicts and lists, such as a state_dict()");
  }
  return call_known(objects, *known, callee, arguments);
}

object_id make(object_store& objects, object_id callee, object_id arguments) {
  if (objects[callee].kind == object_kind::global) {
    const known_name* const known = find_name(objects, callee);
    const bool is_dict = known != nullptr && known->what == meaning::dict;
    unsupported_if(is_dict && !call_arguments(objects, arguments, "__new__").is_empty(),
                   "a dict made by __new__ with arguments, which torch ignores");
  }
  return call(objects, callee, arguments);
}

void require_buildable(const object& to, const object& state) {
  // torch replaces the tensor's storage by a state of (storage, offset, size, strides).
  unsupported_if(to.kind == object_kind::tensor && state.kind == object_kind::tuple &&
                     state.items().size() > 2,
                 "a tensor whose storage is replaced by its state");
  if (to.kind == object_kind::dict || to.kind == object_kind::inert ||
      to.kind == object_kind::tensor) {
    return;
  }
  malformed("attributes of an object that has none");
}

}  // namespace samebits::tensor_file
