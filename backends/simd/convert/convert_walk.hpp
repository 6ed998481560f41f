// SIMD conversion of a call: walks over rows and borders, for any kernel. convert_kernel.hpp
// says what code may be used here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/dispatch/backend.hpp"
#include "backends/simd/convert/convert_kernel.hpp"
#include "backends/simd/lanes/access.hpp"
#include "backends/threads/segments.hpp"

namespace samebits::simd {

using backends::row_segment;

/// Walks over the memory of one call.
template <class Isa>
struct convert_walk {
  convert_rows rows;
  convert_kernel<Isa> kernel;
  convert_random<Isa>& random;
  std::int64_t in_bytes, out_bytes;

  /// Converts contiguous elements of a row. `index` is the index of the first element.
  void contiguous(const std::byte* in, std::byte* out, std::int64_t count, std::uint64_t index,
                  bool stream) const {
    if (kernel.field_width == 0) return batches(in, out, count, index, kernel.batch, stream);
    // Random bits are generated for few elements at a time: their computation then overlaps the
    // loads and stores of other elements. The first step ends at a Philox block boundary, so that
    // later steps waste no random bits.
    const std::int64_t fields = 128 / kernel.field_width;
    const std::int64_t lead =
        smaller(count, static_cast<std::int64_t>(-index % static_cast<std::uint64_t>(fields)));
    const std::int64_t batch = static_cast<std::int64_t>(philox_batch<Isa>) * fields;
    batches(in, out, lead, index, batch, false);
    batches(in + lead * in_bytes, out + lead * out_bytes, count - lead,
            index + static_cast<std::uint64_t>(lead), batch,
            stream && lead == 0);  // otherwise results are not on register boundaries
  }

  /// Converts contiguous elements in batches of `batch` elements.
  void batches(const std::byte* in, std::byte* out, std::int64_t count, std::uint64_t index,
               std::int64_t batch, bool stream) const {
    for (std::int64_t done = 0; done < count;) {
      const std::int64_t left = count - done;
      const std::uint64_t at = index + static_cast<std::uint64_t>(done);
      row_span s{in + done * in_bytes, out + done * out_bytes, 1, batch / kernel.unit, at, stream};
      if (left >= batch) {
        s.batches = left / batch;
      } else if (left >= kernel.unit) {
        s.units = left / kernel.unit;
      } else {
        return part(s, left);
      }
      kernel.run(rows, s, random);
      done += s.batches * s.units * kernel.unit;
    }
  }

  /// Converts less than one unit of contiguous elements, through a copy of a full unit.
  void part(row_span s, std::int64_t count) const {
    alignas(64) std::byte in_copy[static_cast<std::size_t>(max_unit_bytes)] = {};
    alignas(64) std::byte out_copy[static_cast<std::size_t>(max_unit_bytes)];
    __builtin_memcpy(in_copy, s.in, static_cast<std::size_t>(count * in_bytes));
    std::byte* const out = s.out;
    s.in = in_copy;
    s.out = out_copy;
    s.units = 1;
    s.stream = false;
    kernel.run(rows, s, random);
    __builtin_memcpy(out, out_copy, static_cast<std::size_t>(count * out_bytes));
  }

  /// Number of elements before the first result on a register boundary; all elements if there is
  /// none.
  [[nodiscard]] std::int64_t elements_to_border(const row_segment& r) const {
    const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(r.out) %
                                                static_cast<std::uintptr_t>(Isa::register_bytes));
    if (past % r.out_step != 0) return r.count;
    return smaller((Isa::register_bytes - past) % Isa::register_bytes / r.out_step, r.count);
  }

  /// Converts one row that is contiguous on both sides. In a large call, results bypass the caches
  /// from the first register boundary on.
  void dense_row(const row_segment& r, bool large) const {
    const std::int64_t lead = large ? elements_to_border(r) : r.count;
    if (lead > 0) contiguous(r.in, r.out, lead, r.index, false);
    if (lead < r.count) {
      contiguous(r.in + lead * r.in_step, r.out + lead * r.out_step, r.count - lead,
                 r.index + static_cast<std::uint64_t>(lead), true);
    }
  }

  /// Converts one strided row: chunk by chunk, through dense copies.
  void strided_row(const row_segment& r) const {
    constexpr std::int64_t chunk_elements = 4096;
    std::byte in_copy[chunk_elements * 4];
    std::byte out_copy[chunk_elements * 4];
    for (std::int64_t at = 0; at < r.count; at += chunk_elements) {
      const std::int64_t count = smaller(chunk_elements, r.count - at);
      copy_codes<Isa>(in_copy, in_bytes, r.in + at * r.in_step, r.in_step, in_bytes, count);
      contiguous(in_copy, out_copy, count, r.index + static_cast<std::uint64_t>(at), false);
      copy_codes<Isa>(r.out + at * r.out_step, r.out_step, out_copy, out_bytes, out_bytes, count);
    }
  }

  void row(const row_segment& r, bool large) const {
    if (r.in_step == in_bytes && r.out_step == out_bytes) return dense_row(r, large);
    strided_row(r);
  }

 private:
  static constexpr std::int64_t max_unit_bytes = std::int64_t{4} * Isa::register_bytes;
};

/// Converts a range of a call. fp64 is not supported: it needs 64-bit words.
template <class Isa>
void convert(const backends::convert_call& call, backends::element_range range) {
  convert_random<Isa> random(call.random);
  const format_spec from = spec_of(call.in.format);
  const format_spec to = spec_of(call.out.format);
  const convert_walk<Isa> walk{{from, to, call.rule},
                               kernel_of<Isa>(call),
                               random,
                               from.storage_bits / 8,
                               to.storage_bits / 8};
  const bool large =
      (walk.in_bytes + walk.out_bytes) * (range.end - range.begin) >= streaming::min_bytes;
  backends::for_each_segment(call, range, [&](const row_segment& r) { walk.row(r, large); });
  if (large) Isa::stream_fence();
}

}  // namespace samebits::simd
