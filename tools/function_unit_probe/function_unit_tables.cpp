// function_unit_tables: measures the function units of the current GPU. Compares all results with
// this library's model, fits the units' tables anew, and writes tables and recordings.
//
// usage: function_unit_tables [FOLDER]
//
// With a folder it also writes there:
//   <unit>_table.hpp   the tables found on this GPU, if the units have the model's design
//   <name>.bin         results of sin, cos, tanh and the 16-bit instructions, little-endian;
//                      recordings.txt says of which operands
// Exits 0 if the library's tables hold, 1 if they do not, 2 on wrong usage, 3 if there is no
// usable GPU, 4 on a failure such as a file that cannot be written.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "function_unit_probe/device.hpp"
#include "function_unit_probe/recordings.hpp"
#include "function_unit_probe/tables.hpp"
#include "samebits/error.hpp"

namespace samebits::function_units {
namespace {

void write_file(const std::filesystem::path& path, std::string_view content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
  if (!file.flush()) throw std::runtime_error(path.string() + " cannot be written");
}

/// Compares every instruction with the model; returns whether all results are equal.
bool compare_all(const device& gpu) {
  bool equal = true;
  for (const instruction what : instructions_of(gpu)) {
    const comparison c = gpu.compare(what);
    std::printf("%-22s %llu of %llu results differ", std::string(name(what)).c_str(),
                static_cast<unsigned long long>(c.differed),
                static_cast<unsigned long long>(c.compared));
    if (c.differed != 0) {
      std::printf("; of %08X: GPU %08X, model %08X", c.operand, c.result, c.expected);
      equal = false;
    }
    std::printf("\n");
  }
  return equal;
}

/// Fits every table; returns whether the library's rows hold. Writes the tables of complete units
/// to the folder, if one is given.
bool fit_all(const device& gpu, const std::filesystem::path& folder) {
  bool hold = true;
  std::vector<fitted_table> fitted;
  for (const unit_table& table : tables()) {
    fitted.push_back(fit_table(table, gpu.record));
    const fitted_table& f = fitted.back();
    std::printf("table %-11s %d of %zu rows as in this library; %s\n",
                std::string(table.name).c_str(), f.holding, f.rows.size(),
                f.complete() ? "every row has the model's design"
                             : "some rows do not have the model's design");
    hold = hold && f.holds();
  }
  if (folder.empty()) return hold;
  for (std::size_t first = 0, end = 0; first < fitted.size(); first = end) {
    const std::string unit(fitted[first].table->unit);
    bool complete = true;
    for (end = first; end < fitted.size() && fitted[end].table->unit == unit; ++end) {
      complete = complete && fitted[end].complete();
    }
    if (!complete) continue;
    const auto of_unit = std::span(fitted).subspan(first, end - first);
    write_file(folder / (unit + "_table.hpp"), header_text(of_unit, gpu.description()));
  }
  return hold;
}

void record_all(const device& gpu, const std::filesystem::path& folder) {
  std::string list;
  for (const recording& r : recordings()) {
    if (gpu.capability() < required_capability(r.what)) continue;
    const std::vector<std::uint32_t> operands = operands_of(r);
    const std::string file = std::string(r.name) + ".bin";
    write_file(folder / file, bytes_of(gpu.record(r.what, operands), r.bytes));
    list += text_of(r) + "\n";
  }
  write_file(folder / "recordings.txt", list);
  std::printf("recordings: %s\n", (folder / "recordings.txt").string().c_str());
}

int run(const std::filesystem::path& folder) {
  const device& gpu = current_device();
  std::printf("%s\n", gpu.description().c_str());
  if (!folder.empty()) std::filesystem::create_directories(folder);
  const bool equal = compare_all(gpu);
  const bool hold = fit_all(gpu, folder);
  if (!folder.empty()) record_all(gpu, folder);
  std::printf("this library's tables %s\n", equal && hold ? "hold" : "do not hold");
  return equal && hold ? 0 : 1;
}

}  // namespace
}  // namespace samebits::function_units

int main(int count, char** arguments) {
  if (count > 2) {
    std::fprintf(stderr, "usage: function_unit_tables [FOLDER]\n");
    return 2;
  }
  try {
    return samebits::function_units::run(count == 2 ? arguments[1] : "");
  } catch (const samebits::unsupported& e) {
    std::fprintf(stderr, "function_unit_tables: %s\n", e.what());
    return 3;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "function_unit_tables: %s\n", e.what());
    return 4;
  }
}
