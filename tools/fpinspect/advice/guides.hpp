// Decision guides as data: which precision for which GPU, task and aim.
#pragma once

#include "fpinspect/advice/memory_schemes.hpp"
#include "fpinspect/cli/command.hpp"

namespace fpinspect {

enum class gpu_generation : std::uint8_t { volta, turing, ampere, ada, hopper, blackwell, other };
enum class advice_task : std::uint8_t { training, inference };
/// What matters most.
enum class advice_aim : std::uint8_t { stable, fast, small };

}  // namespace fpinspect

namespace samebits {

template <>
inline constexpr auto table_of<fpinspect::advice_task> =
    enum_table<fpinspect::advice_task::inference>({"training", "inference"});
template <>
inline constexpr auto table_of<fpinspect::advice_aim> =
    enum_table<fpinspect::advice_aim::small>({"stable", "fast", "small"});

}  // namespace samebits

namespace fpinspect {

/// A generation, and what it is called.
struct gpu_row {
  gpu_generation generation;
  std::string_view name;
  std::string_view capability;             ///< CUDA's number of the first GPUs; empty: none
  std::array<std::string_view, 5> others;  ///< other capabilities, and GPUs; empty at the end
};

/// What is asked.
struct advice_question {
  gpu_row gpu;
  advice_task task = advice_task::training;
  advice_aim aim = advice_aim::stable;
  double parameters = 0;  ///< 0: not known
};

/// Conditions under which a row applies.
struct advice_condition {
  unsigned gpus;             ///< bit i: generation i
  unsigned tasks;            ///< bit i: task i
  unsigned aims;             ///< bit i: aim i
  std::string_view formats;  ///< the formats of products, separated by spaces
  double from = 0;           ///< least number of parameters
  double below = 1e300;      ///< number of parameters from which the row does not apply
};

template <class Enum>
constexpr unsigned bit(Enum one) {
  return 1U << static_cast<unsigned>(one);
}

inline constexpr unsigned any = ~0U;
inline constexpr unsigned fp8_blocks = bit(gpu_generation::hopper) | bit(gpu_generation::blackwell);
inline constexpr unsigned training = bit(advice_task::training);
inline constexpr unsigned inference = bit(advice_task::inference);
inline constexpr unsigned fast = bit(advice_aim::fast);
inline constexpr unsigned small = bit(advice_aim::small);

// Courses and papers that rows are taken from.
inline constexpr std::string_view guide =
    "course \"Mixed-precision training\" (Chinese), 11.10.1, decision guide";
inline constexpr std::string_view by_size =
    "course \"Mixed-precision training\" (Chinese), 11.10.3, best combinations";
inline constexpr std::string_view by_gpu =
    "course \"Mixed-precision training\" (Chinese), 11.9.3, precision by GPU";
inline constexpr std::string_view vllm = "vLLM 0.5.4 documentation, FP8";
inline constexpr std::string_view nvfp4_paper =
    "Pretraining Large Language Models with NVFP4 (arXiv 2509.25149)";
inline constexpr std::string_view deepseek = "DeepSeek-V3 technical report, section 3.3";

inline constexpr gpu_row gpus[] = {
    {gpu_generation::volta, "volta", "7.0", {"v100"}},
    {gpu_generation::turing, "turing", "7.5", {"t4", "2080ti"}},
    {gpu_generation::ampere, "ampere", "8.0", {"8.6", "8.7", "a100", "a10", "3090"}},
    {gpu_generation::ada, "ada", "8.9", {"l4", "l40", "l40s", "4090"}},
    {gpu_generation::hopper, "hopper", "9.0", {"h100", "h200", "gh200", "h20"}},
    {gpu_generation::blackwell, "blackwell", "10.0", {"10.3", "12.0", "b200", "gb200", "5090"}},
    {gpu_generation::other, "other", "", {"cpu", "amd"}},
};

/// FP8 layers on GPUs that have them.
struct fp8_row {
  gpu_generation gpu;
  std::string_view recipe;
  std::string_view products;  ///< the scales of the operands of products
  std::string_view weights;   ///< the scales of weights
};
inline constexpr fp8_row fp8_rows[] = {
    {gpu_generation::ada, "TE_CURRENT", "a scale for each tensor", "a scale for each tensor"},
    {gpu_generation::hopper, "TE_BLOCK_1D", "scales for 1 x 128 and 128 x 128 elements",
     "a scale for 128 x 128 elements"},
    {gpu_generation::blackwell, "MXFP8_TE", "a scale for 32 elements", "a scale for 32 elements"},
};

/// Advice beside the format.
struct advice_row {
  advice_condition when;
  std::string_view topic;
  std::string_view advice;
  std::string_view source;
};

inline constexpr advice_row advice_rows[] = {
    {{any, training, any, "fp16"},
     "loss scale",
     "dynamic, from 2^16: halve it after Inf or NaN, double it after 2000 good steps",
     "course \"Mixed-precision training\" (Chinese), 11.2.2; torch.amp.GradScaler"},
    {{any, training, any, "fp16"},
     "NaN losses",
     "lower the learning rate, clip unscaled gradients, or change to bf16. Do not raise the loss "
     "scale, as some guides say: see `fpinspect arith mul 2 32768 --format fp16`",
     "course \"Mixed-precision training\" (Chinese), 11.3.4 and 11.7.1"},
    {{any, training, any, "fp16 bf16 fp8"},
     "in fp32",
     "softmax, losses, exp, log, norms; torch.autocast keeps them in fp32",
     "course \"Mixed-precision training\" (Chinese), 11.2.3; PyTorch, autocast op reference"},
    {{any, training, any, "fp16 bf16 fp8"},
     "weights",
     "an fp32 copy for the optimizer, fp32 moments: small updates vanish in 16 bits, see "
     "`fpinspect demo error-growth`",
     "Ultra-Scale Playbook, part 4, FP16 and BF16 training"},
    {{any, any, any, "fp8"},
     "layers",
     "embeddings, output head, MoE gates, norms and attention operators stay in bf16 or fp32",
     deepseek},
    {{fp8_blocks, training, any, "fp8"},
     "gradients",
     "e4m3 for all operands: the scales of small tiles make up for the range",
     deepseek},
    {{bit(gpu_generation::ada), training, any, "fp8"},
     "gradients",
     "e4m3 forward, e5m2 for gradients: with one scale for a tensor they need its range",
     "course \"Mixed-precision training\" (Chinese), 11.5.1"},
    {{any, training, any, "fp8"},
     "risk",
     "still experimental: instability grows with the learning rate; keep a bf16 run to compare",
     "Ultra-Scale Playbook, part 4, FP8 pretraining"},
    {{any, inference, any, "fp16 bf16"},
     "inference",
     "all weights and activations in 16 bits; half the memory of fp32",
     "notes on Megatron and Apex (Chinese), mixed precision"},
    {{any, inference, any, "fp8"},
     "inference",
     "weights of linear layers in 8 bits: half the memory of 16 bits",
     vllm},
    {{any, training, any, "fp16 bf16 fp8", 0, 1e9},
     "memory",
     "below 10^9 parameters, spend what 16 bits save on a larger batch",
     by_size},
    {{any, training, any, "fp16 bf16 fp8", 1e9, 10e9}, "memory", "gradient checkpointing", by_size},
    {{any, training, any, "fp16 bf16 fp8", 10e9, 100e9},
     "memory",
     "gradient checkpointing and ZeRO",
     by_size},
    {{any, training, any, "fp16 bf16 fp8", 100e9},
     "memory",
     "ZeRO stage 3 with offload to the CPU",
     by_size},
    {{any, training, small, "fp16 bf16 fp8"},
     "memory",
     "gradient checkpointing, then ZeRO stage 3; see `fpinspect memory`",
     guide},
    {{any, any, small, "fp16 bf16"},
     "4 bits",
     "frozen weights in NF4 with double quantization take 4.13 bits, and adapters train in bf16; "
     "see `fpinspect memory qlora`",
     "QLoRA (arXiv 2305.14314), sections 3 and 4"},
    {{bit(gpu_generation::blackwell), inference, small, "fp8"},
     "4 bits",
     "weights in NVFP4 take 4.5 bits: `fpinspect tensor --recipes` says what yours lose, "
     "`fpinspect quantize --recipe NVFP4_TE --layout plain` writes them",
     nvfp4_paper},
    {{bit(gpu_generation::blackwell), training, fast, "fp8"},
     "4 bits",
     "NVFP4 products: weights in 16 x 16 tiles, gradients rounded stochastically, some layers in "
     "bf16; see `fpinspect memory nvfp4`",
     nvfp4_paper},
    {{any, training, fast, "fp16 bf16 fp8"}, "speed", "FlashAttention and torch.compile", guide},
    {{any, any, any, "fp16 bf16"},
     "sizes",
     "multiples of 8, so that tensor cores are used",
     "course \"Mixed-precision training\" (Chinese), 11.7.1"},
    {{any, any, any, "fp8"},
     "sizes",
     "multiples of 16, which scaled_mm demands",
     "PyTorch, torch.nn.functional.scaled_mm"},
};

/// Whether a row applies beside a format. An unknown number of parameters meets only conditions
/// without `from` and `below`.
inline bool applies(const advice_condition& when, const advice_question& question,
                    std::string_view format) {
  const bool any_size = when.from == 0 && when.below == advice_condition{}.below;
  const bool size_fits = question.parameters > 0 && question.parameters >= when.from &&
                         question.parameters < when.below;
  return (when.gpus & bit(question.gpu.generation)) != 0 &&
         (when.tasks & bit(question.task)) != 0 && (when.aims & bit(question.aim)) != 0 &&
         when.formats.find(format) != when.formats.npos && (any_size || size_fits);
}

/// The products' format.
struct precision_choice {
  std::string_view format;  ///< fp32, fp16, bf16 or fp8
  std::string advice;
  std::string_view source;
  std::string_view recipe = {};  ///< of FP8 layers; empty for the other formats

  /// That of `fpinspect memory`.
  [[nodiscard]] const memory_scheme& scheme() const {
    const std::string_view name = format == "fp32"  ? "fp32"
                                  : format == "fp8" ? "transformer-engine"
                                                    : "apex-o1";
    return *std::ranges::find(memory_schemes, name, &memory_scheme::name);
  }
};

inline precision_choice choose_precision(const advice_question& question) {
  const gpu_generation gpu = question.gpu.generation;
  const auto* const fp8 = std::ranges::find(fp8_rows, gpu, &fp8_row::gpu);
  if (gpu == gpu_generation::other) {
    return {"fp32", "fp32, no mixed precision: there are no tensor cores that these guides cover",
            guide};
  }
  if (gpu == gpu_generation::ampere) {
    return {"bf16", "bf16: the range of fp32, and no loss scale", guide};
  }
  if (fp8 == std::end(fp8_rows)) {
    return {"fp16", "fp16: these tensor cores have no bf16; watch for NaN", guide};
  }
  const bool ada = gpu == gpu_generation::ada;
  const std::string products = cat("FP8 products in linear layers with ", fp8->products);
  if (question.aim == advice_aim::fast) {
    return {
        "fp8",
        cat(products, ", bf16 elsewhere",
            ada ? "; test for capability 8.9, because a test for 9 or more misses these GPUs" : ""),
        by_gpu, fp8->recipe};
  }
  if (question.task == advice_task::inference && question.aim == advice_aim::small) {
    return {"fp8", cat("FP8 weights in linear layers with ", fp8->weights, ", bf16 elsewhere"),
            vllm, fp8->recipe};
  }
  if (question.task == advice_task::training && question.parameters >= 100e9 && !ada) {
    return {"fp8", cat(products, ": above 10^11 parameters they pay"), by_size, fp8->recipe};
  }
  return {"bf16", "bf16: the range of fp32, and no loss scale; with --aim fast, FP8", guide};
}

}  // namespace fpinspect
