#include "app/run/export.hpp"

#include <fmt/format.h>

#include <map>
#include <memory>

#include "app/cli/commands.hpp"
#include "app/cli/expected.hpp"

namespace hone {
namespace {

struct ExportCommand {
  std::filesystem::path run_folder, out, data_dir;
  std::string format;
  bool best = false;

  void run() const {
    static const std::map<std::string, ExportFormat> formats = {
        {"onnx", ExportFormat::onnx}, {"torch", ExportFormat::torch}, {"npz", ExportFormat::npz}};
    const RunToUse use = read_run(
        run_folder, data_dir, 1, [](const std::string& text) { fmt::print(stderr, "{}\n", text); },
        best ? WhichModel::best : WhichModel::newest);
    for (const auto& file : export_run(use, formats.at(format), out.empty() ? run_folder / "export" : out))
      fmt::print("{}\n", file.string());
  }
};

}  // namespace

void add_export_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("export", "Encoder and decoder for other programs");
  const auto state = std::make_shared<ExportCommand>();
  command->add_option("run", state->run_folder, "run folder of hone train")->required()->option_text("RUN");
  command
      ->add_option("--format", state->format,
                   "onnx (encoder.onnx, decoder.onnx), torch (model.safetensors, hone_model.py that loads it) or npz "
                   "(model.npz)")
      ->required()
      ->check(one_of({"onnx", "torch", "npz"}))
      ->option_text("NAME");
  command->add_option("--out", state->out, "folder for the files [RUN/export]")->option_text("DIR");
  command->add_flag("--best", state->best, "the best model by validation data instead of the last (best.safetensors)");
  command->add_option("--data-dir", state->data_dir, "folder with one folder per data set; searched first")
      ->option_text("DIR");
  command->callback([state] { state->run(); });
}

}  // namespace hone
