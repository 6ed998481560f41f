// described_list: an optimizer_list whose tables the caller copies to the device.
#include "backends/optimizer/described_list.hpp"

#include <utility>

#include "backends/dispatch/access.hpp"
#include "backends/dispatch/calls/optimizer.hpp"

namespace samebits::backends {

described_list::described_list(std::vector<optimizer_tensor> tensors)
    : described_list(describe_without_tables(std::move(tensors), memory_space::device)) {}

described_list::described_list(std::shared_ptr<optimizer_data> data)
    : data_(std::move(data)),
      list_(access::make<optimizer_list>(std::shared_ptr<const optimizer_data>(data_))) {}

std::size_t described_list::tables_bytes() const { return data_->tables_bytes(); }

bool described_list::has_tables() const {
  return tables_bytes() == 0 || data_->on_device != nullptr;
}

void described_list::write_tables(std::byte* to, const std::byte* on_device) {
  data_->write_tables(to);
  data_->on_device = {on_device, [](const std::byte*) {}};  // the caller's memory
}

described_tensors::described_tensors(std::vector<optimizer_tensor> tensors, memory_space space)
    : parts_(std::make_shared<optimizer_parts>(
          describe_without_gradients(std::move(tensors), space))) {}

std::size_t described_tensors::size() const { return parts_->data->tensors.size(); }

described_list described_tensors::with_gradients(std::span<const void* const> addresses) const {
  return described_list(backends::with_gradients(*parts_, addresses));
}

}  // namespace samebits::backends
