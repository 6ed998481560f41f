// Comparison of one quantization: implementation.
#include "backends/verify/quantize/quantize_comparison.hpp"
#include "backends/verify/codes.hpp"

#include <cstdio>
#include <cstring>

namespace samebits::backends::verification {
namespace {

constexpr std::size_t device_slots = 2 + output_count + 1;

/// A view of a buffer with this layout; no data if the output is not wanted.
matrix_view view_at(std::byte* base, format_id format, const placement& p, memory_space space) {
  if (p.rows == 0) return {};
  return {base + p.shift, format, p.rows, p.cols, p.row_stride, p.col_stride, space};
}

format_id format_of(std::size_t output, format_id to) {
  return output == scales || output == scales_transposed ? format_id::fp32 : to;
}

/// The views of all outputs. memory(output, bytes) returns the memory of one output.
template <class Memory>
quantize_outputs views_of(const std::array<placement, output_count>& out, format_id to,
                          memory_space space, const Memory& memory) {
  std::array<matrix_view, output_count> views;
  for (std::size_t i = 0; i < output_count; ++i) {
    const format_id format = format_of(i, to);
    const std::size_t bytes = out[i].rows == 0 ? 0 : out[i].bytes(format);
    views[i] = view_at(memory(i, bytes), format, out[i], space);
  }
  return {views[codes], views[scales], views[codes_transposed], views[scales_transposed]};
}

constexpr const char* output_names[output_count] = {"code", "scale", "transposed code",
                                                    "transposed scale"};

std::string hex(std::uint64_t code, int digits) {
  char text[20];
  std::snprintf(text, sizeof text, "0x%0*llx", digits, static_cast<unsigned long long>(code));
  return text;
}

std::string tile_text(const tile_shape& tile) {
  const auto size = [](std::int64_t n) { return n == 0 ? std::string("all") : std::to_string(n); };
  return "tile " + size(tile.rows) + " x " + size(tile.cols);
}

std::string text_of(const quantization& q) {
  std::string text = tile_text(all_tiles()[static_cast<std::size_t>(q.tile)]);
  for (const std::string_view part :
       {samebits::name(q.scale.rule), samebits::name(q.scale.nonfinite),
        samebits::name(q.cast.rounding), samebits::name(q.cast.overflow)}) {
    text += " " + std::string(part);
  }
  if (q.cast.rounding != rounding::stochastic) return text;
  return text + ", seed " + std::to_string(q.random.seed) + ", stream " +
         std::to_string(q.random.stream) + ", offset " + std::to_string(q.random.offset) +
         ", K = " + std::to_string(q.random.bits);
}

/// Adds the differing elements of one output. If only the memory between elements differs, adds
/// one.
void add_output(quantize_result& t, const std::string& what, const std::string& rule,
                format_id format, const placement& p, const std::vector<std::byte>& got,
                const std::vector<std::byte>& expected) {
  t.compared += static_cast<std::uint64_t>(p.rows * p.cols);
  const std::size_t bytes = p.bytes(format);
  if (std::memcmp(got.data(), expected.data(), bytes) == 0) return;
  const auto width = static_cast<std::size_t>(storage_bytes(format));
  const std::uint64_t before = t.differed;
  for (std::int64_t row = 0; row < p.rows; ++row) {
    for (std::int64_t col = 0; col < p.cols; ++col) {
      const std::size_t offset = p.offset(format, row, col);
      const std::uint64_t a = load(got.data() + offset, width);
      const std::uint64_t e = load(expected.data() + offset, width);
      if (a == e) continue;
      ++t.differed;
      if (!t.first_difference.empty()) continue;
      const int digits = static_cast<int>(2 * width);
      t.first_difference = what;
      t.first_difference.append(" [").append(std::to_string(row)).append(", ");
      t.first_difference.append(std::to_string(col)).append("] is ").append(hex(a, digits));
      t.first_difference.append(", expected ").append(hex(e, digits)).append("; ").append(rule);
    }
  }
  if (t.differed != before) return;
  ++t.differed;
  if (t.first_difference.empty()) {
    t.first_difference = "memory between the elements of the " + what + "s was written; " + rule;
  }
}

void note(quantize_result& t, format_id from, format_id to, int tile) {
  t.sources.set(static_cast<std::size_t>(from));
  t.targets.set(static_cast<std::size_t>(to));
  t.tiles.set(static_cast<std::size_t>(tile));
}

}  // namespace

const std::array<tile_shape, tile_count>& all_tiles() {
  static const std::array<tile_shape, tile_count> tiles = [] {
    std::array<tile_shape, tile_count> made = {{{1, 0}, {0, 1}, {0, 0}}};
    std::size_t i = 3;
    for (const std::int64_t g : {16, 32, 64, 128, 256}) {
      for (const tile_shape& tile : {tile_shape{1, g}, {g, 1}, {g, g}}) made[i++] = tile;
    }
    return made;
  }();
  return tiles;
}

quantize_subject::quantize_subject(const backend& tested, int threads)
    : backend_(&tested), threads_(threads) {
  for (std::size_t i = 0; i < device_slots; ++i) device_.emplace_back(tested.memory);
}

void quantize_subject::set_input(std::span<const std::byte> codes_in,
                                 std::span<const std::byte> scales_in) {
  input_ = {codes_in, scales_in};
  if (backend_->space == memory_space::host) return;
  for (std::size_t i = 0; i < input_.size(); ++i) {
    if (input_[i].empty()) continue;
    backend_->memory->upload(device_[i].get(input_[i].size()), input_[i].data(), input_[i].size());
  }
}

std::byte* quantize_subject::prepare(std::size_t slot, std::size_t bytes, std::byte filling) {
  std::vector<std::byte>& memory = result_[slot];
  memory.assign(bytes, filling);
  if (bytes == 0 || backend_->space == memory_space::host) return memory.data();
  std::byte* const device = device_[2 + slot].get(bytes);
  backend_->memory->fill(device, filling, bytes);
  return device;
}

void quantize_subject::finish(std::size_t slot) {
  std::vector<std::byte>& memory = result_[slot];
  if (memory.empty() || backend_->space == memory_space::host) return;
  backend_->memory->download(memory.data(), device_[2 + slot].get(memory.size()), memory.size());
}

std::span<const std::vector<std::byte>> quantize_subject::run(
    quantize_call call, std::size_t in_shift, const std::array<placement, output_count>& out,
    std::byte filling, quantize_statistics* statistics) {
  const bool on_device = backend_->space == memory_space::device;
  const std::byte* base = on_device ? device_[0].get(input_[0].size()) : input_[0].data();
  call.in.data = base + in_shift;
  call.in.space = backend_->space;
  call.outputs = views_of(out, call.to, backend_->space, [&](std::size_t i, std::size_t bytes) {
    return prepare(i, bytes, filling);
  });
  call.outputs.statistics = statistics;
  device_buffer& device_statistics = device_.back();
  if (on_device && statistics != nullptr) {
    call.outputs.statistics =
        reinterpret_cast<quantize_statistics*>(device_statistics.get(sizeof(quantize_statistics)));
  }
  backend_->quantize.run(call, {backend_->name, threads_, nullptr});
  if (on_device) backend_->memory->synchronize();
  for (std::size_t i = 0; i < output_count; ++i) finish(i);
  if (on_device && statistics != nullptr) {
    backend_->memory->download(statistics, call.outputs.statistics, sizeof *statistics);
  }
  return result_;
}

const std::vector<std::byte>& quantize_subject::run(dequantize_call call, std::size_t bytes,
                                                    std::byte filling) {
  const bool on_device = backend_->space == memory_space::device;
  call.codes.space = call.scales.space = call.out.space = backend_->space;
  call.codes.data = on_device ? device_[0].get(input_[0].size()) : input_[0].data();
  call.scales.data = on_device ? device_[1].get(input_[1].size()) : input_[1].data();
  call.out.data = prepare(codes, bytes, filling);
  backend_->dequantize.run(call, {backend_->name, threads_, nullptr});
  if (on_device) backend_->memory->synchronize();
  finish(codes);
  return result_[codes];
}

quantize_comparer::quantize_comparer(std::span<const backend* const> tested,
                                     const backend& reference, int threads)
    : reference_(&reference), threads_(threads) {
  for (const backend* b : tested) {
    if (b->quantize.run != nullptr) subjects_.emplace_back(*b, threads);
  }
}

void quantize_comparer::set_input(const code_buffer& input, const code_buffer* scales_in) {
  input_ = &input;
  scales_ = scales_in;
  for (quantize_subject& s : subjects_) {
    s.set_input(input.bytes(),
                scales_in == nullptr ? std::span<const std::byte>() : scales_in->bytes());
  }
}

std::byte quantize_comparer::next_filling() {
  filling_ = static_cast<unsigned char>(filling_ + 83);  // as in comparer
  return std::byte{filling_};
}

void quantize_comparer::compare(const quantization& q, std::span<quantize_result> per_backend) {
  const tile_grid grid =
      grid_of(q.in.rows, q.in.cols, all_tiles()[static_cast<std::size_t>(q.tile)]);
  quantize_statistics expected_statistics, statistics;
  quantize_call call{
      {nullptr, input_->format(), q.in.rows, q.in.cols, q.in.row_stride, q.in.col_stride},
      {},
      q.to,
      grid,
      q.scale,
      format_id::fp32,
      {},
      q.cast,
      q.random,
      q.random.pitch.value_or(static_cast<std::uint64_t>(q.in.cols))};
  // Any non-null pointer will do: has() reads only shapes.
  auto* const somewhere = const_cast<std::byte*>(input_->bytes().data());
  call.in.data = somewhere;
  call.outputs = views_of(q.out, q.to, memory_space::host,
                          [&](std::size_t, std::size_t) { return somewhere; });
  if (q.counts) call.outputs.statistics = &statistics;
  if (!reference_->quantize.has(call)) return;
  const std::byte filling = next_filling();
  quantize_subject expected(*reference_, threads_);
  expected.set_input(input_->bytes(), {});
  std::span<const std::vector<std::byte>> right;
  for (std::size_t i = 0; i < subjects_.size(); ++i) {
    if (!subjects_[i].has(call)) continue;
    if (right.empty()) {
      right =
          expected.run(call, q.in.shift, q.out, filling, q.counts ? &expected_statistics : nullptr);
    }
    const auto got =
        subjects_[i].run(call, q.in.shift, q.out, filling, q.counts ? &statistics : nullptr);
    quantize_result& t = per_backend[i];
    note(t, input_->format(), q.to, q.tile);
    t.scale_rules.set(static_cast<std::size_t>(q.scale.rule));
    const std::string rule = text_of(q);
    for (std::size_t o = 0; o < output_count; ++o) {
      if (q.out[o].rows == 0) continue;
      add_output(t, output_names[o], rule, format_of(o, q.to), q.out[o], got[o], right[o]);
    }
    if (!q.counts) continue;
    ++t.compared;
    if (statistics == expected_statistics) continue;
    ++t.differed;
    if (t.first_difference.empty()) t.first_difference = "statistics differ; " + rule;
  }
}

void quantize_comparer::compare(const dequantization& d, std::span<quantize_result> per_backend) {
  const tile_shape& tile = all_tiles()[static_cast<std::size_t>(d.tile)];
  const tile_grid grid = grid_of(d.rows, d.cols, tile);
  const placement out = placement::dense(d.rows, d.cols);
  const dequantize_call call{{nullptr, d.from, d.rows, d.cols, d.cols, 1},
                             {nullptr, format_id::fp32, grid.rows, grid.cols, grid.cols, 1},
                             {nullptr, d.to, d.rows, d.cols, d.cols, 1},
                             grid};
  const std::byte filling = next_filling();
  quantize_subject expected(*reference_, threads_);
  expected.set_input(input_->bytes(), scales_->bytes());
  const std::size_t bytes = out.bytes(d.to);
  const std::vector<std::byte>& right = expected.run(call, bytes, filling);
  for (std::size_t i = 0; i < subjects_.size(); ++i) {
    note(per_backend[i], d.from, d.to, d.tile);
    add_output(per_backend[i], "value", std::string(samebits::name(d.from)) + " " + tile_text(tile),
               d.to, out, subjects_[i].run(call, bytes, filling), right);
  }
}

}  // namespace samebits::backends::verification
