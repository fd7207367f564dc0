#include "shoal/nn/tensors.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/view_as_real.h>
#include <c10/core/ScalarType.h>

#include <cstring>
#include <optional>
#include <sstream>

#include "shoal/core/fnv.h"

namespace shoal::nn {
namespace {

constexpr std::size_t kBroadcastAtOnce = 32u << 20;  // bytes packed before they leave: bounds the extra memory

// Strides of dimensions with one element say nothing.
bool lies_as(const at::Tensor& tensor, at::IntArrayRef strides) {
  for (std::int64_t d = 0; d < tensor.dim(); ++d) {
    if (tensor.size(d) > 1 && tensor.stride(d) != strides[static_cast<std::size_t>(d)]) return false;
  }
  return true;
}

std::string describe(const at::Tensor& tensor) {
  std::ostringstream text;
  text << c10::toString(tensor.scalar_type()) << tensor.sizes();
  if (!tensor.is_contiguous()) text << " with strides " << tensor.strides();
  if (tensor.requires_grad()) text << " trained";
  return text.str();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// A device costs a meeting for every copy: all tensors of one go there and back in one piece.
std::optional<c10::Device> their_device(const std::vector<at::Tensor>& tensors) {
  for (const auto& tensor : tensors) {
    if (tensor.is_cpu() || tensor.device() != tensors.front().device()) return std::nullopt;
  }
  return tensors.empty() ? std::nullopt : std::optional(tensors.front().device());
}

at::Tensor as_bytes(const at::Tensor& tensor) {
  const auto plain = tensor.detach().resolve_conj().resolve_neg().contiguous();
  return (plain.is_complex() ? at::view_as_real(plain) : plain).view({-1}).view(at::kByte);
}

at::Tensor over(std::span<const std::byte> bytes) {
  return at::from_blob(const_cast<std::byte*>(bytes.data()), {static_cast<std::int64_t>(bytes.size())}, at::kByte);
}

}  // namespace

DType element_type(const at::Tensor& tensor, const std::string& name) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
    case at::kComplexFloat: return DType::f32;
    case at::kDouble:
    case at::kComplexDouble: return DType::f64;
    case at::kHalf: return DType::f16;
    case at::kBFloat16: return DType::bf16;
    default: break;
  }
  throw Error(Code::unsupported, std::string("gradients of type ") + c10::toString(tensor.scalar_type()) + " cannot be exchanged",
              "parameter " + name, "freeze it with requires_grad_(False)");
}

std::vector<std::int64_t> layout_of(const at::Tensor& parameter) {
  if (parameter.is_non_overlapping_and_dense()) return parameter.strides().vec();
  std::vector<std::int64_t> strides(static_cast<std::size_t>(parameter.dim()), 1);
  for (auto d = parameter.dim() - 2; d >= 0; --d) {
    const auto i = static_cast<std::size_t>(d);
    strides[i] = strides[i + 1] * parameter.size(d + 1);
  }
  return strides;
}

at::Tensor in_layout_of(const at::Tensor& parameter, const at::Tensor& gradient) {
  const auto strides = layout_of(parameter);
  if (gradient.is_cpu() && gradient.scalar_type() == parameter.scalar_type() && lies_as(gradient, strides) && !gradient.is_conj() &&
      !gradient.is_neg()) {
    return gradient;
  }
  const at::NoGradGuard no_grad;
  auto copy = at::empty_strided(parameter.sizes(), strides, parameter.options().device(at::kCPU).requires_grad(false));
  copy.copy_(gradient);
  return copy;
}

bool says_something(const at::Tensor& gradient) {
  return gradient.defined() && (gradient.is_sparse() ? gradient._nnz() : gradient.count_nonzero().item<std::int64_t>()) > 0;
}

const std::byte* bytes_of(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<const std::byte*>(tensor.const_data_ptr()) : nullptr;
}

std::size_t packed_bytes(const std::vector<at::Tensor>& tensors) {
  std::size_t bytes = 0;
  for (const auto& tensor : tensors) bytes += static_cast<std::size_t>(tensor.numel()) * tensor.element_size();
  return bytes;
}

void pack(const std::vector<at::Tensor>& tensors, std::span<std::byte> into) {
  if (their_device(tensors)) {
    std::vector<at::Tensor> parts;
    for (const auto& tensor : tensors) {
      if (tensor.numel() > 0) parts.push_back(as_bytes(tensor));
    }
    if (!parts.empty()) over(into).copy_(at::cat(parts));
    return;
  }
  for (const auto& tensor : tensors) {
    const auto plain = tensor.detach().to(at::kCPU).resolve_conj().resolve_neg().contiguous();
    const auto bytes = static_cast<std::size_t>(plain.numel()) * plain.element_size();
    if (bytes > 0) std::memcpy(into.data(), plain.const_data_ptr(), bytes);
    into = into.subspan(bytes);
  }
}

std::uint64_t digest_of(const std::vector<at::Tensor>& tensors) {
  Fnv1a digest;
  std::vector<std::byte> bytes;
  for (const auto& tensor : tensors) {
    bytes.resize(packed_bytes({tensor}));
    pack({tensor}, bytes);
    digest.add_words(bytes);
  }
  return digest.value();
}

void unpack(std::span<const std::byte> from, const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  if (const auto device = their_device(tensors)) {
    const auto whole = over(from).to(*device);
    std::int64_t at = 0;
    for (const auto& tensor : tensors) {
      const auto bytes = tensor.numel() * static_cast<std::int64_t>(tensor.element_size());
      // Cloned: in its place it may not be aligned for its type.
      if (bytes > 0) tensor.detach().copy_(whole.narrow(0, at, bytes).clone().view(tensor.scalar_type()).view(tensor.sizes()));
      at += bytes;
    }
    return;
  }
  for (const auto& tensor : tensors) {
    const auto bytes = static_cast<std::size_t>(tensor.numel()) * tensor.element_size();
    if (bytes > 0) {
      const auto view = at::from_blob(const_cast<std::byte*>(from.data()), tensor.sizes(),
                                      at::TensorOptions().dtype(tensor.scalar_type()));
      tensor.detach().copy_(view);
    }
    from = from.subspan(bytes);
  }
}

void broadcast_tensors(Session& session, const std::vector<at::Tensor>& tensors, net::Rank root, const std::string& label) {
  session.together(label, [&] {
    std::vector<std::byte> packed;
    for (std::size_t next = 0; next < tensors.size();) {
      std::vector<at::Tensor> group;
      for (std::size_t bytes = 0; next < tensors.size() && (group.empty() || bytes < kBroadcastAtOnce); ++next) {
        group.push_back(tensors[next]);
        bytes += packed_bytes({tensors[next]});
      }
      packed.resize(packed_bytes(group));
      if (session.place() == root) pack(group, packed);
      session.broadcast(packed, root, label);
      if (session.place() != root) unpack(packed, group);
    }
  });
}

void require_equal_models(Session& session, const std::vector<NamedTensor>& tensors, const std::string& code) {
  std::string own = code + "\n";
  for (const auto& [name, tensor] : tensors) own += name + ": " + describe(tensor) + "\n";
  const auto texts = session.gather_text(own, "comparison of models");
  const auto expected = lines_of(texts[0]);
  for (std::size_t r = 1; r < texts.size(); ++r) {
    const auto found = lines_of(texts[r]);
    for (std::size_t i = 0; i < std::max(found.size(), expected.size()); ++i) {
      const auto theirs = i < found.size() ? found[i] : "nothing", first = i < expected.size() ? expected[i] : "nothing";
      if (theirs == first) continue;
      throw Error(Code::mismatch, "rank " + std::to_string(r) + " has " + theirs + ", rank 0 has " + first, "data_parallel()",
                  "all members must build the same model and optimizer");
    }
  }
}

}  // namespace shoal::nn
