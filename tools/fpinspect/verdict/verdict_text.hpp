// The verdict as text: the first screen of `tensor`, and a line for each tensor.
#pragma once

#include <span>
#include <string>

#include "fpinspect/output/terminal.hpp"
#include "fpinspect/verdict/evidence.hpp"
#include "fpinspect/verdict/findings.hpp"
#include "fpinspect/verdict/verdict.hpp"
#include "fpinspect/verdict/verdict_sentences.hpp"

namespace fpinspect {

/// The choice for each role, the loss scale, and the tensors that need attention.
///
/// @param heading  the files, for the first line
std::string verdict_text(const verdict& v, std::span<const tensor_evidence> tensors,
                         const std::string& heading, const terminal& term);

/// A line for each tensor in the order of the verdict, below a heading.
std::string tensor_table(const verdict& v, std::span<const tensor_evidence> tensors,
                         const terminal& term);

}  // namespace fpinspect
