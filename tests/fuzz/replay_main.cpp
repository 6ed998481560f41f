// Runs a fuzz target over files and folders: the corpus as a test, a crash under a debugger.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::vector<std::filesystem::path> files_under(const std::filesystem::path& path) {
  if (std::filesystem::is_regular_file(path)) return {path};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void replay(const std::filesystem::path& path) {
  static_cast<void>(std::fprintf(stderr, "%s\n", path.c_str()));
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot be read");
  const std::vector<char> content{std::istreambuf_iterator<char>(in),
                                  std::istreambuf_iterator<char>()};
  // A copy of exactly the size, so that a sanitizer sees every byte read past it.
  const std::vector<std::uint8_t> data(content.begin(), content.end());
  LLVMFuzzerTestOneInput(data.data(), data.size());
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t count = 0;
  try {
    for (int i = 1; i < argc; ++i) {
      for (const std::filesystem::path& path : files_under(argv[i])) {
        replay(path);
        ++count;
      }
    }
  } catch (const std::exception& error) {
    static_cast<void>(std::fprintf(stderr, "%s\n", error.what()));
    return 1;
  }
  std::printf("%zu files\n", count);
  return count == 0 ? 1 : 0;
}
