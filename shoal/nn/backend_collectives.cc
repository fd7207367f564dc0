// The collectives of the c10d backend: each says what lies where, launch() does the rest.
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "shoal/nn/backend_call.h"

namespace shoal::nn {
namespace {

Collect moving(Operation operation, std::uint64_t bytes) {
  Collect part;
  part.operation = operation;
  part.total = bytes;
  return part;
}

Collect adding(Operation operation, const at::Tensor& model, const c10d::ReduceOp& op) {
  const Adding how = Adding::of(model, op);
  Collect part;
  part.operation = operation;
  part.type = how.type;
  part.op = how.op;
  part.scaling = how.scaling;
  return part;
}

// Splits of the first dimension as pieces; empty: equal ones.
Pieces split_rows(const at::Tensor& tensor, const Piece& whole, const std::vector<std::int64_t>& splits, std::int64_t members) {
  const std::int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
  std::vector<std::int64_t> counts = splits;
  if (counts.empty()) {
    TORCH_CHECK(rows % members == 0, "Tensor's dim 0 does not divide equally across group size");
    counts.assign(static_cast<std::size_t>(members), rows / members);
  }
  TORCH_CHECK(counts.size() == static_cast<std::size_t>(members), "Number of tensor splits not equal to group size");
  std::int64_t sum = 0;
  for (const std::int64_t count : counts) {
    TORCH_CHECK(count >= 0 && count <= rows - sum, "Split sizes doesn't match total dim 0 size");
    sum += count;
  }
  TORCH_CHECK(sum == rows, "Split sizes doesn't match total dim 0 size");
  Pieces pieces;
  std::size_t at = 0;
  for (const std::int64_t count : counts) {
    const std::size_t bytes = rows == 0 ? 0 : whole.size() / static_cast<std::size_t>(rows) * static_cast<std::size_t>(count);
    pieces.push_back(whole.subspan(at, bytes));
    at += bytes;
  }
  return pieces;
}

// `whole` as one piece a member.
Pieces even_pieces(const Piece& whole, std::size_t members) {
  Pieces pieces;
  const std::size_t bytes = whole.size() / members;
  for (std::size_t member = 0; member < members; ++member) pieces.push_back(whole.subspan(member * bytes, bytes));
  return pieces;
}

}  // namespace

// --- one tensor, the same on all members

Backend::Result Backend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) {
  check_single("broadcast", tensors);
  Call call(*this);
  call.plan.inputs = tensors;
  call.plan.outputs = {tensors};
  const bool own = opts.rootRank == rank_;
  const Piece bytes = own ? call.read(tensors[0]) : call.write(tensors[0]);
  Collect part = moving(Operation::broadcast, bytes.size());
  part.root = root(opts.rootRank);
  part.buffers = {own ? bytes.data() : nullptr, bytes.data()};
  call.parts.push_back(std::move(part));
  return launch(std::move(call), c10d::OpType::BROADCAST, "shoal:broadcast", opts.timeout);
}

Backend::Result Backend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) {
  check_single("all_reduce", tensors);
  if (tensors[0].layout() == at::kSparse) return allreduce_sparse(tensors, opts);
  Call call(*this);
  call.plan.inputs = tensors;
  call.plan.outputs = {tensors};
  call.add_all_reduce(call.update(tensors[0]), tensors[0], opts.reduceOp);
  return launch(std::move(call), c10d::OpType::ALLREDUCE, "shoal:all_reduce", opts.timeout);
}

Backend::Result Backend::allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& opts) {
  TORCH_CHECK(!tensors.empty(), "shoal: all_reduce_coalesced takes at least one tensor");
  Call call(*this);
  call.plan.inputs = tensors;
  call.plan.outputs = {tensors};
  call.add_all_reduce(tensors.size() == 1 ? call.update(tensors[0]) : call.flatten(tensors), tensors[0], opts.reduceOp);
  return launch(std::move(call), c10d::OpType::ALLREDUCE_COALESCED, "shoal:all_reduce", opts.timeout);
}

void Backend::Call::add_all_reduce(const Piece& elements, const at::Tensor& like, const c10d::ReduceOp& op) {
  Collect part = adding(Operation::all_reduce, like, op);
  part.total = elements.size() / size_of(part.type);
  part.buffers = {elements.data(), elements.data()};
  parts.push_back(std::move(part));
}

Backend::Result Backend::reduce(Tensors& tensors, const c10d::ReduceOptions& opts) {
  check_single("reduce", tensors);
  Call call(*this);
  call.plan.inputs = tensors;
  call.plan.outputs = {tensors};
  Collect part = adding(Operation::reduce, tensors[0], opts.reduceOp);
  part.root = root(opts.rootRank);
  const bool own = opts.rootRank == rank_;
  const Piece bytes = own ? call.update(tensors[0]) : call.read(tensors[0]);
  part.total = bytes.size() / size_of(part.type);
  part.buffers = {bytes.data(), own ? bytes.data() : nullptr};
  call.parts.push_back(std::move(part));
  return launch(std::move(call), c10d::OpType::REDUCE, "shoal:reduce", opts.timeout);
}

// --- gathering: every member has an own piece, and a piece of each member lies in the result

void Backend::Call::add_all_gather(const Piece& input, const Pieces& outputs) {
  Collect part = moving(Operation::all_gather, 0);
  part.layout = empty_layout(outputs.size());
  for (std::size_t member = 0; member < outputs.size(); ++member) {
    part.layout->count[member] = outputs[member].size();
    part.total += outputs[member].size();
  }
  part.layout->output = offsets(outputs, 1);
  part.buffers = {input.data(), lowest(outputs)};
  parts.push_back(std::move(part));
}

Backend::Result Backend::allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& opts) {
  check_single("all_gather", inputs);
  check_lists("all_gather", outputs, 1, members());
  check_like("all_gather", inputs[0], {outputs[0][static_cast<std::size_t>(rank_)]});
  Call call(*this);
  call.plan.inputs = inputs;
  call.plan.outputs = outputs;
  call.add_all_gather(call.read(inputs[0]), call.write(outputs[0]));
  return launch(std::move(call), c10d::OpType::ALLGATHER, "shoal:all_gather", opts.timeout);
}

Backend::Result Backend::_allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& opts) {
  Tensors outputs{output}, inputs{input};
  return allgather_into_tensor_coalesced(outputs, inputs, opts);
}

Backend::Result Backend::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                         const c10d::AllgatherOptions& opts) {
  check_pairs("all_gather_into_tensor", outputs, inputs);
  Call call(*this);
  call.plan.inputs = inputs;
  call.plan.outputs = {outputs};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_multiple("all_gather_into_tensor", outputs[i], inputs[i], size_);
    call.add_all_gather(call.read(inputs[i]), even_pieces(call.write(outputs[i]), members()));
  }
  return launch(std::move(call), c10d::OpType::_ALLGATHER_BASE, "shoal:all_gather", opts.timeout);
}

// outputs[member][i] is member's inputs[i].
Backend::Result Backend::allgather_coalesced(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& opts) {
  TORCH_CHECK(!inputs.empty(), "shoal: all_gather_coalesced takes at least one tensor");
  check_lists("all_gather_coalesced", outputs, members(), inputs.size());
  Call call(*this);
  call.plan.inputs = inputs;
  call.plan.outputs = outputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Tensors of_all;
    for (const Tensors& of_one : outputs) of_all.push_back(of_one[i]);
    check_like("all_gather_coalesced", inputs[i], of_all);
    call.add_all_gather(call.read(inputs[i]), call.write(of_all));
  }
  return launch(std::move(call), c10d::OpType::ALLGATHER_COALESCED, "shoal:all_gather", opts.timeout);
}

Backend::Result Backend::gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& opts) {
  check_single("gather", inputs);
  Call call(*this);
  call.plan.inputs = inputs;
  call.plan.outputs = outputs;
  const Piece input = call.read(inputs[0]);
  Collect part = moving(Operation::gather, input.size() * members());
  part.root = root(opts.rootRank);
  part.layout = empty_layout(members());
  part.layout->count.assign(members(), input.size());
  part.buffers.input = input.data();
  if (opts.rootRank == rank_) {
    check_lists("gather", outputs, 1, members());
    check_like("gather", inputs[0], outputs[0]);
    const Pieces pieces = call.write(outputs[0]);
    part.layout->output = offsets(pieces, 1);
    part.buffers.output = lowest(pieces);
  } else {
    TORCH_CHECK(outputs.empty(), "shoal: gather: only the root has outputs");
  }
  call.parts.push_back(std::move(part));
  return launch(std::move(call), c10d::OpType::GATHER, "shoal:gather", opts.timeout);
}

Backend::Result Backend::scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& opts) {
  check_single("scatter", outputs);
  Call call(*this);
  if (!inputs.empty()) call.plan.inputs = inputs[0];
  call.plan.outputs = {outputs};
  const Piece output = call.write(outputs[0]);
  Collect part = moving(Operation::scatter, output.size() * members());
  part.root = root(opts.rootRank);
  part.layout = empty_layout(members());
  part.layout->count.assign(members(), output.size());
  part.buffers.output = output.data();
  if (opts.rootRank == rank_) {
    check_lists("scatter", inputs, 1, members());
    check_like("scatter", outputs[0], inputs[0]);
    const Pieces pieces = call.read(inputs[0]);
    part.layout->input = offsets(pieces, 1);
    part.buffers.input = lowest(pieces);
  } else {
    TORCH_CHECK(inputs.empty(), "shoal: scatter: only the root has inputs");
  }
  call.parts.push_back(std::move(part));
  return launch(std::move(call), c10d::OpType::SCATTER, "shoal:scatter", opts.timeout);
}

// --- adding, each member keeps a piece

void Backend::Call::add_reduce_scatter(const Pieces& inputs, const Piece& output, Collect part) {
  const std::size_t element = size_of(part.type);
  part.layout = empty_layout(inputs.size());
  for (std::size_t member = 0; member < inputs.size(); ++member) {
    part.layout->count[member] = inputs[member].size() / element;
    part.total += part.layout->count[member];
  }
  part.layout->input = offsets(inputs, element);
  part.buffers = {lowest(inputs), output.data()};
  parts.push_back(std::move(part));
}

Backend::Result Backend::reduce_scatter(Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& opts) {
  check_single("reduce_scatter", outputs);
  check_lists("reduce_scatter", inputs, 1, members());
  check_like("reduce_scatter", outputs[0], {inputs[0][static_cast<std::size_t>(rank_)]});
  Collect part = adding(Operation::reduce_scatter, outputs[0], opts.reduceOp);
  Call call(*this);
  call.plan.inputs = inputs[0];
  call.plan.outputs = {outputs};
  Pieces pieces = call.read(inputs[0]);
  if (!aligned(pieces, size_of(part.type))) {  // memory from elsewhere, at odd places: copies lie evenly
    pieces.clear();
    for (const at::Tensor& tensor : inputs[0]) pieces.push_back(call.read(tensor.clone()));
  }
  call.add_reduce_scatter(pieces, call.write(outputs[0]), std::move(part));
  return launch(std::move(call), c10d::OpType::REDUCE_SCATTER, "shoal:reduce_scatter", opts.timeout);
}

Backend::Result Backend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& opts) {
  Tensors outputs{output}, inputs{input};
  return reduce_scatter_tensor_coalesced(outputs, inputs, opts);
}

Backend::Result Backend::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                         const c10d::ReduceScatterOptions& opts) {
  check_pairs("reduce_scatter_tensor", inputs, outputs);
  Call call(*this);
  call.plan.inputs = inputs;
  call.plan.outputs = {outputs};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_multiple("reduce_scatter_tensor", inputs[i], outputs[i], size_);
    call.add_reduce_scatter(even_pieces(call.read(inputs[i]), members()), call.write(outputs[i]),
                            adding(Operation::reduce_scatter, inputs[i], opts.reduceOp));
  }
  return launch(std::move(call), c10d::OpType::_REDUCE_SCATTER_BASE, "shoal:reduce_scatter", opts.timeout);
}

// --- everybody to everybody

Backend::Result Backend::alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<std::int64_t>& output_splits,
                                       std::vector<std::int64_t>& input_splits, const c10d::AllToAllOptions& opts) {
  TORCH_CHECK(input.scalar_type() == output.scalar_type(), "shoal: all_to_all_single: input and output have different dtypes");
  Call call(*this);
  call.plan.inputs = {input};
  call.plan.outputs = {{output}};
  const Pieces outgoing = split_rows(input, call.read(input), input_splits, size_);
  const Pieces incoming = split_rows(output, call.write(output), output_splits, size_);
  return exchange(std::move(call), outgoing, incoming, c10d::OpType::ALLTOALL_BASE, opts.timeout);
}

Backend::Result Backend::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& opts) {
  TORCH_CHECK(outputs.size() == members() && inputs.size() == members(), "shoal: all_to_all takes a tensor for each member");
  Call call(*this);
  call.plan.inputs = inputs;
  call.plan.outputs = {outputs};
  const Pieces outgoing = call.read(inputs), incoming = call.write(outputs);
  return exchange(std::move(call), outgoing, incoming, c10d::OpType::ALLTOALL, opts.timeout);
}

// Chunk s * members + d goes from s to d: this member knows its row and its column.
Backend::Result Backend::exchange(Call call, const Pieces& outgoing, const Pieces& incoming, c10d::OpType type,
                                  std::chrono::milliseconds timeout) {
  const auto own = static_cast<std::size_t>(rank_);
  TORCH_CHECK(outgoing[own].size() == incoming[own].size(), "shoal: all_to_all: this member sends itself ",
              outgoing[own].size(), " bytes and expects ", incoming[own].size());
  Collect part = moving(Operation::all_to_all, 0);
  part.comparable = false;
  part.layout = empty_layout(members() * members());
  const auto from = offsets(outgoing, 1), to = offsets(incoming, 1);
  for (std::size_t peer = 0; peer < members(); ++peer) {
    part.layout->count[own * members() + peer] = outgoing[peer].size();
    part.layout->input[own * members() + peer] = from[peer];
    part.layout->count[peer * members() + own] = incoming[peer].size();
    part.layout->output[peer * members() + own] = to[peer];
    part.total += outgoing[peer].size();
  }
  part.buffers = {lowest(outgoing), lowest(incoming)};
  call.parts.push_back(std::move(part));
  return launch(std::move(call), type, "shoal:all_to_all", timeout);
}

// --- sparse tensors

// Gathers everybody's entries, padded to the most that anybody has, and adds them: done when it returns.
Backend::Result Backend::allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& opts) {
  check_single("all_reduce", tensors);
  TORCH_CHECK(tensors[0].layout() == at::kSparse, "shoal: all_reduce_sparse takes a sparse tensor");
  TORCH_CHECK(opts.reduceOp == c10d::ReduceOp::SUM, "shoal: sparse tensors can be summed, nothing else");
  const at::NoGradGuard no_grad;
  const at::Tensor own = tensors[0].coalesce();
  c10d::AllgatherOptions gathering;
  gathering.timeout = opts.timeout;
  const auto gathered = [&](const at::Tensor& part) {
    TensorLists outputs(1);
    for (int member = 0; member < size_; ++member) outputs[0].push_back(at::empty_like(part, at::MemoryFormat::Contiguous));
    Tensors inputs{part};
    allgather(outputs, inputs, gathering)->wait(kNoTimeout);
    return outputs[0];
  };
  std::int64_t most = 0;
  const Tensors counts = gathered(at::full({1}, own._nnz(), at::kLong));
  for (const at::Tensor& count : counts) most = std::max(most, count.item<std::int64_t>());
  const auto padded = [&](const at::Tensor& part, std::int64_t dim) {
    auto sizes = part.sizes().vec();
    sizes[static_cast<std::size_t>(dim)] = most;
    at::Tensor full = at::zeros(sizes, part.options());
    full.narrow(dim, 0, part.size(dim)).copy_(part);
    return full;
  };
  const Tensors indices = gathered(padded(own.indices(), 1)), values = gathered(padded(own.values(), 0));
  at::Tensor sum = at::zeros_like(own);
  for (std::size_t member = 0; member < members(); ++member) {
    const auto count = counts[member].item<std::int64_t>();
    sum = sum + at::sparse_coo_tensor(indices[member].narrow(1, 0, count), values[member].narrow(0, 0, count), own.sizes());
  }
  tensors[0].copy_(sum.coalesce());
  Call call(*this);
  call.plan.inputs = tensors;
  call.plan.outputs = {tensors};
  const auto work = begin(call, c10d::OpType::_ALLREDUCE_SPARSE, "shoal:all_reduce", opts.timeout, "all_reduce", getSequenceNumberForGroup());
  return start(work, [&] { Work::part_done(work, nullptr); });
}

}  // namespace shoal::nn
