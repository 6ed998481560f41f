// Tensors that subcommands read: implementation.
#include "fpinspect/tensors/source/source.hpp"

#include <unistd.h>

#include <system_error>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/files.hpp"

namespace fpinspect {
namespace {

tensor_info choose(const tensor_reader& file, const tensor_location& where,
                   std::string_view which) {
  if (where.tensor) return file.find(*where.tensor);
  if (file.tensors().size() == 1) return file.tensors().front();
  throw usage_error(which, ": ", shown_path(where.file), " holds ", file.tensors().size(),
                    " tensors; name one as FILE#TENSOR");
}

/// Number of bits of an integer type; nothing for other types.
std::optional<int> integer_bits(dtype type) {
  const tensor_file::dtype_spec spec = tensor_file::spec_of(type);
  const char kind = spec.npy[0];
  return kind == 'i' || kind == 'u' ? std::optional(spec.bits) : std::nullopt;
}

/// Converts integers to values. Value must hold every Integer exactly.
template <class Integer, class Value>
void convert_integers(const std::byte* from, std::uint64_t count, std::byte* to) {
  for (std::uint64_t i = 0; i < count; ++i) {
    Integer integer;
    std::memcpy(&integer, from + i * sizeof integer, sizeof integer);
    const auto value = static_cast<Value>(integer);
    std::memcpy(to + i * sizeof value, &value, sizeof value);
  }
}

void convert_integers(dtype type, const std::byte* from, std::uint64_t count, std::byte* to) {
  switch (type) {
    case dtype::u8: return convert_integers<std::uint8_t, float>(from, count, to);
    case dtype::i8: return convert_integers<std::int8_t, float>(from, count, to);
    case dtype::u16: return convert_integers<std::uint16_t, float>(from, count, to);
    case dtype::i16: return convert_integers<std::int16_t, float>(from, count, to);
    case dtype::u32: return convert_integers<std::uint32_t, double>(from, count, to);
    case dtype::i32: return convert_integers<std::int32_t, double>(from, count, to);
    case dtype::u64: return convert_integers<std::uint64_t, double>(from, count, to);
    default: return convert_integers<std::int64_t, double>(from, count, to);
  }
}

/// Calls f(bytes, first, size) for the integers of the tensor, chunk by chunk.
template <class Function>
void for_each_integer_chunk(const tensor_reader& file, const tensor_info& info, std::uint64_t first,
                            std::uint64_t count, const Function& f) {
  constexpr std::uint64_t chunk = 1 << 16;
  const auto bytes = static_cast<std::size_t>(code_bytes(info.type));
  std::vector<std::byte> read(static_cast<std::size_t>(std::min(chunk, count)) * bytes);
  for (std::uint64_t done = 0; done < count; done += chunk) {
    const std::uint64_t size = std::min(chunk, count - done);
    file.read_codes(info, first + done, size, read.data());
    f(static_cast<const std::byte*>(read.data()), done, size);
  }
}

}  // namespace

std::shared_ptr<const tensor_reader> open_file(const std::filesystem::path& path) {
  const auto shared = [](tensor_reader file) {
    return std::make_shared<const tensor_reader>(std::move(file));
  };
  note_input(path);
  if (path != "-") return shared(tensor_reader::open(path));
  static bool was_read = false;
  if (was_read) throw usage_error("-: standard input can be read only once");
  refuse_if(::isatty(STDIN_FILENO) == 1,
            "-: standard input is a terminal; redirect a file to it, or name the file");
  was_read = true;
  return shared(tensor_reader::open(STDIN_FILENO, shown_path(path)));
}

tensor_location locate(const std::string& input) {
  const std::size_t split = input.rfind('#');
  std::error_code ignored;
  if (split == std::string::npos || std::filesystem::exists(input, ignored)) return {input, {}};
  return {input.substr(0, split), input.substr(split + 1)};
}

bool names_a_file(const std::string& input) {
  std::error_code ignored;
  const auto has = [&](const char* extension) {
    return input.find(extension) != std::string::npos;
  };
  return input == "-" || input.starts_with("-#") || input.ends_with(".npy") || has(".npz") ||
         has(".safetensors") || has(".gguf") || has(".pt") || has(".ckpt") ||
         std::filesystem::exists(locate(input).file, ignored);
}

dtype own_type(format_id format) {
  if (format == format_id::tf32) return dtype::f32;
  int i = 0;  // every other format has a type
  while (tensor_file::format_of(tensor_file::dtype_at(i)) != format) ++i;
  return tensor_file::dtype_at(i);
}

bool holds_integers(const tensor_info& info) { return integer_bits(info.type).has_value(); }

std::optional<element_reading> reading_of(const tensor_info& info, std::string_view option,
                                          std::string_view from, from_scope scope) {
  if (!info.unread.empty()) return std::nullopt;
  const std::string_view type = tensor_file::name(info.type);
  const auto own = tensor_file::format_of(info.type);
  const auto bits = integer_bits(info.type);
  if (from.empty() || (scope == from_scope::integers && !bits)) {
    if (own) return element_reading{*own, false};
    if (!bits) return std::nullopt;
    constexpr int exact_in_fp32 = 16;
    return element_reading{*bits <= exact_in_fp32 ? format_id::fp32 : format_id::fp64, true};
  }
  const format_id asked = format_argument(option, from);
  const std::string of = info.name.empty() ? "" : cat(" of ", quote(info.name));
  refuse_if(own ? *own != asked : !bits, option, ": ", asked, " contradicts the elements", of,
            ", which are ", type, "; leave ", option, " out");
  const int wanted = spec_of(asked).storage_bits;
  refuse_if(bits && *bits != wanted, option, ": codes of ", asked, " have ", wanted,
            " bits, the elements", of, " are ", type);
  return element_reading{asked, false};
}

std::optional<std::uint64_t> source_tensor::find_inexact_integer() const {
  if (info.type != dtype::u64 && info.type != dtype::i64) return std::nullopt;
  std::optional<std::uint64_t> found;
  for_each_integer_chunk(*file, info, 0, info.count,
                         [&](const std::byte* bytes, std::uint64_t first, std::uint64_t size) {
                           for (std::uint64_t i = 0; i < size && !found; ++i) {
                             std::uint64_t word = 0;
                             std::memcpy(&word, bytes + i * sizeof word, sizeof word);
                             const bool negative = info.type == dtype::i64 && (word >> 63) != 0;
                             const std::uint64_t magnitude = negative ? 0 - word : word;
                             if (magnitude == 0) continue;
                             constexpr std::uint64_t fp64_holds = std::uint64_t{1} << 53;
                             if (magnitude >> std::countr_zero(magnitude) >= fp64_holds)
                               found = first + i;
                           }
                         });
  return found;
}

void source_tensor::read(std::uint64_t first, std::uint64_t count, std::byte* out) const {
  if (!how.integer_values) return file->read_codes(info, first, count, out);
  const auto bytes = bytes_each(how.format);
  for_each_integer_chunk(*file, info, first, count,
                         [&](const std::byte* integers, std::uint64_t done, std::uint64_t size) {
                           convert_integers(info.type, integers, size, out + done * bytes);
                         });
}

std::optional<std::span<const std::byte>> source_tensor::view() const {
  if (how.integer_values) return std::nullopt;
  return file->view_codes(info);
}

std::string position_text(std::uint64_t index, std::span<const std::uint64_t> shape) {
  std::vector<std::uint64_t> at(shape.size());
  for (std::size_t k = shape.size(); k-- > 0;) {
    at[k] = index % shape[k];
    index /= shape[k];
  }
  return shape_text(at);
}

void decode(format_id format, const std::byte* codes, std::span<double> out) {
  if (format == format_id::fp64) {
    std::copy_n(codes, out.size_bytes(), reinterpret_cast<std::byte*>(out.data()));
    return;
  }
  // Messages show the sign of a NaN in 32 bits.
  const auto on_nan =
      storage_bytes(format) == sizeof(float) ? nan_policy::preserve_sign : nan_policy::canonical;
  std::vector<float> values(out.size());  // which hold every other format
  samebits::convert(codes_at(format, codes, 1, out.size()), view_of(values), {.nan = on_nan});
  std::copy(values.begin(), values.end(), out.begin());
}

source_tensor open_source(std::string_view which, const std::string& input, std::string_view option,
                          std::string_view from, from_scope scope) {
  using tensor_file::unsupported;
  const tensor_location where = locate(input);
  auto file = open_file(where.file);
  const tensor_info info = choose(*file, where, which);
  const auto how = reading_of(info, option, from, scope);
  const std::string shown = escape_path(input);
  if (!info.unread.empty()) unsupported(shown, ": ", info.unread);
  if (!how) {
    unsupported(shown, ": elements are ", tensor_file::name(info.type),
                ", neither floating point nor integers");
  }
  source_tensor source = {std::move(file), info, *how};
  if (how->integer_values) {
    if (const auto index = source.find_inexact_integer()) {
      unsupported(shown, ": integer number ", *index,
                  " has more than 53 significant bits, so that fp64 does not hold it");
    }
  }
  return source;
}

}  // namespace fpinspect
