#pragma once

#include <CLI/CLI.hpp>

namespace hone {

inline constexpr int bad_input = 2;  // the exit code

// Ends the program with an exit code that is neither success nor an error: stopped by a signal, or a verdict.
struct Ended {
  int code;
};

// Each adds one subcommand, whose callback does the work. Bad input is an InputError.
void add_toy_command(CLI::App& program);
void add_reproduce_command(CLI::App& program);
void add_train_command(CLI::App& program);
void add_eval_command(CLI::App& program);
void add_encode_command(CLI::App& program);
void add_refine_command(CLI::App& program);
void add_reconstruct_command(CLI::App& program);
void add_sample_command(CLI::App& program);
void add_score_command(CLI::App& program);
void add_export_command(CLI::App& program);
void add_report_command(CLI::App& program);
void add_fit_command(CLI::App& program);
void add_check_command(CLI::App& program);
void add_summary_command(CLI::App& program);
void add_compare_command(CLI::App& program);
void add_bench_command(CLI::App& program);
void add_data_command(CLI::App& program);  // list, get, verify, show
void add_info_command(CLI::App& program);
void add_manual_command(CLI::App& program);
void add_stan_command(CLI::App& program);  // install, compile

}  // namespace hone
