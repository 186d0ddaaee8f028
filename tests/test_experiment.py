"""What is said of a run that is asked for again."""

import json
import shutil

from attention_jax.experiment import run_experiment
from attention_jax.runs.config import from_config_dict
from attention_jax.runs.files import write_json


def test_a_part_that_has_changed_since_a_run_began_is_named(trained, tmp_path, extension, capsys):
    extension("objectives", "mine", "a = 2\n")
    run = shutil.copytree(trained, tmp_path / "run")
    facts = json.loads((run / "run.json").read_text())
    assert facts["own_files"] == {}
    write_json(run / "run.json", facts | {"own_files": {"objectives/mine.py": "another"}})
    run_experiment(from_config_dict(json.loads((run / "config.json").read_text())), run)
    notice = f"notice: changed since {run} began: objectives/mine.py\n"
    assert capsys.readouterr().out.startswith(f"{notice}This run is complete")
