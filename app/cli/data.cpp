#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/commands.hpp"
#include "app/cli/expected.hpp"
#include "app/data/check.hpp"
#include "app/data/fetch.hpp"
#include "app/data/load.hpp"
#include "app/data/picture.hpp"
#include "app/data/text_lines.hpp"
#include "app/run/terminal.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "hone/base/scalar.hpp"
#include "hone/base/statistics.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

struct DataOptions {
  std::string data_dir;
  std::vector<std::string> names;
  std::string url;
  bool again = false;
  DataRequest request;
  std::string binarization = "auto", header = "auto", missing = "refuse";
  std::string split = "train";
  int count = 0;
  std::string out;
};

std::vector<std::string> names_or_all(const DataOptions& options) {
  std::vector<std::string> names = options.names;
  if (names.empty())
    for (const DataSetInfo& info : known_data_sets()) names.push_back(info.name);
  return names;
}

void list(const DataOptions& options) {
  const std::vector<Place> places = search_places(options.data_dir);
  for (const DataSetInfo& info : known_data_sets()) {
    fmt::print("{}\n{}  {} × {} pixels; {} train, {} validation, {} test\n", info.name,
               wrapped("  ", info.description, terminal_width(stdout)), info.shape.rows, info.shape.cols, info.train,
               info.validation, info.test);
    if (info.files.empty()) {
      fmt::print("  always there\n\n");
    } else if (const auto found = find_data(info, places)) {
      fmt::print("  found: {}\n\n", found->folder.string());
    } else {
      fmt::print("  not found; to get it:\n{}\n\n", how_to_get(info));
    }
  }
  fmt::print("searched, in this order:\n");
  for (const Place& place : places) fmt::print("  {} ({})\n", place.folder.string(), place.meaning);
}

// One line that overwrites itself on a terminal; nothing elsewhere.
void show_progress(const DataFile& file, const DownloadProgress& at) {
  if (!isatty(STDERR_FILENO)) return;
  const double megabytes = static_cast<double>(at.received) * 1e-6;
  if (at.total > 0) {
    fmt::print(stderr, "\r{}  {:.1f} of {:.1f} MB ", file.published, megabytes, static_cast<double>(at.total) * 1e-6);
  } else {
    fmt::print(stderr, "\r{}  {:.1f} MB ", file.published, megabytes);
  }
}

void tell_event(const DataFile& file, FileEvent event) {
  if (event == FileEvent::present) fmt::print("{}: already there and valid\n", file.published);
  if (event != FileEvent::placed) return;
  if (isatty(STDERR_FILENO)) fmt::print(stderr, "\r\x1b[K");
  fmt::print("{}: downloaded, {}\n", file.published,
             file.sha256.empty() ? "structure checked (no checksum is known)" : "checksum verified");
}

void get(const DataOptions& options) {
  for (const std::string& name : options.names) {
    const DataSetInfo& info = data_set_named(name);
    // A folder that the user names gets the set, even if it is elsewhere already.
    const std::vector<Place> places =
        options.data_dir.empty() ? search_places() : std::vector<Place>{{options.data_dir, "--data-dir"}};
    const auto found = find_data(info, places);
    if (found && !options.again && !info.files.empty()) {
      fmt::print("{}: already in {} (hone data verify checks it; --again downloads it)\n", name,
                 found->folder.string());
      continue;
    }
    FetchRequest request;
    request.folder = download_place(options.data_dir);
    request.url = options.url;
    request.event = tell_event;
    request.progress = show_progress;
    fmt::print("{}: in {}\n", name, fetch_data(info, request).string());
  }
}

// The error of each bad file, one per line.
std::string verify_set(const DataSetInfo& info, const FoundData& found) {
  std::string wrong;
  for (std::size_t i = 0; i < info.files.size(); ++i) {
    try {
      check_file(info, info.files[i], found.files[i]);
      fmt::print("{}: good{}\n", found.files[i].string(),
                 info.files[i].sha256.empty() ? " (structure; no checksum is known)" : "");
    } catch (const InputError& error) {
      wrong += fmt::format("\n  {}", error.what());
    }
  }
  return wrong;
}

void verify(const DataOptions& options) {
  const std::vector<Place> places = search_places(options.data_dir);
  std::string wrong;
  for (const std::string& name : names_or_all(options)) {
    const DataSetInfo& info = data_set_named(name);
    if (info.files.empty()) {
      fmt::print("{}: generated, not a file\n", name);
    } else if (options.names.empty() && !find_data(info, places)) {
      fmt::print("{}: not found\n", name);
    } else {
      wrong += verify_set(info, require_data(info, places));
    }
  }
  if (!wrong.empty()) throw Error("these files are wrong:" + wrong);
}

std::string in_words(const ImageShape& shape) {
  if (shape.rows == 1 && shape.channels == 1)
    return fmt::format("{} value{} each", shape.cols, shape.cols == 1 ? "" : "s");
  return fmt::format("{} × {} pixels{}", shape.rows, shape.cols, shape.channels == 3 ? " in colour" : "");
}

// How often each label occurs, the first ones in the order of the data.
std::string counted(const std::vector<std::string>& labels) {
  constexpr std::size_t most = 10;
  std::vector<std::pair<std::string, int>> counts;
  for (const std::string& label : labels) {
    const auto found = std::ranges::find(counts, label, &std::pair<std::string, int>::first);
    if (found == counts.end())
      counts.emplace_back(label, 1);
    else
      ++found->second;
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(most, counts.size()); ++i)
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", shown(counts[i].first), counts[i].second);
  return text + (counts.size() > most ? fmt::format(" and {} more", counts.size() - most) : "");
}

struct Column {
  Moments moments;
  double least = infinity, largest = -infinity;
  int missing = 0;

  void add(double x) {
    if (std::isnan(x)) {
      ++missing;
      return;
    }
    moments.add(x);
    least = std::min(least, x);
    largest = std::max(largest, x);
  }
};

std::vector<Column> columns_of(const DataSet& data) {
  std::vector<Column> columns(static_cast<std::size_t>(data.dimension()));
  Matrix<double> datum(data.dimension(), 1);
  for (int i = 0; i < data.size(); ++i) {
    data.expand({&i, 1}, datum.view());
    for (std::size_t k = 0; k < columns.size(); ++k) columns[k].add(datum(static_cast<int>(k), 0));
  }
  return columns;
}

// Data that are no images, as a table: one line per value of a datum.
void print_columns(const std::vector<Column>& columns, bool missing) {
  constexpr std::size_t most = 30;
  fmt::print("{:>8}{:>12}{:>12}{:>12}{:>12}{}\n", "value", "mean", "sd", "smallest", "largest",
             missing ? "  missing" : "");
  for (std::size_t k = 0; k < std::min(most, columns.size()); ++k) {
    const Column& c = columns[k];
    if (c.moments.count() == 0)
      fmt::print("{:>8}{:>12}{:>12}{:>12}{:>12}", k + 1, "-", "-", "-", "-");
    else
      fmt::print("{:>8}{:>12.4g}{:>12.4g}{:>12.4g}{:>12.4g}", k + 1, c.moments.mean(),
                 c.moments.count() > 1 ? c.moments.sd() : 0.0, c.least, c.largest);
    fmt::print("{}\n", missing ? fmt::format("{:>9}", c.missing) : "");
  }
  if (columns.size() > most) fmt::print("and {} more\n", columns.size() - most);
}

const std::vector<std::string>& labels_of(const DataSplits& data, const std::string& split) {
  return split == "train" ? data.labels.train : split == "test" ? data.labels.test : data.labels.validation;
}

// Before anything is read.
void check_picture_name(const std::string& out) {
  if (!out.empty() && fs::path(out).extension() != ".png")
    throw InputError(fmt::format("--out: {}: expected a name that ends in .png", out));
  if (!fs::path(out).parent_path().empty() && !fs::is_directory(fs::path(out).parent_path()))
    throw InputError(fmt::format("--out: {}: there is no such folder", out));
}

int terminal_columns() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 120;
}

void show(DataOptions options) {
  check_picture_name(options.out);
  options.request.binarization = binarization_named(options.binarization);
  options.request.header = csv_header_named(options.header);
  options.request.missing = options.missing == "ignore" ? Missing::ignored : Missing::refused;
  options.request.data_dir = options.data_dir;
  const DataSplits splits = load_data(options.request);
  const DataSet& data = split_of(splits, options.split);
  if (!options.out.empty() && !data.shape().drawable())
    throw InputError(fmt::format("--out: the data of {} are no images", splits.name));
  const int fitting = std::max(1, terminal_columns() / (data.shape().cols + 1));
  fmt::print("{}: {}\n{}: {} data, {}, {:.1f} MB in memory\n", splits.name, splits.origin, options.split, data.size(),
             in_words(data.shape()), static_cast<double>(data.memory()) * 1e-6);
  if (const auto& labels = labels_of(splits, options.split); !labels.empty())
    fmt::print("{}", wrapped("labels: ", counted(labels), terminal_width(stdout)));
  const bool missing = options.request.missing == Missing::ignored;
  if (!data.shape().drawable()) return print_columns(columns_of(data), missing);
  if (!options.out.empty()) {
    const int count = std::min(options.count > 0 ? options.count : 100, data.size());
    const int across = static_cast<int>(std::ceil(std::sqrt(count)));
    const LevelRange range = range_of(data, count);
    write_png(picture_of(data, count, across, range), options.out);
    fmt::print("written: {} ({} image{}{})\n", options.out, count, count == 1 ? "" : "s",
               range.usual() ? "" : fmt::format("; black is {:.4g}, white {:.4g}", range.low, range.high));
    return;
  }
  const int count = std::min(options.count > 0 ? options.count : 2 * fitting, data.size());
  const bool coloured = isatty(STDOUT_FILENO) && environment("NO_COLOR").empty();
  fmt::print("{}", text_of(picture_of(data, count, fitting, range_of(data, count)),
                           coloured ? TextColour::grey : TextColour::none));
}

void add_data_dir(CLI::App& command, DataOptions& options) {
  command.add_option("--data-dir", options.data_dir, "folder with one folder per data set; searched first")
      ->type_name("DIR");
}

void add_get(CLI::App& data, const std::shared_ptr<DataOptions>& options) {
  CLI::App& command = *data.add_subcommand("get", "Download and verify data sets");
  command.add_option("name", options->names, "data sets to get")->required()->type_name("NAME");
  add_data_dir(command, *options);
  command
      .add_option("--url", options->url, "server to download from, as URL/NAME/FILE (http or https) [the known ones]")
      ->type_name("URL")
      ->envname("HONE_DATA_URL");
  command.add_flag("--again", options->again, "check a set that is already there, and replace broken files");
  command.callback([options] { get(*options); });
}

void add_show(CLI::App& data, const std::shared_ptr<DataOptions>& options) {
  CLI::App& command = *data.add_subcommand("show", "Show some data in the terminal or as a PNG file");
  command.add_option("name", options->request.name, "data set, or the path of a file or folder (docs/data.md)")
      ->required()
      ->type_name("NAME");
  add_data_dir(command, *options);
  command.add_option("--split", options->split, "train, validation or test [train]")->option_text("NAME");
  command.add_option("--count", options->count, "how many images [two rows in the terminal, 100 in a file]")
      ->check(integer(1, 10'000))
      ->option_text("n");
  command.add_option("--out", options->out, "write a PNG file instead")->option_text("FILE");
  command.add_option("--binarization", options->binarization, "auto, none, threshold or stochastic [auto]")
      ->option_text("NAME");
  command
      .add_option("--header", options->header,
                  "whether a .csv file begins with a line of names: auto, yes or no [auto]")
      ->option_text("NAME");
  command.add_option("--labels", options->request.labels, "a column of a .csv file, or a file of labels: counts them")
      ->option_text("NAME");
  command
      .add_option("--missing", options->missing, "whether a file may have missing values: refuse or ignore [refuse]")
      ->check(one_of({"refuse", "ignore"}))
      ->option_text("NAME");
  command.add_option("--seed", options->request.seed, "seed of stochastic binarization and of synthetic data [1]")
      ->option_text("n");
  command.callback([options] { show(*options); });
}

}  // namespace

void add_data_command(CLI::App& app) {
  CLI::App& data = *app.add_subcommand("data", "List, download, verify and show data sets");
  data.require_subcommand(1);
  const auto options = std::make_shared<DataOptions>();
  CLI::App& list_command = *data.add_subcommand("list", "List the data sets and where each is found");
  add_data_dir(list_command, *options);
  list_command.callback([options] { list(*options); });
  add_get(data, options);
  CLI::App& verify_command = *data.add_subcommand("verify", "Check structure and checksums of data sets");
  verify_command.add_option("name", options->names, "data sets to verify [all that are found]")->type_name("NAME");
  add_data_dir(verify_command, *options);
  verify_command.callback([options] { verify(*options); });
  add_show(data, options);
}

}  // namespace hone
