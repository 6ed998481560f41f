// The element types of GGUF files.
#pragma once

#include "tensor_file/tensor_info.hpp"

namespace samebits::tensor_file {

/// A type of GGUF tensors: its number in the file, its name, and the element type if it is read.
struct gguf_type {
  std::uint32_t number;
  std::string_view name;
  std::optional<dtype> elements;
};

/// Types without an element type are quantized in blocks. blocks_of() says which of them are read.
/// Numbers that are missing here were
/// removed from ggml, or are newer than this table.
inline constexpr gguf_type gguf_types[] = {
    {0, "F32", dtype::f32},  {1, "F16", dtype::f16},    {2, "Q4_0", {}},
    {3, "Q4_1", {}},         {6, "Q5_0", {}},           {7, "Q5_1", {}},
    {8, "Q8_0", {}},         {9, "Q8_1", {}},           {10, "Q2_K", {}},
    {11, "Q3_K", {}},        {12, "Q4_K", {}},          {13, "Q5_K", {}},
    {14, "Q6_K", {}},        {15, "Q8_K", {}},          {16, "IQ2_XXS", {}},
    {17, "IQ2_XS", {}},      {18, "IQ3_XXS", {}},       {19, "IQ1_S", {}},
    {20, "IQ4_NL", {}},      {21, "IQ3_S", {}},         {22, "IQ2_S", {}},
    {23, "IQ4_XS", {}},      {24, "I8", dtype::i8},     {25, "I16", dtype::i16},
    {26, "I32", dtype::i32}, {27, "I64", dtype::i64},   {28, "F64", dtype::f64},
    {29, "IQ1_M", {}},       {30, "BF16", dtype::bf16}, {34, "TQ1_0", {}},
    {35, "TQ2_0", {}},       {39, "MXFP4", {}},         {40, "NVFP4", {}},
    {41, "Q1_0", {}},
};

/// The blocks of a type that are read.
constexpr block_layout blocks_of(std::uint32_t type) {
  return type == 2 ? block_layout::q4_0 : type == 8 ? block_layout::q8_0 : block_layout::none;
}

}  // namespace samebits::tensor_file
