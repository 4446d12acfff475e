#include "hone/engine/message.hpp"

#include <variant>

namespace hone {
namespace {

// How the values of data travel: in the form in which they are stored, because a byte times the scale has other bits in
// float than in double.
enum class Form : std::uint8_t { bits, bytes, numbers };

}  // namespace

void Message::put(const DataSet& data) {
  put(data.shape());
  put(data.size());
  if (const BitRows* bits = data.bits()) {
    put(Form::bits);
    for (int n = 0; n < data.size(); ++n) put_all(bits->row(n));
  } else if (!data.bytes().empty()) {
    put(Form::bytes);
    put(data.scale());
    put_all(data.bytes());
  } else {
    put(Form::numbers);
    Matrix<double> column(data.dimension(), 1);
    for (int n = 0; n < data.size(); ++n) {
      data.expand(std::span<const int>(&n, 1), column.view());
      put_all(std::span<const double>(column.column(0)));
    }
  }
}

DataSet Message::take_data() {
  const auto shape = take<ImageShape>();
  const int size = take<int>();
  const auto pixels = static_cast<std::size_t>(shape.pixels()), all = pixels * static_cast<std::size_t>(size);
  switch (take<Form>()) {
    case Form::bits: {
      BitRows rows(shape.pixels());
      std::vector<std::uint64_t> words((pixels + 63) / 64);
      std::vector<std::uint8_t> row(pixels);
      for (int n = 0; n < size; ++n) {
        take_into(std::span(words));
        for (std::size_t i = 0; i < pixels; ++i) row[i] = words[i / 64] >> (i % 64) & 1;
        rows.append(row);
      }
      return {std::move(rows), shape};
    }
    case Form::bytes: {
      const auto scale = take<double>();
      std::vector<std::uint8_t> values(all);
      take_into(std::span(values));
      return {std::move(values), shape, scale};
    }
    case Form::numbers:
      break;
  }
  std::vector<double> values(all);
  take_into(std::span(values));
  return {std::move(values), shape};
}

void Message::put(const TrainState& state) {
  put(state.iteration);
  put(state.step_size);
  put(state.arrays.size());
  for (const NamedArray& array : state.arrays) {
    put(array.name);
    put_list(std::span<const std::int64_t>(array.shape));
    put(array.values.index());
    std::visit([&]<class T>(const std::vector<T>& values) { put_list(std::span<const T>(values)); }, array.values);
  }
}

TrainState Message::take_state() {
  TrainState state;
  state.iteration = take<std::uint32_t>();
  state.step_size = take<double>();
  state.arrays.resize(take<std::size_t>());
  for (NamedArray& array : state.arrays) {
    array.name = take_text();
    array.shape = take_list<std::int64_t>();
    if (take<std::size_t>() == 0)
      array.values = take_list<float>();
    else
      array.values = take_list<double>();
  }
  return state;
}

}  // namespace hone
