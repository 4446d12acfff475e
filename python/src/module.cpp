#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "app/run/draws_file.hpp"
#include "app/run/posterior_run.hpp"
#include "app/run/provenance.hpp"
#include "hone/base/cpus.hpp"
#include "hone/base/error.hpp"
#include "hone/engine/engines.hpp"
#include "python/src/fit.hpp"
#include "python/src/messages.hpp"
#include "python/src/models.hpp"

namespace hone::python {
namespace {

using namespace nb::literals;

// Bad input is a ValueError, everything else that ends a computation a RuntimeError.
void add_exceptions(nb::module_& module) {
  static nb::exception<Error> error(module, "HoneError", PyExc_RuntimeError);
  static nb::exception<InputError> input(module, "InputError", PyExc_ValueError);
  static nb::exception<Stopped> stopped(module, "Stopped", PyExc_KeyboardInterrupt);
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Stopped&) {
      throw;
    } catch (const InputError& e) {
      PyErr_SetString(input.ptr(), in_python(e.what()).c_str());
    } catch (const Error& e) {
      PyErr_SetString(error.ptr(), in_python(e.what()).c_str());
    }
  });
}

void add_fit(nb::module_& module) {
  nb::class_<Stop>(module, "Stop", "Ends long work early, with the result so far.")
      .def(nb::init<>())
      .def("set",
           [](Stop& stop) {
             stop.set = true;
             stop.signal = 2;
           })
      .def("__bool__", [](const Stop& stop) { return stop.set.load(); });
  module.def(
      "leave", [](bool now) { leaving = now; }, "now"_a, "Ends all work at its next call of Python.");
  nb::class_<DensityParts>(module, "Density", "A log density in Python.")
      .def(nb::init<>())
      .def_rw("density", &DensityParts::density, nb::arg().none())
      .def_rw("batches", &DensityParts::batches)
      .def_rw("view", &DensityParts::view)
      .def_rw("convert", &DensityParts::convert, nb::arg().none())
      .def_rw("constrain", &DensityParts::constrain, nb::arg().none())
      .def_rw("coordinates", &DensityParts::coordinates)
      .def_rw("names", &DensityParts::names)
      .def_rw("parameters", &DensityParts::parameters);
  nb::class_<ModelParts>(module, "Model", "What to fit: a density, or a Stan model and the path of its data.")
      .def(nb::init<DensityParts, std::string>(), "density"_a, "name"_a)
      .def(nb::init<std::string, std::string>(), "model"_a, "data"_a)
      .def_prop_ro("in_python", &ModelParts::in_python);
  nb::class_<DrawsParts>(module, "Draws", "Draws that somebody else made: values (n, names).")
      .def(
          "__init__",
          [](DrawsParts* self, std::vector<std::string> names, const Points& values, std::vector<double> log_q,
             bool natural) {
            new (self) DrawsParts{{std::move(names), matrix_of(values), std::move(log_q)},
                                  natural ? Scale::natural : Scale::unconstrained};
          },
          "names"_a, "values"_a, "log_q"_a, "natural"_a);
  module.def("names_of", &names_of, "model"_a, "stop"_a, "tell"_a.none());
  module.def(
      "read_csv_draws",
      [](const std::string& file) {
        GivenDraws draws = read_csv_draws({file});
        return nb::make_tuple(draws.names, array_of(std::move(draws.values)), draws.log_q);
      },
      "file"_a, "Names, values and log q of a CSV file.");
  module.def("fit", &fit, "model"_a, "settings"_a, "init"_a.none(), "stop"_a, "tell"_a.none());
  module.def("check_draws", &check_draws, "model"_a, "settings"_a, "draws"_a, "stop"_a, "tell"_a.none());
  module.def("save_fit", &save_fit, "path"_a, "parts"_a, "verdict"_a, "steps"_a);
  module.def("save_warm_start", &save_warm_start, "folder"_a, "names"_a, "inits"_a, "inverse_metric"_a, "step_size"_a);
  module.def("table_of", &table_of, "summary"_a, "show"_a);
  module.def("table_text", &table_text, "summary"_a, "show"_a, "width"_a);
  module.def("in_python", &in_python, "text"_a);
  module.def("judge_again", &judge_again, "folder"_a, "mean"_a, "sd"_a, "vcd"_a);
  module.def("time_evaluations", &time_evaluations, "model"_a, "z"_a, "calls"_a, "gradients_alone"_a = false);
  module.def("gradient_complaint", &gradient_complaint, "model"_a, "z"_a);
  module.def("install", &install, "wheel"_a, "stop"_a, "tell"_a.none());
  module.attr("default_gradients") = default_gradients;
}

void add_models(nb::module_& module) {
  nb::class_<Data>(module, "Data", "Data of a model. Numbers stay where they are; bits are packed.")
      .def_static("bytes", &bytes_of, "values"_a, "shape"_a)
      .def_static("floats", &floats_of, "values"_a, "shape"_a)
      .def_static("doubles", &doubles_of, "values"_a, "shape"_a)
      .def_static(
          "sparse",
          [](decltype(Csr::begin) begin, decltype(Csr::column) column, decltype(Csr::value) value,
             const std::array<int, 3>& shape) {
            return sparse_of({begin, column, value, shape});
          },
          "begin"_a, "column"_a, "value"_a, "shape"_a)
      .def_prop_ro("binary", [](const Data& data) { return data.set.binary(); })
      .def_prop_ro("rows", [](const Data& data) { return data.set.size(); })
      .def_prop_ro("memory", [](const Data& data) { return data.set.memory(); });
  module.def(
      "train",
      [](const SettingTexts& settings, const std::string& folder, bool resume, const Data& train, const Data* test,
         const Data* validation, Stop& stop, nb::object tell, nb::object say) {
        return train_model({settings, folder, resume}, {train, test, validation}, stop, std::move(tell),
                           std::move(say));
      },
      "settings"_a, "folder"_a, "resume"_a, "train"_a, "test"_a.none(), "validation"_a.none(), "stop"_a,
      "tell"_a.none(), "say"_a.none());
  module.def("resolved_config", &resolved_config, "settings"_a);
  module.def("train_settings", &setting_table);
  module.def("with_identity", &with_identity, "checkpoint"_a, "key"_a, "value"_a);
  module.def("draw_seed", &TrainedNetworks::draw_seed, "seed"_a, "draw"_a);
  module.def("complete_checkpoint", &complete_checkpoint, "folder"_a);
  nb::class_<Networks>(module, "TrainedNetworks", "A trained model and its q.")
      .def(nb::init<const std::string&, nb::bytes, int>(), "config"_a, "checkpoint"_a, "threads"_a)
      .def("encode", &Networks::encode, "data"_a)
      .def("refine", &Networks::refine, "data"_a, "steps"_a, "seed"_a, "stop"_a, "tell"_a.none())
      .def("decode", &Networks::decode, "z"_a)
      .def("outputs", &Networks::outputs, "z"_a)
      .def("simulate", &Networks::simulate, "count"_a, "seed"_a)
      .def("evaluate", &Networks::evaluate, "data"_a, "samples"_a, "stop"_a, "tell"_a.none())
      .def("anneal", &Networks::anneal, "data"_a, "steps"_a, "chains"_a, "stop"_a, "tell"_a.none())
      .def("parameters", &Networks::parameters)
      .def("torch_arrays", &Networks::torch_arrays)
      .def_prop_ro("iteration", &Networks::iteration)
      .def_prop_ro("pixels", &Networks::pixels)
      .def_prop_ro("shape", &Networks::shape)
      .def_prop_ro("threshold", &Networks::threshold);
}

}  // namespace
}  // namespace hone::python

NB_MODULE(_hone, module) {
  using namespace hone::python;
  nb::set_leak_warnings(false);  // a traceback that outlives the interpreter is no fault
  module.doc() = "The engine of the package hone: use the package, not this.";
  add_exceptions(module);
  add_fit(module);
  add_models(module);
  module.attr("version") = hone::hone_version();
  module.def("default_threads", &hone::default_threads, "One per CPU of this process.");
  module.def(
      "devices",
      [] {
        std::vector<std::string> names;
        for (const hone::CudaDevice& device : hone::cuda_support().devices) names.push_back(device.name);
        return names;
      },
      "The CUDA devices that the module can train on.");
}
