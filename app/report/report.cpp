#include "app/report/report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "app/report/contours.hpp"
#include "app/report/experiment_page.hpp"
#include "app/report/facts.hpp"
#include "app/report/file_list.hpp"
#include "app/report/fit_figures.hpp"
#include "app/report/latent_figure.hpp"
#include "app/report/learning_curves.hpp"
#include "app/report/page.hpp"
#include "app/report/paper_table.hpp"
#include "app/report/text.hpp"
#include "app/report/training_images.hpp"
#include "app/report/words.hpp"
#include "app/run/fit_table.hpp"
#include "app/run/provenance.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_listed = 6;       // runs whose pictures and files are shown individually
constexpr std::size_t most_parameters = 40;  // rows of a fit's table

fs::path default_page(const std::vector<fs::path>& folders) {
  return folders.size() == 1 ? folders.front() / "report.html" : fs::path("report.html");
}

class Report {
 public:
  Report(const ReportRequest& request, fs::path page_file)
      : request_(request), page_file_(std::move(page_file)), page_folder_(fs::absolute(page_file_).parent_path()) {}

  ReportResult write() {
    read();
    check_page_file();
    std::vector<Section> sections = sections_of(runs_);
    Page body("");  // written first, because the faults it finds come before it on the page
    for (Section& section : sections) write_section(section, sections.size() > 1 ? &section.problem : nullptr, body);
    if (!runs_.empty()) body.heading(2, "Files");
    if (!runs_.empty()) body.html(file_list(runs_, page_file_, most_listed));
    Page page(title());
    collect_faults();
    if (!gnuplot_)
      faults_.push_back(
          "figures are missing: gnuplot is not installed (Debian: apt-get install gnuplot-nox); their data and "
          "scripts are in place");
    if (!faults_.empty()) page.note("Not everything could be read or drawn", faults_);
    for (const fs::path& folder : request_.folders) write_experiments(folder, page);
    page.html(body.body());
    page.html(fmt::format("<footer>Written by hone {}. Data and gnuplot scripts of the figures are in {}.</footer>\n",
                          html_text(hone_version()),
                          link_html(figures_folder(), page_folder_, "the folder of figures")));
    write_file(page_file_, page.text());
    return {page_file_, static_cast<int>(runs_.size()), faults_};
  }

 private:
  void read();
  void check_page_file() const;
  std::string title() const;
  void collect_faults();
  void write_section(Section& section, const std::string* heading, Page& page);
  void write_curves(const Section& section, Page& page);
  void write_contours(const Section& section, Page& page);
  void write_latent(const RunGroup& group, Page& page);
  void write_verdict(Section& section, Page& page);
  void write_pictures(Section& section, Page& page);
  void write_fits(Section& section, Page& page);
  void write_fit(RunRecord& run, Page& page);
  void write_settings(const Section& section, Page& page);
  fs::path figures_folder() const;
  fs::path figures_of(const RunRecord& run) const;
  std::string suffix() const { return section_ == 1 ? "" : fmt::format("_{}", section_); }  // for a section's figures
  template <class Draw>
  void guarded(const std::string& what, Draw&& draw_it);

  const ReportRequest& request_;
  fs::path page_file_, page_folder_;
  std::vector<RunRecord> runs_;
  std::vector<std::string> faults_;
  int section_ = 0;  // the one being written, from 1
  int level_ = 2;    // of headings in it
  bool gnuplot_ = true;
};

// Whether a folder exists, or can be created, and is writable.
bool usable(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  return !error && ::access(folder.c_str(), W_OK | X_OK) == 0;
}

void Report::read() {
  std::vector<std::string> unreadable;
  for (const fs::path& folder : request_.folders)
    for (const fs::path& path : runs_under(folder)) try {
        runs_.push_back(read_run(path));
      } catch (const InputError& error) {
        if (path != folder || !has_experiments(folder)) unreadable.push_back(error.what());
      }
  if (runs_.empty() && std::ranges::none_of(request_.folders, has_experiments)) {
    std::string text = "nothing can be reported on:";
    for (const std::string& why : unreadable) text += "\n  " + why;
    throw InputError(text);
  }
  faults_ = std::move(unreadable);
}

void Report::check_page_file() const {
  std::error_code ignored;
  if (!fs::is_directory(page_folder_, ignored))
    throw InputError(fmt::format("{}: there is no folder {}", page_file_.string(), page_folder_.string()));
  if (fs::is_directory(page_file_, ignored))
    throw InputError(fmt::format("{}: is a folder; expected a name for the page", page_file_.string()));
  const fs::path ending = page_file_.extension();
  if (fs::exists(page_file_, ignored) && ending != ".html" && ending != ".htm")
    throw InputError(
        fmt::format("{}: is there already and no page; expected a name that ends in .html", page_file_.string()));
}

std::string Report::title() const {
  if (runs_.size() == 1) return fmt::format("{}: {}", kind_text(runs_.front().kind), runs_.front().name());
  if (runs_.empty()) return "hone: experiments";
  return fmt::format("hone: {} runs", runs_.size());
}

void Report::collect_faults() {
  for (const RunRecord& run : runs_)
    for (const std::string& fault : run.faults) faults_.push_back(fmt::format("{}: {}", run.folder.string(), fault));
}

fs::path Report::figures_folder() const {
  if (request_.folders.size() == 1)
    if (const fs::path own = request_.folders.front() / "figures"; usable(own)) return own;
  const fs::path beside = page_folder_ / (page_file_.stem().string() + "_figures");
  if (!usable(beside)) throw Error(fmt::format("{}: cannot be created or is not writable", beside.string()));
  return beside;
}

// For one of several runs.
fs::path Report::figures_of(const RunRecord& run) const {
  if (const fs::path own = run.folder / "figures"; usable(own)) return own;
  const fs::path beside = figures_folder() / run.name();
  if (!usable(beside)) throw Error(fmt::format("{}: cannot be created or is not writable", beside.string()));
  return beside;
}

// A figure that cannot be drawn is a fault, not the end of the report.
template <class Draw>
void Report::guarded(const std::string& what, Draw&& draw_it) {
  try {
    if (!draw_it()) gnuplot_ = false;
  } catch (const std::exception& error) {
    faults_.push_back(fmt::format("{}: {}", what, error.what()));
  }
}

void Report::write_curves(const Section& section, Page& page) {
  page.heading(level_, "Learning curves");
  page.open_figures();
  for (const LearningCurve& curve : learning_curves(section, suffix()))
    guarded(curve.figure.title, [&] {
      if (!draw_curves(curve.figure, figures_folder())) return false;
      page.svg_figure(figures_folder() / (curve.figure.name + ".svg"), curve.alternative, curve.caption);
      return true;
    });
  page.close_figures();
}

// One panel per family of q, with the first run of every group.
void Report::write_contours(const Section& section, Page& page) {
  std::vector<ContourPanel> panels;
  for (const RunGroup& group : section.groups) {
    const RunRecord& run = group.first();
    const std::string family = run.text({"family"});
    if (family.empty()) continue;
    const std::string title = fmt::format("{}, q: {}", section.problem, family);
    auto panel = std::ranges::find(panels, title, &ContourPanel::title);
    if (panel == panels.end()) {
      const std::string name =
          (panels.empty() ? "contours" : fmt::format("contours_q{}", panels.size() + 1)) + suffix();
      panel = panels.insert(panels.end(), {name, title, {}, {}, {}});
    }
    panel->runs.push_back(run.folder);
    if (section.groups.size() == 1) continue;  // as hone toy draws it
    panel->labels.push_back(group.label);
    panel->colours.push_back(group.colour);
  }
  if (panels.empty()) return;
  page.heading(level_, "Target and q");
  page.open_figures();
  for (const ContourPanel& panel : panels)
    guarded("contours", [&] {
      if (!draw_contours(panel.name, {panel}, figures_folder())) return false;
      std::string words;
      for (const std::string& label : panel.labels) words += (words.empty() ? " of " : ", ") + label;
      page.svg_figure(
          figures_folder() / (panel.name + ".svg"),
          fmt::format("Contours of the target and of q{} ({}). The table gives the means and standard deviations "
                      "of q.",
                      words, panel.title),
          "Contours of the smallest regions that hold 50, 80 and 95 % of the probability." +
              std::string(section.runs().size() > section.groups.size() ? " The first seed is shown." : ""));
      return true;
    });
  page.close_figures();
}

void write_parameters(const RunRecord& run, Page& page) {
  const Json* parameters = run.find({"parameters"});
  if (!parameters || !parameters->is_object()) return;
  const FitTable table = fit_table(run.summary, {.hint = "in summary.json"});
  std::vector<std::vector<std::string>> rows = {{""}};
  for (const auto& column : table.columns) rows.front().push_back(column.title);
  std::vector<std::string> aside;  // what has too many values
  for (const FitTable::Line& line : table.lines) {
    if (line.cells.empty()) aside.push_back(line.name);
    if (line.cells.empty() || rows.size() > most_parameters) continue;
    rows.push_back({line.name});
    rows.back().insert(rows.back().end(), line.cells.begin(), line.cells.end());
  }
  page.table(rows,
             table.lines.size() - aside.size() > most_parameters
                 ? fmt::format("The first {1} of {0} parameters; all are in summary.json. Right of q's columns: the "
                               "refined draws.",
                               parameters->size(), most_parameters)
                 : "Right of q's columns: the refined draws.");
  if (!aside.empty()) page.list(aside);
}

void Report::write_fit(RunRecord& run, Page& page) {
  for (const auto& [key, title] : {std::pair{"reasons", "Why"}, {"notes", "Notes"}}) {
    const Json* list = run.find({key});
    if (!list || !list->is_array() || list->empty()) continue;
    std::vector<std::string> items;
    for (const Json& item : *list)
      if (item.is_string()) items.push_back(item.get<std::string>());
    page.heading(level_, title);
    page.list(items);
  }
  page.heading(level_, "q and the refined draws");
  page.open_figures();
  guarded(run.folder.string(), [&] {
    const fs::path folder = figures_of(run);
    for (const DrawnFigure& figure : draw_fit_figures(run, folder, gnuplot_))
      page.svg_figure(folder / (figure.name + ".svg"), figure.alternative, figure.caption);
    return gnuplot_;
  });
  page.close_figures();
  page.heading(level_, "Parameters");
  write_parameters(run, page);
}

void Report::write_settings(const Section& section, Page& page) {
  const SettingsTable settings = settings_table(section);
  if (settings.different.empty() && settings.common.empty()) return;
  page.heading(level_, "Configuration");
  if (!settings.different.empty()) page.table(settings.different, "Settings that differ.");
  std::string html;
  for (const auto& [key, value] : settings.common)
    html += fmt::format("<li><b>{} =</b> {}</li>\n", html_text(key), html_text(value));
  if (!html.empty()) page.html("<ul class=\"settings\">\n" + html + "</ul>\n");
}

// One badge for one run; for several, how many have which.
void write_badges(const Section& section, Page& page) {
  std::map<std::pair<int, std::string>, int> count;
  for (const RunRecord* run : section.runs()) {
    const Standing standing = standing_of(*run);
    ++count[{static_cast<int>(standing.badge), standing.text}];
  }
  const bool several = section.runs().size() > 1;
  for (const auto& [what, runs] : count)
    page.badge(static_cast<Page::Badge>(what.first),
               several ? fmt::format("{} of {}: {}", runs, section.runs().size(), what.second) : what.second);
}

void Report::write_latent(const RunGroup& group, Page& page) {
  const RunRecord& run = group.first();
  guarded(run.folder.string(), [&] {
    const fs::path folder = figures_of(run);
    const auto figure = draw_latent(run.folder / "figures", folder, "latent");
    if (!figure) return true;
    if (figure->drawn)
      page.svg_figure(folder / "latent.svg", figure->alternative, fmt::format("{}: {}", run.name(), figure->caption));
    return figure->drawn;
  });
}

void Report::write_verdict(Section& section, Page& page) {
  page.heading(level_, "Verdict");
  page.html("<div class=\"verdict\">\n");
  write_badges(section, page);
  const auto is_seed = [](const RunRecord* run) { return run->name().starts_with("seed-"); };
  if (section.groups.size() > 1 && std::ranges::all_of(section.runs(), is_seed))
    page.paragraph(verdict_of(section.runs()));  // of hone train --seeds
  else if (const std::string text = comparison_of(section.runs()); !text.empty())
    page.paragraph(text);
  if (section.groups.size() == 1) {
    const auto runs = section.runs();
    page.paragraph(verdict_of(runs));
  } else {
    std::vector<std::string> items;
    for (const RunGroup& group : section.groups)
      items.push_back(fmt::format("{}: {}", group.label, verdict_of({group.runs.begin(), group.runs.end()})));
    page.list(items);
  }
  page.html("</div>\n");
}

// Latent space and images of trainings.
void Report::write_pictures(Section& section, Page& page) {
  const auto has_latent = [](const RunGroup& group) {
    std::error_code ignored;
    return fs::exists(group.first().folder / "figures" / "latent.json", ignored);
  };
  if (std::ranges::any_of(section.groups, has_latent)) {
    page.heading(level_, "Latent space");
    page.open_figures();
    std::size_t drawn = 0;
    for (const RunGroup& group : section.groups)
      if (has_latent(group) && drawn++ < most_listed) write_latent(group, page);
    page.close_figures();
  } else {
    page.heading(level_, "Latent space");
    page.paragraph(
        "No run has a plot of it: it has not ended, z has more than 300 dimensions, or an earlier version of hone "
        "trained it.");
  }
  page.heading(level_, "Images");
  page.open_figures();
  std::size_t shown = 0;
  for (const RunGroup& group : section.groups)
    if (shown++ < most_listed)
      guarded(group.first().folder.string(), [&] {
        write_images(group.first(), page);
        return true;
      });
  page.close_figures();
  if (shown > most_listed)
    page.paragraph(fmt::format("The pictures of {} more are in their folders.", shown - most_listed));
}

void Report::write_fits(Section& section, Page& page) {
  const bool one = section.runs().size() == 1;
  for (const RunGroup& group : section.groups)
    for (RunRecord* run : group.runs) {
      if (!one) page.heading(level_++, run->name());
      if (!one) page.badge(standing_of(*run).badge, standing_of(*run).text);
      write_fit(*run, page);
      if (!one) --level_;
    }
}

void Report::write_section(Section& section, const std::string* heading, Page& page) {
  ++section_;
  if (heading) page.heading(2, fmt::format("{}: {}", kind_text(section.kind), *heading));
  level_ = heading ? 3 : 2;
  write_verdict(section, page);
  if (const auto rows = paper_rows(section); !rows.empty()) {
    page.heading(level_, "Comparison with the paper's Table 1");
    page.table(
        rows,
        fmt::format("Test log-likelihood in nats per datum. The paper's measure is the best of three proposals for "
                    "each datum after {} iterations, and no lower bound.",
                    count_text(paper_iterations)));
  }
  page.heading(level_, "What was fitted, and how");
  page.table(facts_table(section), section.runs().size() > section.groups.size()
                                       ? "Groups of runs show means ± standard deviations over seeds."
                                       : "");
  if (section.kind == RunKind::toy) write_contours(section, page);
  if (section.kind != RunKind::fit) write_curves(section, page);
  if (section.kind == RunKind::train) write_pictures(section, page);
  if (section.kind == RunKind::fit) write_fits(section, page);
  write_settings(section, page);
}

}  // namespace

ReportResult write_report(const ReportRequest& request) {
  return Report(request, request.out.empty() ? default_page(request.folders) : request.out).write();
}

}  // namespace hone
