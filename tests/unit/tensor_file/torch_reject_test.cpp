// PyTorch files that are refused: calls, limits, broken pickles, damaged containers.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support.hpp"
#include "tensor_file/torch/torch.hpp"
#include "torch_files.hpp"

namespace samebits::tensor_file::testing {
namespace {

using namespace std::string_literals;

void refuse_file(const std::string& file, std::string_view text,
                 error_kind kind = error_kind::malformed) {
  expect_refused([&] { parse_torch(bytes_of(file)); }, kind, text);
}

/// Refused in both formats.
void refuse(const std::string& body, std::string_view text,
            error_kind kind = error_kind::malformed) {
  SCOPED_TRACE(text);
  refuse_file(torch_zip(body), text, kind);
  refuse_file(torch_zip(body), "member \"m/data.pkl\": ", kind);
  refuse_file(torch_old(body), text, kind);
}

std::string operation(std::string_view code) {
  return "operation " + std::string(code) + " of pickles, which files of tensors do not need";
}

// None of these is run. Each is refused by its name, or by the operation.
TEST(TorchReject, CallsOutsideTheTable) {
  const std::string command = tuple({text("true")});
  const auto kind = error_kind::unsupported;
  refuse(call("os", "system", {text("true")}), "calls os.system, which was not run", kind);
  refuse_file(torch_zip("N" + call("os", "system", {text("true")})),
              "byte 25: the pickle calls os.system", kind);
  refuse(text("posix") + text("system") + "\x93" + command + "R", "calls posix.system", kind);
  refuse(global("builtins", "eval") + command + "\x81", "calls builtins.eval", kind);
  refuse(call("builtins", "getattr", {global("os", "x"), text("y")}), "builtins.getattr", kind);
  refuse(call("torch.storage", "_load_from_bytes", {}), "torch.storage._load_from_bytes", kind);
  refuse(call("torch", "float33", {}), "calls torch.float33", kind);
  refuse(call("os", "_rebuild_tensor_v2", {}), "calls os._rebuild_tensor_v2", kind);
  refuse(call("torch._tensor", "_rebuild_from_type_v2",
              {global("os", "system"), global("torch", "Tensor"), command, "N"}),
         "a tensor of a subclass, made by os.system", kind);
  refuse(call("torch._tensor", "_rebuild_from_type_v2",
              {global("torch._tensor", "_rebuild_from_type_v2"), global("torch", "Tensor"), command,
               "N"}),
         "made by torch._tensor._rebuild_from_type_v2", kind);
  refuse("(" + text("true") + "ios\nsystem\n", operation("0x69"), kind);  // INST
  refuse("(" + global("os", "system") + text("true") + "o", operation("0x6f"), kind);
  for (const char* const extension : {"\x82\1", "\x83\1", "\x84\1"}) {
    refuse(extension, "of pickles, which", kind);
  }
  refuse(global("os", "x") + command + dict({}) + "\x92", operation("0x92"), kind);
  refuse("P0\n", operation("0x50"), kind);
  refuse("NN" + command + "R", "the pickle calls what is no name");
  refuse(global("os", "environ") + dict({}) + "b", "attributes of an object that has none");
  refuse(number(1) + dict({}) + "b", "attributes of an object that has none");
}

TEST(TorchReject, BrokenPickles) {
  refuse("0", operation("0x30"), error_kind::unsupported);
  refuse("\x80\x01", "protocol 1 of pickles; 2 to 5 are read", error_kind::unsupported);
  refuse("\x80\x06", "protocol 6 of pickles", error_kind::unsupported);
  refuse("\x95" + little_endian(1ull << 62, 8), "a frame exceeds the file");
  refuse("", "the stack is empty");
  refuse("N(t(N\x86", "the stack is empty");
  refuse("(N(\x85", "the stack is empty");
  refuse("t", "no mark is on the stack");
  refuse("NNs", "the stack is empty");
  refuse("]NNs", "items are added to an object that cannot hold them");
  refuse("}Na", "items are added to an object");
  refuse("N(N\x90", "items are added to an object");
  refuse("}(Nu", "a key without a value");
  refuse("h\1", "nothing has the memo index 1");
  refuse("NNNq\3h\1", "nothing has the memo index 1");
  refuse("Nr\xff\xff\xff\xff", "a memo index above the number of operations");
  refuse("NN\x93", "the name of a global is not text");
  refuse("c" + std::string(4097, 'x') + "\n\n", "a name of more than 4096 bytes");
  refuse("X\xff\xff\xff\x7f", "the file ends before the end of a text");
  refuse("\x8d" + std::string(8, '\xff'), "the file ends before the end of a text");
  refuse(call("collections", "OrderedDict", {list({number(1)})}), "items must be pairs");
}

TEST(TorchReject, BrokenTensors) {
  const std::string bytes = storage("ByteStorage", "0", 2);
  refuse(tensor(bytes, 0, {3}, {1}), "a tensor exceeds its storage");
  refuse(tensor(bytes, 1, {2}, {1}), "a tensor exceeds its storage");
  refuse(tensor(bytes, 0, {2}, {2}), "a tensor exceeds its storage");
  const std::uint64_t large = (1ull << 63) - 1;
  refuse(tensor(bytes, large, {1}, {1}), "a tensor exceeds its storage");
  refuse(tensor(bytes, 0, {2, 2}, {large, large}), "a tensor exceeds its storage");
  refuse(tensor(storage("ComplexDoubleStorage", "0", 0), large, {large}, {large}),
         "the size of the data in bits exceeds 64 bits");
  refuse(tensor(bytes, 0, {large, 3}, {0, 0}), "product of the shape exceeds 64 bits");
  refuse(tensor(bytes, 0, {2}, {}), "a tensor needs a stride by dimension");
  refuse(tensor(bytes, ~0ull, {2}, {1}), "argument 1 must be an integer >= 0");
  refuse(tensor(bytes, 0, {~0ull}, {1}), "argument 2 must be a tuple of at most 64");
  refuse(tensor(bytes, 0, std::vector<std::uint64_t>(65, 1), {}), "argument 2 must be");
  refuse(tensor("N", 0, {2}, {1}), "argument 0 must be a storage");
  refuse(call("torch._utils", "_rebuild_parameter", {"N"}), "argument 0 must be a tensor");
  refuse(call("torch._utils", "_rebuild_tensor_v2", {}), "argument 0 must be a storage");
  refuse(global("torch._utils", "_rebuild_tensor") + "NR", "arguments must be a tuple");
  refuse(call("torch._utils", "_rebuild_tensor_v3",
              {bytes, number(0), numbers({1}), numbers({1}), "\x89", "N"}),
         "argument 6 must be a dtype");
}

TEST(TorchReject, BrokenStorages) {
  refuse("NQ", "a persistent id: arguments must be a tuple");
  refuse(tuple({text("memory")}) + "Q", "a persistent id of the unknown kind \"memory\"");
  refuse(tuple({text("storage"), "N"}) + "Q", "argument 1 must be a name of a module");
  refuse(storage("FloatStorage", "0", 1ull << 62), "the size of a storage exceeds 64 bits");
  refuse(storage("FloatStorage", "0", ~0ull), "argument 4 must be an integer >= 0");
  refuse(storage("FileStorage", "0", 1), "a storage of the class \"FileStorage\"",
         error_kind::unsupported);
  refuse(storage("ByteStorage", std::string(4097, 'k'), 1), "has more than 4096 bytes");
  refuse("(" + storage("ByteStorage", "0", 2) + storage("ByteStorage", "0", 1) + "t",
         "storage \"0\" has another type or size than before");
  refuse("(" + storage("ByteStorage", "0", 2) + storage("CharStorage", "0", 2) + "t",
         "storage \"0\" has another type or size than before");
  for (const auto& [offset, size] : {std::pair{1u, 2u}, {3u, 0u}, {0u, 3u}}) {
    refuse(tuple({text("storage"), global("torch", "ByteStorage"), text("0"), text("cpu"),
                  number(2), tuple({text("v"), number(offset), number(size)})}) +
               "Q",
           "a view exceeds its storage");
  }
}

// --- Limits ---------------------------------------------------------------------------------------

/// Parses the pickle once, because it is large.
void refuse_large(const std::string& body, std::string_view text) {
  refuse_file(torch_old(body), text, error_kind::unsupported);
}

std::string nested(int depth, const std::string& inside) {
  std::string body;
  for (int i = 0; i < depth; ++i) body += "]";
  return body + inside + std::string(static_cast<std::size_t>(depth), 'a');
}

TEST(TorchReject, Limits) {
  const auto kind = error_kind::unsupported;
  EXPECT_EQ(parse_torch(bytes_of(torch_zip(nested(100, two_bytes)))).tensors.size(), 1u);
  refuse(nested(101, two_bytes), "containers are nested more than 100 deep", kind);
  refuse_large(nested(900'000, two_bytes), "containers are nested more than 100 deep");
  refuse("]q\1" + two_bytes + "ah\1a", "containers are nested more than 100 deep",
         kind);  // a list in itself
  refuse(std::string(1'000'001, 'N'), "more than 1000000 objects on the stack");
  std::string many = "]";
  for (int i = 0; i < 5'000'000; ++i) many += "Na";
  refuse_large(many, "more than 10000000 operations");
  // Each list holds the one before twice, so that 2^40 paths lead to the innermost one.
  std::string bomb = "]q\1";
  for (int i = 0; i < 40; ++i) bomb += "](h\1h\1eq\1";
  refuse_large(list({two_bytes, bomb}), "containers hold more than 10000000 objects by all paths");
  std::string thousand = "](" + two_bytes + "q\1";
  for (int i = 1; i < 1001; ++i) thousand += "h\1";
  std::string tensors = thousand + "eq\2](";
  for (int i = 0; i < 1000; ++i) tensors += "h\2";
  refuse_large(tensors + "e", "more than 1000000 tensors by all paths");
  refuse(dict({{std::string(4097, 'k'), two_bytes}}), "a name of more than 4096 bytes", kind);
  refuse(dict({{std::string(2048, 'k'), dict({{std::string(2048, 'k'), two_bytes}})}}),
         "a name of more than 4096 bytes", kind);
  std::string long_names = "](" + thousand + "eq\2";
  for (int i = 0; i < 69; ++i) long_names += "h\2";
  refuse_large(dict({{std::string(4080, 'k'), long_names + "e"}}),
               "the names of tensors have more than 256 MiB");
  const auto copies = [](std::uint64_t count) {
    return tensor(storage("ByteStorage", "0", 2), 0, {count}, {0});
  };
  EXPECT_EQ(parse_torch(bytes_of(torch_zip(copies(1 << 30)))).tensors[0].count, 1u << 30);
  refuse(copies((1 << 30) + 1), "the elements of all tensors exceed the file 1024 times", kind);
  refuse(list({copies(1 << 29), copies(1 << 29), two_bytes}),
         "the elements of all tensors exceed the file 1024 times", kind);
}

/// What would show other tensors than torch.load makes.
TEST(TorchReject, OtherNumbersThanTorchReads) {
  const auto kind = error_kind::unsupported;
  refuse(call("collections", "OrderedDict", {dict({{"w", two_bytes}})}),
         "a dict made of another object than a list of pairs", kind);
  refuse(two_bytes +
             tuple({storage("ByteStorage", "0", 2), number(0), numbers({2}), numbers({1})}) + "b",
         "a tensor whose storage is replaced by its state", kind);
  refuse(dict({{"w", two_bytes}, {"w", two_bytes}}), "a dict has the key \"w\" twice", kind);
  refuse(global("collections", "OrderedDict") + tuple({list({})}) + "\x81",
         "a dict made by __new__ with arguments", kind);
  std::string pairs = "](";
  for (int i = 0; i < 100'000; ++i) pairs += "NN\x86";
  pairs = "]" + pairs + "eq\1a";
  const std::string copy = global("collections", "OrderedDict") + "h\1\x85Ra";
  for (int i = 0; i < 101; ++i) pairs += copy;
  refuse_large(pairs, "more than 10000000 items of dicts in calls");
  EXPECT_EQ(
      parse_torch(bytes_of(torch_zip("}" + std::string("G?\xf8\0\0\0\0\0\0", 9) + two_bytes + "s")))
          .tensors[0]
          .name,
      "<0>");  // the key 1.5
}

TEST(TorchReject, Names) {
  refuse(dict({{"a.b", two_bytes}, {"a", dict({{"b", two_bytes}})}}),
         "two tensors have the path \"a.b\"", error_kind::unsupported);
  refuse(dict({{"\xff", two_bytes}}), "tensor \"\\xff\": its name is not UTF-8");
}

// --- Containers -----------------------------------------------------------------------------------

TEST(TorchReject, Archives) {
  const auto kind = error_kind::unsupported;
  const zip_part whole = stored_part("m/data.pkl", pickle(two_bytes));
  refuse_file(zip_of({stored_part("m/data/0", "ab")}), "a zip archive without data.pkl", kind);
  refuse_file(zip_of({whole}), "there is no member \"m/data/0\"");
  refuse_file(zip_of({whole, stored_part("data/0", "ab")}), "there is no member \"m/data/0\"");
  refuse_file(torch_zip(two_bytes, {"a"}), "member \"m/data/0\": it has 1 bytes, its storage 2");
  refuse_file(torch_zip(two_bytes, {"ab"}, "middle"), "\"m/byteorder\": expected little or big");
  refuse_file(zip_of({whole, stored_part("m/constants.pkl", "")}), "a TorchScript program", kind);
  zip_part other = stored_part("m/data/0", "ab");
  other.method = other.local_method = 14;
  refuse_file(zip_of({whole, other}), "member \"m/data/0\": compressed by method 14", kind);
  zip_part damaged = whole;
  damaged.crc = 1;
  refuse_file(zip_of({damaged, stored_part("m/data/0", "ab")}), "the CRC-32 of its directory");
}

TEST(TorchReject, OldFiles) {
  const auto kind = error_kind::unsupported;
  const std::string start = old_start();
  refuse_file(old_start(1000), "of another version than 1001", kind);
  refuse_file(old_start(1001, "\x89"), "an old PyTorch file of a big-endian machine", kind);
  refuse_file(start.substr(0, start.find("}")) + "N.", "the third pickle must be a dict");
  refuse_file(start + pickle("N") + pickle("N"), "the fifth pickle must be a list");
  refuse_file(start + pickle("N") + pickle("](Ne"), "the key of a storage is not text");
  refuse_file(torch_old("N"), "no tensor has the storage \"0\"");
  refuse_file(torch_old(two_bytes, {}), "storage \"0\" has no data");
  refuse_file(torch_old(two_bytes, {{"0", 3, "abc"}}), "has 3 elements, by the pickle 2");
  refuse_file(torch_old(two_bytes, {{"0", 2, "ab"}, {"0", 2, "ab"}}), "\"0\" occurs twice");
  refuse_file(torch_old(two_bytes, {{"0", 2, "a"}}), "the file ends before the end of a storage");
}

TEST(TorchReject, OtherFiles) {
  const auto kind = error_kind::unsupported;
  refuse_file("", "no PyTorch file", kind);
  refuse_file(pickle("N"), "no PyTorch file: neither a zip archive nor a pickle of torch.save",
              kind);
  refuse_file(std::string(257, '\0') + "ustar", "a PyTorch file of before 2018, a tar archive",
              kind);
}

// A file cut anywhere is refused; with one byte changed it is refused or read.
TEST(TorchReject, DamageAnywhere) {
  const std::string body = dict({{"w", two_bytes}, {"l", list({two_bytes, number(1)})}});
  for (const std::string& whole : {torch_zip(body), torch_old(body)}) {
    EXPECT_EQ(parse_torch(bytes_of(whole)).tensors.size(), 2u);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      SCOPED_TRACE(size);
      EXPECT_THROW(parse_torch(bytes_of(whole.substr(0, size))), file_error);
    }
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (const int bit : {1, 8, 128}) {
        std::string changed = whole;
        changed[at] = static_cast<char>(changed[at] ^ bit);
        try {
          parse_torch(bytes_of(changed));
        } catch (const file_error&) {  // anything else ends the test
        }
      }
    }
  }
  for (std::size_t size = 0; size <= pickle(body).size() - 1; ++size) {
    const std::string cut = pickle(body).substr(0, size);
    refuse_file(zip_of({stored_part("m/data.pkl", cut), stored_part("m/data/0", "ab")}),
                "the file ends before the end of ");
  }
}

}  // namespace
}  // namespace samebits::tensor_file::testing
