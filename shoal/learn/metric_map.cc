#include "shoal/learn/metric_map.h"

namespace shoal::learn {
namespace {

void map_into(const MetricMap& map, const data::SparseRow& sample, std::span<float> point) {
  for (std::size_t i = 0; i < sample.columns.size() && sample.columns[i] < map.columns; ++i) {
    const float* row = &map.values[std::size_t{sample.columns[i]} * map.dimensions];
    for (std::uint32_t k = 0; k < map.dimensions; ++k) point[k] += sample.values[i] * row[k];
  }
}

}  // namespace

MetricMap MetricMap::from(const ModelFolder& folder) {
  return folder.understood("metric", [&](const Json& config) {
    MetricMap map{config.at("columns").get<std::uint32_t>(), config.at("dimensions").get<std::uint32_t>(), {}};
    map.values = tensor_of(folder.model().tensors, "map", {map.columns, map.dimensions}).values;
    return map;
  });
}

std::vector<float> MetricMap::operator()(const data::SparseRow& sample) const {
  std::vector<float> point(dimensions);
  map_into(*this, sample, point);
  return point;
}

std::vector<float> MetricMap::operator()(const data::SparseSlice& samples) const {
  std::vector<float> points(samples.size() * dimensions);
  for (std::size_t i = 0; i < samples.size(); ++i) map_into(*this, samples[i], std::span(points).subspan(i * dimensions, dimensions));
  return points;
}

}  // namespace shoal::learn
