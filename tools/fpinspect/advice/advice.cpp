// Which precision for which GPU and task: the rows, and the rows that apply.
#include "fpinspect/advice/advice.hpp"

#include <algorithm>
#include <iterator>

#include "fpinspect/verdict/roles.hpp"

namespace fpinspect {
namespace {

constexpr unsigned bit(gpu_generation gpu) { return 1U << static_cast<unsigned>(gpu); }
constexpr unsigned bit(advice_task task) { return 1U << static_cast<unsigned>(task); }
constexpr unsigned bit(advice_aim aim) { return 1U << static_cast<unsigned>(aim); }

constexpr unsigned any = ~0U;
constexpr unsigned old_gpus = bit(gpu_generation::volta) | bit(gpu_generation::turing);
constexpr unsigned fp8_blocks = bit(gpu_generation::hopper) | bit(gpu_generation::blackwell);
constexpr unsigned training = bit(advice_task::training);
constexpr unsigned inference = bit(advice_task::inference);
constexpr unsigned fast = bit(advice_aim::fast);
constexpr unsigned small = bit(advice_aim::small);

// Courses and papers that rows are taken from.
constexpr std::string_view guide =
    "course \"Mixed-precision training\" (Chinese), 11.10.1, decision guide";
constexpr std::string_view by_size =
    "course \"Mixed-precision training\" (Chinese), 11.10.3, best combinations";
constexpr std::string_view by_gpu =
    "course \"Mixed-precision training\" (Chinese), 11.9.3, precision by GPU";
constexpr std::string_view vllm = "vLLM 0.5.4 documentation, FP8";
constexpr std::string_view deepseek = "DeepSeek-V3 technical report, section 3.3";

constexpr gpu_names gpus[] = {
    {gpu_generation::volta, "volta", "7.0", {"v100"}},
    {gpu_generation::turing, "turing", "7.5", {"t4", "2080ti"}},
    {gpu_generation::ampere, "ampere", "8.0", {"8.6", "8.7", "a100", "a10", "3090"}},
    {gpu_generation::ada, "ada", "8.9", {"l4", "l40", "l40s", "4090"}},
    {gpu_generation::hopper, "hopper", "9.0", {"h100", "h200", "gh200", "h20"}},
    {gpu_generation::blackwell, "blackwell", "10.0", {"10.3", "12.0", "b200", "gb200", "5090"}},
    {gpu_generation::other, "other", "", {"cpu", "amd"}},
};

constexpr precision_choice choices[] = {
    {{bit(gpu_generation::other), any, any},
     "fp32",
     "",
     "fp32",
     "fp32, no mixed precision: there are no tensor cores that these guides cover",
     guide},
    {{old_gpus, any, any},
     "fp16",
     "",
     "apex-o1",
     "fp16: these tensor cores have no bf16; watch for NaN",
     guide},
    {{bit(gpu_generation::ampere), any, any},
     "bf16",
     "",
     "apex-o1",
     "bf16: the range of fp32, and no loss scale",
     guide},
    {{bit(gpu_generation::blackwell), any, fast},
     "fp8",
     "MXFP8_TE",
     "transformer-engine",
     "FP8 products in linear layers with a scale for 32 elements, bf16 elsewhere",
     by_gpu},
    {{bit(gpu_generation::hopper), any, fast},
     "fp8",
     "TE_BLOCK_1D",
     "transformer-engine",
     "FP8 products in linear layers with scales for 1 x 128 and 128 x 128 elements, bf16 elsewhere",
     by_gpu},
    {{bit(gpu_generation::ada), any, fast},
     "fp8",
     "TE_CURRENT",
     "transformer-engine",
     "FP8 products in linear layers with a scale for each tensor, bf16 elsewhere; test for "
     "capability 8.9, because a test for 9 or more misses these GPUs",
     by_gpu},
    {{bit(gpu_generation::blackwell), inference, small},
     "fp8",
     "MXFP8_TE",
     "transformer-engine",
     "FP8 weights in linear layers with a scale for 32 elements, bf16 elsewhere",
     vllm},
    {{bit(gpu_generation::hopper), inference, small},
     "fp8",
     "TE_BLOCK_1D",
     "transformer-engine",
     "FP8 weights in linear layers with a scale for 128 x 128 elements, bf16 elsewhere",
     vllm},
    {{bit(gpu_generation::ada), inference, small},
     "fp8",
     "TE_CURRENT",
     "transformer-engine",
     "FP8 weights in linear layers with a scale for each tensor, bf16 elsewhere",
     vllm},
    {{bit(gpu_generation::blackwell), training, any, 100e9},
     "fp8",
     "MXFP8_TE",
     "transformer-engine",
     "FP8 products in linear layers with a scale for 32 elements: above 10^11 parameters they pay",
     by_size},
    {{bit(gpu_generation::hopper), training, any, 100e9},
     "fp8",
     "TE_BLOCK_1D",
     "transformer-engine",
     "FP8 products in linear layers with scales for 1 x 128 and 128 x 128 elements: above 10^11 "
     "parameters they pay",
     by_size},
    {{any, any, any},
     "bf16",
     "",
     "apex-o1",
     "bf16: the range of fp32, and no loss scale; with --aim fast, FP8",
     guide},
};

constexpr advice_row advice_rows[] = {
    {{any, training, any},
     "fp16",
     "loss scale",
     "dynamic, from 2^16: halve it after Inf or NaN, double it after 2000 good steps",
     "course \"Mixed-precision training\" (Chinese), 11.2.2; torch.amp.GradScaler"},
    {{any, training, any},
     "fp16",
     "NaN losses",
     "lower the learning rate, clip unscaled gradients, or change to bf16. Do not raise the loss "
     "scale, as some guides say: see `fpinspect arith mul 2 32768 --format fp16`",
     "course \"Mixed-precision training\" (Chinese), 11.3.4 and 11.7.1"},
    {{any, training, any},
     "fp16 bf16 fp8",
     "in fp32",
     "softmax, losses, exp, log, norms; torch.autocast keeps them in fp32",
     "course \"Mixed-precision training\" (Chinese), 11.2.3; PyTorch, autocast op reference"},
    {{any, training, any},
     "fp16 bf16 fp8",
     "weights",
     "an fp32 copy for the optimizer, fp32 moments: small updates vanish in 16 bits, see "
     "`fpinspect demo error-growth`",
     "Ultra-Scale Playbook, part 4, FP16 and BF16 training"},
    {{any, any, any},
     "fp8",
     "layers",
     "embeddings, output head, MoE gates, norms and attention operators stay in bf16 or fp32",
     deepseek},
    {{fp8_blocks, training, any},
     "fp8",
     "gradients",
     "e4m3 for all operands: the scales of small tiles make up for the range",
     deepseek},
    {{bit(gpu_generation::ada), training, any},
     "fp8",
     "gradients",
     "e4m3 forward, e5m2 for gradients: with one scale for a tensor they need its range",
     "course \"Mixed-precision training\" (Chinese), 11.5.1"},
    {{any, training, any},
     "fp8",
     "risk",
     "still experimental: instability grows with the learning rate; keep a bf16 run to compare",
     "Ultra-Scale Playbook, part 4, FP8 pretraining"},
    {{any, inference, any},
     "fp16 bf16",
     "inference",
     "all weights and activations in 16 bits; half the memory of fp32",
     "notes on Megatron and Apex (Chinese), mixed precision"},
    {{any, inference, any},
     "fp8",
     "inference",
     "weights of linear layers in 8 bits: half the memory of 16 bits",
     vllm},
    {{any, training, any, 0, 1e9},
     "fp16 bf16 fp8",
     "memory",
     "below 10^9 parameters, spend what 16 bits save on a larger batch",
     by_size},
    {{any, training, any, 1e9, 10e9}, "fp16 bf16 fp8", "memory", "gradient checkpointing", by_size},
    {{any, training, any, 10e9, 100e9},
     "fp16 bf16 fp8",
     "memory",
     "gradient checkpointing and ZeRO",
     by_size},
    {{any, training, any, 100e9},
     "fp16 bf16 fp8",
     "memory",
     "ZeRO stage 3 with offload to the CPU",
     by_size},
    {{any, training, small},
     "fp16 bf16 fp8",
     "memory",
     "gradient checkpointing, then ZeRO stage 3; see `fpinspect memory`",
     guide},
    {{any, training, fast}, "fp16 bf16 fp8", "speed", "FlashAttention and torch.compile", guide},
    {{any, any, any},
     "fp16 bf16",
     "sizes",
     "multiples of 8, so that tensor cores are used",
     "course \"Mixed-precision training\" (Chinese), 11.7.1"},
    {{any, any, any},
     "fp8",
     "sizes",
     "multiples of 16, which scaled_mm demands",
     "PyTorch, torch.nn.functional.scaled_mm"},
};

/// Whether a row applies. An unknown number of parameters meets only conditions without `from` and
/// `below`.
bool applies(const advice_condition& when, const advice_question& question) {
  const bool any_size = when.from == 0 && when.below == advice_condition{}.below;
  const bool size_fits = question.parameters > 0 && question.parameters >= when.from &&
                         question.parameters < when.below;
  return (when.gpus & bit(question.gpu)) != 0 && (when.tasks & bit(question.task)) != 0 &&
         (when.aims & bit(question.aim)) != 0 && (any_size || size_fits);
}

bool has_word(std::string_view words, std::string_view word) {
  for (std::size_t start = 0; start < words.size();) {
    const std::size_t end = std::min(words.find(' ', start), words.size());
    if (words.substr(start, end - start) == word) return true;
    start = end + 1;
  }
  return false;
}

}  // namespace

std::span<const gpu_names> known_gpus() { return gpus; }

const precision_choice& choose_precision(const advice_question& question) {
  return *std::find_if(
      std::begin(choices), std::end(choices) - 1,
      [&](const precision_choice& choice) { return applies(choice.when, question); });
}

std::vector<advice_row> advice_for(const advice_question& question,
                                   const precision_choice& choice) {
  std::vector<advice_row> found;
  std::ranges::copy_if(advice_rows, std::back_inserter(found), [&](const advice_row& row) {
    return applies(row.when, question) && has_word(row.formats, choice.format);
  });
  return found;
}

precision_map precision_map_of(const precision_choice& choice, std::span<const std::string> keep) {
  precision_map map;
  const auto add = [&](std::string_view pattern, std::string_view precision) {
    const bool known =
        std::ranges::any_of(map, [&](const auto& entry) { return entry.first == pattern; });
    if (!known) map.emplace_back(pattern, precision);
  };
  const bool quantized = !choice.recipe.empty();
  for (const std::string& pattern : keep) add(pattern, quantized ? "bf16" : choice.format);
  for (const std::string_view pattern : unquantized_layers) {
    if (quantized) add(pattern, "bf16");
  }
  add("*", quantized ? choice.recipe : choice.format);
  return map;
}

}  // namespace fpinspect
