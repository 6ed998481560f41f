// Fills tiles with random operands; see tiles.hpp.
#include "tensor_core_probe/tiles.hpp"

#include "backends/threads/tasks.hpp"

namespace samebits::backends::tensor_cores {
namespace {

void put_line(std::uint32_t* line, format_id format, const std::uint32_t* codes, int count) {
  const int bits = spec_of(format).storage_bits;
  const int per_word = 32 / bits;
  for (int k = 0; k < count; ++k) line[k / per_word] |= codes[k] << (k % per_word * bits);
}

void draw_tile(instruction what, int family, std::uint64_t seed, random_tiles& tiles,
               std::size_t tile) {
  const shape& s = shape_of(what);
  word_stream words(seed);
  const auto rows = static_cast<std::size_t>(rows_of(what));
  constexpr std::size_t columns = tile_columns;
  std::vector<case_codes> cases;
  for (std::size_t r = 0; r < rows; ++r) cases.push_back(draw_case(s, family, words));
  for (std::size_t r = 0; r < rows; ++r) {
    put_line(&tiles.a[(tile * rows + r) * line_words], s.a, cases[r].a.data(), s.products);
    if (r < columns) {
      put_line(&tiles.b[(tile * columns + r) * line_words], s.b, cases[r].b.data(), s.products);
    }
    for (std::size_t c = 0; c < columns; ++c) {
      const std::size_t other = (r + 5 * ((c + columns - r % columns) % columns)) % rows;
      tiles.c[(tile * rows + r) * columns + c] = cases[other].c;
    }
  }
}

}  // namespace

random_tiles draw_tiles(instruction what, int family, std::uint64_t seed, std::uint32_t tiles) {
  const std::size_t n = tiles;
  const auto m = static_cast<std::size_t>(rows_of(what));
  random_tiles operands{std::vector<std::uint32_t>(n * m * line_words),
                        std::vector<std::uint32_t>(n * tile_columns * line_words),
                        std::vector<std::uint32_t>(n * m * tile_columns)};
  const auto workers = static_cast<std::size_t>(thread_count(0));
  for_each_task(static_cast<std::int64_t>(workers), [&](std::int64_t worker) {
    for (auto t = static_cast<std::size_t>(worker); t < n; t += workers) {
      word_stream mixed(seed);
      const auto own = mixed.next() + (static_cast<std::uint64_t>(family) << 32) + t;
      draw_tile(what, family, own, operands, t);
    }
  });
  return operands;
}

case_codes case_at(const job& j, const result_place& at) {
  case_codes x{};
  for (int k = 0; k < j.rule.products; ++k) {
    x.a[static_cast<std::size_t>(k)] = a_line(j, at)(k);
    x.b[static_cast<std::size_t>(k)] = b_line(j, at)(k);
  }
  x.c = j.c[at.index];
  return x;
}

}  // namespace samebits::backends::tensor_cores
