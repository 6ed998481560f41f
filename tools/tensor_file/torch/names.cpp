// The names of the tensors in a PyTorch file: implementation.
#include "tensor_file/torch/names.hpp"

#include "tensor_file/utf8.hpp"

namespace samebits::tensor_file {
namespace {

class walker {
 public:
  explicit walker(const object_store& objects) : objects_(objects) {}

  std::vector<tensor_info> walk(object_id root) {
    visit(root);
    while (!open_.empty()) step();
    if (const auto name = find_repeated(found_, &tensor_info::name)) {
      unsupported("two tensors have the path ", quote(*name));
    }
    return std::move(found_);
  }

 private:
  struct open_container {
    object_id id;
    std::size_t next;  // the first item that was not visited
    std::size_t name;  // bytes of the container's name
  };

  // Visits the next item of the innermost container, or closes it.
  void step() {
    open_container& inner = open_.back();
    const object& container = objects_[inner.id];
    name_.resize(inner.name);
    const std::vector<object_id>& items = container.items();
    if (inner.next == items.size()) {
      open_.pop_back();
      return;
    }
    if (container.kind == object_kind::dict) {
      enter(key_text(objects_[items[inner.next]], inner.next / 2));
      inner.next += 2;
      visit(items[inner.next - 1]);
    } else {
      enter(std::to_string(inner.next));
      visit(items[inner.next++]);
    }
  }

  // Keys that are no text and no integer are called by their position, <0>, which no integer is.
  static std::string key_text(const object& key, std::size_t position) {
    switch (key.kind) {
      case object_kind::text: return std::string(key.text().substr(0, longest_name + 1));
      case object_kind::integer: return std::to_string(key.number());
      case object_kind::boolean: return key.number() != 0 ? "True" : "False";
      case object_kind::none: return "None";
      default: return cat("<", position, ">");
    }
  }

  // torch keeps the last value of a key. Keys of other kinds cannot be compared here.
  void require_different_keys(const std::vector<object_id>& items) const {
    std::vector<std::pair<object_kind, std::string>> keys;
    for (std::size_t i = 0; i < items.size(); i += 2) {
      const object& key = objects_[items[i]];
      const bool is_known = key.kind == object_kind::text || key.kind == object_kind::integer;
      if (is_known) keys.emplace_back(key.kind, key_text(key, i / 2));
    }
    if (const auto key = find_repeated(keys)) {
      unsupported(quote(name_), ": a dict has the key ", quote(key->second), " twice");
    }
  }

  void enter(const std::string& part) {
    if (open_.size() > 1) name_ += '.';
    name_ += part;
    unsupported_if(name_.size() > longest_name, "tensor ", quoted{name_},
                   ": a name of more than 4096 bytes");
  }

  void visit(object_id id) {
    constexpr std::uint64_t most = 10'000'000;
    constexpr std::size_t deepest = 100;
    if (++visited_ > most) unsupported("containers hold more than 10000000 objects by all paths");
    const object& one = objects_[id];
    switch (one.kind) {
      case object_kind::tuple:
      case object_kind::list:
      case object_kind::dict:
        unsupported_if(open_.size() == deepest, quoted{name_},
                       ": containers are nested more than 100 deep");
        if (one.kind == object_kind::dict) require_different_keys(one.items());
        open_.push_back({id, 0, name_.size()});
        return;
      case object_kind::tensor:
        return add(objects_.tensors[static_cast<std::size_t>(one.number())].info);
      case object_kind::global: return add_other("the name " + name_of_global(objects_, id));
      case object_kind::inert: {
        const auto of = static_cast<object_id>(one.number());
        return add_other("an object of " + name_of_global(objects_, of));
      }
      case object_kind::storage: return add_other("a storage");
      default: return;
    }
  }

  void add_other(const std::string& what) { add({.unread = "no tensor but " + what}); }

  void add(tensor_info info) {
    constexpr std::size_t most = 1'000'000;
    constexpr std::uint64_t most_text = std::uint64_t{1} << 28;
    if (found_.size() == most) unsupported("more than 1000000 tensors by all paths");
    text_ += name_.size();
    extents_ += info.shape.size() + info.strides.size();
    if (extents_ > 16'000'000) unsupported("shapes of more than 16000000 extents by all paths");
    if (text_ > most_text) unsupported("the names of tensors have more than 256 MiB");
    malformed_if(find_invalid_utf8(name_) != std::string_view::npos, "tensor ", quoted{name_},
                 ": its name is not UTF-8");
    info.name = name_;
    found_.push_back(std::move(info));
  }

  static constexpr std::size_t longest_name = 4096;

  const object_store& objects_;
  std::vector<open_container> open_;  // from the outermost one
  std::string name_;
  std::vector<tensor_info> found_;
  std::uint64_t visited_ = 0;
  std::uint64_t text_ = 0;
  std::uint64_t extents_ = 0;
};

}  // namespace

std::vector<tensor_info> named_tensors(const object_store& objects, object_id root) {
  return walker(objects).walk(root);
}

}  // namespace samebits::tensor_file
