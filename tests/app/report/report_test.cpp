#include "app/report/report.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "app/report/run_record.hpp"
#include "app/report/text.hpp"
#include "app/run/evaluate.hpp"
#include "app/run/toy.hpp"
#include "app/run/train.hpp"
#include "hone/base/random.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/tiny_training.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

class Report : public testing::Test {
 protected:
  fs::path at(const std::string& name) const { return folder.path() / name; }

  fs::path toy(const std::string& name, ObjectiveKind objective, std::uint64_t seed = 1) const {
    ToyConfig config;
    config.iterations = 3000;
    config.objective.kind = objective;
    config.seed = seed;
    const RunFolder run(at(name));
    run_toy(config, &run, nullptr);
    return run.path();
  }

  fs::path training(const std::string& name, ObjectiveKind objective) const {
    TrainRunConfig config = test::tiny_training(60);
    config.objective.kind = objective;
    config.report_every = 2;
    train(config, at(name), {});
    return at(name);
  }

  std::string page_of(const std::vector<fs::path>& runs, const fs::path& out) const {
    last = write_report({runs, out});
    return read_file(last.page);
  }

  fs::path at_page() const { return at("page.html"); }

  static std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (auto i = text.find(part); i != text.npos; i = text.find(part, i + 1)) ++found;
    return found;
  }

  bool told(const std::string& part) const {
    return std::ranges::any_of(last.faults, [&](const std::string& fault) { return fault.find(part) != fault.npos; });
  }

  test::TemporaryFolder folder;
  mutable ReportResult last;
};

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << part

TEST_F(Report, OfAToy) {
  const fs::path run = toy("run", ObjectiveKind::vcd);
  const std::string page = page_of({run}, "");
  EXPECT_EQ(last.page, run / "report.html");
  EXPECT_TRUE(last.faults.empty());
  const ToyResult result = ToyResult::from_json(read_file(run / "summary.json"), "");
  EXPECT_HAS(page, "Fitted by vcd to the gaussian target");
  EXPECT_HAS(page, "<th scope=\"row\">seed</th><td class=\"n\">1</td>");
  EXPECT_HAS(page, "<th scope=\"row\">machine</th>");
  EXPECT_EQ(count(page, "<img alt=\""), 5u);  // contours, ELBO, VCD, acceptance, step size
  EXPECT_EQ(count(page, "<img alt=\"\""), 0u);
  EXPECT_HAS(page, "href=\"./config.toml\"");
  for (const char* name : {"elbo", "vcd", "acceptance", "step_size", "contours"})
    for (const char* extension : {".csv", ".gp", ".svg"})
      EXPECT_TRUE(fs::exists(run / "figures" / (std::string(name) + extension))) << name << extension;
  // Nothing can be fetched, and nothing is requested.
  EXPECT_HAS(page, "default-src 'none'");
  for (const std::string attribute : {"src", "href"})
    for (const std::string scheme : {"", "http:", "https:"})
      EXPECT_EQ(page.find(attribute + "=\"" + scheme + "//"), std::string::npos) << attribute << ' ' << scheme;
}

TEST_F(Report, OfATrainingRunWithImagesAndEvaluations) {
  const fs::path run = training("run", ObjectiveKind::vcd);
  EvaluateOptions options;
  options.importance->samples = 20;
  options.points = 5;
  evaluate_run(run, options);
  evaluate_run(run, options);  // the same point of the curve again
  const std::string page = page_of({run}, at("elsewhere.html"));
  EXPECT_TRUE(last.faults.empty());
  EXPECT_HAS(page, "After all of its 60 iterations the test log-likelihood is");
  EXPECT_HAS(page, "over 5 data");
  for (const char* word : {"reconstructed from draws of q", "refined by 2 steps", "samples from the model"})
    EXPECT_HAS(page, word);
  EXPECT_EQ(count(page, "data:image/png"), 4u);
  EXPECT_EQ(count(page, "data:image/svg"), 6u);  // five curves and the latent space
  EXPECT_HAS(page, "href=\"./run/config.toml\"");
  EXPECT_EQ(page.find("Table 1"), page.npos);  // synthetic data are in no cell of it
  EXPECT_EQ(count(read_file(run / "figures" / "test_log_likelihood.csv"), "\n60,"), 1u);
  EXPECT_EQ(read_csv_table(run / "test_log_likelihood.csv").rows(), 2u);
}

TEST_F(Report, TestDataThatWereEvaluatedOnTheWayAreACurve) {
  TrainRunConfig config = test::tiny_training(60);
  config.test = {.every = 20, .points = 5, .samples = 20};
  train(config, at("run"), {});
  EXPECT_HAS(page_of({at("run")}, at_page()), "The log-likelihood of the first 5 test data");
  const auto csv = [&] { return read_file(at("run") / "figures" / "test_log_likelihood.csv"); };
  for (const char* row : {"\n20,", "\n40,", "\n60,"}) EXPECT_EQ(count(csv(), row), 1u) << row;
  EvaluateOptions options;
  options.importance->samples = 20;
  options.points = 7;
  evaluate_run(at("run"), options);  // a mean over other data does not continue the line
  EXPECT_HAS(page_of({at("run")}, at_page()), "7 test data");
  EXPECT_EQ(count(csv(), "\n60,"), 2u);
  EXPECT_EQ(count(csv(), "# '"), 2u) << csv();
}

// One curve, the best model on it, and where it ended the training.
TEST_F(Report, ValidationIsACurveThatShowsTheBestModel) {
  TrainRunConfig config = test::tiny_training(400);
  config.objective.kind = ObjectiveKind::kl;
  config.train.rate_mean = config.train.rate_scale = config.train.rate_model =
      0;  // the first evaluation stays the best
  config.validation.every = 10;
  config.validation.points = 6;
  config.validation.samples = 20;
  config.validation.patience = 3;
  train(config, at("run"), {});
  const std::string page = page_of({at("run")}, at_page());
  EXPECT_TRUE(last.faults.empty());
  EXPECT_HAS(page, "The log-likelihood of the first 6 validation data");
  EXPECT_HAS(page, "Marked, the best model: ");
  EXPECT_HAS(page, " at iteration 10. Marked, stopped early: ");
  EXPECT_HAS(page, "Stopped early after 40 of 400 iterations, because the validation data were best at iteration 10,");
  EXPECT_HAS(page, "best validation log-likelihood");
  const std::string csv = read_file(at("run") / "figures" / "validation_log_likelihood.csv");
  EXPECT_HAS(csv, "# 'the best model'\n10,");
  EXPECT_HAS(csv, "# 'stopped early'\n40,");
  const std::string script = read_file(at("run") / "figures" / "validation_log_likelihood_body.gp");
  EXPECT_HAS(script, "index 1 using 1:2 with points pt 6");
  EXPECT_HAS(script, "index 2 using 1:2 with points pt 2");
}

TEST_F(Report, ComparesRunsOfSeveralKinds) {
  const std::string page =
      page_of({toy("kl", ObjectiveKind::kl), toy("vcd", ObjectiveKind::vcd), training("train", ObjectiveKind::kl)},
              at("page.html"));
  EXPECT_EQ(last.runs, 3);
  EXPECT_HAS(page, "hone: 3 runs");
  EXPECT_HAS(page, "<h2>hone toy: gaussian target</h2>");
  EXPECT_HAS(page, "<h2>hone train: vae on synthetic</h2>");
  EXPECT_HAS(page, "vcd has the smallest VCD");
  EXPECT_HAS(page, "<td>kl</td><td>vcd</td>");
  EXPECT_TRUE(fs::exists(at("page_figures") / "elbo.csv"));
  EXPECT_TRUE(fs::exists(at("page_figures") / "elbo_2.csv"));
  EXPECT_FALSE(fs::exists(at("kl") / "figures"));
}

TEST_F(Report, ManySeedsAreOneGroup) {
  std::vector<fs::path> runs;
  for (std::uint64_t seed = 1; seed <= 9; ++seed)
    runs.push_back(toy("run-seed" + std::to_string(seed), ObjectiveKind::vcd, seed));
  const std::string page = page_of(runs, at("page.html"));
  EXPECT_HAS(page, "run (9 seeds)");
  EXPECT_HAS(page, "Over 9 seeds KL(q ‖ p) is");
  Moments first, second;
  for (const fs::path& run : runs) {
    const ToyResult result = ToyResult::from_json(read_file(run / "summary.json"), "");
    first.add(result.sd[0]);
    second.add(result.sd[1]);
  }
  EXPECT_HAS(page, "standard deviations of q</th><td>" + estimate_text({first.mean(), first.sd()}) + ", " +
                       estimate_text({second.mean(), second.sd()}));
  EXPECT_EQ(count(page, "<th scope=\"col\">"), 2u);
}

TEST_F(Report, CellsOfAnExperimentAreItsRuns) {
  toy("experiment/cells/a", ObjectiveKind::kl);
  toy("experiment/cells/b", ObjectiveKind::vcd);
  fs::create_directories(at("experiment/cells/c.partial"));
  const std::string page = page_of({at("experiment")}, "");
  EXPECT_EQ(last.runs, 2);
  EXPECT_EQ(last.page, at("experiment") / "report.html");
  EXPECT_TRUE(last.faults.empty());
  EXPECT_TRUE(fs::exists(at("experiment/figures/elbo.svg")));
}

TEST_F(Report, NamesWhatIsDamagedAndGoesOn) {
  const fs::path good = toy("good", ObjectiveKind::kl), cut = toy("cut", ObjectiveKind::vcd),
                 rows = toy("rows", ObjectiveKind::vcd), garbage = toy("garbage", ObjectiveKind::vcd),
                 none = toy("none", ObjectiveKind::vcd);
  const std::string summary = read_file(cut / "summary.json"), metrics = read_file(rows / "metrics.csv");
  write_file(cut / "summary.json", summary.substr(0, summary.size() / 2));
  write_file(rows / "metrics.csv", metrics.substr(0, metrics.size() - 7));
  write_file(garbage / "config.toml", std::string("\xff\xfe\x00 = [", 7));
  write_file(garbage / "metrics.csv", std::string("\x00\x01garbage\nmore\n", 15));
  fs::remove(none / "summary.json");
  const std::string page =
      page_of({good, cut, rows, garbage, none, at("nowhere"), good / "config.toml"}, at("page.html"));
  EXPECT_EQ(last.runs, 5);
  EXPECT_TRUE(told("cut: summary.json: not a JSON object"));
  EXPECT_TRUE(told("rows: metrics.csv, line 101: is cut off"));
  EXPECT_TRUE(told("garbage: config.toml, line 1"));
  EXPECT_TRUE(told("garbage: metrics.csv: has no column 'iteration'"));
  EXPECT_TRUE(told("none: summary.json is missing"));
  EXPECT_TRUE(told("nowhere: no such folder"));
  EXPECT_TRUE(told("config.toml: is a file; expected the folder of a run"));
  EXPECT_FALSE(told("good: "));
  EXPECT_HAS(page, "Not everything could be read or drawn");
  EXPECT_HAS(page, "the run has no final values");
  for (const std::string& fault : last.faults) EXPECT_HAS(page, fault.substr(fault.rfind(": ") + 2, 12));
}

TEST_F(Report, ManyRowsAreCondensed) {
  const fs::path run = toy("run", ObjectiveKind::vcd);
  std::string rows = "iteration,elbo,elbo_se\n";
  for (int i = 1; i <= 2000; ++i) rows += std::to_string(i) + (i % 2 ? ",1,3\n" : ",3,4\n");
  write_file(run / "metrics.csv", rows);
  const std::string page = page_of({run}, "");
  EXPECT_HAS(page, "Thin: means over several rows of metrics.csv");
  const CsvTable curve = read_csv_table(run / "figures" / "elbo.csv");
  EXPECT_EQ(curve.rows(), 666u);  // three rows per point; the first is read as the names of columns
}

// Whichever byte is damaged, the page is written or the error names the folder.
TEST_F(Report, SurvivesDamageAnywhere) {
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", "/nowhere", 1);  // faster without gnuplot
  const PhiloxSource random(5);
  const fs::path good = toy("good", ObjectiveKind::kl), hurt = toy("hurt", ObjectiveKind::vcd),
                 trained = training("trained", ObjectiveKind::vcd);
  std::uint32_t number = 0;
  for (const fs::path& run : {hurt, trained})
    for (const char* name : {"summary.json", "config.toml", "metrics.csv", "figures/images.json"}) {
      if (!fs::exists(run / name)) continue;
      const std::string whole = read_file(run / name);
      for (int i = 0; i < 12; ++i) {
        std::vector<double> at(3);
        random.uniforms({Purpose::start, number++}, at);
        std::string text = whole;
        const auto place = static_cast<std::size_t>(at[0] * static_cast<double>(text.size()));
        if (at[2] < 0.3)
          text.resize(place);
        else
          text[place] = static_cast<char>(at[1] * 256);
        write_file(run / name, text);
        EXPECT_NO_THROW(page_of({good, run}, at_page())) << name << " " << number;
        EXPECT_GE(last.runs, 1);
      }
      write_file(run / name, whole);
    }
  ::setenv("PATH", path.c_str(), 1);
}

TEST_F(Report, NamesAnotherVersion) {
  const fs::path run = toy("run", ObjectiveKind::vcd);
  auto json = nlohmann::json::parse(read_file(run / "summary.json"));
  json["hone_version"] = "7.3.1";
  write_file(run / "summary.json", json.dump());
  write_file(run / "config.toml", read_file(run / "config.toml") + "\nwarp = 9\n");
  const std::string page = page_of({run}, "");
  EXPECT_TRUE(told("written by hone 7.3.1"));
  EXPECT_TRUE(told("does not know the key 'warp'"));
  EXPECT_HAS(page, "7.3.1");
  EXPECT_HAS(page, "Fitted by vcd");  // what can be read is reported
}

TEST_F(Report, OlderTrainingRunsHaveNoPictures) {
  const fs::path run = training("run", ObjectiveKind::kl);
  fs::remove_all(run / "figures");
  const std::string page = page_of({run}, "");
  EXPECT_HAS(page, "run has no pictures");
  EXPECT_TRUE(last.faults.empty());
}

TEST_F(Report, DamagedPicturesAreAFault) {
  const fs::path run = training("run", ObjectiveKind::kl);
  write_file(run / "figures" / "images_q.png", "not a picture");
  page_of({run}, "");
  EXPECT_TRUE(told("images_q.png: not a PNG file"));
  write_file(run / "figures" / "images.json", "{");
  page_of({run}, "");
  EXPECT_TRUE(told("images.json"));
}

TEST_F(Report, TextsOfFilesStayTexts) {
  const std::string evil = "<script>alert('x')</script>\"`touch owned`";
  const fs::path run = toy("a<b>&'c`date`", ObjectiveKind::vcd), other = toy("plain", ObjectiveKind::kl);
  auto json = nlohmann::json::parse(read_file(run / "summary.json"));
  json["machine"] = evil;
  json["objective"] = evil;
  write_file(run / "summary.json", json.dump());
  const std::string page = page_of({run, other}, at("page.html"));
  EXPECT_EQ(page.find("<script"), page.npos);
  EXPECT_EQ(page.find("a<b>"), page.npos);
  EXPECT_HAS(page, "&lt;script&gt;alert(&#39;x&#39;)");
  EXPECT_HAS(page, "href=\"./a%3Cb%3E%26%27c%60date%60/");
  EXPECT_FALSE(fs::exists(at("page_figures") / "owned"));
  EXPECT_TRUE(last.faults.empty());
}

TEST_F(Report, WhereNothingCanBeReportedNothingIsWritten) {
  fs::create_directories(at("empty"));
  try {
    write_report({{at("empty"), at("nowhere")}, at("page.html")});
    FAIL() << "no exception";
  } catch (const InputError& error) {
    EXPECT_HAS(std::string(error.what()), "empty: is empty; expected the folder of a run");
    EXPECT_HAS(std::string(error.what()), "nowhere: no such folder");
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);
  EXPECT_THROW(write_report({{toy("run", ObjectiveKind::kl)}, at("no/such/folder.html")}), InputError);
}

TEST_F(Report, OfTheSeedsOfATrainingAndOfAnExperiment) {
  for (const char* seed : {"seed-1", "seed-2"}) training(std::string("group/") + seed, ObjectiveKind::kl);
  const std::string group = page_of({at("group")}, at("group.html"));
  EXPECT_TRUE(last.faults.empty());
  EXPECT_EQ(last.runs, 2);
  EXPECT_HAS(group, "class=\"badge good\"");
  EXPECT_HAS(group, "2 of 2: finished");
  EXPECT_HAS(group, "Over 2 seeds the test log-likelihood is");
  EXPECT_HAS(group, "Latent space");
  fs::create_directories(at("paper") / "cells" / "claim-seconds-vae");  // a cell that is no run
  write_file(at("paper") / "cells" / "claim-seconds-vae" / "summary.json", "{}");
  fs::copy(at("group") / "seed-1", at("paper") / "cells" / "one", fs::copy_options::recursive);
  write_file(at("paper") / "table1.md", "# Table 1: results\n\n| model | paper |\n|---|---|\n| vae | −98.46 |\n");
  const std::string paper = page_of({at("paper")}, at("paper.html"));
  EXPECT_TRUE(last.faults.empty());
  EXPECT_EQ(last.runs, 1);
  EXPECT_HAS(paper, "<td class=\"n\">−98.46</td>");
  EXPECT_LT(paper.find("Table 1: results"), paper.find("Verdict"));
}

// Claims about time have no runs, and texts have Markdown's marks.
TEST_F(Report, OfExperimentsWithoutARun) {
  fs::create_directories(at("paper") / "cells" / "claim-seconds-vae");
  write_file(at("paper") / "cells" / "claim-seconds-vae" / "summary.json", "{}");
  write_file(at("paper") / "claims.md",
             "# In `words`\n\n**Verdict: holds.** *paper*: as printed, `a < b`, 2 * 3 * 4.\n\n"
             "| *claim* | verdict |\n|---|---|\n| `x` | **holds** |\n");
  const std::string page = page_of({at("paper")}, at("paper.html"));
  EXPECT_TRUE(last.faults.empty());
  EXPECT_EQ(last.runs, 0);
  EXPECT_HAS(page, "<h2>In words</h2>");
  EXPECT_HAS(page,
             "<p><strong>Verdict: holds.</strong> <em>paper</em>: as printed, <code>a &lt; b</code>, 2 * 3 * 4.</p>");
  EXPECT_HAS(page, "<th scope=\"row\">x</th><td>holds</td>");
}

}  // namespace
}  // namespace hone
