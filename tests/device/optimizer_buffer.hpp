// Random tensors of an optimizer: all arrays of a list in one buffer, in host memory or in a copy on
// the device, so that a comparison of the buffers sees every byte that a step writes.
#pragma once

#include <cuda_runtime_api.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "device/device_copy.hpp"
#include "samebits/optimizer.hpp"

namespace samebits::support {

/// How a tensor's weights are stored.
struct weight_mode {
  stored_format weights;
  stored_format master = stored_format::none;
  low_part low = low_part::none;
};

/// What a tensor of a list is made of.
struct tensor_plan {
  weight_mode mode;
  stored_format gradient;
  stored_format states[2];
  std::int64_t count = 0;
  std::uint64_t first_index = 0;
  std::uint32_t group = 0;
  std::uint32_t block = 128;
  bool gradient_scale = false;
  int shift = 0;      ///< elements between a border of 16 bytes and each array
  bool wild = false;  ///< codes of any bits; otherwise mostly numbers as in training
};

/// A buffer of arrays, and the tensors in it.
class optimizer_buffer {
 public:
  optimizer_buffer(const std::vector<tensor_plan>& plans, std::uint32_t seed) : random_(seed) {
    std::uint32_t stream = 0;
    for (const tensor_plan& plan : plans) add(plan, stream++);
  }

  /// Bytes of the arrays and of the guards between them.
  [[nodiscard]] std::vector<std::byte>& bytes() { return bytes_; }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

  /// The tensors, in a buffer that begins at `base`, which is aligned to 256 bytes.
  [[nodiscard]] std::vector<optimizer_tensor> tensors_at(std::byte* base) const {
    std::vector<optimizer_tensor> placed = tensors_;
    const auto move = [&](auto& pointer) {
      // Offsets were stored as addresses; 0 stands for null.
      const auto offset = reinterpret_cast<std::uintptr_t>(pointer);
      if (offset != 0) pointer = reinterpret_cast<std::decay_t<decltype(pointer)>>(base + offset);
    };
    for (optimizer_tensor& t : placed) {
      for (stored_array* a : {&t.weights, &t.master, &t.states[0], &t.states[1]}) {
        move(a->codes);
        move(a->scales);
      }
      move(t.gradient.codes);
      move(t.gradient.scale);
      move(t.low);
    }
    return placed;
  }

  /// The tensor and array of a byte, for messages.
  [[nodiscard]] std::string place_of(std::size_t byte) const {
    std::string text = "before all arrays";
    for (const named& n : names_) {
      if (n.offset <= byte) {
        text = n.name + ", element " + std::to_string((byte - n.offset) / n.element);
      }
    }
    return text;
  }

 private:
  struct named {
    std::size_t offset;
    std::size_t element;  ///< bytes
    std::string name;
  };

  void add(const tensor_plan& plan, std::uint32_t stream) {
    optimizer_tensor t;
    t.count = plan.count;
    t.first_index = plan.first_index;
    t.stream = stream;
    t.group = plan.group;
    t.block = plan.block;
    t.low_kind = plan.mode.low;
    t.name = "tensor " + std::to_string(stream);
    const auto stored = [&](stored_format f, const char* name, bool positive) {
      stored_array a;
      a.format = f;
      if (f == stored_format::none) return a;
      a.codes = codes(plan, f, t.name + " " + name, positive);
      if (has_block_scales(f)) {
        const std::int64_t blocks = (plan.count + plan.block - 1) / plan.block;
        a.scales = static_cast<float*>(scales(plan, blocks, t.name + " scales of " + name));
      }
      return a;
    };
    t.weights = stored(plan.mode.weights, "weights", false);
    t.master = stored(plan.mode.master, "master", false);
    t.states = {stored(plan.states[0], "states[0]", false),
                stored(plan.states[1], "states[1]", true)};
    t.gradient.format = plan.gradient;
    t.gradient.codes = codes(plan, plan.gradient, t.name + " gradient", false);
    if (plan.gradient_scale) {
      t.gradient.scale = static_cast<float*>(scales(plan, 1, t.name + " gradient scale"));
    }
    if (plan.mode.low != low_part::none) {
      t.low = codes(plan, stored_format::bf16_nearest, t.name + " low", false);
    }
    tensors_.push_back(std::move(t));
  }

  /// Takes memory; returns its offset.
  std::size_t take(std::size_t size, std::size_t element, int shift, const std::string& name) {
    const std::size_t guard = 32;
    const std::size_t begin =
        (bytes_.size() + guard + 15) / 16 * 16 + static_cast<std::size_t>(shift) * element;
    bytes_.resize(begin + size, std::byte{0xC3});
    bytes_.resize(bytes_.size() + guard, std::byte{0xC3});
    names_.push_back({begin, element, name});
    return begin;
  }

  void* codes(const tensor_plan& plan, stored_format f, const std::string& name, bool positive) {
    const auto element = static_cast<std::size_t>(code_bytes(f));
    const std::size_t begin =
        take(static_cast<std::size_t>(plan.count) * element, element, plan.shift, name);
    for (std::int64_t i = 0; i < plan.count; ++i) {
      const std::uint32_t code = plan.wild ? any_code(element) : usual_code(f, positive);
      std::memcpy(bytes_.data() + begin + static_cast<std::size_t>(i) * element, &code, element);
    }
    return reinterpret_cast<void*>(begin);
  }

  void* scales(const tensor_plan& plan, std::int64_t count, const std::string& name) {
    const std::size_t begin = take(static_cast<std::size_t>(count) * 4, 4, 0, name);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint32_t code =
          plan.wild ? any_code(4) : 0x3F000000u + bits() % 0x01000000u;  // [0.5, 2)
      std::memcpy(bytes_.data() + begin + static_cast<std::size_t>(i) * 4, &code, 4);
    }
    return reinterpret_cast<void*>(begin);
  }

  /// Any bits; one in eight is a special number.
  std::uint32_t any_code(std::size_t element) {
    const std::uint32_t x = bits();
    if (bits() % 8 != 0) return x;
    static constexpr std::uint32_t special[] = {0,           0x80000000u, 1,           0x80000001u,
                                                0x7F800000u, 0xFF800000u, 0x7FFFFFFFu, 0x7F800001u,
                                                0x7F7FFFFFu, 0x00800000u, 0x3F800000u, 0x7F7F8000u};
    return special[x % std::size(special)] >> (32 - 8 * element);
  }

  /// A number as in training: of magnitude 2^-12 .. 2 in formats that have them. One in 64 has any
  /// bits.
  std::uint32_t usual_code(stored_format f, bool positive) {
    const std::uint32_t x = bits();
    const std::uint32_t sign = positive ? 0 : x & 0x80000000u;
    if (bits() % 64 == 0) return any_code(static_cast<std::size_t>(code_bytes(f)));
    const std::uint32_t field = 115 + x % 13;
    const std::uint32_t wide = sign | field << 23 | (x >> 4 & 0x007FFFFFu);
    switch (code_bytes(f)) {
      case 4: return wide;
      case 2:
        return f == stored_format::bf16_nearest || f == stored_format::bf16_stochastic
                   ? wide >> 16
                   : sign >> 16 | (field - 112) << 10 | (x >> 4 & 0x3FFu);
      default: return sign >> 24 | (x & 0x7Fu) % 0x78u;
    }
  }

  /// 32 random bits.
  std::uint32_t bits() { return static_cast<std::uint32_t>(random_()); }

  std::mt19937 random_;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(64, std::byte{0xC3});
  std::vector<optimizer_tensor> tensors_;  ///< with offsets as addresses
  std::vector<named> names_;
};

/// Bytes of a buffer in device memory.
class device_bytes {
 public:
  explicit device_bytes(const std::vector<std::byte>& host) : size_(host.size()) {
    void* memory = nullptr;
    check_cuda(cudaMalloc(&memory, size_), "cudaMalloc");
    data_ = static_cast<std::byte*>(memory);
    upload(host);
  }
  ~device_bytes() { cudaFree(data_); }
  device_bytes(const device_bytes&) = delete;
  device_bytes& operator=(const device_bytes&) = delete;

  void upload(const std::vector<std::byte>& host) {
    check_cuda(cudaMemcpy(data_, host.data(), size_, cudaMemcpyHostToDevice), "upload");
  }
  [[nodiscard]] std::vector<std::byte> download() const {
    std::vector<std::byte> host(size_);
    check_cuda(cudaMemcpy(host.data(), data_, size_, cudaMemcpyDeviceToHost), "download");
    return host;
  }
  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  std::size_t size_;
  std::byte* data_ = nullptr;
};

/// One value in device memory.
template <class T>
class on_device {
 public:
  explicit on_device(const T& value) {
    check_cuda(cudaMalloc(reinterpret_cast<void**>(&data_), sizeof(T)), "cudaMalloc");
    set(value);
  }
  ~on_device() { cudaFree(data_); }
  on_device(const on_device&) = delete;
  on_device& operator=(const on_device&) = delete;
  void set(const T& value) {
    check_cuda(cudaMemcpy(data_, &value, sizeof(T), cudaMemcpyHostToDevice), "upload");
  }
  [[nodiscard]] T* data() const { return data_; }

 private:
  T* data_ = nullptr;
};

}  // namespace samebits::support
