#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace hone {

// How long a rank waits for the others. Within an iteration they are never far apart. Between iterations rank 0 may
// write a checkpoint, and in an evaluation one share may be slow: such a wait ends only when a rank gives no more signs
// of life.
enum class Patience { limited, unlimited };

// The processes of one job, on one machine or several. All of them make the same calls in the same order, each from
// its main thread. Throws Error if the others are lost.
class Ranks {
 public:
  virtual ~Ranks() = default;
  virtual int rank() const = 0;          // of this process, from 0
  virtual int size() const = 0;          // number of processes
  virtual std::string host() const = 0;  // this process's machine
  virtual bool sound() const = 0;        // false once a call has failed: from then on all calls do

  // All ranks get the bytes of rank `from`.
  virtual void broadcast(std::span<std::byte> bytes, int from, Patience patience) = 0;
  // Rank r has written the bytes [bounds[r], bounds[r + 1]); all ranks get all of them.
  virtual void gather(std::span<std::byte> bytes, std::span<const std::size_t> bounds, Patience patience) = 0;
  // From one rank to another. The bytes must not change before the next call of `send`, `broadcast` or `gather`
  // returns.
  virtual void send(std::span<const std::byte> bytes, int to) = 0;
  virtual void receive(std::span<std::byte> bytes, int from) = 0;

  virtual void finish() = 0;         // all ranks call it as their last one
  virtual void abort(int code) = 0;  // ends all processes at once
};

// The items [begin, end) of a list.
struct ItemRange {
  int begin, end;
  int count() const { return end - begin; }
};

// The share of a rank; all of them if there are no ranks.
ItemRange share_of(int items, const Ranks* ranks);
// Where the shares of all ranks begin, in bytes, if an item has `bytes_per_item`; one more for the end.
std::vector<std::size_t> share_bounds(int items, std::size_t bytes_per_item, const Ranks& ranks);

// Every rank has computed its share of `items` items that have values.size() / items values each; all get all.
template <class T>
void gather_shares(Ranks* ranks, std::span<T> values, int items, Patience patience = Patience::limited) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (!ranks) return;
  const std::size_t per_item = items == 0 ? 0 : values.size() / static_cast<std::size_t>(items);
  ranks->gather(std::as_writable_bytes(values), share_bounds(items, per_item * sizeof(T), *ranks), patience);
}

// Why something that all ranks do at once failed on this rank; empty if it did not. All learn the first reason of a
// rank other than 0.
std::string first_failure(Ranks& ranks, const std::string& own);

// Whether this process was started as one of several, by what mpirun and Slurm write into the environment.
bool started_as_rank();

// This process's number among those of its job on this machine, by what mpirun and Slurm write into the environment; 0
// if they say nothing.
int local_rank();

// How many processes of its job run on this machine, this one included; 1 if mpirun and Slurm say nothing.
int ranks_here();

// Joins the job by the first of these modules (libhone_mpi.so) that exists. Throws InputError that names them if none
// does, and Error if it cannot be loaded. Null: rank 0 reports an InputError, and this process ends
// quietly.
std::unique_ptr<Ranks> join_ranks(const std::vector<std::string>& modules);

}  // namespace hone
