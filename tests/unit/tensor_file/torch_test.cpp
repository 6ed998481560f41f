// PyTorch files: names, element types, layouts, and what is listed without being read.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "support.hpp"
#include "tensor_file/tensor.hpp"
#include "tensor_file/torch/torch_types.hpp"
#include "tensor_file/zip/inflate.hpp"
#include "torch_files.hpp"

namespace samebits::tensor_file::testing {
namespace {

using namespace std::string_literals;

tensor_file open(const std::string& content) {
  const scratch_folder folder;
  return tensor_file::open(folder.write("model", content));
}

std::string codes_of(const tensor_file& file, std::string_view name) {
  return testing::codes_of(file, file.find(name));
}

std::vector<std::string> names_in(const tensor_file& file) {
  std::vector<std::string> names;
  for (const tensor_info& info : file.tensors()) names.push_back(info.name);
  return names;
}

using texts = std::vector<std::string>;

TEST(Torch, NamesArePathsThroughContainers) {
  const std::string ordered = call("collections", "OrderedDict", {}) + text("w") + two_bytes + "s" +
                              dict({{"_metadata", dict({})}}) + "b";
  const std::string keys = "}(" + number(3) + two_bytes + "\x8a\x01\xff" + two_bytes + "\x88" +
                           two_bytes + "N" + two_bytes + tuple({}) + two_bytes + "u";
  const std::string body = dict({
      {"model", dict({{"layers.0", ordered}, {"b", two_bytes}})},
      {"list", list({two_bytes, tuple({number(1), two_bytes})})},
      {"keys", keys},
      {"size", call("torch", "Size", {tuple({number(2)})})},
      {"epoch", number(7)},
      {"default", call("collections", "defaultdict", {global("builtins", "dict")}) + text("x") +
                      two_bytes + "s"},
      {"python2", call("collections", "OrderedDict", {list({list({text("y"), two_bytes})})})},
  });
  const texts expected = {"model.layers.0.w", "model.b",   "list.0",    "list.1.1",
                          "keys.3",           "keys.-1",   "keys.True", "keys.None",
                          "keys.<4>",         "default.x", "python2.y"};
  for (const std::string& content : {torch_zip(body), torch_old(body)}) {
    const tensor_file file = open(content);
    EXPECT_EQ(file.format(), file_format::torch);
    EXPECT_EQ(names_in(file), expected);
    for (const tensor_info& info : file.tensors()) EXPECT_EQ(codes_of(file, info.name), "ab");
  }
  EXPECT_EQ(names_in(open(torch_zip(two_bytes))), texts{""});
  EXPECT_EQ(names_in(open(torch_zip(number(3)))), texts{});
}

std::string typed_tensor(const torch_type& type) {
  if (!type.storage.empty()) return tensor(storage(type.storage, "0", 2), 1, {1}, {1});
  const std::string untyped = storage("UntypedStorage", "0", 2 * type.bytes);
  return call("torch._utils", "_rebuild_tensor_v3",
              {untyped, number(1), numbers({1}), numbers({1}), "\x89", no_hooks,
               global("torch", type.name)});
}

// The second of two elements of each type.
TEST(Torch, ReadsEveryElementType) {
  for (const torch_type& type : torch_types) {
    SCOPED_TRACE(type.name);
    const std::string elements = "0123456789abcdefghijklmnopqrstuv"s.substr(0, 2 * type.bytes);
    const auto size = type.storage.empty() ? 2 * type.bytes : 2;
    for (const std::string& content : {torch_zip(typed_tensor(type), {elements}),
                                       torch_old(typed_tensor(type), {{"0", size, elements}})}) {
      const tensor_file file = open(content);
      const tensor_info& info = file.find("");
      if (type.elements) {
        EXPECT_EQ(info.type, *type.elements);
        EXPECT_EQ(info.unread, "");
        EXPECT_EQ(codes_of(file, ""), elements.substr(type.bytes));
      } else {
        EXPECT_EQ(info.unread.substr(0, 25), "elements are of the type ");
      }
    }
  }
  torch_type type = torch_types[0];
  type.name = "uint3";
  type.storage = "";
  EXPECT_EQ(open(torch_zip(typed_tensor(type), {"01234567"})).find("").unread,
            "elements are of the type uint3");
}

TEST(Torch, ReadsViewsOfStorages) {
  const std::string six = storage("ShortStorage", "0", 6);
  const std::string body = dict({
      {"whole", tensor(six, 0, {2, 3}, {3, 1})},
      {"transposed", tensor(six, 0, {3, 2}, {1, 3})},
      {"column", tensor(six, 1, {2}, {3})},
      {"expanded", tensor(six, 5, {2, 2}, {0, 0})},
      {"windows", tensor(six, 0, {2, 2}, {1, 2})},
      {"scalar", tensor(six, 5, {}, {})},
      {"empty", tensor(six, 9, {0, 3}, {3, 1})},
      {"ones", tensor(six, 2, {1, 2, 1}, {99, 1, 99})},
  });
  const std::string data = "aAbBcCdDeEfF";
  const auto check = [&](const tensor_file& file) {
    EXPECT_EQ(codes_of(file, "whole"), data);
    EXPECT_EQ(codes_of(file, "transposed"), "aAdDbBeEcCfF");
    EXPECT_EQ(codes_of(file, "column"), "bBeE");
    EXPECT_EQ(codes_of(file, "expanded"), "fFfFfFfF");
    EXPECT_EQ(codes_of(file, "windows"), "aAcCbBdD");
    EXPECT_EQ(codes_of(file, "scalar"), "fF");
    EXPECT_EQ(codes_of(file, "empty"), "");
    EXPECT_EQ(file.find("empty").shape, (std::vector<std::uint64_t>{0, 3}));
    EXPECT_EQ(codes_of(file, "ones"), "cCdD");
    EXPECT_TRUE(file.find("ones").strides.empty());
    EXPECT_EQ(file.find("ones").part, file.find("whole").part);  // one storage
  };
  check(open(torch_zip(body, {data})));
  check(open(torch_old(body, {{"0", 6, data}})));
  const tensor_file big = open(torch_zip(body, {data}, "big"));
  EXPECT_EQ(codes_of(big, "whole"), "AaBbCcDdEeFf");
  EXPECT_EQ(codes_of(big, "column"), "BbEe");
  const std::string alone =
      zip_of({stored_part("m/data.pkl", pickle(two_bytes)), stored_part("m/data/0", "ab")});
  EXPECT_EQ(codes_of(open(alone), ""), "ab");  // without byteorder
}

/// torch.save writes bytes and a view of them in another type as one storage; either may come first.
TEST(Torch, ReadsBytesAndAViewOfThem) {
  const std::string bytes = two_bytes;
  const std::string view = call("torch._utils", "_rebuild_tensor_v3",
                                {storage("UntypedStorage", "0", 2), number(0), numbers({2}),
                                 numbers({1}), "\x89", no_hooks, global("torch", "float8_e4m3fn")});
  for (const std::string& body : {list({bytes, view}), list({view, bytes})}) {
    const tensor_file file = open(torch_zip(body));
    EXPECT_EQ(codes_of(file, "0"), "ab");
    EXPECT_EQ(codes_of(file, "1"), "ab");
  }
}

TEST(Torch, ReadsParametersAndSubclasses) {
  const std::string rebuild = global("torch._utils", "_rebuild_tensor_v2");
  const std::string arguments = tuple(
      {storage("ByteStorage", "0", 2), number(0), numbers({2}), numbers({1}), "\x89", no_hooks});
  const std::string type = global("torch.nn.parameter", "Parameter");
  const std::string body = list({
      call("torch._utils", "_rebuild_parameter", {two_bytes, "\x88", no_hooks}),
      call("torch._utils", "_rebuild_parameter_with_state",
           {two_bytes, "\x88", no_hooks, dict({})}),
      call("torch._tensor", "_rebuild_from_type_v2", {rebuild, type, arguments, dict({})}),
      call("torch._utils", "_rebuild_tensor",
           {storage("ByteStorage", "0", 2), number(0), numbers({2}), numbers({1})}),
      two_bytes + dict({{"attribute", number(1)}}) + "b",
  });
  const tensor_file file = open(torch_zip(body));
  EXPECT_EQ(file.tensors().size(), 5u);
  for (const tensor_info& info : file.tensors()) EXPECT_EQ(codes_of(file, info.name), "ab");
}

// What is listed with a reason.
TEST(Torch, OtherObjectsAreListed) {
  const std::string meta = storage("FloatStorage", "9", 4, "meta");
  const std::string body = dict({
      {"w", two_bytes},
      {"sparse", call("torch._utils", "_rebuild_sparse_tensor", {})},
      {"quantized", call("torch._utils", "_rebuild_qtensor", {})},
      {"meta", call("torch._utils", "_rebuild_meta_tensor_no_storage", {})},
      {"on_meta", tensor(meta, 0, {4}, {1})},
      {"negative", tensor(storage("ByteStorage", "0", 2), 0, {2}, {1}, dict({{"neg", "\x88"}}))},
      {"plain", tensor(storage("ByteStorage", "0", 2), 0, {2}, {1}, dict({{"neg", "\x89"}}))},
      {"args", global("argparse", "Namespace") + ")\x81" + dict({{"w", two_bytes}}) + "b"},
      {"set", "\x8f(" + number(1) + "\x90"},
      {"old_set", call("__builtin__", "set", {list({number(1)})})},
      {"counter", call("collections", "Counter", {dict({{"a", number(1)}})})},
      {"class", global("torch.nn", "Lin\x1b")},
      {"storage", storage("ByteStorage", "0", 2)},
      {"dtype", global("torch", "float32")},
      {"device", call("torch", "device", {text("cpu")})},
  });
  const tensor_file file = open(torch_zip(body));
  const auto expect = [&](const char* name, const char* reason) {
    EXPECT_EQ(file.find(name).unread, reason) << name;
  };
  expect("w", "");
  expect("plain", "");
  expect("sparse", "a sparse tensor");
  expect("quantized", "a quantized tensor");
  expect("meta", "a tensor of the device meta, which has no elements");
  expect("on_meta", "a tensor of the device meta, which has no elements");
  expect("negative", "its conjugate or negative is stored; save x.resolve_conj().resolve_neg()");
  expect("args", "no tensor but an object of argparse.Namespace");
  expect("set", "no tensor but an object of builtins.set");
  expect("old_set", "no tensor but an object of __builtin__.set");
  expect("counter", "no tensor but an object of collections.Counter");
  expect("class", "no tensor but the name torch.nn.Lin\\x1b");
  expect("storage", "no tensor but a storage");
  EXPECT_EQ(file.tensors().size(), 13u);
  expect_refused([&] { codes_of(file, "args"); }, error_kind::unsupported, "\"args\": no tensor");
}

// Every operation that makes a value takes exactly its bytes.
TEST(Torch, ReadsEveryOperation) {
  std::istringstream values(
      "N \x88 \x89 J\1\2\3\4 K\1 M\1\2 \x8a\0 \x8a\2\1\2 \x8b\1\0\0\0\1 G\1\1\1\1\1\1\1\1 "s
      "U\1a T\1\0\0\0a \x8c\1a X\1\0\0\0a \x8d\1\0\0\0\0\0\0\0a C\1a B\1\0\0\0a "s
      "\x8e\1\0\0\0\0\0\0\0a \x96\1\0\0\0\0\0\0\0a ) ] } \x8f N\x85 NN\x86 NNN\x87 (NNt "s
      "]Na ](NNe }NNs }(NNu Nq\0 Nq\1h\1\x86 Nr\2\0\0\0j\2\0\0\0\x86 N\x94 "s
      "\x8c\1a\x8c\1b\x93 \x8a\x0b\1\1\1\1\1\1\1\1abc"s);
  for (std::string value; std::getline(values, value, ' ');) {
    SCOPED_TRACE(value);
    const std::string body = "}(" + text("v") + value + text("w") + two_bytes + "u";
    const tensor_file file = open(torch_zip(body));
    EXPECT_EQ(codes_of(file, "w"), "ab");
    const std::string frame = "\x80\x04\x95" + little_endian(body.size() + 1, 8) + body + ".";
    EXPECT_EQ(
        codes_of(open(zip_of({stored_part("data.pkl", frame), stored_part("data/0", "ab")})), "w"),
        "ab");
  }
}

// Integers keep their values, as keys and as sizes.
TEST(Torch, ReadsIntegersOfEverySize) {
  const std::pair<std::string, const char*> keys[] = {
      {"K\xff", "255"},
      {"M\xff\xff", "65535"},
      {"J\xff\xff\xff\xff", "-1"},
      {"J\x00\x00\x00\x80"s, "-2147483648"},
      {"\x8a\x00"s, "0"},
      {"\x8a\x01\x80", "-128"},
      {"\x8a\x02\x80\x00"s, "128"},
      {"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f", "9223372036854775807"},
      {"\x8b\x08\0\0\0\0\0\0\0\0\0\0\x80"s, "-9223372036854775808"},
  };
  for (const auto& [key, name] : keys) {
    EXPECT_EQ(names_in(open(torch_zip("}" + key + two_bytes + "s"))), texts{name});
  }
}

TEST(Torch, ArchivesMayBeDeflatedOrWithoutCrc) {
  zip_part silent = stored_part("m/data/0", "ab");
  silent.crc = 0;
  EXPECT_EQ(codes_of(open(zip_of({stored_part("m/data.pkl", pickle(two_bytes)), silent})), ""),
            "ab");
  zip_part wrong = silent;
  wrong.crc = 1;
  const tensor_file damaged = open(zip_of({stored_part("m/data.pkl", pickle(two_bytes)), wrong}));
  expect_refused([&] { codes_of(damaged, ""); }, error_kind::malformed,
                 "member \"m/data/0\": data does not have the CRC-32");
  if (!can_inflate()) return;
  EXPECT_EQ(codes_of(open(zip_of({deflated_part("m/data.pkl", pickle(two_bytes)),
                                  deflated_part("m/data/0", "ab")})),
                     ""),
            "ab");
}

TEST(Torch, OldFilesHaveViewsAndModules) {
  const std::string view =
      tuple({text("storage"), global("torch", "ShortStorage"), text("0"), text("cpu"), number(6),
             tuple({text("v"), number(2), number(3)})}) +
      "Q";
  const std::string module = tuple({text("module"), global("torch.nn", "Linear"), "N", "N"}) + "Q";
  const std::string body = dict({{"w", tensor(view, 1, {2}, {1})}, {"class", module}});
  const tensor_file file = open(torch_old(body, {{"0", 6, "aAbBcCdDeEfF"}}));
  EXPECT_EQ(codes_of(file, "w"), "dDeE");
  EXPECT_EQ(file.find("class").unread, "no tensor but the name torch.nn.Linear");
  const std::string two = list({tensor(storage("ByteStorage", "b", 1), 0, {1}, {1}),
                                tensor(storage("ShortStorage", "a", 1), 0, {1}, {1})});
  const tensor_file order = open(torch_old(two, {{"a", 1, "AA"}, {"b", 1, "B"}}) + "ignored");
  EXPECT_EQ(codes_of(order, "0"), "B");
  EXPECT_EQ(codes_of(order, "1"), "AA");
}

}  // namespace
}  // namespace samebits::tensor_file::testing
