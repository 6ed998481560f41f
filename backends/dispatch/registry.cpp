// Registry: the list of compiled backends, and the choice among them.
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backends/dispatch/backend.hpp"
#include "backends/dispatch/refuse.hpp"
#include "backends/reference/reference.hpp"
#include "samebits/backend.hpp"

#if defined(SAMEBITS_BACKEND_SIMD)
#include "backends/simd/simd.hpp"
#endif

// Returns a null-terminated array of backends. Defined in the CUDA library, whose link options pull
// it in. In a program without the CUDA library the symbol is null.
extern "C" [[gnu::weak]] const samebits::backends::backend* const* samebits_cuda_backends();

namespace samebits {
namespace backends {
namespace {

std::vector<const backend*> make_list() {
  std::vector<const backend*> all = {&reference};
#if defined(SAMEBITS_BACKEND_SIMD)
  all.push_back(&avx2);
  all.push_back(&avx512);
#endif
  if (samebits_cuda_backends != nullptr) {
    for (const auto* b = samebits_cuda_backends(); *b != nullptr; ++b) all.push_back(*b);
  }
  return all;
}

std::string names() {
  std::string text;
  for (const backend* b : compiled()) {
    if (!text.empty()) text += ", ";
    text += b->name;
    if (const std::string reason = b->why_unsupported(); !reason.empty()) {
      text += " (" + reason + ")";
    }
  }
  return text;
}

const char* environment_name() {
  const char* chosen = std::getenv("SAMEBITS_BACKEND");
  return chosen != nullptr && *chosen != '\0' ? chosen : nullptr;
}

/// The last supported backend of a memory space for which has() is true.
const backend* best(memory_space space, const std::function<bool(const backend&)>& has) {
  const auto all = compiled();
  for (std::size_t i = all.size(); i-- > 0;) {
    const backend* b = all[i];
    if (b->space == space && has(*b) && b->why_unsupported().empty()) return b;
  }
  return nullptr;
}

bool anything(const backend&) { return true; }

/// The memory of the named backend; nothing for an unknown name. CUDA names are known even to a
/// program built without the CUDA backends.
std::optional<memory_space> space_of(std::string_view name) {
  for (const backend* b : compiled()) {
    if (b->name == name) return b->space;
  }
  if (name == "cuda-emulated" || name == "cuda-native") return memory_space::device;
  return std::nullopt;
}

/// The backend that the environment names for views in this memory. Null if it names none, or one
/// for other memory, even if that one is not compiled. Throws for unknown names and as by_name
/// does.
const backend* environment_backend(memory_space space) {
  const char* chosen = environment_name();
  if (chosen == nullptr || space_of(chosen).value_or(space) != space) return nullptr;
  return &by_name(chosen);
}

const backend& default_host_backend() {
  if (const backend* b = environment_backend(memory_space::host)) return *b;
  return *best(memory_space::host, anything);
}

}  // namespace

std::span<const backend* const> compiled() {
  static const std::vector<const backend*> list = make_list();
  return list;
}

const backend& by_name(std::string_view name) {
  for (const backend* b : compiled()) {
    if (b->name != name) continue;
    const std::string reason = b->why_unsupported();
    if (reason.empty()) return *b;
    refuse<unsupported>("backend '", name, "' cannot run here: ", reason, "; there are: ", names());
  }
  refuse("backend '", name, "' is unknown; there are: ", names());
}

const backend& resolve(const executor& where, memory_space space,
                       const std::function<bool(const backend&)>& has) {
  if (!where.backend.empty()) return by_name(where.backend);
  if (const backend* b = environment_backend(space)) return *b;
  if (const backend* b = best(space, has)) return *b;
  refuse<unsupported>("no backend for ", space,
                      " memory that has this can run here; there are: ", names());
}

}  // namespace backends

std::vector<backend_info> compiled_backends() {
  const backends::backend& host = backends::default_host_backend();
  const backends::backend* device = backends::environment_backend(memory_space::device);
  if (device == nullptr) device = backends::best(memory_space::device, backends::anything);
  std::vector<backend_info> all;
  for (const backends::backend* b : backends::compiled()) {
    std::string reason = b->why_unsupported();
    const bool supported = reason.empty();
    all.push_back({b->name, b->description, b->space, supported, b == &host || b == device,
                   std::move(reason)});
  }
  return all;
}

executor find_executor(std::string_view name, int threads) {
  return {backends::by_name(name).name, threads};
}

executor default_executor(int threads) { return {backends::default_host_backend().name, threads}; }

}  // namespace samebits
