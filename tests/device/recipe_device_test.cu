// Every preset on the device: 2^30 elements by cuda-native against cuda-emulated, compared there.
// device.quantize_recipes compares smaller matrices with the host.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "device/recipe_memory.cuh"
#include "samebits/quantize.hpp"
#include "samebits/quantize_list.hpp"
#include "samebits/recipe.hpp"
#include "samebits/self_test.hpp"
#include "support/effort.hpp"

namespace samebits::support {
namespace {

/// Outputs of one quantization in device memory, and some bytes behind each.
struct device_outputs {
  device_outputs(const recipe& rules, tile_shape tile, format_id to, matrix_shape size,
                 bool rowwise, bool transposed, std::size_t behind = 0)
      : shape(size),
        grid(scales_shape(size.rows, size.cols, tile)),
        codes_format(to),
        scale_format(rules.scale_format) {
    const auto count = static_cast<std::size_t>(size.rows * size.cols) + behind;
    const auto scale_bytes =
        static_cast<std::size_t>(grid.rows * grid.cols * storage_bytes(scale_format)) + behind;
    if (rowwise) codes = device_bytes(count), scales = device_bytes(scale_bytes);
    if (transposed) codes_t = device_bytes(count), scales_t = device_bytes(scale_bytes);
  }
  [[nodiscard]] quantize_outputs views() const {
    const auto at = [](const device_bytes& b, format_id f, std::int64_t r, std::int64_t c) {
      if (b.size() == 0) return matrix_view{};
      return matrix_view{b.data(), f, r, c, c, 1, memory_space::device};
    };
    return {.codes = at(codes, codes_format, shape.rows, shape.cols),
            .scales = at(scales, scale_format, grid.rows, grid.cols),
            .codes_transposed = at(codes_t, codes_format, shape.cols, shape.rows),
            .scales_transposed = at(scales_t, scale_format, grid.cols, grid.rows)};
  }
  /// Bytes that differ from another's.
  [[nodiscard]] std::uint64_t differing(const device_outputs& o) const {
    return differing_bytes(codes, o.codes) + differing_bytes(scales, o.scales) +
           differing_bytes(codes_t, o.codes_t) + differing_bytes(scales_t, o.scales_t);
  }
  void fill(int byte) {
    for (device_bytes* b : {&codes, &scales, &codes_t, &scales_t}) b->fill(byte);
  }

  matrix_shape shape, grid;
  format_id codes_format, scale_format;
  device_bytes codes, scales, codes_t, scales_t;
};

/// One S for a tensor, as delayed scaling has it.
const_matrix_view given_inverse_scale(const device_bytes& memory) {
  return {memory.data(), format_id::fp32, 1, 1, 1, 1, memory_space::device};
}

std::uint64_t wanted_elements() {
  const char* const asked = std::getenv("SAMEBITS_RECIPE_ELEMENTS");
  return asked != nullptr ? std::stoull(asked) : by_effort(std::uint64_t{1} << 30, 1 << 22);
}

class EveryRecipe : public ::testing::TestWithParam<std::size_t> {
 protected:
  [[nodiscard]] const recipe_preset& preset() const { return recipe_presets[GetParam()]; }

  void quantize_by(const char* backend, const const_matrix_view& in, const quantize_outputs& out,
                   tile_shape tile) const {
    quantize_options options = options_of(preset().rules);
    options.tile = tile;
    if (preset().rules.source == scale_source::delayed) {
      options.inverse_scales = given_inverse_scale(inverse_scale_);
    }
    quantize(in, out, options, on_stream(nullptr, backend));
  }
  /// Both backends; returns how many bytes differ.
  std::uint64_t differing(const const_matrix_view& in, format_id to, tile_shape tile, bool rowwise,
                          bool transposed) {
    const matrix_shape shape{in.rows, in.cols};
    const recipe& rules = preset().rules;
    device_outputs native(rules, tile, to, shape, rowwise, transposed);
    device_outputs emulated(rules, tile, to, shape, rowwise, transposed);
    native.fill(0x55);
    emulated.fill(0xAA);  // what nobody writes differs
    quantize_by("cuda-native", in, native.views(), tile);
    quantize_by("cuda-emulated", in, emulated.views(), tile);
    check_cuda(cudaDeviceSynchronize(), "quantize");
    elements_ += static_cast<std::uint64_t>(in.rows * in.cols);
    return native.differing(emulated);
  }

  std::uint64_t elements_ = 0;
  device_bytes inverse_scale_{&given, sizeof given};
  static constexpr float given = 3.25f;
};

TEST_P(EveryRecipe, NativeIsEmulatedOn2To30Elements) {
  initialize("cuda-native");
  const tile_shape row_tile = preset().rules.tile, col_tile = column_tile(preset().rules);
  const std::int64_t cols = 8192;
  // Codes of 4 and 6 bits come from general kernels, which take far longer.
  const format_id own = preset().rules.code_format;
  const std::uint64_t wanted = wanted_elements() / (own == format_id::e4m3 ? 1 : 256);
  const auto rows = std::max<std::int64_t>(2, static_cast<std::int64_t>(wanted) / cols / 2);
  std::uint64_t seed = 100 * GetParam();
  for (const format_id from : {format_id::bf16, format_id::fp16, format_id::fp32}) {
    const bool maximum =
        from == format_id::bf16;  // half of the elements; a quarter each of the others
    const std::int64_t height = maximum ? rows : rows / 2;
    const device_bytes x = random_matrix(from, height, cols, ++seed);
    const const_matrix_view in{x.data(), from, height, cols, cols, 1, memory_space::device};
    const format_id to = own == format_id::e4m3 && from == format_id::fp16 ? format_id::e5m2 : own;
    EXPECT_EQ(differing(in, to, row_tile, true, false), 0u) << name(from);
    // Column-wise and transposed outputs, of a part with ragged edges.
    const std::int64_t part_rows = std::min<std::int64_t>(height, 4099);
    const const_matrix_view part{x.data(), from, part_rows, 4104, cols, 1, memory_space::device};
    const const_matrix_view ragged{x.data(), from, part_rows, 2085, cols, 1, memory_space::device};
    EXPECT_EQ(differing(part, to, row_tile, true, true), 0u) << name(from);
    EXPECT_EQ(differing(part, to, col_tile, true, true), 0u) << name(from);
    EXPECT_EQ(differing(part, to, col_tile, false, true), 0u) << name(from);
    EXPECT_EQ(differing(ragged, to, row_tile, true, false), 0u) << name(from);
  }
  std::cout << preset().name << ": " << elements_ << " elements\n";
  EXPECT_GE(elements_, wanted);
}

INSTANTIATE_TEST_SUITE_P(Presets, EveryRecipe,
                         ::testing::Range(std::size_t{0}, recipe_presets.size()),
                         [](const auto& tested) {
                           return std::string(recipe_presets[tested.param].name);
                         });

/// The 289 tensors of a model of 1.31 billion parameters in one launch, against one call a tensor.
TEST(ModelList, IsOneCallATensor) {
  initialize("cuda-native");
  const std::vector<matrix_shape> shapes = model_shapes();
  std::int64_t all = 0;
  for (const matrix_shape& s : shapes) all += s.rows * s.cols;
  const device_bytes x = random_matrix(format_id::bf16, all / 2048 + 1, 2048, 17);
  std::uint64_t elements = 0;
  for (const char* preset : {"MXFP8_TE", "TE_BLOCK_1D", "TE_BLOCK_2D", "DEEPGEMM_FP32_CUDA",
                             "DSV3_IEEE", "TORCHAO_ROW", "FBGEMM_ROW", "TE_CURRENT"}) {
    const recipe& rules = find_recipe(preset)->rules;
    std::vector<device_outputs> listed, single;
    std::vector<quantize_item> items;
    std::int64_t at = 0;
    for (const matrix_shape& s : shapes) {
      for (std::vector<device_outputs>* outputs : {&listed, &single}) {
        outputs->emplace_back(rules, rules.tile, format_id::e4m3, s, true, false, 256);
        outputs->back().fill(0x55);  // also behind the tensor, where nobody writes
      }
      items.push_back({.in = {x.data() + at * 2, format_id::bf16, s.rows, s.cols, s.cols, 1,
                              memory_space::device},
                       .outputs = listed.back().views()});
      quantize(items.back().in, single.back().views(), rules, on_stream(nullptr, "cuda-emulated"));
      at += s.rows * s.cols;
    }
    const quantize_list list(items, rules);
    elements += list.elements();
    quantize(list, on_stream(nullptr, "cuda-native"));
    check_cuda(cudaDeviceSynchronize(), preset);
    for (std::size_t i = 0; i < listed.size(); ++i) {
      EXPECT_EQ(listed[i].differing(single[i]), 0u) << preset << ", tensor " << i;
    }
  }
  std::cout << "lists: " << elements << " elements\n";
  EXPECT_GT(elements, std::uint64_t{8} * by_effort(1'300'000'000, 6'000'000));
}

}  // namespace
}  // namespace samebits::support
