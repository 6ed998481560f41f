// `fpinspect trace`: the operators of a recording that samebits.torch.record wrote.
#include <nlohmann/json.hpp>

#include "fpinspect/cli/command.hpp"
#include "fpinspect/cli/files.hpp"
#include "fpinspect/output/progress.hpp"
#include "fpinspect/tensors/source/source.hpp"

namespace fpinspect {
namespace {

using nlohmann::json;

constexpr std::string_view trace_key = "samebits_trace";  // of the file's metadata

struct traced_operator {
  std::uint64_t number;
  std::string name, module, results, hash;
  std::string kernels;  ///< name, grid and block of each CUDA kernel
  std::string shown;    ///< of these, in the text
};

/// "bf16 [2, 16, 32]" of [block, offset, shape, strides, dtype].
std::string shape_of(const json& place) {
  const auto number = [](const json& size) { return size.get<std::uint64_t>(); };
  return cat(place.at(4).get<std::string>(), " [", joined(place.at(2), number), "]");
}

/// "[1,2,3]".
std::string numbers_of(const json& list) {
  return json(list.get<std::vector<std::int64_t>>()).dump();
}

traced_operator operator_of(std::uint64_t number, const json& entry, bool with_kernels) {
  traced_operator one{number, entry.at("op"), entry.value("module", ""), "", "", "", ""};
  const json& wrote = entry.at("wrote");
  one.results = joined(wrote, [](const json& result) { return shape_of(result.at(0)); });
  one.hash = joined(
      wrote, [](const json& result) { return result.at(1).get<std::string>(); }, " ");
  // Nothing of a file is copied or dumped whole: both recur, and a file may nest without limit.
  if (const auto kernels = entry.find("kernels"); kernels != entry.end()) {
    one.kernels = joined(*kernels, [](const json& kernel) {
      return cat(kernel.at("name").get<std::string>(), " ", numbers_of(kernel.at("grid")), " x ",
                 numbers_of(kernel.at("block")));
    });
  }
  one.shown = with_kernels ? one.kernels : cat(one.results, one.hash.empty() ? "" : "  ", one.hash);
  return one;
}

constexpr column<traced_operator> trace_columns[] = {
    {"number", "#", -6, [](auto& o) { return o.number; }},
    {"", "", 2, nullptr, [](auto&) { return std::string(); }},
    {"operator", "operator", 46, [](auto& o) { return o.name; },
     [](auto& o) { return escape(o.name); }},
    {"module", "module", 34, [](auto& o) { return o.module; },
     [](auto& o) { return escape(o.module); }},
    {"results", "", 0, [](auto& o) { return o.results; }},
    {"hashes", "", 0, [](auto& o) { return o.hash; }},
    {"kernels", "", 0, [](auto& o) { return o.kernels; }},
    {"", "results", 0, nullptr, [](auto& o) { return escape_message(o.shown); }},
};

void write_list(const session& s, const std::string& path, const json& trace, bool with_kernels) {
  if (trace.at("version") != 2) throw json::other_error::create(0, "version", nullptr);
  std::vector<traced_operator> operators;
  for (const json& entry : trace.at("operators")) {
    operators.push_back(operator_of(operators.size(), entry, with_kernels));
  }
  std::uint64_t sources = 0, bytes = 0;
  for (const json& block : trace.at("blocks")) {
    const auto size = block.at("bytes").get<std::uint64_t>();
    if (!block.contains("source")) continue;
    ++sources;
    bytes += size;
  }
  json_object machine;
  std::string text;
  for (const auto& [key, value] : trace.at("machine").items()) {
    const std::string shown =
        value.is_primitive() && !value.is_string() ? value.dump() : value.get<std::string>();
    machine.add(key, shown);
    text += escape(cat(text.empty() ? "" : ", ", key, " ", shown));
  }
  s.write({{"machine", machine},
           {"sources", sources},
           {"source_bytes", bytes},
           {"operators", table_json(trace_columns, operators, true)}},
          cat(escape_path(path), ": ", number_of(operators.size(), "operator"), ", ",
              number_of(sources, "source"), " of ", bytes_text(static_cast<double>(bytes)), "\n",
              text, "\n\n", table_heading(trace_columns), table_lines(trace_columns, operators)));
}

run_function trace_command(option_list& add) {
  auto& path = add.required("FILE", "A recording, as samebits.torch.record writes it");
  auto& kernels = add.flag("--kernels", "CUDA kernels with grid and block, in place of results");
  return [&](const session& s) {
    const auto file = open_file(path);
    const auto* const found =
        find_by(file->metadata(), trace_key, [](const auto& pair) { return pair.first; });
    if (found == nullptr) refuse_content(path, "no recording: its metadata has no ", trace_key);
    try {
      write_list(s, path, json::parse(found->second), kernels);
    } catch (const json::exception&) {
      refuse_content(path, trace_key, " is no recording of version 2");
    }
  };
}

const registered trace_here("trace", "List the operators of a PyTorch recording", 145,
                            trace_command);

}  // namespace
}  // namespace fpinspect
