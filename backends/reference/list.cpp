// Reference tensor list operations: one element after another, in integers.
#include "backends/dispatch/calls/list.hpp"

#include <cstring>

#include "backends/dispatch/visit.hpp"
#include "backends/reference/reference.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/tensor_list/inspect.hpp"
#include "numerics/tensor_list/list.hpp"
#include "numerics/tensor_list/list_ops.hpp"

namespace samebits::backends {
namespace {

using numerics::list_chunk;
using numerics::list_row;
using numerics::tensor_tables;

constexpr std::size_t bytes_of(const format_spec& f) {
  return static_cast<std::size_t>(f.storage_bits / 8);
}

/// Loads (load) and stores (store) the code of element i.
template <class Format>
std::uint32_t load(const Format& format, const list_row& row, std::int64_t i) {
  std::uint32_t code = 0;
  std::memcpy(&code, numerics::element_at(row, i), bytes_of(format.spec()));
  return code;
}
template <class Format>
void store(const Format& format, const list_row& row, std::int64_t i, std::uint32_t code) {
  std::memcpy(numerics::element_at(row, i), &code, bytes_of(format.spec()));
}

/// Calls f(chunk number, chunk) for each chunk of a range.
template <class Function>
void for_each_chunk(const tensor_tables& list, element_range chunks, const Function& f) {
  for (std::int64_t n = chunks.begin; n < chunks.end; ++n) {
    f(n, numerics::chunk_at(list, static_cast<std::uint64_t>(n)));
  }
}

template <class Format>
numerics::chunk_statistics inspected(Format format, const list_row& row, const list_chunk& chunk,
                                     inspect_counts counts, std::uint64_t* exponents) {
  numerics::chunk_statistics statistics = {};
  numerics::square_sum squares;
  for (std::int64_t i = chunk.first; i < chunk.first + chunk.count; ++i) {
    const auto x = numerics::decode<std::uint32_t>(Format::spec(), load(format, row, i));
    squares.add(numerics::square(x));
    numerics::count_element(statistics, x);
    if (counts == inspect_counts::distribution) {
      numerics::count_small(statistics, x, numerics::min_normal(Format::spec()));
      ++exponents[numerics::exponent_bucket(x)];
    }
  }
  statistics.squares = squares.value();
  return statistics;
}

void inspect(const tensor_tables& list, element_range chunks, inspect_counts counts,
             numerics::chunk_statistics* partial_statistics, std::uint64_t* exponents) {
  for_each_chunk(list, chunks, [&](std::int64_t n, const list_chunk& chunk) {
    const list_row& row = list.rows[chunk.tensor];
    visit_list_format(row.format, [&](auto format) {
      partial_statistics[n] = inspected(format, row, chunk, counts, exponents);
    });
  });
}

template <class Format>
numerics::scale_statistics scaled(Format format, const list_row& row, const list_chunk& chunk,
                                  std::uint32_t factor) {
  numerics::scale_statistics statistics = {};
  for (std::int64_t i = chunk.first; i < chunk.first + chunk.count; ++i) {
    const std::uint32_t before = load(format, row, i);
    const std::uint32_t after = numerics::scaled_code(Format::spec(), before, factor);
    store(format, row, i, after);
    numerics::count_scaled(Format::spec(), statistics, before, after);
  }
  return statistics;
}

void scale(const tensor_tables& list, element_range chunks, std::uint32_t factor,
           numerics::scale_statistics* partial_statistics) {
  for_each_chunk(list, chunks, [&](std::int64_t n, const list_chunk& chunk) {
    const list_row& row = list.rows[chunk.tensor];
    visit_list_format(row.format, [&](auto format) {
      partial_statistics[n] = scaled(format, row, chunk, factor);
    });
  });
}

/// Decodes the elements of a chunk to binary32 bits.
void decode_chunk(const list_row& row, const list_chunk& chunk, std::uint32_t* values) {
  visit_list_format(row.format, [&](auto format) {
    for (std::int64_t i = 0; i < chunk.count; ++i) {
      values[i] =
          numerics::decode<std::uint32_t>(format.spec(), load(format, row, chunk.first + i));
    }
  });
}

void axpby(const axpby_call& call, element_range chunks) {
  for_each_chunk(call.out, chunks, [&](std::int64_t, const list_chunk& chunk) {
    const list_row& out = call.out.rows[chunk.tensor];
    std::uint32_t x[numerics::chunk_elements];
    std::uint32_t y[numerics::chunk_elements];
    decode_chunk(call.x.rows[chunk.tensor], chunk, x);
    decode_chunk(call.y.rows[chunk.tensor], chunk, y);
    visit_list_format(out.format, [&](auto format) {
      for (std::int64_t i = 0; i < chunk.count; ++i) {
        const std::uint32_t value = numerics::combined_value(call.a, x[i], call.b, y[i]);
        store(format, out, chunk.first + i, numerics::rounded_code(format.spec(), value));
      }
    });
  });
}

void accumulate(const accumulate_call& call, element_range chunks) {
  for_each_chunk(call.acc, chunks, [&](std::int64_t, const list_chunk& chunk) {
    const list_row& acc = call.acc.rows[chunk.tensor];
    const std::uint32_t scale = call.scale_of(chunk.tensor);
    std::uint32_t gradient[numerics::chunk_elements];
    decode_chunk(call.gradients.rows[chunk.tensor], chunk, gradient);
    visit_list_format(acc.format, [&](auto format) {
      for (std::int64_t i = 0; i < chunk.count; ++i) {
        store(format, acc, chunk.first + i,
              numerics::accumulated_code(format.spec(), load(format, acc, chunk.first + i),
                                         spec_of(format_id::fp32), gradient[i], scale));
      }
    });
  });
}

}  // namespace

const list_kernels reference_list_kernels = {
    .inspect = inspect, .scale = scale, .axpby = axpby, .accumulate = accumulate};

}  // namespace samebits::backends
