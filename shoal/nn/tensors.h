// PyTorch's tensors as bytes: their element types in Shoal's words, one memory layout for a parameter and its gradients on
// all members, and several tensors packed into one message.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shoal/core/dtype.h"
#include "shoal/nn/session.h"

namespace shoal::nn {

// Of one real number: a complex tensor is twice as many of them. Throws Error{unsupported} naming the tensor.
DType element_type(const at::Tensor& tensor, const std::string& name);

// The strides a gradient of `parameter` has on the way: the parameter's own if they leave no holes (channels-last stays), else
// plain row-major.
std::vector<std::int64_t> layout_of(const at::Tensor& parameter);
// `gradient` itself if it lies so already, else a copy: on the CPU, with the parameter's type.
at::Tensor in_layout_of(const at::Tensor& parameter, const at::Tensor& gradient);

bool says_something(const at::Tensor& gradient);  // it is there, and not all zeros

const std::byte* bytes_of(const at::Tensor& tensor);  // nullptr where it is undefined

std::size_t packed_bytes(const std::vector<at::Tensor>& tensors);
void pack(const std::vector<at::Tensor>& tensors, std::span<std::byte> into);
void unpack(std::span<const std::byte> from, const std::vector<at::Tensor>& tensors);  // writes into the tensors
std::uint64_t digest_of(const std::vector<at::Tensor>& tensors);  // of their bytes, packed one by one

// All members take over root's values.
void broadcast_tensors(Session& session, const std::vector<at::Tensor>& tensors, net::Rank root, const std::string& label);

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};
// Proves that all members have the same tensors (names, shapes, types, layouts) and the same `code` (the optimizer's class and
// the like). Throws Error{mismatch} naming rank and tensor, on all members alike.
void require_equal_models(Session& session, const std::vector<NamedTensor>& tensors, const std::string& code);

}  // namespace shoal::nn
