#include "shoal/nn/backend_call.h"

#include <ATen/Functions.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/TensorUtils.h>
#include <ATen/core/grad_mode.h>
#include <torch/version.h>

#include <algorithm>
#include <cstring>

namespace shoal::nn {
namespace {

void check_memory(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.layout() == at::kStrided, "shoal: tensors must be dense");
  TORCH_CHECK(!tensor.is_meta(), "shoal: tensors must have memory, and one on the device meta has none");
}

DType dtype_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat: return DType::f32;
    case at::kDouble: return DType::f64;
    case at::kHalf: return DType::f16;
    case at::kBFloat16: return DType::bf16;
    case at::kChar: return DType::i8;
    case at::kByte: return DType::u8;
    case at::kInt: return DType::i32;
    case at::kLong: return DType::i64;
    case at::kBool: return DType::boolean;
    default: TORCH_CHECK(false, "Invalid scalar type ", type, ": shoal does not add it");
  }
}

#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 12
using Supplement = c10d::NCCLPreMulSumSupplement;
#else
using Supplement = c10d::PreMulSumSupplement;
#endif

double factor_of(const c10d::ReduceOp& op) {
  const auto* const supplement = dynamic_cast<const Supplement*>(op.supplement_.get());
  TORCH_CHECK(supplement, "PREMUL_SUM came without its factor");
  return supplement->tensor_factor.defined() ? supplement->tensor_factor.item<double>() : supplement->double_factor;
}

}  // namespace

Adding Adding::of(const at::Tensor& tensor, const c10d::ReduceOp& op) {
  Adding adding;
  const at::ScalarType type = tensor.scalar_type();
  adding.type = dtype_of(at::isComplexType(type) ? c10::toRealValueType(type) : type);
  const bool linear = op.op_ == c10d::ReduceOp::SUM || op.op_ == c10d::ReduceOp::AVG || op.op_ == c10d::ReduceOp::PREMUL_SUM;
  if (at::isComplexType(type)) {
    TORCH_CHECK(linear, "complex numbers can be summed and averaged, nothing else");
  }
  const bool bitwise = op.op_ == c10d::ReduceOp::BAND || op.op_ == c10d::ReduceOp::BOR || op.op_ == c10d::ReduceOp::BXOR;
  TORCH_CHECK(!bitwise || !at::isFloatingType(type), "Cannot use a bitwise ReduceOp with non-integral dtype ", type);
  TORCH_CHECK(type != at::kBool || (op.op_ != c10d::ReduceOp::AVG && op.op_ != c10d::ReduceOp::PREMUL_SUM),
              "truth values can be neither averaged nor multiplied");
  switch (op.op_) {
    case c10d::ReduceOp::SUM: adding.op = ReduceOp::sum; break;
    case c10d::ReduceOp::AVG: adding.op = ReduceOp::average; break;
    case c10d::ReduceOp::PRODUCT: adding.op = ReduceOp::product; break;
    case c10d::ReduceOp::MIN: adding.op = ReduceOp::min; break;
    case c10d::ReduceOp::MAX: adding.op = ReduceOp::max; break;
    case c10d::ReduceOp::BAND: adding.op = ReduceOp::bit_and; break;
    case c10d::ReduceOp::BOR: adding.op = ReduceOp::bit_or; break;
    case c10d::ReduceOp::BXOR: adding.op = ReduceOp::bit_xor; break;
    case c10d::ReduceOp::PREMUL_SUM: adding.scaling.prescale = factor_of(op); break;
    default: TORCH_CHECK(false, "shoal: unknown ReduceOp");
  }
  return adding;
}

Piece Backend::Call::hold(const at::Tensor& tensor) {
  plan.held.push_back(tensor);
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

at::Tensor Backend::Call::fetch(const at::Tensor& tensor, Staging& staging) {
  if (!arriving) arriving = std::make_shared<Departures::Copies>();
  return staging.to_host(tensor, at::detail::defaultStrides(tensor.sizes()), backend.departures_->one_of(arriving));
}

void Backend::Call::bring_home(const Staging::Room& room, const at::Tensor& tensor, Staging& staging) {
  copies_home.emplace_back([room, tensor, &staging] { staging.home(room, tensor); });
  const auto stream = staging.homewards();
  if (stream && std::ranges::find(plan.homewards, *stream) == plan.homewards.end()) plan.homewards.push_back(*stream);
}

Piece Backend::Call::read(const at::Tensor& tensor) {
  check_memory(tensor);
  const at::NoGradGuard no_grad;
  if (Staging* const staging = backend.staging_of(tensor)) return hold(fetch(tensor, *staging));
  return hold(tensor.contiguous());
}

Piece Backend::Call::write(const at::Tensor& tensor) {
  check_memory(tensor);
  if (Staging* const staging = backend.staging_of(tensor)) {
    at::assert_no_internal_overlap(tensor);
    const Staging::Room room = staging->room(tensor);
    bring_home(room, tensor, *staging);
    return hold(room.host);
  }
  if (tensor.is_contiguous()) return hold(tensor);
  return update(tensor);
}

Piece Backend::Call::update(const at::Tensor& tensor) {
  check_memory(tensor);
  at::assert_no_internal_overlap(tensor);  // now, while the caller is there to hear it
  const at::NoGradGuard no_grad;
  if (Staging* const staging = backend.staging_of(tensor)) {
    const at::Tensor host = fetch(tensor, *staging);
    bring_home({host, nullptr}, tensor, *staging);
    return hold(host);
  }
  const at::Tensor flat = tensor.contiguous();
  if (!flat.is_same(tensor)) {
    copies_home.emplace_back([tensor, flat] {
      const at::NoGradGuard still_no_grad;
      tensor.copy_(flat);
    });
  }
  return hold(flat);
}

Pieces Backend::Call::read(const Tensors& tensors) {
  Pieces pieces;
  for (const at::Tensor& tensor : tensors) pieces.push_back(read(tensor));
  return pieces;
}

Pieces Backend::Call::write(const Tensors& tensors) {
  Pieces pieces;
  for (const at::Tensor& tensor : tensors) pieces.push_back(write(tensor));
  return pieces;
}

Piece Backend::Call::flatten_there(const Tensors& tensors) {
  const at::NoGradGuard no_grad;
  Tensors parts;
  for (const at::Tensor& tensor : tensors) {
    at::assert_no_internal_overlap(tensor);
    parts.push_back(tensor.reshape({-1}));
  }
  const at::Tensor flat = at::cat(parts);
  Staging& staging = *backend.staging_of(flat);
  const at::Tensor host = fetch(flat, staging);
  std::int64_t begin = 0;
  for (const at::Tensor& tensor : tensors) {
    bring_home({host.narrow(0, begin, tensor.numel()).view(tensor.sizes()), nullptr}, tensor, staging);
    begin += tensor.numel();
  }
  return hold(host);
}

Piece Backend::Call::flatten(const Tensors& tensors) {
  for (const at::Tensor& tensor : tensors) {
    check_memory(tensor);
    TORCH_CHECK(tensor.scalar_type() == tensors.front().scalar_type(), "shoal: tensors of one call must have one dtype");
    TORCH_CHECK(tensor.device() == tensors.front().device(), "shoal: tensors of one call must be on one device");
  }
  if (backend.staging_of(tensors.front())) return flatten_there(tensors);
  std::int64_t total = 0;
  for (const at::Tensor& tensor : tensors) total += tensor.numel();
  at::Tensor flat = at::empty({total}, tensors.front().options().requires_grad(false));
  std::vector<Piece> homes;
  auto* next = static_cast<std::byte*>(flat.data_ptr());
  for (const at::Tensor& tensor : tensors) {
    const Piece home = update(tensor);
    if (!home.empty()) std::memcpy(next, home.data(), home.size());
    next += home.size();
    homes.push_back(home);
  }
  // Before the copies to tensors that are not contiguous, which read these homes.
  copies_home.insert(copies_home.begin(), [flat, homes] {
    const auto* from = static_cast<const std::byte*>(flat.const_data_ptr());
    for (const Piece& home : homes) {
      if (!home.empty()) std::memcpy(home.data(), from, home.size());
      from += home.size();
    }
  });
  return hold(flat);
}

std::byte* lowest(const Pieces& pieces) {
  std::byte* low = nullptr;
  for (const Piece& piece : pieces) {
    if (!piece.empty() && (!low || std::less<>()(piece.data(), low))) low = piece.data();
  }
  return low;
}

std::vector<std::uint64_t> offsets(const Pieces& pieces, std::size_t element_size) {
  const auto low = reinterpret_cast<std::uintptr_t>(lowest(pieces));
  std::vector<std::uint64_t> places;
  for (const Piece& piece : pieces) {
    places.push_back(piece.empty() ? 0 : (reinterpret_cast<std::uintptr_t>(piece.data()) - low) / element_size);
  }
  return places;
}

bool aligned(const Pieces& pieces, std::size_t element_size) {
  const auto low = reinterpret_cast<std::uintptr_t>(lowest(pieces));
  return std::all_of(pieces.begin(), pieces.end(), [&](const Piece& piece) {
    return piece.empty() || (reinterpret_cast<std::uintptr_t>(piece.data()) - low) % element_size == 0;
  });
}

collective::Layout empty_layout(std::size_t chunks) {
  const std::vector<std::uint64_t> zeros(chunks, 0);
  return {zeros, zeros, zeros};
}

void check_single(const char* call, const std::vector<at::Tensor>& tensors) {
  TORCH_CHECK(tensors.size() == 1, "shoal: ", call, " takes a single tensor, not ", tensors.size());
}

void check_like(const char* call, const at::Tensor& model, const std::vector<at::Tensor>& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    TORCH_CHECK(tensors[i].scalar_type() == model.scalar_type(), "shoal: ", call, ": invalid tensor type at index ", i,
                " (expected ", model.scalar_type(), ", got ", tensors[i].scalar_type(), ")");
    TORCH_CHECK(tensors[i].numel() == model.numel(), "shoal: ", call, ": invalid tensor size at index ", i, " (expected ",
                model.sizes(), ", got ", tensors[i].sizes(), ")");
  }
}

void check_lists(const char* call, const std::vector<std::vector<at::Tensor>>& lists, std::size_t count, std::size_t each) {
  TORCH_CHECK(lists.size() == count, "shoal: ", call, " takes ", count, " lists of tensors, not ", lists.size());
  for (const auto& list : lists) {
    TORCH_CHECK(list.size() == each, "shoal: ", call, " takes lists of ", each, " tensors, not ", list.size());
  }
}

void check_pairs(const char* call, const std::vector<at::Tensor>& wide, const std::vector<at::Tensor>& narrow) {
  TORCH_CHECK(!wide.empty() && wide.size() == narrow.size(), "shoal: ", call, " takes as many inputs as outputs, at least one");
}

void check_multiple(const char* call, const at::Tensor& wide, const at::Tensor& narrow, std::int64_t members) {
  TORCH_CHECK(wide.scalar_type() == narrow.scalar_type(), "shoal: ", call, ": input and output have different dtypes");
  TORCH_CHECK(wide.numel() == narrow.numel() * members, "shoal: ", call, ": ", wide.numel(), " elements are not ", members,
              " times ", narrow.numel());
}

}  // namespace shoal::nn
