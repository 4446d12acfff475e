#include "app/data/data_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "hone/base/error.hpp"

namespace hone {

int DataStream::at_once(int block, int dimension) {
  constexpr std::int64_t most = 16, values = 1 << 25;  // 256 MB of doubles
  const std::int64_t blocks = values / (std::int64_t{block} * std::max(1, dimension));
  return block * static_cast<int>(std::clamp<std::int64_t>(blocks, 1, most));
}

DataStream::DataStream(DataSet data, int block)
    : block_(block), size_(data.size()), shape_(data.shape()), all_(std::move(data)) {}

DataStream::DataStream(DataRequest request, int block, const Work& check)
    : request_(std::move(request)), block_(block) {
  while (!scan(check)) {
  }
}

// One pass over the file; false if the form of the data changed on the way.
bool DataStream::scan(const Work& check) {
  const auto reader = open_data_file(request_.name, file_request(request_));
  shape_ = shape_of(*reader, request_.shape, request_.planes);
  scale_ = reader->scale();
  size_ = 0;
  const int dimension = reader->dimension(), most = at_once(block_, dimension);
  std::optional<StoredAs> form = form_;
  for (Numbers next = reader->next(most); count_of(next, dimension) > 0;) {
    Numbers numbers = std::exchange(next, reader->next(most));
    const int count = count_of(numbers, dimension);
    if (count > std::numeric_limits<int>::max() - size_)
      throw InputError(fmt::format("{}: expected at most {} data", request_.name, std::numeric_limits<int>::max()));
    form = std::max(form.value_or(StoredAs::bits), form_of(numbers, scale_));
    if (!form_) form_ = form;
    if (form == form_) {
      DataSet data = piece(std::move(numbers), size_);
      check(data, size_);
      if (size_ == 0 && count_of(next, dimension) == 0) all_ = std::move(data);
    }
    size_ += count;
  }
  return std::exchange(form_, form) == form;
}

DataSet DataStream::piece(Numbers numbers, int first) const {
  if (form_of(numbers, scale_) > *form_) throw InputError(fmt::format("{}: changed while it was read", request_.name));
  try {
    return binarized(data_of(std::move(numbers), shape_, scale_, *form_), request_.binarization,
                     {request_.seed, 1, first});
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", request_.name, error.what()));
  }
}

void DataStream::each(int begin, int end, const Work& work) const {
  const int most = at_once(block_, shape_.pixels());
  if (all_) {
    if (begin == 0 && end == size_ && size_ <= most) return work(*all_, 0);
    for (int first = begin - begin % most; first < end; first += most)
      work(all_->slice(first, std::min(end, first + most)), first);
    return;
  }
  const auto reader = open_data_file(request_.name, file_request(request_));
  for (int first = 0; first < end;) {
    Numbers numbers = reader->next(most);
    const int count = count_of(numbers, reader->dimension());
    if (count == 0 || reader->dimension() != shape_.pixels())
      throw InputError(fmt::format("{}: changed while it was read", request_.name));
    if (first + count > begin) {
      const DataSet data = piece(std::move(numbers), first);
      work(first + count > end ? data.slice(0, end - first) : data, first);
    }
    first += count;
  }
}

}  // namespace hone
