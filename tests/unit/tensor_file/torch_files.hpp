// PyTorch files from the operations of their pickles.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support.hpp"
#include "zip_files.hpp"

namespace samebits::tensor_file::testing {

inline std::string text(std::string_view value) {
  return "X" + little_endian(value.size(), 4) + std::string(value);
}

inline std::string number(std::uint64_t value) {
  if (value < 256) return "K" + little_endian(value, 1);
  return "\x8a\x08" + little_endian(value, 8);
}

inline std::string global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}

inline std::string tuple(std::initializer_list<std::string> items) {
  std::string all = "(";
  for (const std::string& item : items) all += item;
  return all + "t";
}

inline std::string numbers(const std::vector<std::uint64_t>& values) {
  std::string all = "(";
  for (const std::uint64_t value : values) all += number(value);
  return all + "t";
}

inline std::string call(std::string_view module, std::string_view name,
                        std::initializer_list<std::string> arguments) {
  return global(module, name) + tuple(arguments) + "R";
}

inline std::string list(std::initializer_list<std::string> items) {
  std::string all = "](";
  for (const std::string& item : items) all += item;
  return all + "e";
}

inline std::string dict(std::initializer_list<std::pair<std::string_view, std::string>> items) {
  std::string all = "}(";
  for (const auto& [key, value] : items) all += text(key) + value;
  return all + "u";
}

inline std::string storage(std::string_view type, std::string_view key, std::uint64_t elements,
                           std::string_view location = "cpu") {
  return tuple({text("storage"), global("torch", type), text(key), text(location),
                number(elements)}) +
         "Q";
}

inline const std::string no_hooks = call("collections", "OrderedDict", {});

inline std::string tensor(const std::string& of, std::uint64_t offset,
                          const std::vector<std::uint64_t>& shape,
                          const std::vector<std::uint64_t>& strides,
                          const std::string& metadata = "") {
  return call("torch._utils", "_rebuild_tensor_v2",
              {of, number(offset), numbers(shape), numbers(strides), "\x89", no_hooks, metadata});
}

/// Two bytes: the only elements of storage "0".
inline const std::string two_bytes = tensor(storage("ByteStorage", "0", 2), 0, {2}, {1});

inline std::string pickle(std::string_view body) { return "\x80\x02" + std::string(body) + "."; }

/// A file of the zip format.
/// @param storages  the data of "0", "1", ...
inline std::string torch_zip(std::string_view body,
                             const std::vector<std::string>& storages = {"ab"},
                             std::string_view byte_order = "little") {
  std::vector<zip_part> parts{stored_part("m/data.pkl", pickle(body))};
  parts.push_back(stored_part("m/byteorder", byte_order));
  for (std::size_t i = 0; i < storages.size(); ++i) {
    parts.push_back(stored_part("m/data/" + std::to_string(i), storages[i]));
  }
  return zip_of(parts);
}

inline std::string old_start(std::uint64_t version = 1001, std::string_view little = "\x88") {
  return pickle("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19") + pickle(number(version)) +
         pickle(dict({{"protocol_version", number(1001)}, {"little_endian", std::string(little)}}));
}

struct old_storage {
  std::string key;
  std::uint64_t elements;
  std::string data;
};

/// A file of the old format.
inline std::string torch_old(std::string_view body,
                             const std::vector<old_storage>& storages = {{"0", 2, "ab"}}) {
  std::string keys = "](";
  std::string data;
  for (const old_storage& one : storages) {
    keys += text(one.key);
    data += little_endian(one.elements, 8) + one.data;
  }
  return old_start() + pickle(body) + pickle(keys + "e") + data;
}

}  // namespace samebits::tensor_file::testing
