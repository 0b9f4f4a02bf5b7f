// A decoder that generates text, as converters of PyTorch models write it: grouped queries over a
// cache, rotary embedding, RMS normalization and attention as composites, a gated feed-forward
// (Touvron et al. 2023), and weights that both signatures share.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tools/zoo/net_builder.h"
#include "tools/zoo/zoo.h"

namespace fuselite::tools {
namespace {

constexpr float kEpsilon = 1e-5f;
constexpr int32_t kBlockSize = 32;

enum class Weights {
  kDynamicRange,  // int8, with values that are quantized when the model runs
  kDequantized,   // int8, which a DEQUANTIZE makes floats of
  kBlockwise,     // int4, with a float16 scale for each block of a row
};

struct Design {
  int32_t width, hidden, layers, vocabulary;
  int32_t heads, key_heads, head_width;
  int32_t positions, prefill;  // of the cache, and tokens of a prompt
  Weights weights;
};
// Four times what the last-level cache of a large desktop processor holds.
constexpr Design kLarge = {1024, 2816, 12, 8192, 16, 4, 64, 512, 32, Weights::kDynamicRange};
constexpr Design Small(Weights weights) { return {128, 384, 2, 2048, 4, 2, 32, 256, 64, weights}; }

class Decoder {
 public:
  Decoder(const Design& design, uint64_t seed)
      : design_(design), net_("decoder with a cache, seeded weights", seed) {}

  std::vector<std::byte> Build() && {
    // Subgraphs 0 and 1 are the signatures; decompositions follow.
    AddSignature("prefill_" + std::to_string(design_.prefill), 0, design_.prefill);
    AddSignature("decode", 1, 1);
    for (int32_t length : {design_.prefill, 1}) {
      AddRmsNorm(length);
      AddAttention(length);
    }
    return net_.Finish();
  }

 private:
  using Named = std::vector<std::pair<std::string, Net>>;

  float query_scale() const { return 1 / std::sqrt(static_cast<float>(design_.head_width)); }
  static int RmsNormGraph(int32_t length) { return length == 1 ? 4 : 2; }
  static int AttentionGraph(int32_t length) { return length == 1 ? 5 : 3; }

  Net Reshape(const Net& x, const std::vector<int32_t>& shape, DataType type = DataType::kFloat32) {
    return net_.Apply("RESHAPE", {x, net_.IntConstant("shape", shape)}, {}, type);
  }
  Net Scalar(float value) { return net_.Constant("scalar", {}, {value}); }

  // Weights that all signatures share, made by the first one that asks, as an operator reads them.
  Net SharedWeights(const std::string& name, const Shape& shape, int64_t fan_in) {
    const auto known = weights_.find(name);
    const Net stored = known == weights_.end() ? MakeWeights(name, shape, fan_in)
                       : known->second.graph == graph_
                           ? known->second.net
                           : net_.Share(known->second.graph, known->second.net);
    return design_.weights == Weights::kDequantized ? net_.Apply("DEQUANTIZE", {stored}) : stored;
  }
  Net MakeWeights(const std::string& name, const Shape& shape, int64_t fan_in) {
    const Net made = design_.weights == Weights::kBlockwise
                         ? net_.RandomBlocks(name, shape, fan_in, kBlockSize)
                         : net_.RandomBytes(name, shape, fan_in);
    weights_[name] = {graph_, made};
    return made;
  }
  Net Dense(const std::string& name, const Net& x, int32_t units) {
    const int32_t in = x.shape.dim(-1);
    return net_.Apply("FULLY_CONNECTED", {x, SharedWeights(name, {units, in}, in)},
                      {{"keep_num_dims", 1}});
  }
  Net Normalized(const Net& x) {
    const Net ones =
        net_.Constant("gamma", {design_.width}, std::vector<float>(design_.width, 1.0f));
    return net_.Composite("odml.rms_norm", RmsNormGraph(length_), {x, ones}, x.shape,
                          {{"epsilon", kEpsilon}});
  }

  // Halves of a head's channels are turned against each other, by an angle for each position.
  Net Rotate(const Net& x) {
    const int32_t heads = x.shape[2], half = design_.head_width / 2;
    const auto part = [&](int32_t begin) {
      return net_.Apply("SLICE", {x, net_.IntConstant("begin", {0, 0, 0, begin}),
                                  net_.IntConstant("size", {1, length_, heads, half})});
    };
    const Net a = part(0), b = part(half);
    const auto times = [&](const Net& u, const Net& v) { return net_.Apply("MUL", {u, v}); };
    const Net first = net_.Apply("SUB", {times(a, cosine_), times(b, sine_)});
    const Net second = net_.Add(times(b, cosine_), times(a, sine_));
    return net_.Apply("CONCATENATION", {first, second}, {{"axis", 3}});
  }

  void FindAngles(const Net& positions) {
    std::vector<float> frequencies(design_.head_width / 2);
    for (int i = 0; i < design_.head_width / 2; ++i) {
      frequencies[i] = std::pow(
          10000.0f, -2.0f * static_cast<float>(i) / static_cast<float>(design_.head_width));
    }
    const Net numbers = net_.Apply("CAST", {positions});
    const Net angles = net_.Apply(
        "MUL", {Reshape(numbers, {1, length_, 1, 1}),
                net_.Constant("frequencies", {1, 1, 1, design_.head_width / 2}, frequencies)});
    cosine_ = net_.Apply("COS", {angles});
    sine_ = net_.Apply("SIN", {angles});
  }

  // 0 where a row sees a position of the cache, minus infinity elsewhere.
  void FindMask(const Net& positions) {
    std::vector<int32_t> all(design_.positions);
    for (int32_t i = 0; i < design_.positions; ++i) all[i] = i;
    const Net columns = net_.IntConstant("positions", all);
    const Net rows = Reshape(positions, {1, 1, length_, 1}, DataType::kInt32);
    const Net hidden = net_.Apply("GREATER", {columns, rows}, {}, DataType::kBool);
    mask_ = net_.Apply("SELECT_V2", {hidden, Scalar(-INFINITY), Scalar(0)});
  }

  Net Update(const std::string& name, const Net& cache, const Net& update, Named* outputs) {
    const Net next = net_.Apply("DYNAMIC_UPDATE_SLICE", {cache, update, start_});
    outputs->emplace_back(name, next);
    return next;
  }

  Net Layer(const std::string& name, const Net& x, const Net& keys, const Net& values,
            Named* outputs) {
    const Net normal = Normalized(x);
    const auto heads = [&](const std::string& of, int32_t count) {
      return Reshape(Dense(name + of, normal, count * design_.head_width),
                     {1, length_, count, design_.head_width});
    };
    const Net query = Rotate(heads(".q", design_.heads)),
              key = Rotate(heads(".k", design_.key_heads));
    const Net all_keys = Update("kv_cache_k_" + name, keys, key, outputs);
    const Net all_values =
        Update("kv_cache_v_" + name, values, heads(".v", design_.key_heads), outputs);
    const Net mixed = net_.Composite("odml.scaled_dot_product_attention", AttentionGraph(length_),
                                     {query, all_keys, all_values, mask_}, query.shape,
                                     {{"scale", query_scale()}});
    const Net attended =
        net_.Add(x, Dense(name + ".o", Reshape(mixed, {1, length_, design_.width}), design_.width));
    const Net again = Normalized(attended);
    const Net gate = Dense(name + ".gate", again, design_.hidden);
    const Net open = net_.Apply("MUL", {gate, net_.Apply("LOGISTIC", {gate})});
    const Net product = net_.Apply("MUL", {open, Dense(name + ".up", again, design_.hidden)});
    return net_.Add(attended, Dense(name + ".down", product, design_.width));
  }

  void AddSignature(const std::string& key, int graph, int32_t length) {
    graph_ = graph;
    length_ = length;
    if (graph > 0) net_.Begin(key);
    const Net tokens = net_.Input("tokens", {1, length}, DataType::kInt32);
    const Net positions = net_.Input("input_pos", {length}, DataType::kInt32);
    std::vector<Net> keys, values;
    for (int layer = 0; layer < design_.layers; ++layer) {
      const Shape cache{1, design_.positions, design_.key_heads, design_.head_width};
      keys.push_back(net_.Input("kv_cache_k_" + std::to_string(layer), cache));
      values.push_back(net_.Input("kv_cache_v_" + std::to_string(layer), cache));
    }
    FindAngles(positions);
    FindMask(positions);
    const Net first = net_.Apply(
        "SLICE", {positions, net_.IntConstant("begin", {0}), net_.IntConstant("size", {1})}, {},
        DataType::kInt32);
    const Net zero = net_.IntConstant("zero", {0});
    start_ =
        net_.Apply("CONCATENATION", {zero, first, zero, zero}, {{"axis", 0}}, DataType::kInt32);
    const Net table = SharedWeights("embedding", {design_.vocabulary, design_.width}, 1);
    const Net ids = Reshape(tokens, {length}, DataType::kInt32);
    Net x = Reshape(net_.Apply("EMBEDDING_LOOKUP", {ids, table}), {1, length, design_.width});
    Named outputs;
    for (int layer = 0; layer < design_.layers; ++layer) {
      x = Layer(std::to_string(layer), x, keys[layer], values[layer], &outputs);
    }
    if (length == 1)
      outputs.emplace_back("logits", Dense("head", Normalized(x), design_.vocabulary));
    net_.End(key, outputs);
  }

  void AddRmsNorm(int32_t length) {
    net_.Begin("odml.rms_norm." + std::to_string(length));
    const Net x = net_.Input("x", {1, length, design_.width}),
              gamma = net_.Input("gamma", {design_.width});
    const Net squares = net_.Apply("MUL", {x, x});
    const Net mean =
        net_.Apply("MEAN", {squares, net_.IntConstant("axis", {2})}, {{"keep_dims", 1}});
    const Net inverse = net_.Apply("RSQRT", {net_.Add(mean, Scalar(kEpsilon))});
    net_.End("", {{"y", net_.Apply("MUL", {net_.Apply("MUL", {x, inverse}), gamma})}});
  }

  void AddAttention(int32_t length) {
    net_.Begin("odml.scaled_dot_product_attention." + std::to_string(length));
    const Shape cache{1, design_.positions, design_.key_heads, design_.head_width};
    const Net query = net_.Input("query", {1, length, design_.heads, design_.head_width});
    const Net keys = net_.Input("keys", cache), values = net_.Input("values", cache);
    const Net mask = net_.Input("mask", {1, 1, length, design_.positions});
    const auto turned = [&](const Net& x) {
      return net_.Apply("TRANSPOSE", {x, net_.IntConstant("order", {0, 2, 1, 3})});
    };
    const auto repeated = [&](const Net& x) {
      const Net apart =
          Reshape(turned(x), {1, design_.key_heads, 1, design_.positions, design_.head_width});
      const Net copies = net_.Apply(
          "BROADCAST_TO",
          {apart,
           net_.IntConstant("shape", {1, design_.key_heads, design_.heads / design_.key_heads,
                                      design_.positions, design_.head_width})});
      return Reshape(copies, {1, design_.heads, design_.positions, design_.head_width});
    };
    const Net scaled = net_.Apply("MUL", {query, Scalar(query_scale())});
    const Net scores = net_.Apply("BATCH_MATMUL", {turned(scaled), repeated(keys)}, {{"adj_y", 1}});
    const Net weights = net_.Apply("SOFTMAX", {net_.Add(scores, mask)}, {{"beta", 1}});
    net_.End("", {{"y", turned(net_.Apply("BATCH_MATMUL", {weights, repeated(values)}))}});
  }

  const Design design_;
  NetBuilder net_;
  struct Made {
    int graph;
    Net net;
  };
  std::map<std::string, Made> weights_;
  int graph_ = 0;
  int32_t length_ = 1;
  Net cosine_, sine_, mask_, start_;
};

}  // namespace

std::vector<std::byte> BuildDecoder(uint64_t seed) { return Decoder(kLarge, seed).Build(); }

std::vector<std::byte> BuildSmallDecoder(uint64_t seed) {
  return Decoder(Small(Weights::kDynamicRange), seed).Build();
}

std::vector<std::byte> BuildDequantizedDecoder(uint64_t seed) {
  return Decoder(Small(Weights::kDequantized), seed).Build();
}

std::vector<std::byte> BuildBlockwiseDecoder(uint64_t seed) {
  return Decoder(Small(Weights::kBlockwise), seed).Build();
}

}  // namespace fuselite::tools
