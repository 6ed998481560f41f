// `fpinspect backends`: lists the compiled backends, whether this machine can run them, and the
// chosen one.
#include <string>
#include <vector>

#include "fpinspect/cli/arguments.hpp"
#include "fpinspect/cli/commands.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/output/terminal.hpp"
#include "samebits/backend.hpp"

namespace fpinspect {
namespace {

const char* memory_text(samebits::memory_space space) {
  return space == samebits::memory_space::host ? "host" : "device";
}

void write_json(const std::vector<samebits::backend_info>& backends, output& out) {
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.key("backends");
  json.begin_array();
  for (const samebits::backend_info& backend : backends) {
    json.begin_object();
    json.member("name", backend.name);
    json.member("description", backend.description);
    json.member("memory", memory_text(backend.space));
    json.member("supported", backend.supported);
    json.member("default", backend.is_default);
    json.member("why_unsupported", backend.why_unsupported);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  out.write(json.document());
}

std::string backend_row(std::string_view name, std::string_view memory, std::string_view runs,
                        std::string_view what) {
  return left(name, 15) + left(memory, 8) + left(runs, 9) + std::string(what) + "\n";
}

void write_table(const std::vector<samebits::backend_info>& backends, const terminal& term,
                 output& out) {
  out.write(term.painted(paint::heading, backend_row("backend", "memory", "here", "what it is")));
  for (const samebits::backend_info& backend : backends) {
    const char* runs = backend.is_default ? "default" : backend.supported ? "yes" : "no";
    const std::string reason = backend.supported ? "" : " (" + backend.why_unsupported + ")";
    out.write(backend_row(backend.name, memory_text(backend.space), runs,
                          std::string(backend.description) + reason));
  }
}

}  // namespace

void run_backends(const backends_arguments& arguments, output& out) {
  const terminal term(arguments.view);
  static_cast<void>(backend_argument(""));  // refuses a SAMEBITS_BACKEND that is not available
  const std::vector<samebits::backend_info> backends = samebits::compiled_backends();
  if (arguments.view.json) {
    write_json(backends, out);
  } else {
    write_table(backends, term, out);
  }
}

}  // namespace fpinspect
