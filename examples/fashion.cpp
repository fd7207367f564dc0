// Fashion-MNIST in libtorch, through the classes behind shoal.data_parallel:
//
//   fashion                          one process
//   shoal run -n 4 -- fashion        four members
//
// What training on several members takes is marked `shoal`.
#include <torch/torch.h>
#include <zlib.h>

#include <cstdio>
#include <cstdlib>
#include <optional>

#include "shoal/core/error.h"
#include "shoal/net/job.h"
#include "shoal/nn/data_parallel.h"
#include "shoal/nn/session.h"
#include "shoal/observe/recorder.h"

namespace {

constexpr std::int64_t kImage = 28 * 28, kBatch = 128;  // pixels; images of one member in one step

// The bytes behind the header of a gzipped IDX file, as rows of `row` bytes.
torch::Tensor read_idx(const std::string& path, std::int64_t header, std::int64_t row) {
  const gzFile file = gzopen(path.c_str(), "rb");
  std::vector<std::uint8_t> bytes(64 << 20);
  const int size = file ? gzread(file, bytes.data(), static_cast<unsigned>(bytes.size())) : -1;
  if (file) gzclose(file);
  if (size <= header || (size - header) % row != 0)
    throw shoal::Error(shoal::Code::invalid_argument, "cannot be read as an IDX file", path, "apt install dataset-fashion-mnist");
  return torch::from_blob(bytes.data() + header, {(size - header) / row, row}, torch::kUInt8).clone();
}

struct Images {
  torch::Tensor pixels, labels;
  Images(const std::string& folder, const std::string& part)
      : pixels(read_idx(folder + "/" + part + "-images-idx3-ubyte.gz", 16, kImage).to(torch::kFloat).div(255).sub(0.5).view({-1, 1, 28, 28})),
        labels(read_idx(folder + "/" + part + "-labels-idx1-ubyte.gz", 8, 1).view(-1).to(torch::kInt64)) {}
};

void train(const std::string& folder, std::int64_t most_steps) {
  using namespace torch::nn;
  shoal::nn::Session session(shoal::net::join(), std::chrono::seconds(120));                                 // shoal
  std::optional<shoal::observe::Recorder> recorder;                                                          // shoal: for the report
  if (const char* run = std::getenv("SHOAL_RUN_DIR"))
    recorder.emplace(shoal::observe::RunFolder::open(run), static_cast<int>(session.rank()), static_cast<int>(session.size()));

  torch::manual_seed(1);
  Sequential model(Conv2d(Conv2dOptions(1, 8, 5).stride(2)), ReLU(), Conv2d(Conv2dOptions(8, 16, 5).stride(2)), ReLU(), Flatten(),
                   Linear(16 * 4 * 4, 128), ReLU(), Linear(128, 10));
  torch::optim::Adam optimizer(model->parameters(), 1e-3);

  std::vector<shoal::nn::NamedTensor> parameters;                                                            // shoal
  for (const auto& named : model->named_parameters()) parameters.push_back({named.key(), named.value()});
  std::optional<shoal::nn::DataParallel> parallel;  // one member alone has nothing to exchange
  if (session.size() > 1) {
    shoal::nn::require_equal_models(session, parameters, "fashion.cpp, Adam 1e-3");
    shoal::nn::broadcast_tensors(session, model->parameters(), 0, "first values of the model");
    parallel.emplace(session, parameters, std::vector<torch::Tensor>{}, shoal::nn::DataParallel::Options{});
  }

  const Images images(folder, "train"), test(folder, "t10k");
  const auto size = static_cast<std::int64_t>(session.size());
  const auto order = torch::randperm(images.labels.size(0)).slice(0, session.rank(), std::nullopt, size);    // shoal: this member's share
  const std::int64_t steps = std::min(images.labels.size(0) / size / kBatch, most_steps);
  torch::Tensor loss;
  for (std::int64_t step = 0; step < steps; ++step) {
    const auto batch = order.slice(0, step * kBatch, (step + 1) * kBatch);
    optimizer.zero_grad();
    if (parallel) parallel->forward_begins(kBatch);                                                          // shoal
    const auto output = model->forward(images.pixels.index_select(0, batch));
    if (parallel) parallel->forward_ends(), parallel->watch(output);                                         // shoal
    loss = torch::nn::functional::cross_entropy(output, images.labels.index_select(0, batch));
    loss.backward();
    if (parallel) parallel->finish();                                                                        // shoal: every grad is the mean
    optimizer.step();
    if (parallel) parallel->commit();                                                                        // shoal
    if (recorder && step % 20 == 0) recorder->flush();
  }
  model->eval();
  const torch::NoGradGuard no_grad;
  const double accuracy = model->forward(test.pixels).argmax(1).eq(test.labels).to(torch::kDouble).mean().item<double>();
  if (session.rank() == 0) std::printf("loss %.4f, test accuracy %.4f\n", loss.item<double>(), accuracy);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    train(argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist", argc > 2 ? std::atoll(argv[2]) : std::numeric_limits<std::int64_t>::max());
  } catch (const shoal::Error& error) {
    std::fprintf(stderr, "fashion: %s\n", error.what());
    return shoal::exit_code(error.code());
  }
}
