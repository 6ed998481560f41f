// The elements of a tensor, chunk by chunk: implementation.
#include "fpinspect/tensors/meters/element_chunks.hpp"

#include "samebits/convert.hpp"
#include "samebits/view.hpp"

namespace fpinspect {

void convert_codes(samebits::format_id from, const void* in, samebits::format_id to, void* out,
                   std::size_t count, samebits::overflow policy, std::string_view backend) {
  const auto cols = static_cast<std::int64_t>(count);
  samebits::convert(samebits::view_of_codes(from, in, 1, cols),
                    samebits::view_of_codes(to, out, 1, cols), {.overflow = policy}, {backend, 1});
}

const void* chunk_reader::codes_of(const element_source& source, std::uint64_t first,
                                   std::size_t size) {
  if (source.in_place) {
    const auto bytes = static_cast<std::size_t>(samebits::storage_bytes(source.how.format));
    return source.in_place->data() + first * bytes;
  }
  codes_.resize(chunk_elements);
  read_elements(source.file, source.info, source.how, first, size,
                reinterpret_cast<std::byte*>(codes_.data()));
  return codes_.data();
}

}  // namespace fpinspect
