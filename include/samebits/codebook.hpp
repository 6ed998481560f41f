// Quantizes tensors as bitsandbytes does: NF4 and FP4 in blocks (QLoRA), dynamic 8-bit codes, and int8
// by rows (LLM.int8()).
//
//   // QLoRA: NF4 in blocks of 64, two codes a byte
//   const samebits::codebook_options nf4 = {.book = samebits::codebook::nf4, .block = 64};
//   std::vector<std::uint8_t> codes(samebits::codebook_bytes(nf4.book, weights.size()));
//   std::vector<float> absmax(samebits::block_count(nf4, weights.size()));
//   samebits::quantize_blocks(view, nf4, codes, absmax);
//   samebits::dequantize_blocks(codes, absmax, nf4, restored);
//
// Double quantization stores the absmaxes themselves as dynamic8 codes in blocks of 256, after their
// mean was subtracted: quantize_blocks() of that array. dequantize_blocks() takes them as
// quantized_absmax. samebits/core/codebook.hpp has the steps.
//
// Blocks may lie in device memory, all arrays of a call on one device. Calls on device memory are
// enqueued on the executor's stream.
#pragma once

#include <cstdint>
#include <span>

#include "samebits/backend.hpp"
#include "samebits/core/codebook.hpp"
#include "samebits/view.hpp"

namespace samebits {

/// Options of quantize_blocks() and dequantize_blocks().
struct codebook_options {
  codebook book = codebook::nf4;
  std::int64_t block = 64;  ///< elements that share an absmax; 1 or more
  codebook_steps steps = codebook_steps::cuda;
};

/// Returns the bytes of the codes of so many elements: two codes a byte for nf4 and fp4, the first in
/// the high half.
constexpr std::int64_t codebook_bytes(codebook book, std::int64_t elements) {
  return book == codebook::dynamic8 ? elements : (elements + 1) / 2;
}

/// Returns the number of blocks of so many elements.
constexpr std::int64_t block_count(const codebook_options& options, std::int64_t elements) {
  return elements / options.block + (elements % options.block != 0 ? 1 : 0);
}

/// Absmaxes that are quantized themselves (double quantization). The absmax of a block is
/// RN(RN(number * absmax) + offset), number that of its dynamic8 code.
struct quantized_absmax {
  std::span<const std::uint8_t> codes = {};  ///< one a block
  std::span<const float> absmax = {};        ///< one for each `block` codes
  float offset = 0;          ///< what was subtracted before the absmaxes were quantized
  std::int64_t block = 256;  ///< codes that share an absmax; 1 or more
};

/// Quantizes a tensor in blocks of consecutive elements, without regard to rows.
///
/// @param in  [rows, cols] in fp32, fp16 or bf16, host or device memory, without gaps between its
///   elements
/// @param options  codebook, block, steps
/// @param codes  codebook_bytes() bytes in the memory of `in`; a missing last element is as 0
/// @param absmax  block_count() numbers in the memory of `in`
/// @param where  for host memory the threads; for device memory backend and stream
/// @throws invalid_argument, before anything is written, if a format, size or option is not allowed, if
///   the elements have gaps, if arrays lie on several devices, or if memory overlaps.
/// @throws environment_error if this process, or the device, does not compute in IEEE 754 steps.
/// @throws cuda_error if work on a device could not be enqueued.
void quantize_blocks(const const_matrix_view& in, const codebook_options& options,
                     std::span<std::uint8_t> codes, std::span<float> absmax,
                     const executor& where = {});

/// Dequantizes blocks: each element is RN(number * absmax), rounded to nearest even into the format of
/// `out`.
///
/// @param codes  codebook_bytes() bytes in the memory of `out`
/// @param absmax  block_count() numbers in the memory of `out`
/// @param options  codebook, block, steps
/// @param out  [rows, cols] in fp32, fp16 or bf16, host or device memory, without gaps between its
///   elements
/// @param where  for host memory the threads; for device memory backend and stream
/// @throws as quantize_blocks() does.
void dequantize_blocks(std::span<const std::uint8_t> codes, std::span<const float> absmax,
                       const codebook_options& options, const matrix_view& out,
                       const executor& where = {});
/// Dequantizes blocks after double quantization; block_count() codes in `absmax`.
void dequantize_blocks(std::span<const std::uint8_t> codes, const quantized_absmax& absmax,
                       const codebook_options& options, const matrix_view& out,
                       const executor& where = {});

/// Quantizes each row into whole numbers of -127 .. 127 with the row's absmax.
///
/// A row of zeros has codes 0. NaN is skipped in the absmax and has code 0.
///
/// @param in  [rows, cols] in fp32, fp16 or bf16, host memory, any strides
/// @param steps  cuda: 127 / absmax by the unit of 1 / x of a Hopper GPU; cpu: (1 / absmax) *
///   127 in IEEE steps
/// @param codes  rows * cols codes, row-major
/// @param absmax  one number a row
/// @throws invalid_argument, before anything is written, if a format or size is not allowed, if `in`
///   lies in device memory, or if memory overlaps.
/// @throws environment_error as quantize_blocks() does.
void quantize_int8_rows(const const_matrix_view& in, codebook_steps steps,
                        std::span<std::int8_t> codes, std::span<float> absmax,
                        const executor& where = {});

/// Dequantizes rows: RN(RN(code * absmax) * RN(1 / 127)), rounded to nearest even into the format of
/// `out`.
///
/// @throws as quantize_int8_rows() does.
void dequantize_int8_rows(std::span<const std::int8_t> codes, std::span<const float> absmax,
                          const matrix_view& out, const executor& where = {});

}  // namespace samebits
