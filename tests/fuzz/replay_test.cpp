// Runs the fuzzers' seed corpus and mutations of it, for machines without libFuzzer.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/readers.hpp"

namespace hone {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Reader = void (*)(std::span<const std::uint8_t>);

std::vector<Bytes> corpus(const std::string& name) {
  std::vector<Bytes> inputs;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(HONE_FUZZ_CORPUS) / name)) {
    std::ifstream file(entry.path(), std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

Bytes mutated(Bytes bytes, const std::vector<Bytes>& others, std::mt19937& random) {
  const auto below = [&](std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random); };
  const auto at = [&] { return static_cast<std::ptrdiff_t>(below(bytes.size())); };
  for (std::size_t edits = 1 + below(4); edits > 0 && !bytes.empty(); --edits) {
    switch (below(5)) {
      case 0:
        bytes[below(bytes.size())] ^= static_cast<std::uint8_t>(1u << below(8));
        break;
      case 1:
        bytes[below(bytes.size())] = static_cast<std::uint8_t>(below(256));
        break;
      case 2:
        bytes.erase(bytes.begin() + at());
        break;
      case 3:
        bytes.insert(bytes.begin() + at(), static_cast<std::uint8_t>(below(256)));
        break;
      default: {
        const Bytes& other = others[below(others.size())];
        const auto from = other.begin() + static_cast<std::ptrdiff_t>(below(other.size()));
        bytes.resize(below(bytes.size()) + 1);
        bytes.insert(bytes.end(), from, other.end());
      }
    }
  }
  return bytes;
}

void replay(const std::string& name, Reader read) {
  const std::vector<Bytes> inputs = corpus(name);
  ASSERT_FALSE(inputs.empty());
  std::mt19937 random(1);
  for (const Bytes& input : inputs) {
    read(input);
    for (int i = 0; i < 5000; ++i) read(mutated(input, inputs, random));
  }
}

TEST(FuzzReplay, Idx) { replay("idx", fuzz::idx); }
TEST(FuzzReplay, Amat) { replay("amat", fuzz::amat); }
TEST(FuzzReplay, Npy) { replay("npy", fuzz::npy); }
TEST(FuzzReplay, Csv) { replay("csv", fuzz::csv); }
TEST(FuzzReplay, Image) { replay("image", fuzz::image); }
TEST(FuzzReplay, MatrixMarket) { replay("mtx", fuzz::mtx); }
TEST(FuzzReplay, Zip) { replay("zip", fuzz::zip); }
TEST(FuzzReplay, Safetensors) { replay("safetensors", fuzz::safetensors); }
TEST(FuzzReplay, Labels) { replay("labels", fuzz::labels); }
TEST(FuzzReplay, Settings) { replay("settings", fuzz::settings); }
TEST(FuzzReplay, Draws) { replay("draws", fuzz::draws); }
TEST(FuzzReplay, Table) { replay("table", fuzz::table); }
TEST(FuzzReplay, Summary) { replay("summary", fuzz::summary); }
TEST(FuzzReplay, StanData) { replay("stan_data", fuzz::stan_data); }
TEST(FuzzReplay, StanSource) { replay("stan_source", fuzz::stan_source); }
TEST(FuzzReplay, Checkpoint) { replay("checkpoint", fuzz::checkpoint); }
TEST(FuzzReplay, UnfinishedScores) { replay("scores", fuzz::scores); }
TEST(FuzzReplay, LatentPoints) { replay("latent", fuzz::latent); }

}  // namespace
}  // namespace hone
