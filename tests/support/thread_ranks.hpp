#pragma once

#include <algorithm>
#include <barrier>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "hone/base/ranks.hpp"

namespace hone::test {

// Ranks that are threads of this process: what several processes do, without MPI.
class ThreadRanks {
 public:
  // Calls work(ranks) on `size` ranks at once.
  static void run(int size, const std::function<void(Ranks&)>& work) {
    Shared shared(size);
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] {
        One one(shared, rank);
        work(one);
      });
  }

 private:
  struct Shared {
    explicit Shared(int count) : size(count), meet(count), place(static_cast<std::size_t>(count)), box(place.size()) {}
    int size;
    std::barrier<> meet;
    std::vector<std::span<std::byte>> place;              // what each rank gave to a collective call
    std::vector<std::deque<std::vector<std::byte>>> box;  // sent to each rank
    std::mutex mutex;
    std::condition_variable arrived;
  };

  class One final : public Ranks {
   public:
    One(Shared& shared, int rank) : shared_(shared), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return shared_.size; }
    std::string host() const override { return "here"; }
    bool sound() const override { return true; }

    void broadcast(std::span<std::byte> bytes, int from, Patience) override {
      together(bytes, [&] {
        if (rank_ != from) std::ranges::copy(shared_.place[from], bytes.begin());
      });
    }
    void gather(std::span<std::byte> bytes, std::span<const std::size_t> bounds, Patience) override {
      std::vector<std::byte> all(bytes.size());
      together(bytes, [&] {
        for (int r = 0; r < size(); ++r)
          std::copy(shared_.place[r].begin() + static_cast<std::ptrdiff_t>(bounds[r]),
                    shared_.place[r].begin() + static_cast<std::ptrdiff_t>(bounds[r + 1]),
                    all.begin() + static_cast<std::ptrdiff_t>(bounds[r]));
      });
      std::ranges::copy(all, bytes.begin());
      shared_.meet.arrive_and_wait();
    }
    void send(std::span<const std::byte> bytes, int to) override {
      const std::lock_guard lock(shared_.mutex);
      shared_.box[to].emplace_back(bytes.begin(), bytes.end());
      shared_.arrived.notify_all();
    }
    void receive(std::span<std::byte> bytes, int) override {  // from the only one that sends to this rank
      std::unique_lock lock(shared_.mutex);
      auto& box = shared_.box[rank_];
      shared_.arrived.wait(lock, [&] { return !box.empty(); });
      std::ranges::copy(box.front(), bytes.begin());
      box.pop_front();
    }
    void finish() override {}
    void abort(int) override { std::terminate(); }

   private:
    template <class Do>
    void together(std::span<std::byte> bytes, Do work) {
      shared_.place[rank_] = bytes;
      shared_.meet.arrive_and_wait();
      work();
      shared_.meet.arrive_and_wait();
    }

    Shared& shared_;
    int rank_;
  };
};

}  // namespace hone::test
