// Optimizer steps on threads: implementation. Each chunk is updated in segments whose words stay in
// the first-level cache.
#include "backends/threads/optimizer.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/threads/parts.hpp"
#include "numerics/arithmetic/binary64.hpp"
#include "numerics/tensor_list/inspect.hpp"
#include "numerics/update/lamb.hpp"
#include "numerics/update/stored.hpp"
#include "numerics/update/update_tables.hpp"

namespace samebits::backends {
namespace {

using numerics::list_chunk;
using numerics::update_constants;
using numerics::update_row;

/// Elements of a segment: a multiple of all block sizes, and a divisor of a chunk.
constexpr std::int64_t segment_elements = 1024;

/// A step's inputs that all threads share.
struct step_task {
  const update_kernels& kernels;
  const optimizer_call& call;
  std::vector<update_constants> constants;  ///< [groups]
  std::uint64_t seed;
  std::uint64_t step;

  [[nodiscard]] const optimizer_settings& settings(const update_row& row) const {
    return call.groups[row.group];
  }
};

/// Space for the words of a segment.
struct segment_buffer {
  alignas(64) std::uint32_t weights[segment_elements];
  alignas(64) std::uint32_t gradient[segment_elements];
  alignas(64) std::uint32_t states[2][segment_elements];
};

/// Elements [first, first + count) of a tensor.
struct segment {
  const update_row& row;
  std::int64_t first;
  std::int64_t count;
};

/// A segment of one of a tensor's arrays.
stored_part part_of_array(const step_task& task, const segment& s,
                          const numerics::update_array& array, stored_format format,
                          stream_purpose purpose) {
  stored_part part{array, format, s.first, s.count, s.row.block};
  part.random.seed = task.seed;
  part.random.stream = random_stream_number(purpose, s.row.stream, task.step);
  part.random.offset = s.row.first_index;
  return part;
}
stored_part weights_part(const step_task& task, const segment& s) {
  return part_of_array(task, s, s.row.weights, s.row.weights_format, stream_purpose::weights);
}
stored_part master_part(const step_task& task, const segment& s) {
  return part_of_array(task, s, s.row.master, s.row.master_format, stream_purpose::weights);
}
stored_part state_part(const step_task& task, const segment& s, int i) {
  return part_of_array(task, s, s.row.states[i], s.row.state_formats[i],
                       i == 0 ? stream_purpose::first_state : stream_purpose::second_state);
}

/// The codes of a part from its element `first` on.
std::byte* codes_at(const stored_part& part, std::int64_t first) {
  return part.array.codes + (part.first + first) * code_bytes(part.format);
}

/// Calls f(scale of the block, first element in the part, number of elements) for the blocks of a part.
template <class Function>
void for_each_block(const stored_part& part, const Function& f) {
  std::int64_t done = 0;
  while (done < part.count) {
    const std::int64_t at = part.first + done;
    const std::int64_t count = std::min(part.block - at % part.block, part.count - done);
    f(part.array.scales[at / part.block], done, count);
    done += count;
  }
}

/// Writes the values of a part to words.
void read_part(const update_kernels& kernels, const stored_part& part, std::uint32_t* words) {
  if (part.array.scales == nullptr) {
    return kernels.rescale(part.format, codes_at(part, 0), numerics::binary32::one, words,
                           part.count);
  }
  for_each_block(part, [&](std::uint32_t scale, std::int64_t first, std::int64_t count) {
    kernels.rescale(part.format, codes_at(part, first), scale, words + first, count);
  });
}

/// Writes words to a part, with the scales of its blocks.
void write_part(const update_kernels& kernels, const stored_part& part,
                const std::uint32_t* words) {
  if (part.array.scales == nullptr) return kernels.unscaled_codes(part, words);
  for_each_block(part, [&](std::uint32_t& stored, std::int64_t first, std::int64_t count) {
    const std::uint32_t amax = numerics::binary32::amax_bits(kernels.amax(words + first, count));
    const numerics::tile_scale scale = numerics::block_scale(part.format, amax);
    stored = scale.dequantization_scale;
    kernels.scaled_codes(part.format, words + first, scale.factor, codes_at(part, first), count);
  });
}

std::uint32_t* words_at(std::byte* codes, std::int64_t first) {
  return reinterpret_cast<std::uint32_t*>(codes) + first;  // fp32 arrays are aligned
}

/// The words of a part: in place if it is fp32, else its values in the buffer.
std::uint32_t* read_words(const step_task& task, const stored_part& part, std::uint32_t* buffer) {
  if (part.format == stored_format::fp32) return words_at(part.array.codes, part.first);
  read_part(task.kernels, part, buffer);
  return buffer;
}

/// Stores words of a part that read_words() returned.
void write_words(const step_task& task, const stored_part& part, const std::uint32_t* words) {
  if (part.format != stored_format::fp32) write_part(task.kernels, part, words);
}

std::byte* half_at(std::byte* codes, std::int64_t first) { return codes + first * 2; }

std::uint32_t* read_weights(const step_task& task, const segment& s, std::uint32_t* buffer) {
  if (s.row.master_format != stored_format::none) {
    return read_words(task, master_part(task, s), buffer);
  }
  if (s.row.low_kind == low_part::none) return read_words(task, weights_part(task, s), buffer);
  task.kernels.read_halves(s.row.low_kind, half_at(s.row.weights.codes, s.first),
                           half_at(s.row.low, s.first), buffer, s.count);
  return buffer;
}

void write_weights(const step_task& task, const segment& s, const std::uint32_t* words) {
  if (s.row.master_format != stored_format::none) {
    write_words(task, master_part(task, s), words);
    write_part(task.kernels, weights_part(task, s), words);
  } else if (s.row.low_kind == low_part::none) {
    write_words(task, weights_part(task, s), words);
  } else {
    task.kernels.write_halves(s.row.low_kind, half_at(s.row.weights.codes, s.first),
                              half_at(s.row.low, s.first), words, s.count);
  }
}

/// The gradient of a segment: in place if it is fp32 without a scale.
const std::uint32_t* read_gradient(const step_task& task, const segment& s, std::uint32_t* buffer) {
  // Elements are only read.
  auto* const codes = const_cast<std::byte*>(s.row.gradient);
  if (s.row.gradient_format == stored_format::fp32 && s.row.gradient_scale == nullptr) {
    return words_at(codes, s.first);
  }
  // One scale for the tensor: a block that is the whole tensor.
  read_part(task.kernels,
            {{codes, const_cast<std::uint32_t*>(s.row.gradient_scale)},
             s.row.gradient_format,
             s.first,
             s.count,
             s.row.count},
            buffer);
  return buffer;
}

update_words read_segment(const step_task& task, const segment& s, int states,
                          segment_buffer& buffer) {
  update_words words = {};
  words.weights = read_weights(task, s, buffer.weights);
  words.gradient = read_gradient(task, s, buffer.gradient);
  for (int i = 0; i < states; ++i) {
    words.states[i] = read_words(task, state_part(task, s, i), buffer.states[i]);
  }
  return words;
}

/// Calls f(segment) for the segments of a chunk.
template <class Function>
void for_each_segment(const update_row& row, const list_chunk& chunk, const Function& f) {
  for (std::int64_t at = 0; at < chunk.count; at += segment_elements) {
    f(segment{row, chunk.first + at, std::min(segment_elements, chunk.count - at)});
  }
}

/// Updates weights and states of a chunk. Rule lamb: only the states.
void update_chunk(const step_task& task, const update_row& row, const list_chunk& chunk) {
  const optimizer_settings& settings = task.settings(row);
  const int states = state_count(settings);
  segment_buffer buffer;
  for_each_segment(row, chunk, [&](const segment& s) {
    const update_words words = read_segment(task, s, states, buffer);
    task.kernels.update(settings, task.constants[row.group], numerics::step_format(row), words,
                        s.count);
    for (int i = 0; i < states; ++i) write_words(task, state_part(task, s, i), words.states[i]);
    if (settings.rule != update_rule::lamb) write_weights(task, s, words.weights);
  });
}

/// The sums of squares of a chunk of rule lamb, as binary64 bits.
struct lamb_squares {
  std::uint64_t weights = 0;
  std::uint64_t direction = 0;
};

/// Rule lamb: the sums of squares of a chunk's weights and directions, from the stored states.
lamb_squares squares_of_chunk(const step_task& task, const update_row& row,
                              const list_chunk& chunk) {
  std::uint32_t weights[numerics::chunk_elements];
  std::uint32_t direction[numerics::chunk_elements];
  segment_buffer buffer;
  for_each_segment(row, chunk, [&](const segment& s) {
    const update_words words = read_segment(task, s, 2, buffer);
    const std::int64_t at = s.first - chunk.first;
    std::copy_n(words.weights, s.count, weights + at);
    task.kernels.direction(task.settings(row), task.constants[row.group], words, direction + at,
                           s.count);
  });
  return {task.kernels.squares(weights, chunk.count), task.kernels.squares(direction, chunk.count)};
}

/// Rule lamb: moves the weights of a chunk.
void move_chunk(const step_task& task, const update_row& row, const list_chunk& chunk,
                std::uint32_t factor) {
  segment_buffer buffer;
  for_each_segment(row, chunk, [&](const segment& s) {
    std::uint32_t direction[segment_elements];
    const update_words words = read_segment(task, s, 2, buffer);
    task.kernels.direction(task.settings(row), task.constants[row.group], words, direction,
                           s.count);
    task.kernels.move(factor, direction, words.weights, s.count);
    write_weights(task, s, words.weights);
  });
}

/// Calls f(chunk number, tensor, chunk) for all chunks of the list, on threads.
template <class Function>
void for_each_chunk(const step_task& task, const executor& where, const Function& f) {
  const numerics::update_tables list = task.call.list.tables();
  const auto chunks = static_cast<std::int64_t>(list.chunks);
  const auto in_a_chunk = static_cast<std::int64_t>(task.call.list.elements) / chunks;
  for_each_item(chunks, in_a_chunk, where.threads, [&](std::int64_t n) {
    const list_chunk chunk = numerics::chunk_at(list, static_cast<std::uint64_t>(n));
    run_in(task.kernels.in_scope,
           [&] { f(static_cast<std::size_t>(n), list.rows[chunk.tensor], chunk); });
  });
}

/// Memory of rule lamb's second pass. It is allocated before anything is written.
struct lamb_memory {
  std::vector<lamb_squares> squares;   ///< [chunks]
  std::vector<std::uint32_t> factors;  ///< [tensors]: the factor of the direction
};

/// Computes the factor of each tensor of rule lamb.
void find_factors(const step_task& task, lamb_memory& memory) {
  const std::vector<update_row>& rows = task.call.list.rows;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (task.settings(rows[i]).rule != update_rule::lamb) continue;
    numerics::square_sum weights;
    numerics::square_sum direction;
    for (const lamb_squares& s :
         std::span(memory.squares)
             .subspan(rows[i].first_chunk, numerics::chunks_of(rows[i].count))) {
      weights.add(s.weights);
      direction.add(s.direction);
    }
    memory.factors[i] =
        numerics::lamb_factor(task.constants[rows[i].group], numerics::norm_of(weights.value()),
                              numerics::norm_of(direction.value()));
  }
}

/// The second pass of rule lamb, for its tensors.
void move_lamb_weights(const step_task& task, lamb_memory& memory, const executor& where) {
  const auto is_lamb = [&](const update_row& row) {
    return task.settings(row).rule == update_rule::lamb;
  };
  for_each_chunk(task, where, [&](std::size_t n, const update_row& row, const list_chunk& chunk) {
    if (is_lamb(row)) memory.squares[n] = squares_of_chunk(task, row, chunk);
  });
  find_factors(task, memory);
  for_each_chunk(task, where, [&](std::size_t, const update_row& row, const list_chunk& chunk) {
    if (is_lamb(row)) move_chunk(task, row, chunk, memory.factors[chunk.tensor]);
  });
}

/// The inputs of a step that is applied.
step_task task_of(const update_kernels& kernels, const optimizer_call& call) {
  const step_input& input = call.input;
  const step_report* const decision = input.decision;
  const std::uint64_t step = decision == nullptr ? input.applied_steps : decision->applied_steps;
  const float grad_mul = decision == nullptr ? input.grad_mul : decision->grad_mul;
  step_task task{kernels, call, {}, input.seed, step};
  for (std::size_t i = 0; i < call.groups.size(); ++i) {
    // Widened in integers: under DAZ the processor would turn a subnormal rate into 0.
    const std::uint64_t lr =
        input.learning_rates == nullptr
            ? std::bit_cast<std::uint64_t>(call.groups[i].learning_rate)
            : numerics::binary64::widen(std::bit_cast<std::uint32_t>(input.learning_rates[i]));
    task.constants.push_back(
        numerics::constants_of(call.groups[i], lr, step, std::bit_cast<std::uint32_t>(grad_mul)));
  }
  return task;
}

}  // namespace

void step_on_threads(const update_kernels& kernels(), const optimizer_call& call,
                     const executor& where) {
  if (call.input.decision != nullptr && !call.input.decision->applied) return;
  const step_task task = task_of(kernels(), call);
  const bool has_lamb = std::any_of(call.groups.begin(), call.groups.end(),
                                    [](const auto& g) { return g.rule == update_rule::lamb; });
  lamb_memory memory;
  if (has_lamb) {
    memory.squares.resize(call.list.row_of_chunk.size());
    memory.factors.resize(call.list.rows.size());
  }
  for_each_chunk(task, where, [&](std::size_t, const update_row& row, const list_chunk& chunk) {
    update_chunk(task, row, chunk);
  });
  if (has_lamb) move_lamb_weights(task, memory, where);
}

void store_on_threads(const update_kernels& kernels_of(), const store_call& call,
                      const executor& where) {
  const update_kernels& kernels = kernels_of();
  const auto part_at = [&](const update_row& row, std::int64_t first) {
    stored_part part{row.weights, row.weights_format, first,
                     std::min(segment_elements, row.count - first), row.block};
    part.random = {.seed = call.seed, .stream = call.stream, .offset = row.first_index};
    return part;
  };
  const auto store_segment = [&](std::int64_t first) {
    alignas(64) std::uint32_t words[segment_elements];
    const stored_part from = part_at(call.from, first);
    const stored_part to = part_at(call.to, first);
    if (call.from.low_kind == low_part::none) {
      read_part(kernels, from, words);
    } else {
      kernels.read_halves(call.from.low_kind, half_at(from.array.codes, first),
                          half_at(call.from.low, first), words, from.count);
    }
    if (call.to.low_kind == low_part::none) return write_part(kernels, to, words);
    kernels.write_halves(call.to.low_kind, half_at(to.array.codes, first),
                         half_at(call.to.low, first), words, to.count);
  };
  for_each_item((call.to.count + segment_elements - 1) / segment_elements, segment_elements,
                where.threads, [&](std::int64_t number) {
                  run_in(kernels.in_scope, [&] { store_segment(number * segment_elements); });
                });
}

}  // namespace samebits::backends
