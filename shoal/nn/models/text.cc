// Models of text: tokens in, for each place the scores of the next token out.
#include "shoal/nn/models/network.h"
#include "shoal/nn/models/zoo.h"

namespace shoal::nn::models {
namespace {

using Value = Network::Value;

// The translation model that P3 times (Jayarajan et al., SysML 2019): Sockeye with embeddings of 512, 2 + 2 LSTM layers of 512 and attention
// by a layer of 512, with input feeding. The encoder reads in one direction.
Model seq2seq() {
  Network net("seq2seq", "Hieber et al., arXiv 1712.05690, 2017, as P3 trains it");
  constexpr std::int64_t words = 8000, width = 512, typical = 14;  // words of a sentence of Multi30k
  const Value source = net.input("source", {typical}, words), target = net.input("target", {typical}, words);
  const Value encoder =
      net.apply("encoder", Lstm{width, 2}, net.apply("source_embedding", Embedding{words, width, true}, source));
  const Value keys = net.apply("key", Linear{.out = width, .bias = false}, encoder);
  const Value read = net.apply("target_embedding", Embedding{words, width, true}, target);
  net.apply("output", Linear{words}, net.apply("decoder", FedDecoder{width, 2}, {read, encoder, keys, source}));
  return std::move(net).finish();
}

Model char_transformer() {
  Network net("char-transformer", "Radford et al. 2018, in small: 4 blocks of width 192, 6 heads, normalised before each part",
              Initial::small);
  constexpr std::int64_t characters = 65, places = 128, width = 192;  // the characters of tiny Shakespeare
  const Value tokens = net.input("text", {places}, characters);
  Value at = net.apply("position", Position{places}, net.apply("token", Embedding{characters, width}, tokens));
  for (int i = 0; i < 4; ++i) {
    const std::string b = "blocks." + std::to_string(i) + ".";
    Value x = net.apply(b + "qkv", Linear{3 * width}, net.apply(b + "norm1", LayerNorm{}, at));
    x = net.apply(b + "project", Linear{width}, net.apply(b + "attention", SelfAttention{.heads = 6, .causal = true}, x));
    at = net.apply(b + "add1", Add{}, {at, x});
    x = net.apply(b + "expand", Linear{4 * width}, net.apply(b + "norm2", LayerNorm{}, at));
    x = net.apply(b + "contract", Linear{width}, net.apply(b + "gelu", Activation{Function::gelu}, x));
    at = net.apply(b + "add2", Add{}, {at, x});
  }
  net.apply("head", Linear{characters}, net.apply("norm", LayerNorm{}, at));
  return std::move(net).finish();
}

}  // namespace

Model text(const std::string& name) { return name == "seq2seq" ? seq2seq() : char_transformer(); }

}  // namespace shoal::nn::models
