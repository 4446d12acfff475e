#!/usr/bin/env python3
"""read_draws.py FOLDER: compares fit.nc with draws.csv and draws_q.csv, using third-party readers for each."""
import csv
import importlib.util
import math
import pathlib
import sys
import warnings

warnings.simplefilter("ignore")
CHAINS = {"posterior": 3, "q": 1}  # draws of q are one chain


def read_csv(path):
    """Columns of a Stan CSV file by name."""
    with open(path, encoding="utf-8") as file:
        rows = list(csv.reader(line for line in file if not line.startswith("#")))
    return {name: [float(row[i]) for row in rows[1:]] for i, name in enumerate(rows[0])}


def element(values, name, chain, draw):
    """values: a group's variables by name; name in Stan's form."""
    base, *indices = name.split(".")
    return float(values[base][(chain, draw, *(int(i) - 1 for i in indices))])


def compare(what, columns, values, statistics, rename, chains):
    draws = len(columns["lp__"]) // chains
    for name, column in columns.items():
        for i, expected in enumerate(column):
            at = (i // draws, i % draws)
            if name in rename:
                found = float(statistics[rename[name]][at])
            elif name == "log_p__":
                continue
            else:
                found = element(values, name, *at)
            if found != expected and not (math.isnan(found) and math.isnan(expected)):
                sys.exit(f"{what}: {name}, draw {i}: {found} instead of {expected}")


def main(folder):
    tables = {"posterior": read_csv(folder / "draws.csv"), "q": read_csv(folder / "draws_q.csv")}
    statistics = {"posterior": "sample_stats", "q": "q_stats"}
    rename = {"lp__": "lp", "log_q__": "log_q", "accept_stat__": "acceptance_rate", "divergent__": "diverging",
              "energy__": "energy", "short_chain__": "short_chain"}
    likelihood = {name: column for name, column in tables["posterior"].items() if name.startswith("theta.")}
    for columns in tables.values():  # theta is in log_likelihood
        for name in likelihood:
            del columns[name]

    import netCDF4
    import xarray
    with netCDF4.Dataset(folder / "fit.nc") as file:
        for group, columns in tables.items():
            compare("netCDF4", columns, file[group].variables, file[statistics[group]].variables, rename,
                    CHAINS[group])
        assert file.model == "test" and file["posterior"].inference_library == "hone"
        assert file["observed_data"]["y"][1, 0] == 3 and file["constant_data"]["N"][...] == 7
        assert file["observed_data"]["y"].dtype == "int64" and file["constant_data"]["N"].dtype == "float64"
        assert file["posterior"]["K"].dtype == "float64"
        assert set(file["observed_data"].variables) == {"y", "y_dim_0", "y_dim_1"}
        for name, column in likelihood.items():
            found = [element(file["log_likelihood"].variables, name, i // 4, i % 4) for i in range(12)]
            assert found == column, name
        assert "theta" not in file["posterior"].variables and "theta" not in file["q"].variables
    for group, columns in tables.items():
        with xarray.open_dataset(folder / "fit.nc", group=group) as values, \
                xarray.open_dataset(folder / "fit.nc", group=statistics[group]) as more:
            compare("xarray", columns, {name: values[name].values for name in values},
                    {name: more[name].values for name in more}, rename, CHAINS[group])
            assert values["K"].dims == ("chain", "draw", "K_dim_0", "K_dim_1"), values["K"].dims
            assert list(values["K_dim_0"].values) == [0, 1] and len(values["chain"]) == CHAINS[group]
            assert group == "q" or more["diverging"].dtype == bool
    print("netCDF4 and xarray read the file")

    if importlib.util.find_spec("arviz"):
        import arviz
        data = arviz.from_netcdf(folder / "fit.nc")
        compare("ArviZ", tables["posterior"], {name: data.posterior[name].values for name in data.posterior},
                {name: data.sample_stats[name].values for name in data.sample_stats}, rename,
                CHAINS["posterior"])
        arviz.summary(data)
        chain = arviz.from_cmdstan(posterior=str(folder / "draws.csv"))
        assert float(chain.posterior["K"][0, 4, 1, 2]) == tables["posterior"]["K.2.3"][4]
        print("ArviZ reads the NetCDF file and the CSV")
    else:
        print("ArviZ is not installed here (pip install arviz): its part of this test is left out")
    if importlib.util.find_spec("cmdstanpy"):
        import cmdstanpy
        chain = cmdstanpy.from_csv(str(folder / "draws.csv"))
        assert chain.stan_variable("K")[4, 1, 2] == tables["posterior"]["K.2.3"][4]
        print("CmdStanPy reads the CSV")
    else:
        print("CmdStanPy is not installed here (pip install cmdstanpy): its part of this test is left out")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
