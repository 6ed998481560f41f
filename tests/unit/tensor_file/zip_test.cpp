// parse_zip: archives that are read, and each rule that refuses one.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support.hpp"
#include "tensor_file/zip/zip.hpp"
#include "zip_files.hpp"

namespace samebits::tensor_file::testing {
namespace {

using namespace std::string_literals;

std::vector<zip_member> parse(const std::string& file) { return parse_zip(bytes_of(file)); }

void refuse(const std::string& file, std::string_view text,
            error_kind kind = error_kind::malformed) {
  expect_refused([&] { parse(file); }, kind, text);
}

void refuse_part(zip_part part, std::string_view text) {
  refuse(zip_of({std::move(part), stored_part("other", "xy")}), text);
}

std::string data_of(const std::string& file, const zip_member& member) {
  return file.substr(member.offset, member.packed_bytes);
}

/// The ZIP64 extra field with these values.
std::string zip64_field(const std::vector<std::uint64_t>& values) {
  std::string field = little_endian(1, 2) + little_endian(8 * values.size(), 2);
  for (const std::uint64_t value : values) field += little_endian(value, 8);
  return field;
}

TEST(Zip, MembersInTheOrderOfTheDirectory) {
  zip_part second = deflated_part("b/ü.npy", "hello");
  second.local_extra = "\x01\x00\x04\x00wxyz"s;  // the directory has no such field
  const std::string file = zip_of({stored_part("a", "first"), second}, "a comment");
  const std::vector<zip_member> members = parse(file);
  ASSERT_EQ(members.size(), 2u);
  EXPECT_EQ(members[0].name, "a");
  EXPECT_EQ(members[0].method, zip_stored);
  EXPECT_EQ(members[0].crc32, crc32_by_definition("first"));
  EXPECT_EQ(members[0].bytes, 5u);
  EXPECT_EQ(data_of(file, members[0]), "first");
  EXPECT_EQ(members[1].name, "b/ü.npy");
  EXPECT_EQ(members[1].method, zip_deflated);
  EXPECT_EQ(data_of(file, members[1]), deflated("hello"));
  EXPECT_FALSE(members[1].encrypted);
  EXPECT_TRUE(parse(end_record(0, 0, 0)).empty());
}

TEST(Zip, TheCrcOfTheTestsIsTheStandardOne) {
  EXPECT_EQ(crc32_by_definition("123456789"), 0xcbf43926u);
}

TEST(Zip, EncryptedMembersAreMarked) {
  zip_part part = stored_part("a", "first");
  part.flags = 1;
  EXPECT_TRUE(parse(zip_of({part}))[0].encrypted);
}

TEST(Zip, Zip64SizesAndOffsets) {
  zip_part part = stored_part("a", "first");
  part.bytes = part.packed_bytes = 0xffffffff;
  part.extra = "\x99\x99\x02\x00zz"s + zip64_field({5, 5});
  const std::string file = zip_of({part});
  const zip_member member = parse(file).at(0);
  EXPECT_EQ(member.bytes, 5u);
  EXPECT_EQ(data_of(file, member), "first");

  part.extra = zip64_field({5});
  refuse(zip_of({part}), "its ZIP64 extra field is too short");
  part.extra = "\x99\x99\x02\x00zz"s;
  refuse(zip_of({part}), "its ZIP64 extra field is missing");
  part.extra = zip64_field({5, 5}).substr(0, 10);
  refuse(zip_of({part}), "its ZIP64 extra field is missing");
}

/// An archive that ends with a ZIP64 end record, its locator and an end record without numbers.
std::string zip64_of(const zip_layout& layout, std::uint64_t entries, std::uint64_t locator_offset,
                     std::uint32_t disk = 0) {
  const std::string end64 =
      "PK\x06\x06"s + little_endian(44, 8) + little_endian(0, 4) + little_endian(disk, 4) +
      little_endian(0, 4) + little_endian(entries, 8) + little_endian(entries, 8) +
      little_endian(layout.directory.size(), 8) + little_endian(layout.data.size(), 8);
  const std::string locator =
      "PK\x06\x07"s + little_endian(0, 4) + little_endian(locator_offset, 8) + little_endian(1, 4);
  return layout.data + layout.directory + end64 + locator +
         end_record(0xffff, 0xffffffff, 0xffffffff);
}

TEST(Zip, Zip64EndRecord) {
  const zip_layout layout = layout_of({stored_part("a", "first"), stored_part("b", "")});
  const std::uint64_t at = layout.data.size() + layout.directory.size();
  EXPECT_EQ(parse(zip64_of(layout, 2, at)).size(), 2u);
  refuse(zip64_of(layout, 2, at + 1), "no ZIP64 end record where its locator says");
  refuse(zip64_of(layout, 2, ~std::uint64_t{0}), "no ZIP64 end record where its locator says");
  refuse(zip64_of(layout, ~std::uint64_t{0}, at), "no room for 18446744073709551615 entries");
  refuse(zip64_of(layout, 2, at, 1), "in several parts", error_kind::unsupported);
}

TEST(Zip, TheDirectoryMustBeWhereTheEndRecordSays) {
  const zip_layout layout = layout_of({stored_part("a", "first")});
  const std::uint64_t size = layout.directory.size();
  const std::uint64_t offset = layout.data.size();
  const std::string start = layout.data + layout.directory;
  EXPECT_EQ(parse(start + end_record(1, size, offset)).size(), 1u);
  refuse(start + end_record(1, size, offset + 1), "not before its end record");
  refuse(start + end_record(1, size - 1, offset), "not before its end record");
  refuse(start + end_record(1, size, 0xfffffff0), "not before its end record");
  refuse("x" + start + end_record(1, size, offset), "not before its end record");
  refuse(start + end_record(0, size, offset), "bytes follow the last entry");
  refuse(start + end_record(3, size, offset), "no room for 3 entries");
  refuse(start + "x" + end_record(1, size + 1, offset), "bytes follow the last entry");
  refuse(start + end_record(1, size, offset) + "x", "does not end with the directory");
  refuse("PK\x05\x06", "the file ends before the directory");
  refuse("", "the file ends before the directory");
  std::string parts = start + end_record(1, size, offset);
  parts[parts.size() - 22 + 4] = 1;
  refuse(parts, "in several parts", error_kind::unsupported);
  std::string entry = start + end_record(1, size, offset);
  entry[offset] = 'Q';
  refuse(entry, "expected an entry of the zip directory");
  entry = start + end_record(1, size, offset);
  entry[offset + 28] = 9;  // length of the name
  refuse(entry, "the entry exceeds the zip directory");
}

TEST(Zip, LocalHeadersMustAgree) {
  zip_part part = stored_part("a", "first");
  part.local_name = "b";
  refuse_part(part, "member \"a\": its local header has another name");
  part = stored_part("a", "first");
  part.local_method = 8;
  refuse_part(part, "its local header has another compression method");
  part = stored_part("a", "first");
  part.moved = 1;
  refuse_part(part, "it has no local header where the zip directory says");
  part.moved = 0x7fffffff;
  refuse_part(part, "it has no local header where the zip directory says");
  part = stored_part("a\xff", "first");
  refuse_part(part, "its name is not UTF-8");
  refuse(zip_of({stored_part("a", "1"), stored_part("a", "2")}), "it occurs twice");
}

TEST(Zip, ClaimedSizesMustBePossible) {
  zip_part part = stored_part("a", "first");
  part.bytes = 6;
  refuse_part(part, "it is stored, but its two sizes differ");
  part.bytes = part.packed_bytes = 5000;
  refuse_part(part, "its data exceeds the file");
  part = deflated_part("a", "first");
  part.bytes = part.packed_bytes * 1032 + 1031;
  EXPECT_EQ(parse(zip_of({part})).size(), 1u);
  ++part.bytes;
  refuse_part(part, "it claims 11352 bytes, but deflate cannot pack them into 10");
}

// Members that share the same data make an archive of a few kilobytes claim terabytes.
TEST(Zip, MembersMustNotShareBytes) {
  zip_part first = stored_part("a", "first");
  const std::string inner = local_header(stored_part("b", "xy")) + "xy";
  zip_part outer = stored_part("a", inner);
  zip_part nested = stored_part("b", "xy");
  const zip_layout layout = layout_of({outer});
  const std::string directory =
      layout.directory + directory_entry(nested, layout.data.size() - inner.size());
  refuse(layout.data + directory + end_record(2, directory.size(), layout.data.size()),
         "member \"b\": it shares bytes with member \"a\"");
}

TEST(Zip, EveryCutIsRefused) {
  const std::string file = zip_of({stored_part("a", "first"), deflated_part("b", "hello")});
  for (std::size_t size = 0; size < file.size(); ++size) refuse(file.substr(0, size), "");
}

}  // namespace
}  // namespace samebits::tensor_file::testing
