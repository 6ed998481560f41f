// The verdict as text: the first screen of `tensor`, and a line for each tensor; and as JSON.
#pragma once

#include <span>
#include <string>

#include "fpinspect/output/json.hpp"
#include "fpinspect/output/terminal.hpp"
#include "fpinspect/verdict/evidence.hpp"
#include "fpinspect/verdict/output/verdict_sentences.hpp"
#include "fpinspect/verdict/verdict.hpp"

namespace fpinspect {

/// The number of tensors and values, and a blank line.
///
/// @param files  their names
std::string heading_text(std::span<const tensor_evidence> tensors, const std::string& files);

/// The choice for each role, the loss scale, and the tensors that need attention. With the heading
/// and the last line it has 24 lines, if three tensors that need attention find room on them.
std::string verdict_text(const verdict& v, std::span<const tensor_evidence> tensors,
                         const terminal& term);

/// A line for each tensor in the order of the verdict, below a heading.
std::string tensor_table(const verdict& v, std::span<const tensor_evidence> tensors,
                         const terminal& term);

/// The same for programs: no heading, columns separated by tabs, all digits. The columns are name,
/// role, elements, share lost in fp16, choice, SQNR in dB, share lost in it; - is no figure.
std::string plain_table(const verdict& v, std::span<const tensor_evidence> tensors);

/// The object `verdict`.
json_object verdict_json(const verdict& v, std::span<const tensor_evidence> tensors);

}  // namespace fpinspect
