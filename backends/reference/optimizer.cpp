// Reference optimizer steps: one element after another, in integers.
#include <algorithm>
#include <cstring>

#include "backends/dispatch/calls/optimizer.hpp"
#include "backends/reference/reference.hpp"
#include "numerics/bits/random.hpp"
#include "numerics/tensor_list/inspect.hpp"
#include "numerics/update/stored.hpp"
#include "numerics/update/update.hpp"

namespace samebits::backends {
namespace {

using numerics::update_by_definition;
using numerics::update_element;

/// Rounds to a format of 16 bits and back.
struct rounded_to {
  stored_format format;
  std::uint32_t operator()(std::uint32_t x) const {
    constexpr std::uint32_t one = numerics::binary32::one;
    return numerics::stored_value(format, numerics::stored_code(format, x, one, 0), one);
  }
};

update_element<std::uint32_t> element_of_words(const update_words& words, std::int64_t i) {
  update_element<std::uint32_t> x = {words.weights[i], words.gradient[i], 0, 0};
  if (words.states[0] != nullptr) x.first = words.states[0][i];
  if (words.states[1] != nullptr) x.second = words.states[1][i];
  return x;
}

void update(const optimizer_settings& settings, const numerics::update_constants& constants,
            stored_format rounds_to, const update_words& words, std::int64_t count) {
  numerics::visit_formula(settings, [&](auto formula) {
    for (std::int64_t i = 0; i < count; ++i) {
      update_element<std::uint32_t> x = element_of_words(words, i);
      formula.template apply<update_by_definition>(constants, x, rounded_to{rounds_to});
      words.weights[i] = x.weight;
      if (words.states[0] != nullptr) words.states[0][i] = x.first;
      if (words.states[1] != nullptr) words.states[1][i] = x.second;
    }
  });
}

std::uint32_t load(const std::byte* codes, std::int64_t i, int bytes) {
  std::uint32_t code = 0;
  std::memcpy(&code, codes + i * bytes, static_cast<std::size_t>(bytes));
  return code;
}
void store(std::byte* codes, std::int64_t i, int bytes, std::uint32_t code) {
  std::memcpy(codes + i * bytes, &code, static_cast<std::size_t>(bytes));
}

void read_halves(low_part kind, const std::byte* high, const std::byte* low, std::uint32_t* words,
                 std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const numerics::two_halves<std::uint32_t> x = {load(high, i, 2), load(low, i, 2)};
    words[i] = kind == low_part::split ? numerics::joined_weight(x)
                                       : numerics::compensated_weight<update_by_definition>(x);
  }
}

void write_halves(low_part kind, std::byte* high, std::byte* low, const std::uint32_t* words,
                  std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const numerics::two_halves<std::uint32_t> x =
        kind == low_part::split ? numerics::split_weight(words[i])
                                : numerics::kahan_weight<update_by_definition>(words[i]);
    store(high, i, 2, x.high);
    store(low, i, 2, x.low);
  }
}

void direction(const optimizer_settings& settings, const numerics::update_constants& constants,
               const update_words& words, std::uint32_t* out, std::int64_t count) {
  using enum update_profile;
  for (std::int64_t i = 0; i < count; ++i) {
    const update_element<std::uint32_t> x = element_of_words(words, i);
    out[i] = settings.profile == strict
                 ? numerics::lamb_direction<strict, update_by_definition>(constants, x)
                 : numerics::lamb_direction<fma, update_by_definition>(constants, x);
  }
}

void move(std::uint32_t factor, const std::uint32_t* direction, std::uint32_t* weights,
          std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    weights[i] = numerics::lamb_weight<update_by_definition>(factor, direction[i], weights[i]);
  }
}

std::uint64_t squares(const std::uint32_t* words, std::int64_t count) {
  numerics::square_sum sum;
  for (std::int64_t i = 0; i < count; ++i) sum.add(numerics::square(words[i]));
  return sum.value();
}

void rescale(stored_format format, const std::byte* codes, std::uint32_t scale,
             std::uint32_t* words, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    words[i] = numerics::stored_value(format, load(codes, i, code_bytes(format)), scale);
  }
}

std::uint32_t amax(const std::uint32_t* words, std::int64_t count) {
  std::uint32_t largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    largest = std::max(largest, numerics::binary32::amax_bits(words[i]));
  }
  return largest;
}

void unscaled_codes(const stored_part& part, const std::uint32_t* words) {
  for (std::int64_t i = 0; i < part.count; ++i) {
    const std::int64_t at = part.first + i;
    const std::uint32_t random =
        is_stochastic(part.format)
            ? numerics::random_word(part.random.seed, part.random.stream,
                                    part.random.offset + static_cast<std::uint64_t>(at),
                                    numerics::update_random_bits)
            : 0;
    store(part.array.codes, at, code_bytes(part.format),
          numerics::stored_code(part.format, words[i], numerics::binary32::one, random));
  }
}

void scaled_codes(stored_format format, const std::uint32_t* words, std::uint32_t factor,
                  std::byte* codes, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    store(codes, i, code_bytes(format), numerics::stored_code(format, words[i], factor, 0));
  }
}

}  // namespace

const update_kernels& reference_update_kernels() {
  static constexpr update_kernels kernels = {
      .in_scope = in_any_state,
      .update = update,
      .rescale = rescale,
      .amax = amax,
      .scaled_codes = scaled_codes,
      .unscaled_codes = unscaled_codes,
      .read_halves = read_halves,
      .write_halves = write_halves,
      .direction = direction,
      .move = move,
      .squares = squares,
  };
  return kernels;
}

}  // namespace samebits::backends
