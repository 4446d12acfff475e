// hone reproduce as a user runs it: everything at the smallest scale, with stops and kills.

#include "tests/end_to_end/program.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;
using test::Outcome;

class Reproduce : public test::Program {
 protected:
  static bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
  bool has(const char* data) const { return hone("data verify " + std::string(data)).code == 0; }
};

TEST_F(Reproduce, BadFlagsAreRefusedByName) {
  expect_refused("reproduce", "subcommand");
  expect_refused("reproduce fig4", "unknown argument 'fig4'; did you mean 'fig1'?");
  expect_refused("reproduce fig1 --seeds 0", "--seeds");
  expect_refused("reproduce table1 --seeds 3,5", "--seeds: '3,5' is not allowed; expected a number of seeds");
  expect_refused("reproduce fig1 --threads x", "--threads");
  expect_refused("reproduce fig1 --scale huge", "--scale: 'huge' is not allowed; expected smoke, short or full");
  expect_refused("reproduce claims --scale smoke --engine gpu", "--engine: 'gpu' is not allowed");
  expect_refused("reproduce claims --scale smoke --cells 'vae-*' --quiet", "--cells: no cell matches 'vae-*'");
  expect_refused("reproduce fig1 --stop-after 0", "--stop-after");
  expect_refused("reproduce fig1 --engine cpu", "--engine");  // nothing is trained there
}

TEST_F(Reproduce, EverythingAtTheSmallestScale) {
  if (!has("fashion-mnist")) GTEST_SKIP() << "Fashion-MNIST is missing (Debian: apt-get install dataset-fashion-mnist)";
  const bool mnist = has("mnist");
  const Outcome listed = hone("reproduce all --scale smoke --out r --dry-run");
  EXPECT_EQ(listed.code, 0) << listed.err;
  EXPECT_FALSE(fs::exists(folder.path() / "r"));
  for (const char* cell : {"fig1-a-kl-seed1", "claim-alpha-slow-0.5-seed3", "fig3-fashion-cpu-t25", "vae-fashion-vcd-8",
                           "vae-fashion-vcd-t25-3"})
    EXPECT_TRUE(contains(listed.out, cell)) << cell;
  EXPECT_TRUE(contains(listed.out, "left to do: about "));

  const Outcome first = hone("reproduce all --scale smoke --out r");
  EXPECT_EQ(first.code, 0) << first.err;
  for (const char* title : {"# Figure 1", "# What the paper says in words", "# Figure 3", "# Table 1", "# Figure 2"})
    EXPECT_TRUE(contains(first.out, title)) << title;
  EXPECT_TRUE(contains(first.out, "| lmf | fashion | vcd | -121.11 | -"));
  EXPECT_EQ(contains(first.out, "| vae | mnist | vcd | -95.86 | no data |"), !mnist);
  EXPECT_EQ(contains(first.err, "data set 'mnist' was not found"), !mnist);
  for (const char* name :
       {"fig1.md", "table1.md", "table1.csv", "fig2.md", "fig3.md", "claims.md", "provenance.txt", "figures/fig2.csv",
        "figures/fig2.gp", "figures/fig3.csv", "figures/fig3.gp", "cells/vae-fashion-kl-8-seed1/summary.json"})
    EXPECT_TRUE(fs::exists(folder.path() / "r" / name)) << name;
  EXPECT_TRUE(contains(read_file(folder.path() / "r/table1.md"), "hone reproduce all --scale smoke"));

  const Outcome again = hone("reproduce all --scale smoke --out r --quiet");  // nothing left to do
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(again.out, first.out);
  EXPECT_EQ(again.err, "");
  const Outcome done = hone("reproduce all --scale smoke --out r --dry-run");
  EXPECT_TRUE(contains(done.out, "left to do: about 0 ms")) << done.out;
  EXPECT_FALSE(contains(done.out, "to do  ")) << done.out;
}

TEST_F(Reproduce, KilledOrStoppedAnywhereItGivesTheSameTable) {
  if (!has("fashion-mnist")) GTEST_SKIP() << "Fashion-MNIST is missing (Debian: apt-get install dataset-fashion-mnist)";
  const std::string command = "reproduce table1 --scale smoke --seeds 2 --cells 'lmf-fashion-*' --quiet --out ";
  const Outcome whole = hone(command + "whole");
  EXPECT_EQ(whole.code, 0) << whole.err;
  const std::string kill =
      "\"$HONE\" " + command +
      "killed & pid=$!\nuntil ls killed/cells/$cell*/$file >/dev/null 2>&1 || ! kill -0 $pid; do sleep 0.01; done\n"
      "kill -KILL $pid; wait $pid";
  EXPECT_EQ(shell("cell=lmf-fashion-kl file=config.toml\n" + kill).code, 137);                  // during training
  EXPECT_EQ(shell("cell=lmf-fashion-hoffman file=checkpoint.safetensors\n" + kill).code, 137);  // between the seeds
  EXPECT_EQ(shell("cell=lmf-fashion-vcd-8-seed2 file=summary.json\n" + kill).code, 137);        // before evaluation
  const Outcome killed = hone(command + "killed");
  EXPECT_EQ(killed.code, 0) << killed.err;
  EXPECT_EQ(killed.out, whole.out);
  EXPECT_EQ(read_file(folder.path() / "killed/table1.md"), read_file(folder.path() / "whole/table1.md"));

  const Outcome timed =
      hone("reproduce table1 --scale smoke --seeds 2 --cells 'lmf-fashion-*' --stop-after 1 --out stopped");
  EXPECT_EQ(timed.code, 142) << timed.err;
  EXPECT_TRUE(contains(timed.err, "the time is up; the same command continues")) << timed.err;
  EXPECT_EQ(hone(command + "stopped").out, whole.out);
}

TEST_F(Reproduce, WhatIsDamagedIsNamedAndTheRestIsDone) {
  if (!has("fashion-mnist")) GTEST_SKIP() << "Fashion-MNIST is missing (Debian: apt-get install dataset-fashion-mnist)";
  const std::string command = "reproduce table1 --scale smoke --cells 'lmf-fashion-*' --out r";
  const Outcome whole = hone(command);
  ASSERT_EQ(whole.code, 0) << whole.err;
  const auto cell = [&](const std::string& objective) {
    return folder.path() / "r/cells" / ("lmf-fashion-" + objective + "-8-seed1");
  };
  const auto cut = [](const fs::path& path) { fs::resize_file(path, fs::file_size(path) / 2); };
  cut(cell("kl") / "summary.json");                                   // is written again from the checkpoint
  const std::string config = read_file(cell("vcd") / "config.toml");  // ends within a text: unknown run
  write_file(cell("vcd") / "config.toml", config.substr(0, config.find("model = \"") + 11));
  fs::remove(cell("hoffman") / "summary.json");
  cut(cell("hoffman") / "checkpoint.safetensors");  // its only checkpoint
  const Outcome damaged = hone(command);
  EXPECT_EQ(damaged.code, 2);
  for (const char* part : {"lmf-fashion-vcd-8-seed1/config.toml", "lmf-fashion-hoffman-8-seed1/checkpoint.safetensors",
                           "damaged: 1", "remove a damaged folder"})
    EXPECT_TRUE(contains(damaged.err, part)) << part << "\n" << damaged.err;
  const auto row = [](const std::string& text, const std::string& start) {
    const auto begin = text.find(start);
    return begin == text.npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
  };
  EXPECT_EQ(row(damaged.out, "| lmf | fashion | kl |"), row(whole.out, "| lmf | fashion | kl |")) << damaged.out;
  EXPECT_TRUE(contains(row(damaged.out, "| lmf | fashion | vcd |"), "cannot be read")) << damaged.out;
  EXPECT_TRUE(contains(row(damaged.out, "| lmf | fashion | hoffman |"), "not done")) << damaged.out;
  fs::remove_all(cell("vcd"));
  fs::remove_all(cell("hoffman"));
  const Outcome mended = hone(command);
  EXPECT_EQ(mended.code, 0) << mended.err;
  EXPECT_EQ(mended.out, whole.out);
}

}  // namespace
}  // namespace hone
