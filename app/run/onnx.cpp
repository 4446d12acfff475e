// ONNX files. The format is a protocol buffer; the few messages that a fully connected network needs are written here
// field by field, by the numbers of onnx.proto (docs/decisions.md says why).

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "app/run/export.hpp"
#include "hone/base/error.hpp"
#include "hone/base/scalar.hpp"

namespace hone {
namespace {

constexpr std::uint64_t ir_version = 7, opset = 13;  // of 2020: every runtime of today reads them
constexpr std::uint64_t float_type = 1, int64_type = 7, integers_attribute = 7;
constexpr std::size_t largest = std::size_t{2'000'000'000};  // a protocol buffer ends below 2 GiB

// A protocol buffer under construction.
class Message {
 public:
  Message& number(int field, std::uint64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3);
    varint(value);
    return *this;
  }
  Message& text(int field, std::string_view value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(int field, const Message& value) { return text(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>((value & 127) | 128);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

// A value of the graph: (data, width), where the number of data is free.
Message value_info(const std::string& name, int width) {
  Message data, fixed, shape, tensor, type;
  shape.message(1, data.text(2, "data")).message(1, fixed.number(1, static_cast<std::uint64_t>(width)));
  type.message(1, tensor.number(1, float_type).message(2, shape));
  return Message().text(1, name).message(2, type);
}

class Graph {
 public:
  explicit Graph(const ExportedModel& model) : model_(model) {}

  void input(const std::string& name, int width) { graph_.message(11, value_info(name, width)); }
  void output(const std::string& name, int width) { graph_.message(12, value_info(name, width)); }

  // A constant array; returns its name.
  std::string constant(const std::string& name, const std::vector<int>& shape, std::span<const float> values) {
    Message tensor;
    for (const int size : shape) tensor.number(1, static_cast<std::uint64_t>(size));
    tensor.number(2, float_type).text(8, name);
    tensor.text(9, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
    graph_.message(5, tensor);
    if (graph_.bytes().size() > largest) throw InputError("the model is too large for ONNX: expected less than 2 GB");
    return name;
  }

  std::string integers(const std::string& name, const std::vector<std::int64_t>& values) {
    Message tensor;
    tensor.number(1, values.size()).number(2, int64_type).text(8, name);
    tensor.text(9, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(std::int64_t)});
    graph_.message(5, tensor);
    return name;
  }

  using Attributes = std::vector<std::pair<std::string, std::vector<int>>>;

  // A node with one output; returns its name.
  std::string node(const std::string& kind, const std::vector<std::string>& inputs, const std::string& output,
                   const Attributes& attributes = {}) {
    Message node;
    for (const std::string& input : inputs) node.text(1, input);
    for (const auto& [name, values] : attributes) {
      Message attribute;
      attribute.text(1, name).number(20, integers_attribute);
      for (const int value : values) attribute.number(8, static_cast<std::uint64_t>(value));
      node.message(5, attribute);
    }
    graph_.message(1, node.text(2, output).text(3, output).text(4, kind));
    return output;
  }

  std::string network(const std::string& name, const std::vector<ExportedLayer>& layers, std::string value) {
    constexpr const char* kinds[] = {"Identity", "Relu", "Tanh", "Softplus"};
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const ExportedLayer& layer = layers[l];
      const std::string label = fmt::format("{}.{}", name, l);
      value = layer.windows ? convolution(label, layer, value) : dense(label, layer, value);
      if (l + 1 < layers.size()) value = node(kinds[static_cast<int>(model_.activation)], {value}, label + ".units");
    }
    return value;
  }

  std::string dense(const std::string& label, const ExportedLayer& layer, const std::string& value) {
    std::vector<std::string> inputs = {value, constant(label + ".weight", {layer.inputs, layer.outputs}, layer.weight)};
    if (!layer.bias.empty()) inputs.push_back(constant(label + ".bias", {layer.outputs}, layer.bias));
    return node("Gemm", inputs, label);
  }

  // Our images have the channels of a pixel side by side, ONNX's have one plane per channel.
  std::string convolution(const std::string& label, const ExportedLayer& layer, const std::string& value) {
    const Windows& w = *layer.windows;
    const bool down = layer.way == Way::down;
    const std::vector<std::int64_t> image = down ? std::vector<std::int64_t>{-1, 2 * w.rows, 2 * w.cols, w.fine}
                                                 : std::vector<std::int64_t>{-1, w.rows, w.cols, w.coarse};
    const std::string pixels = node("Reshape", {value, integers(label + ".image", image)}, label + ".pixels");
    std::vector<std::string> inputs = {node("Transpose", {pixels}, label + ".planes", {{"perm", {0, 3, 1, 2}}}),
                                       constant(label + ".weight", {w.coarse, w.fine, 4, 4}, layer.weight)};
    if (!layer.bias.empty()) inputs.push_back(constant(label + ".bias", {down ? w.coarse : w.fine}, layer.bias));
    const std::string made = node(down ? "Conv" : "ConvTranspose", inputs, label + ".made",
                                  {{"kernel_shape", {4, 4}}, {"strides", {2, 2}}, {"pads", {1, 1, 1, 1}}});
    const std::string back = node("Transpose", {made}, label + ".back", {{"perm", {0, 2, 3, 1}}});
    return node("Reshape", {back, integers(label + ".flat", {-1, layer.outputs})}, label);
  }

  // modified_softplus of hone/base/scalar.hpp
  std::string positive(const std::string& value, const std::string& output) {
    const float shift = static_cast<float>(softplus_shift);
    const std::string constant_name = constant(output + ".shift", {1}, {&shift, 1});
    const std::string shifted = node("Sub", {value, constant_name}, output + ".shifted");
    return node("Add", {node("Softplus", {shifted}, output + ".softplus"), constant_name}, output);
  }

  // E[x | z] of the decoder's outputs; those after the first `values` are standard deviations or dispersions.
  void mean(std::string a, int values) {
    if (model_.decoder.back().outputs != values)
      a = node("Slice", {a, integers("first", {0}), integers("last", {values}), integers("axis", {1})},
               "first_outputs");
    switch (model_.mean_of) {
      case MeanOf::outputs:
        node("Add", {a, centre("centre")}, "mean");
        break;
      case MeanOf::sigmoid:
        node("Sigmoid", {a}, "mean");
        break;
      case MeanOf::positive:
        positive(a, "mean");
        break;
      case MeanOf::softmax:
        a = node("Softmax", {node("Reshape", {a, integers("groups", {-1, model_.categories})}, "grouped")}, "softmax");
        node("Reshape", {a, integers("data", {-1, values})}, "mean");
        break;
    }
  }

  std::string file(const std::string& name) {
    Message model, version;
    model.number(1, ir_version).text(2, "hone").message(7, graph_.text(2, name));
    model.message(8, version.text(1, "").number(2, opset));
    for (const auto& [key, value] : model_.notes) model.message(14, Message().text(1, key).text(2, value));
    return model.bytes();
  }

  // q and the decoder see data without their mean.
  std::string centre(const std::string& name) {
    return constant(name, {static_cast<int>(model_.centre.size())}, model_.centre);
  }

 private:
  const ExportedModel& model_;
  Message graph_;
};

}  // namespace

std::string onnx_encoder(const ExportedModel& model) {
  Graph graph(model);
  graph.input("x", model.mean.front().inputs);
  std::string x = "x";
  if (!model.centre.empty()) x = graph.node("Sub", {x, graph.centre("centre")}, "x.centred");
  graph.node("Identity", {graph.network("mean_network", model.mean, x)}, "mean");
  graph.positive(graph.network("sd_network", model.sd, x), "sd");
  graph.output("mean", model.mean.back().outputs);
  graph.output("sd", model.sd.back().outputs);
  return graph.file("encoder");
}

std::string onnx_decoder(const ExportedModel& model) {
  Graph graph(model);
  graph.input("z", model.decoder.front().inputs);
  const std::string outputs = graph.node("Identity", {graph.network("decoder", model.decoder, "z")}, "outputs");
  const int values = model.mean.front().inputs;
  graph.mean(outputs, values);
  graph.output("outputs", model.decoder.back().outputs);
  graph.output("mean", values);
  return graph.file("decoder");
}

}  // namespace hone
