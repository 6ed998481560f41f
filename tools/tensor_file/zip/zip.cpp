// The members of a zip archive: implementation.
#include "tensor_file/zip/zip.hpp"

#include "tensor_file/files/file_cursor.hpp"
#include "tensor_file/utf8.hpp"
#include "tensor_file/zip/inflate.hpp"

namespace samebits::tensor_file {
namespace {

using file_bytes = std::span<const std::byte>;

template <class... Parts>
void bad_member_if(bool is_wrong, const std::string& name, const Parts&... message) {
  malformed_if(is_wrong, "member ", quoted{name}, ": ", message...);
}

constexpr std::uint32_t local_mark = 0x04034b50;
constexpr std::uint32_t entry_mark = 0x02014b50;
constexpr std::uint32_t end_mark = 0x06054b50;
constexpr std::uint32_t end64_mark = 0x06064b50;
constexpr std::uint32_t locator_mark = 0x07064b50;

// Sizes of the records without their names and extra fields.
constexpr std::uint64_t local_bytes = 30;
constexpr std::uint64_t entry_bytes = 46;
constexpr std::uint64_t end_bytes = 22;
constexpr std::uint64_t end64_bytes = 56;
constexpr std::uint64_t locator_bytes = 20;

constexpr std::uint32_t in_zip64 = 0xffffffff;  // the value is in the ZIP64 extra field

// Where the central directory is, and how many entries it has.
struct directory {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t entries = 0;
};

// The position of the end record: the last one whose comment ends with the file.
std::uint64_t find_end_record(file_bytes file) {
  constexpr std::uint64_t longest_comment = 0xffff;
  if (file.size() < end_bytes) malformed("the file ends before the directory of a zip archive");
  const std::uint64_t last = file.size() - end_bytes;
  const std::uint64_t first = last - std::min(last, longest_comment);
  for (std::uint64_t at = last + 1; at-- > first;) {
    if (little_endian<std::uint32_t>(file, at) != end_mark) continue;
    if (little_endian<std::uint16_t>(file, at + 20) == file.size() - at - end_bytes) return at;
  }
  malformed("the file does not end with the directory of a zip archive");
}

// Reads an end record, from its disk numbers on. A directory must end where its end record begins, at
// `end`. An archive inside another file, such as a self-extracting one, is therefore refused.
template <class Disk, class Count, class Size>
directory read_end_record(file_bytes fields, std::uint64_t end) {
  constexpr const char* what = "an end record";
  file_cursor in(fields);
  const auto disk = in.read<Disk>(what);
  const auto directory_disk = in.read<Disk>(what);
  const auto here = in.read<Count>(what);
  const auto entries = in.read<Count>(what);
  const auto size = in.read<Size>(what);
  const auto offset = in.read<Size>(what);
  unsupported_if(disk != 0 || directory_disk != 0 || here != entries,
                 "a zip archive in several parts");
  malformed_if(offset > end || size != end - offset,
               "the directory of the zip archive is not before its end record");
  malformed_if(entries > size / entry_bytes, "the directory of the zip archive has no room for ",
               entries, " entries");
  return {offset, end, entries};
}

directory find_directory(file_bytes file) {
  const std::uint64_t at = find_end_record(file);
  const bool has_locator =
      at >= locator_bytes && little_endian<std::uint32_t>(file, at - locator_bytes) == locator_mark;
  if (!has_locator) {
    return read_end_record<std::uint16_t, std::uint16_t, std::uint32_t>(file.subspan(at + 4), at);
  }
  const auto end64 = little_endian<std::uint64_t>(file, at - locator_bytes + 8);
  const std::uint64_t locator = at - locator_bytes;
  malformed_if(end64 > locator || locator - end64 < end64_bytes ||
                   little_endian<std::uint32_t>(file, end64) != end64_mark,
               "the zip archive has no ZIP64 end record where its locator says");
  return read_end_record<std::uint32_t, std::uint64_t, std::uint64_t>(file.subspan(end64 + 16),
                                                                      end64);
}

// An entry of the directory, with the position of the member's local header.
struct entry {
  zip_member member;
  std::uint64_t local = 0;
};

// Takes the values that an entry leaves to the ZIP64 extra field, in the order of the standard.
void read_zip64(file_bytes extra, entry& to) {
  std::uint64_t* const values[] = {&to.member.bytes, &to.member.packed_bytes, &to.local};
  const auto is_left = [](const std::uint64_t* value) { return *value == in_zip64; };
  if (std::none_of(std::begin(values), std::end(values), is_left)) return;
  while (extra.size() >= 4) {
    const auto id = little_endian<std::uint16_t>(extra, 0);
    const auto size = little_endian<std::uint16_t>(extra, 2);
    if (size > extra.size() - 4) break;
    file_bytes field = extra.subspan(4, size);
    extra = extra.subspan(4 + std::size_t{size});
    if (id != 1) continue;
    for (std::uint64_t* value : values) {
      if (!is_left(value)) continue;
      bad_member_if(field.size() < 8, to.member.name, "its ZIP64 extra field is too short");
      *value = little_endian<std::uint64_t>(field, 0);
      field = field.subspan(8);
    }
    return;
  }
  bad_member_if(true, to.member.name, "its ZIP64 extra field is missing");
}

// Reads the entry at `at` and moves `at` behind it.
entry read_entry(file_bytes file, const directory& where, std::uint64_t& at) {
  const std::uint64_t room = where.end - at;
  malformed_if(room < entry_bytes || little_endian<std::uint32_t>(file, at) != entry_mark, "byte ",
               at, ": expected an entry of the zip directory");
  const std::uint64_t name_bytes = little_endian<std::uint16_t>(file, at + 28);
  const std::uint64_t extra_bytes = little_endian<std::uint16_t>(file, at + 30);
  const std::uint64_t comment_bytes = little_endian<std::uint16_t>(file, at + 32);
  malformed_if(name_bytes + extra_bytes + comment_bytes > room - entry_bytes, "byte ", at,
               ": the entry exceeds the zip directory");
  entry result;
  zip_member& member = result.member;
  member.name = text_of(file.subspan(at + entry_bytes, name_bytes));
  bad_member_if(find_invalid_utf8(member.name) != std::string_view::npos, member.name,
                "its name is not UTF-8");
  member.encrypted = (little_endian<std::uint16_t>(file, at + 8) & 1) != 0;
  member.method = little_endian<std::uint16_t>(file, at + 10);
  member.crc32 = little_endian<std::uint32_t>(file, at + 16);
  member.packed_bytes = little_endian<std::uint32_t>(file, at + 20);
  member.bytes = little_endian<std::uint32_t>(file, at + 24);
  result.local = little_endian<std::uint32_t>(file, at + 42);
  read_zip64(file.subspan(at + entry_bytes + name_bytes, extra_bytes), result);
  at += entry_bytes + name_bytes + extra_bytes + comment_bytes;
  return result;
}

// Finds the data behind the local header. The extra field there may differ from the directory's, so
// only the local header says where the data begins.
void find_data(file_bytes file, const directory& where, entry& of) {
  zip_member& member = of.member;
  bad_member_if(of.local > where.begin || where.begin - of.local < local_bytes ||
                    little_endian<std::uint32_t>(file, of.local) != local_mark,
                member.name, "it has no local header where the zip directory says");
  const std::uint64_t name_bytes = little_endian<std::uint16_t>(file, of.local + 26);
  const std::uint64_t extra_bytes = little_endian<std::uint16_t>(file, of.local + 28);
  const std::uint64_t room = where.begin - of.local - local_bytes;
  bad_member_if(
      name_bytes + extra_bytes > room || member.packed_bytes > room - name_bytes - extra_bytes,
      member.name, "its data exceeds the file");
  member.offset = of.local + local_bytes + name_bytes + extra_bytes;
  bad_member_if(text_of(file.subspan(of.local + local_bytes, name_bytes)) != member.name,
                member.name, "its local header has another name");
  bad_member_if(little_endian<std::uint16_t>(file, of.local + 8) != member.method, member.name,
                "its local header has another compression method");
}

void require_plausible_size(const zip_member& member) {
  constexpr std::uint64_t most = 1032;  // deflate: 258 bytes for a match of 2 bits
  bad_member_if(member.method == zip_stored && member.bytes != member.packed_bytes, member.name,
                "it is stored, but its two sizes differ");
  bad_member_if(member.method == zip_deflated && member.bytes / most > member.packed_bytes,
                member.name, "it claims ", member.bytes, " bytes, but deflate ",
                "cannot pack them into ", member.packed_bytes);
}

// Members that share bytes make small archives claim huge contents.
void require_apart(std::vector<entry> entries) {
  std::sort(entries.begin(), entries.end(),
            [](const entry& a, const entry& b) { return a.local < b.local; });
  for (std::size_t i = 1; i < entries.size(); ++i) {
    const zip_member& before = entries[i - 1].member;
    bad_member_if(before.offset + before.packed_bytes > entries[i].local, entries[i].member.name,
                  "it shares bytes with member ", quoted{before.name});
  }
}

}  // namespace

std::vector<zip_member> parse_zip(std::span<const std::byte> file) {
  const directory where = find_directory(file);
  std::vector<entry> entries;
  std::set<std::string> names;
  std::uint64_t at = where.begin;
  for (std::uint64_t i = 0; i < where.entries; ++i) {
    entry one = read_entry(file, where, at);
    bad_member_if(!names.insert(one.member.name).second, one.member.name, "it occurs twice");
    find_data(file, where, one);
    require_plausible_size(one.member);
    entries.push_back(std::move(one));
  }
  if (at != where.end) malformed("bytes follow the last entry of the zip directory");
  require_apart(entries);
  std::vector<zip_member> members;
  members.reserve(entries.size());
  for (entry& one : entries) members.push_back(std::move(one.member));
  return members;
}

// --- The data of members --------------------------------------------------------------------------

std::string unread_reason(const zip_member& member) {
  if (member.encrypted) return "encrypted";
  if (member.method == zip_stored) return {};
  if (member.method != zip_deflated) {
    return cat("compressed by method ", member.method,
               ", which is not read; save it without compression");
  }
  if (!can_inflate()) return "deflated, and this build has no zlib; save it without compression";
  return {};
}

std::span<const std::byte> packed_data(std::span<const std::byte> file, const zip_member& member) {
  return file.subspan(member.offset, member.packed_bytes);
}

zip_members::zip_members(std::vector<zip_member> members, std::uint64_t most)
    : members_(std::move(members)), data_(members_.size()), most_(most) {}

std::span<const std::byte> zip_members::bytes(std::span<const std::byte> file, std::size_t index) {
  const std::lock_guard lock(mutex_);
  const zip_member& member = members_[index];
  member_data& data = data_[index];
  if (data.is_checked) return data.checked;
  in_context("member " + quote(member.name), [&] { check(file, member, data); });
  data.is_checked = true;
  return data.checked;
}

void zip_members::check(std::span<const std::byte> file, const zip_member& member,
                        member_data& data) {
  const std::span<const std::byte> packed = packed_data(file, member);
  if (member.method == zip_stored) {
    malformed_if(member.has_crc32 && crc32_of(packed) != member.crc32,
                 "data does not have the CRC-32 of its directory");
    data.checked = packed;
    return;
  }
  unsupported_if(member.bytes > most_ - kept_, "decompressed members would take ",
                 kept_ + member.bytes, " bytes of memory, more than ", most_,
                 "; save it without compression");
  auto inflated = std::make_unique_for_overwrite<std::byte[]>(member.bytes);
  inflate_all(packed, {inflated.get(), member.bytes}, member.crc32);
  data.inflated = std::move(inflated);
  data.checked = {data.inflated.get(), member.bytes};
  kept_ += member.bytes;
}

}  // namespace samebits::tensor_file
