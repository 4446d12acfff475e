#include "hone/engine/cuda/share/sharing.cuh"

#include "hone/engine/cuda/update/learn.cuh"

namespace hone::cuda {
namespace {

// As many blocks as a device has at a time, about: 4 MB of sums.
constexpr int tasks_at_once = 256;

__global__ void pack_news(Space own, DatumNews* news) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x) + this_thread();
  if (row >= own.batch) return;
  const DatumValues values(own, 0);
  news[row] = {.elbo = values.elbo[row],
               .refined = values.refined[row],
               .terms = {values.terms[row], values.terms[own.batch + row]},
               .acceptance = own.chains.acceptance[row],
               .alive = own.alive[row],
               .proposals = own.chains.proposals[row],
               .nonfinite = own.chains.nonfinite[row],
               .unused = 0};
}

// Also says which iteration comes next: it is prepared before this one's end.
__global__ void unpack_news(Space space, const DatumNews* news) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x) + this_thread();
  if (row == 0) space.state->next = space.now->iteration + 1;
  if (row >= space.batch) return;
  const DatumNews& of_row = news[row];
  const DatumValues values(space, 0);
  values.elbo[row] = of_row.elbo;
  values.refined[row] = of_row.refined;
  for (int term = 0; term < 2; ++term) values.terms[term * space.batch + row] = of_row.terms[term];
  space.chains.acceptance[row] = of_row.acceptance;
  space.alive[row] = of_row.alive;
  space.chains.proposals[row] = of_row.proposals;
  space.chains.nonfinite[row] = of_row.nonfinite;
}

template <class T>
void copy(T* to, const T* from, std::size_t count, cudaStream_t stream) {
  if (count == 0) return;
  check(cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDefault, stream), "copying what ranks exchange");
}

std::vector<TaskBlock> blocks_of(const std::vector<UpdateTask>& tasks) {
  std::vector<std::size_t> floats;
  for (const UpdateTask& task : tasks) floats.push_back(floats_of_sums(task));
  return task_blocks(floats, tasks_at_once);
}

}  // namespace

Sharing::Sharing(const TrainPlan& plan, Ranks& ranks, std::vector<UpdateTask>& tasks, cudaStream_t stream)
    : ranks_(ranks),
      stream_(stream),
      batch_(plan.config.batch),
      rows_(rows_of(batch_, ranks)),
      blocks_(blocks_of(tasks)),
      on_host_(blocks_.size()),
      sums_(blocks_.back().end),
      news_(batch_),
      host_sums_(sums_.size()),
      host_news_(batch_),
      host_outcomes_(batch_) {
  float* to = sums_.data();
  for (UpdateTask& task : tasks) {
    task.sums = to;
    to += floats_of_sums(task);
  }
}

// Each rank has written its rows.
template <class T>
void Sharing::gather(std::span<T> values) const {
  ranks_.gather(std::as_writable_bytes(values), row_bounds(batch_, sizeof(T), ranks_), Patience::limited);
}

void Sharing::exchange_outcomes(const ChainArrays& chains) const {
  const std::span<int> host = host_outcomes_.all();
  copy(host.data() + rows_.begin, chains.outcome, rows_.count(), stream_);
  news_on_host_.set(stream_);
  news_on_host_.wait();
  gather(host);
  copy(chains.outcome, host.data(), host.size(), stream_);
}

void Sharing::send_news(const Space& own) const {
  DatumNews* const news = news_.data() + rows_.begin;
  launch(pack_news, threads_for(rows_.count()), stream_, "collecting values of data", own, news);
  copy(host_news_.all().data() + rows_.begin, news, rows_.count(), stream_);
  news_on_host_.set(stream_);
}

void Sharing::receive_news(const Space& space) const {
  news_on_host_.wait();
  gather(host_news_.all());
  copy(news_.data(), host_news_.all().data(), batch_, stream_);
  launch(unpack_news, threads_for(batch_), stream_, "handing out values of data", space, news_.data());
}

std::span<std::byte> Sharing::bytes_of(const TaskBlock& block) const {
  return std::as_writable_bytes(host_sums_.all().subspan(block.begin, block.end - block.begin));
}

void Sharing::to_device(const TaskBlock& block) const {
  copy(sums_.data() + block.begin, host_sums_.all().data() + block.begin, block.end - block.begin, stream_);
}

void Sharing::pass_on(std::size_t block) const {
  if (ranks_.rank() == ranks_.size() - 1) return;
  on_host_[block].wait();
  ranks_.send(bytes_of(blocks_[block]), ranks_.rank() + 1);
}

void Sharing::update(const Space& space, const Space& own, const UpdateSpec& spec,
                     const std::function<void()>& meanwhile) const {
  const int rank = ranks_.rank(), last = ranks_.size() - 1;
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    const TaskBlock& block = blocks_[b];
    if (rank > 0) {
      ranks_.receive(bytes_of(block), rank - 1);
      to_device(block);
    }
    launch_add_rows(own, spec, block, rank > 0 ? AddTo::sums : AddTo::zero, stream_);
    copy(host_sums_.all().data() + block.begin, sums_.data() + block.begin, block.end - block.begin, stream_);
    on_host_[b].set(stream_);
    if (b > 0) pass_on(b - 1);
  }
  meanwhile();
  launch_learn(space, spec, stream_);
  pass_on(blocks_.size() - 1);
  ranks_.broadcast({}, last, Patience::limited);  // from now on what was sent may change
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    if (rank == last) on_host_[b].wait();
    ranks_.broadcast(bytes_of(blocks_[b]), last, Patience::limited);
    if (rank != last) to_device(blocks_[b]);
    launch_move(space, spec, blocks_[b], stream_);
  }
}

}  // namespace hone::cuda
