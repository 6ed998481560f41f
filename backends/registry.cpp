// Registry: the list of compiled backends and the choice among them.
#include <cstdlib>
#include <string>

#include "backends/backend.hpp"
#include "backends/reference/reference.hpp"
#include "samebits/backend.hpp"
#include "samebits/error.hpp"

namespace samebits {
namespace backends {
namespace {

const backend* const list[] = {&reference};

const backend& widest_supported() {
  for (std::size_t i = std::size(list); i-- > 0;) {
    if (list[i]->supported()) return *list[i];
  }
  return reference;
}

std::string names() {
  std::string text;
  for (const backend* b : list) {
    if (!text.empty()) text += ", ";
    text += b->name;
    if (!b->supported()) text += " (not supported by this machine)";
  }
  return text;
}

const backend& by_name(std::string_view name) {
  for (const backend* b : list) {
    if (b->name != name) continue;
    if (b->supported()) return *b;
    throw unsupported("backend '" + std::string(name) +
                      "' is not supported by this machine; there are: " + names());
  }
  throw invalid_argument("backend '" + std::string(name) + "' is unknown; there are: " + names());
}

const backend& default_backend() {
  const char* chosen = std::getenv("SAMEBITS_BACKEND");
  return chosen != nullptr && *chosen != '\0' ? by_name(chosen) : widest_supported();
}

}  // namespace

std::span<const backend* const> compiled() { return list; }

const backend& resolve(const executor& where) {
  return where.backend.empty() ? default_backend() : by_name(where.backend);
}

}  // namespace backends

std::vector<backend_info> compiled_backends() {
  const backends::backend& chosen = backends::default_backend();
  std::vector<backend_info> all;
  for (const backends::backend* b : backends::compiled()) {
    all.push_back({b->name, b->description, b->supported(), b == &chosen});
  }
  return all;
}

executor find_executor(std::string_view name, int threads) {
  return {backends::by_name(name).name, threads};
}

executor default_executor(int threads) { return {backends::default_backend().name, threads}; }

}  // namespace samebits
