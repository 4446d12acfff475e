#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "hone/target/posterior.hpp"

namespace hone {

/// How Stan programs are compiled.
struct StanOptions {
  std::filesystem::path cache;  ///< folder for compiled models; empty: hone/stan in the user's cache
  std::function<void(const std::string&)> progress;  ///< told of steps that take seconds; may be empty
  std::filesystem::path data;  ///< data to check against the program before compiling; empty: no check
  std::function<bool()> stop;  ///< asked every 50 ms: true ends the compiler, and Stopped is thrown; may be empty
  bool no_data = false;        ///< there will be no data: a program that declares some is refused
};

/// Compiles a Stan program into a shared library with BridgeStan's C interface, for load_bridgestan, and returns the
/// library's path. A program that is in the cache is not compiled again. The cache knows it by its text with everything
/// that it includes, the compiler and Stan's version, not by file names.
///
/// The first of these that is present is used: Stan as install_stan has installed it; the BridgeStan folder that the
/// environment variable BRIDGESTAN names; Debian's r-cran-rstan. The compiler is CXX; else, for the first of them,
/// clang++ where it works; else g++. If several processes want the same model, one compiles and the others wait. Throws
/// InputError if the program cannot be read or translated (with the translator's message, file and line), the data do
/// not suit it, a tool is missing (with the command that installs it), or there is no folder for the cache.
std::filesystem::path compile_stan(const std::filesystem::path& program, const StanOptions& options = {});

/// Installs Stan into the cache: its translator, headers and libraries, from the Python package httpstan. pip downloads
/// the package's wheel, unless `wheel` names such a file. hone verifies its checksum if it knows it, and always
/// those of its files. Then Stan's headers are compiled once, which halves the time per model. A version that is
/// installed already is kept. Returns the installation's folder.
///
/// Throws InputError if the wheel cannot be downloaded, is damaged or is not httpstan's, or a tool is missing.
/// A failed installation leaves nothing behind.
std::filesystem::path install_stan(const std::filesystem::path& wheel = {}, const StanOptions& options = {});

/// The Stan that compile_stan would use, in words: its version and folder. Throws InputError, with the command that
/// installs one, if there is none.
std::string stan_in_use(const StanOptions& options = {});

/// The posterior of a compiled Stan model: a shared library with BridgeStan's C interface, version 2, and its data, a
/// JSON file (an empty path means no data). The density is normalised: no constants are dropped.
///
/// - A point at which the model throws has the value −∞; complaint() keeps the first message.
/// - Values on the natural scale include transformed parameters and generated quantities. Random numbers in generated
///   quantities are a function of the point alone, so they do not depend on threads. Transformed parameters or
///   generated quantities that throw are NaN. If the parameters themselves throw, so does constrain().
/// - A library built without STAN_THREADS is called by one thread at a time.
/// - What the model prints is not shown.
///
/// The library stays loaded until the program ends. Throws InputError if the file is not a shared library, not
/// BridgeStan's or of version 1, if the data cannot be read or do not suit the model, and if the model has no
/// parameters. Messages name the model by `name`, the Stan program that the library was compiled from; if that is
/// empty, by the library.
std::unique_ptr<Posterior> load_bridgestan(const std::filesystem::path& library, const std::filesystem::path& data = {},
                                           const std::filesystem::path& name = {});

/// The version of Stan that a model was compiled with, "2.39.0"; empty if its library does not say, or if it is not one
/// of load_bridgestan.
std::string stan_version(const Posterior& posterior);

}  // namespace hone
