// described_list: an optimizer_list whose tables the caller copies to the device.
#include "backends/optimizer/described_list.hpp"

#include <utility>

#include "backends/dispatch/access.hpp"
#include "backends/dispatch/calls/optimizer.hpp"

namespace samebits::backends {

described_list::described_list(std::vector<optimizer_tensor> tensors)
    : data_(describe_without_tables(std::move(tensors), memory_space::device)),
      list_(access::make<optimizer_list>(std::shared_ptr<const optimizer_data>(data_))) {}

std::size_t described_list::tables_bytes() const { return data_->tables_bytes(); }

bool described_list::has_tables() const {
  return data_->tables_bytes() == 0 || data_->on_device != nullptr;
}

void described_list::write_tables(std::byte* to, const std::byte* on_device) {
  backends::write_tables(*data_, to);
  data_->on_device = {on_device, [](const std::byte*) {}};  // the caller's memory
}

}  // namespace samebits::backends
