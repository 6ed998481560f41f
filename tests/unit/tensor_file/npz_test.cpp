// .npz files: stored and deflated members, members that are not read, broken ones.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "numpy_files.hpp"
#include "support.hpp"
#include "tensor_file/npy/npz.hpp"
#include "tensor_file/tensor.hpp"
#include "tensor_file/zip/inflate.hpp"
#include "tensor_file/zip/zip.hpp"
#include "zip_files.hpp"

namespace samebits::tensor_file::testing {
namespace {

using namespace std::string_literals;

file_contents parse(const std::string& file) { return parse_npz(bytes_of(file)); }

const std::string npy_header = "{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }\n";
const std::string npy = npy_of(1, npy_header, "abcdef");

TEST(Npz, ReadsEveryKindOfMember) {
  std::vector<zip_part> parts;
  for (const numpy_file& sample : numpy_files()) {
    const std::string name = "s" + std::to_string(parts.size());
    parts.push_back(stored_part(name + ".npy", sample.file));
    if (can_inflate()) parts.push_back(deflated_part(name + "d.npy", sample.file));
  }
  const scratch_folder folder;
  const tensor_file file = tensor_file::open(folder.write("a.npz", zip_of(parts)));
  EXPECT_EQ(file.format(), file_format::npz);
  ASSERT_EQ(file.tensors().size(), parts.size());
  std::size_t next = 0;
  for (const numpy_file& sample : numpy_files()) {
    for (int copy = 0; copy < (can_inflate() ? 2 : 1); ++copy) {
      SCOPED_TRACE(sample.label);
      const tensor_info& info = file.tensors()[next];
      EXPECT_EQ(info.name + ".npy", parts[next].name);
      EXPECT_EQ(info.part, next + 1);
      EXPECT_EQ(info.unread, "");
      EXPECT_EQ(codes_of(file, info), sample.codes);
      const auto view = file.view_codes(info);
      if (view) {
        EXPECT_EQ(std::memcmp(view->data(), sample.codes.data(), view->size()), 0);
      }
      ++next;
    }
  }
}

TEST(Npz, MembersThatAreNotReadAreListed) {
  zip_part encrypted = stored_part("encrypted.npy", npy);
  encrypted.flags = 1;
  zip_part lzma = stored_part("lzma.npy", npy);
  lzma.method = lzma.local_method = 14;
  const std::string objects =
      npy_of(1, "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n", "x");
  const scratch_folder folder;
  const tensor_file file = tensor_file::open(
      folder.write("a.npz", zip_of({stored_part("good.npy", npy), stored_part("notes.txt", "text"),
                                    encrypted, lzma, stored_part("objects.npy", objects)})));
  ASSERT_EQ(file.tensors().size(), 5u);
  EXPECT_EQ(codes_of(file, file.find("good")), "abcdef");
  const auto expect_unread = [&](const char* name, const char* text) {
    const tensor_info& info = file.find(name);
    EXPECT_NE(info.unread.find(text), std::string::npos) << info.unread;
    std::byte out{};
    expect_refused([&] { file.read_codes(info, 0, 0, &out); }, error_kind::unsupported, text);
    expect_refused([&] { static_cast<void>(file.view_codes(info)); }, error_kind::unsupported,
                   "a.npz: tensor");
    expect_refused([&] { static_cast<void>(file.bytes(info)); }, error_kind::unsupported, name);
  };
  expect_unread("notes.txt", "not a .npy file");
  expect_unread("encrypted", "encrypted");
  expect_unread("lzma", "compressed by method 14");
  expect_unread("objects", "Python objects are pickled");
}

TEST(Npz, BrokenMembersAreRefused) {
  const auto refuse = [](const zip_part& part, std::string_view text) {
    expect_refused([&] { parse(zip_of({part})); }, error_kind::malformed, text);
  };
  refuse(stored_part("a.npy", "not it"), "member \"a.npy\": byte 0: a .npy file begins");
  refuse(stored_part("a.npy", npy + "x"), "member \"a.npy\": byte ");
  refuse(stored_part("a.npy", npy.substr(0, npy.size() - 1)), "5 bytes of data");
  expect_refused([] { parse("no archive"); }, error_kind::malformed, "the file ends before");
}

TEST(Npz, WithoutZlibDeflatedMembersAreNotRead) {
  if (can_inflate()) GTEST_SKIP() << "this build has zlib";
  const file_contents contents = parse(zip_of({deflated_part("a.npy", npy)}));
  EXPECT_EQ(contents.tensors.at(0).unread,
            "deflated, and this build has no zlib; save it without compression");
}

// Whether the CRC-32 of the directory is wrong, or a byte of the elements.
TEST(Npz, StoredDataIsCheckedWhenItIsRead) {
  const scratch_folder folder;
  zip_part wrong_sum = stored_part("a.npy", npy);
  wrong_sum.crc ^= 1;
  zip_part wrong_byte = stored_part("a.npy", npy);
  wrong_byte.data.back() ^= 1;
  for (const zip_part& part : {wrong_sum, wrong_byte}) {
    const tensor_file file =
        tensor_file::open(folder.write("a.npz", zip_of({part, stored_part("b.npy", npy)})));
    for (int attempt = 0; attempt < 2; ++attempt) {
      expect_refused([&] { static_cast<void>(file.bytes(file.find("a"))); }, error_kind::malformed,
                     "a.npz: member \"a.npy\": data does not have the CRC-32 of its directory");
    }
    EXPECT_EQ(codes_of(file, file.find("b")), "abcdef");
  }
}

class Deflated : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!can_inflate()) GTEST_SKIP() << "this build has no zlib";
  }
};

TEST_F(Deflated, HeadersThatLieAreRefused) {
  zip_part part = deflated_part("a.npy", npy);
  ++part.bytes;
  expect_refused([&] { parse(zip_of({part})); }, error_kind::malformed, "7 bytes of data");
  part = deflated_part("a.npy", npy);
  part.data[0] = 7;  // a block of the reserved type
  expect_refused([&] { parse(zip_of({part})); }, error_kind::malformed, "deflated data is broken");
  part = deflated_part("a.npy", npy);
  part.data.resize(20);
  part.packed_bytes = 20;
  expect_refused([&] { parse(zip_of({part})); }, error_kind::malformed, "deflated data is cut off");
}

// What lies behind the header is checked when the elements are read.
TEST_F(Deflated, BrokenDataIsRefusedWhenItIsRead) {
  const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (20000,), }\n";
  const std::string large = npy_of(1, header, std::string(20000, 'x'));
  const scratch_folder folder;
  const auto refuse = [&](const zip_part& part, std::string_view text) {
    const tensor_file file = tensor_file::open(folder.write("a.npz", zip_of({part})));
    const tensor_info& info = file.tensors().at(0);
    for (int attempt = 0; attempt < 2; ++attempt) {
      expect_refused([&] { static_cast<void>(file.bytes(info)); }, error_kind::malformed, text);
    }
  };
  zip_part part = deflated_part("a.npy", large);
  part.crc ^= 1;
  refuse(part, "a.npz: member \"a.npy\": deflated data does not have the CRC-32");
  part = deflated_part("a.npy", large);
  part.data[15000] = 'y';
  refuse(part, "does not have the CRC-32");
  part = deflated_part("a.npy", large);
  part.data.resize(15000);
  part.packed_bytes = 15000;
  refuse(part, "deflated data is cut off");
  part = deflated_part("a.npy", large + "x");
  --part.bytes;
  refuse(part, "deflated data is longer");
  part = deflated_part("a.npy", large.substr(0, large.size() - 1));
  ++part.bytes;
  refuse(part, "has 20071 bytes where the zip directory claims 20072");
  part = deflated_part("a.npy", large);
  part.data += "z";
  ++part.packed_bytes;
  refuse(part, "deflated data is longer");
}

TEST_F(Deflated, DecompressedMembersStayWithinALimit) {
  const std::string file = zip_of({deflated_part("a.npy", npy), deflated_part("b.npy", npy)});
  file_contents contents = parse(file);
  zip_members members(std::move(contents.members), 2 * npy.size() - 1);
  EXPECT_EQ(members.bytes(bytes_of(file), 0).size(), npy.size());
  EXPECT_EQ(members.bytes(bytes_of(file), 0).size(), npy.size());  // counts once
  expect_refused([&] { members.bytes(bytes_of(file), 1); }, error_kind::unsupported,
                 "member \"b.npy\": decompressed members would take " +
                     std::to_string(2 * npy.size()) + " bytes of memory");
}

TEST_F(Deflated, SeveralThreadsMayRead) {
  std::vector<zip_part> parts;
  for (int i = 0; i < 8; ++i) {
    parts.push_back(deflated_part(std::to_string(i) + ".npy", npy));
  }
  const scratch_folder folder;
  const tensor_file file = tensor_file::open(folder.write("a.npz", zip_of(parts)));
  std::vector<std::string> read(4);
  std::vector<std::thread> threads;
  for (std::string& codes : read) {
    threads.emplace_back([&] {
      for (const tensor_info& info : file.tensors()) codes += codes_of(file, info);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& codes : read) {
    ASSERT_EQ(codes.size(), 48u);
    for (std::size_t i = 0; i < 48; i += 6) EXPECT_EQ(codes.substr(i, 6), "abcdef");
  }
}

}  // namespace
}  // namespace samebits::tensor_file::testing
