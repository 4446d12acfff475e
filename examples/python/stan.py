"""Eight schools: from a Stan program to a verdict, a table for ArviZ and a picture. Usage: stan.py [FOLDER]"""

import sys
from pathlib import Path

import hone

here = Path(__file__).resolve().parents[1] / "posteriors"
out = Path(sys.argv[1] if len(sys.argv) > 1 else "out/python")
out.mkdir(parents=True, exist_ok=True)

r = hone.fit(here / "eight_schools_noncentered.stan", data=here / "eight_schools" / "data.json", seed=1)
print(r)

print("\nP(tau < 1) =", (r["tau"] < 1).mean())
r.plot(["mu", "tau", "theta.1", "theta.2"]).savefig(out / "schools.png", dpi=120)
print(r.to_datatree())
