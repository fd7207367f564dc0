// From tensors to collectives: what every call of the backend checks, flattens and copies home. See backend.h.
#pragma once

#include <cstddef>
#include <span>

#include "shoal/nn/backend.h"
#include "shoal/nn/backend_departures.h"

namespace shoal::nn {

// How PyTorch's element type and operation are added. Complex numbers are pairs of their parts.
struct Adding {
  DType type = DType::f32;
  ReduceOp op = ReduceOp::sum;
  collective::Scaling scaling;
  // Throws where that is not defined, as gloo does.
  static Adding of(const at::Tensor& tensor, const c10d::ReduceOp& op);
};

using Piece = std::span<std::byte>;  // memory of one contiguous tensor
using Pieces = std::vector<Piece>;

struct Backend::Call {
  explicit Call(Backend& of) : backend(of) {}

  Backend& backend;
  Work::Plan plan;
  std::vector<Collect> parts;
  std::vector<std::function<void()>> copies_home;
  std::shared_ptr<Departures::Copies> arriving;  // from devices, before it may begin; nullptr: none

  // Memory of a tensor, or of a contiguous copy that the call holds, on the host where the tensor is a device's: what is read has arrived when the call
  // begins. Strided tensors only.
  Piece read(const at::Tensor& tensor);
  Piece write(const at::Tensor& tensor);   // copied home at the end where the tensor is not contiguous, or not on the host
  Piece update(const at::Tensor& tensor);  // both
  Pieces read(const Tensors& tensors);
  Pieces write(const Tensors& tensors);
  // All elements one after another; copied home at the end.
  Piece flatten(const Tensors& tensors);

  void add_all_reduce(const Piece& elements, const at::Tensor& like, const c10d::ReduceOp& op);
  void add_all_gather(const Piece& input, const Pieces& outputs);
  void add_reduce_scatter(const Pieces& inputs, const Piece& output, Collect part);  // part: how it adds

 private:
  Piece hold(const at::Tensor& tensor);
  Piece flatten_there(const Tensors& tensors);  // a device's
  // On the host, in the order of the elements; these of the device come to it, go home from it at the end.
  at::Tensor fetch(const at::Tensor& tensor, Staging& staging);
  void bring_home(const Staging::Room& room, const at::Tensor& tensor, Staging& staging);
};

// Lists of tensors lie anywhere: their place is an offset from the lowest, so nothing needs to be flattened.
std::byte* lowest(const Pieces& pieces);
std::vector<std::uint64_t> offsets(const Pieces& pieces, std::size_t element_size);
bool aligned(const Pieces& pieces, std::size_t element_size);  // offsets are whole elements
collective::Layout empty_layout(std::size_t chunks);

void check_single(const char* call, const std::vector<at::Tensor>& tensors);
void check_like(const char* call, const at::Tensor& model, const std::vector<at::Tensor>& tensors);
void check_lists(const char* call, const std::vector<std::vector<at::Tensor>>& lists, std::size_t count, std::size_t each);
void check_pairs(const char* call, const std::vector<at::Tensor>& wide, const std::vector<at::Tensor>& narrow);
void check_multiple(const char* call, const at::Tensor& wide, const at::Tensor& narrow, std::int64_t members);

}  // namespace shoal::nn
