// The parts of a report.

#include <gtest/gtest.h>

#include <cmath>

#include "app/report/chain_figures.hpp"
#include "app/report/csv_table.hpp"
#include "app/report/curves.hpp"
#include "app/report/facts.hpp"
#include "app/report/fit_figures.hpp"
#include "app/report/page.hpp"
#include "app/report/paper_table.hpp"
#include "app/report/terminal_text.hpp"
#include "app/report/text.hpp"
#include "app/report/words.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "tests/support/temporary.hpp"

namespace hone {
namespace {

TEST(TerminalText, TablesAreAlignedAndBrokenAtTheWidth) {
  EXPECT_EQ(terminal_text("# T\n\n| a | long one |\n|---|---|\n| −1 | x |\nafter it\n", 40),
            "# T\n\na   long one\n------------\n−1  x\nafter it\n");
  EXPECT_EQ(terminal_text("| a | b |\n|---|---|\n| 1 | two words |\n", 8), "a  b\n--------\n1  two\n   words\n");
  EXPECT_EQ(terminal_text("one two three\n", 8), "one two\nthree\n");
}

namespace fs = std::filesystem;

TEST(ChainFigures, PredictionsStandBesideTheDataTheyAreOf) {
  const test::TemporaryFolder folder;
  write_file(folder.path() / "data.json", R"({"y": [1, 2, 3, 10]})");
  write_file(folder.path() / "draws.csv", "mu,y_rep.1,y_rep.2,y_rep.3,y_rep.4\n0,1,2,3,4\n0,2,3,4,5\n0,-8,0,0,22\n");
  RunRecord run;
  run.folder = folder.path();
  run.config = {{"data", "\"" + (folder.path() / "data.json").string() + "\""}};
  EXPECT_FALSE(plan_predictions(run, folder.path()));
  run.summary["groups"]["posterior_predictive"] = {"other_rep", "y_rep"};
  const auto plan = plan_predictions(run, folder.path());
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->caption,
            "y in the data (red) and 3 sets of predictions y_rep from the refined draws (blue). A model that fits "
            "predicts data like these.");
  // centres of six bins from -8 to 22, shares of the data and of each prediction
  const CsvTable drawn = csv_table_in("x,y,a,b,c\n" + read_file(folder.path() / "predictions.csv"), "predictions");
  ASSERT_EQ(drawn.rows(), 6u);
  EXPECT_EQ(drawn.columns[0].front(), -5.5);
  EXPECT_EQ(drawn.columns[0].back(), 19.5);
  EXPECT_EQ(drawn.columns[1][0], 0);
  EXPECT_NEAR(drawn.columns[1][3] / drawn.columns[1][2], 0.5, 1e-4) << "2 and 3, then 10";
  EXPECT_GT(drawn.columns[4].back(), 0);
  write_file(folder.path() / "data.json", R"({"y": [1, 2, 3]})");
  EXPECT_FALSE(plan_predictions(run, folder.path())) << "other data";
}

TEST(ChainFigures, TheMemoryOfChainsComesWithTheirDrift) {
  const test::TemporaryFolder folder;
  RunRecord run;
  const auto at = [](int t, double jump) {
    return Json{{"t", t}, {"squared_jump", jump}, {"correlation_log_p", 1 - jump}};
  };
  run.summary["checks"] = {{"pairs", {at(1, 0.25), at(8, 0.75)}}, {"chains", {{"drift", 2.5}, {"drift_limit", 4.5}}}};
  const auto plan = plan_memory(run, folder.path());
  ASSERT_TRUE(plan);
  EXPECT_NE(plan->alternative.find("at t = 8 the squared jump is 0.75 and the correlation 0.25"), std::string::npos);
  EXPECT_NE(plan->caption.find("means, sds and tails drift by 2.5 standard errors; 4.5 are allowed"), std::string::npos)
      << plan->caption;
  EXPECT_NE(read_file(folder.path() / "memory.csv").find("\n8,0.75,0.25\n"), std::string::npos);
}

TEST(ChainFigures, ShowTheDriftOfEachRound) {
  const test::TemporaryFolder folder;
  RunRecord run;
  const auto at = [](int t, double drift) { return Json{{"t", t}, {"drift", drift}, {"limit", 4.25}}; };
  run.summary["checks"] = {{"drifts", {at(8, 9.5), at(16, 2.5)}}};
  const auto plan = plan_drift(run, folder.path());
  ASSERT_TRUE(plan);
  EXPECT_NE(plan->alternative.find("at t = 16 it is 2.5, where 4.2 is allowed"), std::string::npos)
      << plan->alternative;
  EXPECT_EQ(read_file(folder.path() / "drift.csv"), "# t,drift,limit\n8,9.5,4.25\n16,2.5,4.25\n");
  run.summary["checks"] = {{"drifts", {at(8, 9.5)}}};
  EXPECT_FALSE(plan_drift(run, folder.path())) << "one round is no course";
}

TEST(Text, HtmlIsEscapedAndWellFormed) {
  EXPECT_EQ(html_text("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
  EXPECT_EQ(html_text("σ ≤ 漢 🙂"), "σ ≤ 漢 🙂");
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(html_text(std::string("a\0b", 3)), "a" + bad + "b");
  EXPECT_EQ(html_text("\xff\xc3"), bad + bad);
  EXPECT_EQ(html_text("\xed\xa0\x80"), bad + bad + bad);  // a surrogate
  EXPECT_EQ(html_text("\xc0\xaf"), bad + bad);            // '/' in too many bytes
}

TEST(Text, GnuplotTextsAreQuoted) {
  EXPECT_EQ(gnuplot_text("it's"), "'it''s'");
  EXPECT_EQ(gnuplot_text("a\nb`c`"), "'a b´c´'");
}

TEST(Text, Base64AgainstKnownValues) {  // RFC 4648
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xff\xfe\xfd"), "//79");
}

TEST(Text, NumbersForPeople) {
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(400000), "400,000");
  EXPECT_EQ(count_text(-1234567), "−1,234,567");
  EXPECT_EQ(count_text(-123), "−123");
  EXPECT_EQ(count_text(-123456), "−123,456");
  EXPECT_EQ(count_text(1e300), "1e+300");
  EXPECT_EQ(number_text(-0.12345), "−0.1235");
  EXPECT_EQ(number_text(std::nan("")), "–");
  EXPECT_EQ(number_text(-HUGE_VAL), "−∞");
  EXPECT_EQ(number_text(17883.2), "17,883");
  EXPECT_EQ(estimate_text({-143.7842, 0.3261}), "−143.78 ± 0.33");
  EXPECT_EQ(estimate_text({20452.3, 2389}), "20452 ± 2389");
  EXPECT_EQ(estimate_text({1.5, std::nan("")}), "1.5");
  EXPECT_EQ(estimate_text({-1e300, 2}), "−1e+300 ± 2");
  EXPECT_EQ(size_text(12345), "12 kB");
}

TEST(Links, AreRelativeToThePage) {
  EXPECT_EQ(link_html("/a/b/run/c d.csv", "/a/b", "x"), "<a href=\"./run/c%20d.csv\">x</a>");
  EXPECT_EQ(link_html("/a/run/c:d", "/a/b", "x"), "<a href=\"./../run/c%3Ad\">x</a>");
}

struct Csv : testing::Test {
  CsvTable read(const std::string& text, std::vector<std::string> wanted = {}) const {
    write_file(folder.path() / "t.csv", text);
    return read_csv_table(folder.path() / "t.csv", wanted);
  }
  test::TemporaryFolder folder;
};

TEST_F(Csv, ReadsWhatIsWhole) {
  const CsvTable table = read("# comment\nx,y,z\n1,2,3\n4,,6\n7,8\nnine,1,2\n10,11,12\n13,14,1");
  ASSERT_EQ(table.rows(), 3u);
  EXPECT_EQ(*table.column("x"), (std::vector<double>{1, 4, 10}));
  EXPECT_TRUE(std::isnan((*table.column("y"))[1]));
  EXPECT_EQ(table.column("w"), nullptr);
  EXPECT_EQ(table.faults,
            (std::vector<std::string>{"t.csv, line 5: has 2 cells; expected 3; it is left out",
                                      "t.csv, line 6: holds something that is not a number; it is left out",
                                      "t.csv, line 8: is cut off; it is left out"}));
}

TEST_F(Csv, KeepsWhatIsWantedAndCountsManyFaults) {
  const CsvTable table = read("x,y\n1,2\n", {"y"});
  EXPECT_EQ(table.names, std::vector<std::string>{"y"});
  EXPECT_EQ(read("x\na\nb\nc\nd\ne\n").faults.back(), "t.csv: 2 more lines like these are left out");
  EXPECT_THROW(read(""), InputError);
  EXPECT_THROW(read("# nothing\n"), InputError);
}

TEST(Smoothing, MeansOverNeighbours) {
  const std::vector<double> values = {1, 2, 6, std::nan(""), 10};
  const auto smooth = moving_average(values, 3);
  EXPECT_EQ(smooth, (std::vector<double>{1.5, 3, 4, 8, 10}));
  EXPECT_EQ(moving_average(std::vector<double>{3, 4}, 1), (std::vector<double>{3, 4}));
  EXPECT_EQ(smoothing_window(19), 1);
  EXPECT_EQ(smoothing_window(20), 3);
  EXPECT_EQ(smoothing_window(400), 21);
}

CurveFigure figure_of(std::vector<double> y) {
  CurveFigure figure{"f", "title", {}};
  CurveLine line{"run", "#123456", {}, std::move(y), {}};
  for (std::size_t i = 0; i < line.y.size(); ++i) line.x.push_back(static_cast<double>(i + 1));
  figure.lines.push_back(std::move(line));
  return figure;
}

TEST(VisibleInterval, LeavesOutTheBeginningAndWhatIsFarOff) {
  std::vector<double> y(100);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = 10 + 0.01 * static_cast<double>(i);
  y[0] = -1e6;
  y[50] = 1e6;
  const AxisInterval shown = visible_interval(figure_of(y));
  EXPECT_NEAR(shown.low, 10, 0.2);
  EXPECT_NEAR(shown.high, 11.4, 0.3);
  EXPECT_LT(visible_interval(figure_of({5, 5})).low, 5);
  EXPECT_EQ(visible_interval(figure_of({std::nan("")})).high, 1);
}

TEST(VisibleInterval, LogarithmicWhereValuesOfOneSignAreFarApart) {
  EXPECT_EQ(axis_scale({1, 200}, CurveStyle::curve), AxisScale::logarithmic);
  EXPECT_EQ(axis_scale({-5000, -20}, CurveStyle::curve), AxisScale::negative_logarithmic);
  EXPECT_EQ(axis_scale({-1, 200}, CurveStyle::curve), AxisScale::linear);
  EXPECT_EQ(axis_scale({1, 99}, CurveStyle::curve), AxisScale::linear);
}

TEST(Curves, LogarithmicAxesAreDrawn) {
  const test::TemporaryFolder folder;
  for (const double sign : {1.0, -1.0}) {
    CurveFigure figure = figure_of({2 * sign, 30 * sign, 500 * sign, 1e6 * sign});
    figure.lines.front().se = {1, 1, 1, 1};
    if (!draw_curves(figure, folder.path())) GTEST_SKIP() << "gnuplot is not installed";
    const std::string svg = read_file(folder.path() / "f.svg");
    EXPECT_NE(svg.find("logarithmic"), svg.npos);
    EXPECT_NE(svg.find("1000<"), svg.npos);
  }
}

// Marks at the same places: a later line has another kind of mark, larger and open, and dashes.
TEST(Curves, MarksThatHideEachOtherDiffer) {
  const test::TemporaryFolder folder;
  const CurveLine line{"a", "#111111", {1, 2}, {3, 4}, {0.1, 0.1}};
  CurveFigure figure{"marks", "marks", {line, line}, CurveStyle::marks};
  figure.lines[1].label = "b";
  draw_curves(figure, folder.path());
  const std::string script = read_file(folder.path() / "marks_body.gp");
  EXPECT_NE(script.find("index 0 using 1:2 with points lw 1.5 pt 7 ps 0.60"), std::string::npos) << script;
  EXPECT_NE(script.find("index 1 using 1:2 with points lw 1.5 pt 6 ps 0.95"), std::string::npos) << script;
  EXPECT_NE(script.find("index 1 using 1:2 with lines lw 1.5 dt 2"), std::string::npos) << script;
}

TEST(Page, NumbersOfARowAreAlignedRightAndLongTextsKeepTheirWidth) {
  Page page("p");
  page.table({{"", "a", "b"}, {"kind", "x", "y"}, {"seed", "1", "–"}, {"words", std::string(120, 'w'), "3"}});
  EXPECT_NE(page.body().find("<td class=\"n\">1</td><td class=\"n\">–</td>"), std::string::npos) << page.body();
  EXPECT_NE(page.body().find("<td>x</td><td>y</td>"), std::string::npos);
  EXPECT_NE(page.body().find("<td class=\"l\">www"), std::string::npos);
}

TEST(Histogram, IsADensity) {
  const auto density = histogram({0, 0.1, 0.9, 1, 5}, 0, 1, 2);
  EXPECT_DOUBLE_EQ(density[0], 0.8);  // two of five in a half
  EXPECT_DOUBLE_EQ(density[1], 0.8);
}

TEST(Trend, OfTheEnd) {
  CsvTable rows;
  rows.names = {"iteration", "elbo", "elbo_se"};
  rows.columns.resize(3);
  for (int i = 0; i < 50; ++i) {
    rows.columns[0].push_back(i);
    rows.columns[1].push_back(i < 40 ? i % 2 : 7 + i % 2);
    rows.columns[2].push_back(0.5);
  }
  const Estimate trend = elbo_trend(rows);
  EXPECT_NEAR(trend.mean, 7, 1e-12);
  EXPECT_NEAR(trend.se, std::sqrt(2 * 0.25 / 10), 1e-12);  // of a difference of two means over ten
  rows.columns[1].resize(9);
  EXPECT_TRUE(std::isnan(elbo_trend(rows).mean));
}

TEST(PaperTable, KnowsItsTwelveConfigurations) {
  int found = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(HONE_SOURCE_DIR) / "configs" / "paper")) {
    const test::TemporaryFolder folder;
    fs::copy_file(entry.path(), folder.path() / "config.toml");
    write_file(folder.path() / "metrics.csv", "iteration,elbo\n1,2\n");
    const RunRecord run = read_run(folder.path());
    const auto match = match_paper(run);
    ASSERT_TRUE(match) << entry.path();
    EXPECT_TRUE(match->differences.empty()) << entry.path() << ": " << match->differences.front();
    const std::string name = entry.path().stem().string();
    EXPECT_EQ(name, (match->cell->model == "vae" ? "vae-" : "lmf-") +
                        (match->cell->data == "mnist" ? std::string("mnist-") : "fashion-") + match->cell->objective);
    ++found;
  }
  EXPECT_EQ(found, 12);
  EXPECT_EQ(paper_cells().size(), 12u);
}

TEST(PaperTable, NamesSettingsThatDiffer) {
  const test::TemporaryFolder folder;
  write_file(folder.path() / "config.toml",
             "model = \"vae\"\ndata = \"mnist\"\nobjective = \"vcd\"\nsteps = 4\niterations = 100\nseed = 7\n");
  write_file(folder.path() / "summary.json",
             "{\"model\": \"vae\", \"iterations\": 100, \"binarization\": \"binarized once at random with seed 1\"}");
  RunRecord run = read_run(folder.path());
  const auto match = match_paper(run);
  ASSERT_TRUE(match);
  EXPECT_EQ(match->cell->log_likelihood, -95.86);
  EXPECT_EQ(match->differences,
            (std::vector<std::string>{"steps 4, paper 8",
                                      "MNIST binarized once at random with seed 1, paper by fixed files"}));
  write_file(folder.path() / "config.toml", "model = \"gaussian-mf\"\ndata = \"mnist\"\n");
  EXPECT_FALSE(match_paper(run));
}

TEST(PaperTable, SaysThatARunWasShort) {
  const test::TemporaryFolder folder;
  write_file(folder.path() / "config.toml", "model = \"vae\"\ndata = \"fashion-mnist\"\nobjective = \"kl\"\n");
  write_file(folder.path() / "summary.json",
             "{\"model\": \"vae\", \"iterations\": 2500, \"test_log_likelihood\": {\"value\": -130.5, \"se\": 0.5, "
             "\"mixture\": -131, \"mixture_se\": 0.5}}");
  std::vector<RunRecord> runs = {read_run(folder.path())};
  const auto rows = paper_rows(sections_of(runs).front());
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1][1], "−130.50 ± 0.50");
  EXPECT_EQ(rows[1][2], "−124.63");
  EXPECT_EQ(rows[1][3], "−5.87");
  EXPECT_EQ(rows[1][5], "–");  // the number of data is not given
  EXPECT_EQ(rows[1][6], "2,500 of 400,000");
}

}  // namespace
}  // namespace hone
