// Targets on host memory.
#include "engine/core/target.hpp"

#include <cstring>
#include <utility>

#include "engine/core/problem.hpp"
#include "samebits/testkit/ranks.hpp"

namespace samebits::support {
namespace {

class host_memory final : public array_target {
 public:
  explicit host_memory(std::string backend) : backend_(std::move(backend)) {}
  [[nodiscard]] std::string_view backend() const override { return backend_; }

 private:
  std::string backend_;
};

/// The place of an element; little-endian.
std::byte* place(const const_matrix_view& v, std::int64_t row, std::int64_t col) {
  auto* const data = static_cast<std::byte*>(const_cast<void*>(v.data));
  return data + (row * v.row_stride + col * v.col_stride) * storage_bytes(v.format);
}

}  // namespace

std::uint64_t code_at(const const_matrix_view& v, std::int64_t row, std::int64_t col) {
  std::uint64_t code = 0;
  std::memcpy(&code, place(v, row, col), static_cast<std::size_t>(storage_bytes(v.format)));
  return code;
}

void put_code(const matrix_view& v, std::int64_t row, std::int64_t col, std::uint64_t code) {
  std::memcpy(place(v, row, col), &code, static_cast<std::size_t>(storage_bytes(v.format)));
}

matrix_view block_of(matrix_view v, std::int64_t row, std::int64_t rows, std::int64_t col,
                     std::int64_t cols) {
  if (rows != 0 && cols != 0) v.data = place(v, row, col);
  v.rows = rows;
  v.cols = cols;
  return v;
}

call_site call_site::resolved() const {
  call_site all{target, views};
  for (const shared_memory& s : shared) {
    all.views[s.view] = views[s.of];
    all.views[s.view].format = s.format;
  }
  return all;
}

returned_values array_target::run(const any_case& c, const call_site& site) const {
  return c.call(site);
}

void array_target::copy(const matrix_view& to, const matrix_view& from) const {
  std::memcpy(to.data, from.data, spanned_bytes(to));
}

void array_target::simulate_ranks(int count, const std::function<void(communicator&)>& body) const {
  testkit::simulate_ranks(count, body);
}

std::unique_ptr<array_target> host_target(std::string backend) {
  return std::make_unique<host_memory>(std::move(backend));
}

}  // namespace samebits::support
