// A trained model used on data a piece at a time.

#include "app/run/networks.hpp"

#include "app/run/trained_model.hpp"
#include "tests/app/run/small_training.hpp"

namespace hone {
namespace {

using namespace test;

TEST(TrainedNetworks, APieceOfTheDataHasTheBitsOfTheWhole) {
  const TemporaryFolder folder;
  run(small(), folder.path() / "run");
  RunToUse use = read_run(folder.path() / "run", {}, 1, [](const std::string&) {});
  const DataSet data = load_run_data(use.config, {}).train.slice(0, 1300);
  const TrainedNetworks networks(use.config, std::move(use.checkpoint), 2);
  Matrix<double> wanted(networks.latent(), data.size());
  networks.refine(data, {0, data.size()}, {.steps = 2, .seed = 3}, wanted, {});
  for (const auto& [first, end] : {std::pair(0, 500), std::pair(500, 1000), std::pair(500, 1300)}) {
    Matrix<double> z(networks.latent(), end - first);
    networks.refine(data.slice(first, end), {0, z.cols()}, {.steps = 2, .seed = 3, .first = first}, z, {});
    for (int c = 0; c < z.cols(); ++c)
      EXPECT_TRUE(std::ranges::equal(z.column(c), wanted.column(first + c))) << first + c;
  }
}

}  // namespace
}  // namespace hone
