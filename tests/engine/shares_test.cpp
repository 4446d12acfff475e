// How ranks share a minibatch on devices, in numbers. What devices make of it: tests/cuda/share_test.cu.

#include "hone/engine/cuda/share/shares.hpp"

#include <gtest/gtest.h>

#include <array>

#include "tests/support/thread_ranks.hpp"

namespace hone::test {
namespace {

using cuda::row_bounds, cuda::rows_of, cuda::rows_per_step, cuda::task_blocks, cuda::TaskBlock;

TEST(Shares, EveryRowBelongsToOneRankAndStepsAreWhole) {
  for (const int size : {1, 2, 3, 5, 8})
    for (const int batch : {1, 7, 8, 9, 37, 100, 1000, 1001}) {
      std::array<ItemRange, 8> rows{};
      ThreadRanks::run(size, [&](Ranks& ranks) {
        rows[static_cast<std::size_t>(ranks.rank())] = rows_of(batch, ranks);
        const std::vector<std::size_t> bounds = row_bounds(batch, 12, ranks);
        ASSERT_EQ(bounds.size(), static_cast<std::size_t>(size) + 1);
        const ItemRange own = rows_of(batch, ranks);
        EXPECT_EQ(bounds[static_cast<std::size_t>(ranks.rank())], 12U * static_cast<unsigned>(own.begin));
        EXPECT_EQ(bounds[static_cast<std::size_t>(ranks.rank()) + 1], 12U * static_cast<unsigned>(own.end));
      });
      int end = 0;
      for (int rank = 0; rank < size; ++rank) {
        const ItemRange own = rows[static_cast<std::size_t>(rank)];
        EXPECT_EQ(own.begin, end);
        EXPECT_LE(own.begin, own.end);
        EXPECT_TRUE(own.begin % rows_per_step == 0 || own.count() == 0) << batch << " rows, rank " << rank;
        EXPECT_LE(own.count(), batch / size + 2 * rows_per_step);
        end = own.end;
      }
      EXPECT_EQ(end, batch);
    }
}

TEST(Shares, BlocksOfTasksFollowEachOther) {
  const std::vector<std::size_t> floats = {4096, 4096, 640, 256, 4096, 640, 256};
  for (const int most : {1, 2, 3, 7, 100}) {
    const std::vector<TaskBlock> blocks = task_blocks(floats, most);
    int task = 0;
    std::size_t at = 0;
    for (const TaskBlock& block : blocks) {
      EXPECT_EQ(block.first, task);
      EXPECT_EQ(block.begin, at);
      EXPECT_GT(block.count, 0);
      EXPECT_LE(block.count, most);
      for (int i = 0; i < block.count; ++i) at += floats[static_cast<std::size_t>(task++)];
      EXPECT_EQ(block.end, at);
    }
    EXPECT_EQ(task, 7);
  }
}

}  // namespace
}  // namespace hone::test
