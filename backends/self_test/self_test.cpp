// Self-test: runs the probes of backends, words their findings, and remembers the backends that
// passed.
#include "backends/self_test/self_test.hpp"

#include <array>
#include <cstdio>

#include "backends/dispatch/device_scope.hpp"
#include "backends/dispatch/refuse.hpp"
#include "backends/self_test/probes.hpp"
#include "samebits/self_test.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace samebits {
namespace backends {
namespace {

struct check_text {
  std::string_view meaning;
  std::string_view host_remedy;
  std::string_view device_remedy;
};

constexpr std::string_view no_fast_math =
    "compile samebits without -ffast-math, -Ofast and what they stand for";
constexpr std::string_view keep_register =
    "remove -ffast-math and -Ofast from the link line of the program and of its shared libraries, "
    "or set MXCSR back to 1F80 in this thread";
constexpr std::string_view device_default = "compile samebits without -ftz=true and -use_fast_math";

// In the order of enum probe.
constexpr std::array<check_text, probe_count> texts = {{
    {"a * b + c was rounded once instead of twice", "compile samebits with -ffp-contract=off",
     "compile samebits with --fmad=false"},
    {"subnormal results became zero", keep_register, device_default},
    {"subnormal operands were read as zero", keep_register, device_default},
    {"sums were not rounded to nearest even",
     "set the rounding direction back: std::fesetround(FE_TONEAREST) in this thread",
     device_default},
    {"quotients were not correctly rounded", no_fast_math,
     "compile samebits without -prec-div=false and -use_fast_math"},
    {"x / y was computed as x * (1 / y)", no_fast_math,
     "compile samebits without -prec-div=false and -use_fast_math"},
    {"square roots were not correctly rounded", no_fast_math,
     "compile samebits without -prec-sqrt=false and -use_fast_math"},
    {"sums were not added in the order written", no_fast_math, device_default},
    {"NaN or Inf was assumed not to occur", no_fast_math, device_default},
    {"the sign of zero was lost", no_fast_math, device_default},
    {"a result kept more range than its type has", "compile samebits with -mfpmath=sse",
     device_default},
}};

constexpr std::string_view right_architecture =
    "compile samebits for this GPU's architecture (CMAKE_CUDA_ARCHITECTURES), or use the "
    "cuda-emulated backend, which also works in a build for an older architecture";
constexpr check_text conversion_text = {"codes of a conversion are not those of the definition", "",
                                        right_architecture};
constexpr check_text quantization_text = {
    "codes or scales of a quantization are not those of the definition", "", right_architecture};

std::string hexadecimal(std::uint64_t value, int bits) {
  char text[17];
  (void)std::snprintf(text, sizeof text, "%0*llX", (bits + 3) / 4,
                      static_cast<unsigned long long>(value));
  return text;
}

self_test_result result_of(const backend& b, std::string_view name, const check_text& text,
                           const probe_outcome& outcome) {
  if (outcome.bits == 0) return {b.name, name, true, {}};
  std::string detail(text.meaning);
  if (outcome.bits > 1) {
    detail += (outcome.bits < 32 ? " (" : " (binary") + std::to_string(outcome.bits) +
              (outcome.bits < 32 ? " bits: got " : ": got ") +
              hexadecimal(outcome.got, outcome.bits) + ", expected " +
              hexadecimal(outcome.expected, outcome.bits) + ")";
  }
  detail += "; ";
  detail += b.space == memory_space::host ? text.host_remedy : text.device_remedy;
  return {b.name, name, false, std::move(detail)};
}

/// Describes what is wrong with this thread's floating-point control register; empty if nothing.
std::string control_register_fault() {
#if defined(__x86_64__)
  constexpr unsigned flush_to_zero = 0x8000;
  constexpr unsigned denormals_are_zero = 0x0040;
  constexpr unsigned direction = 0x6000;
  const unsigned mxcsr = _mm_getcsr();
  if ((mxcsr & (flush_to_zero | denormals_are_zero | direction)) == 0) return {};
  std::string what = "MXCSR of this thread is " + hexadecimal(mxcsr, 16) + ":";
  if ((mxcsr & flush_to_zero) != 0) what += " FTZ is set,";
  if ((mxcsr & denormals_are_zero) != 0) what += " DAZ is set,";
  if ((mxcsr & direction) != 0) what += " rounding is not to nearest,";
  what.back() = ';';
  return what + " " + std::string(keep_register);
#else
  // Unknown architecture: probe the three kinds of operations instead of reading the register.
  probe_report report{};
  run_processor_probes(report);
  for (const probe_outcome& outcome : report.of) {
    if (outcome.bits != 0) {
      return "this thread flushes subnormals or does not round to nearest; " +
             std::string(keep_register);
    }
  }
  return {};
#endif
}

std::vector<self_test_result> run(const backend& b) {
  std::vector<self_test_result> results;
  if (b.space == memory_space::host) {
    std::string fault = control_register_fault();
    const bool passed = fault.empty();
    results.push_back({b.name, "control_register", passed, std::move(fault)});
  }
  probe_report report{};
  b.self_test->run(report);
  for (int i = 0; i < probe_count; ++i) {
    results.push_back(
        result_of(b, probe_names[i], texts[static_cast<std::size_t>(i)], report.of[i]));
  }
  if (b.self_test->run_codes != nullptr) {
    code_report codes{};
    b.self_test->run_codes(codes);
    results.push_back(result_of(b, "conversion", conversion_text, codes.conversion));
    results.push_back(result_of(b, "quantization", quantization_text, codes.quantization));
  }
  return results;
}

void append_failures(std::string& text, const std::vector<self_test_result>& results) {
  for (const self_test_result& r : results) {
    if (r.passed) continue;
    text += "\n  " + std::string(r.check) + ": " + r.detail;
  }
}

std::uint64_t bit_of(int device) {
  // Devices beyond 64 cannot be remembered and would be tested at every call.
  return device < 64 ? std::uint64_t{1} << device : 0;
}

/// Runs the self-test and remembers a pass. Returns the failures; empty if none.
std::string test(const backend& b, int device) {
  std::string failures;
  append_failures(failures, run(b));
  if (failures.empty()) {
    b.self_test->passed |= bit_of(device);
    return {};
  }
  b.self_test->passed &= ~bit_of(device);
  return "backend '" + std::string(b.name) +
         "' cannot promise its bits here, its self-test failed:" + failures;
}

int current_device(const backend& b) {
  return b.runtime != nullptr ? b.runtime->current_device() : 0;
}

/// The named backend, or all backends that can run here.
std::vector<const backend*> chosen(std::string_view name) {
  if (!name.empty()) return {&by_name(name)};
  std::vector<const backend*> all;
  for (const backend* b : compiled()) {
    if (b->why_unsupported().empty()) all.push_back(b);
  }
  return all;
}

}  // namespace

void require_tested(const backend& b, void* stream) {
  self_test_entry& entry = *b.self_test;
  const int device = current_device(b);
  const auto has_passed = [&] { return (entry.passed.load() & bit_of(device)) != 0; };
  if (has_passed()) {
    if (b.space != memory_space::host) return;
    const std::string fault = control_register_fault();
    return require<environment_error>(fault.empty(), "backend '", b.name,
                                      "' cannot promise its bits here: ", fault);
  }
  refuse_if<environment_error>(b.runtime != nullptr && b.runtime->is_capturing(stream), "backend '",
                               b.name, "' has not been tested on device ", device,
                               ", and cannot be while its stream is being captured: call "
                               "samebits::initialize() before the capture");
  const std::lock_guard lock(entry.running);
  // Another call passed the test meanwhile.
  if (b.space == memory_space::device && has_passed()) return;
  const std::string failures = test(b, device);
  require<environment_error>(failures.empty(), failures);
}

}  // namespace backends

std::vector<self_test_result> self_test(std::string_view backend) {
  std::vector<self_test_result> all;
  for (const backends::backend* b : backends::chosen(backend)) {
    const std::lock_guard lock(b->self_test->running);
    for (self_test_result& r : backends::run(*b)) all.push_back(std::move(r));
  }
  return all;
}

void initialize(std::string_view backend) {
  std::string failures;
  for (const backends::backend* b : backends::chosen(backend)) {
    const std::lock_guard lock(b->self_test->running);
    const std::string of_one = backends::test(*b, backends::current_device(*b));
    if (of_one.empty()) continue;
    if (!failures.empty()) failures += '\n';
    failures += of_one;
  }
  require<environment_error>(failures.empty(), failures);
}

}  // namespace samebits
