import dataclasses
import math
import subprocess
import sys

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss

from futureworld.errors import ScoreError
from futureworld.evaluation.baselines import BASELINES, PERSISTENCE, Row, predict_baselines


def row(
    domain: str = "fuel", side: bool = True, outcome: float | None = None, share: float = 0.5, distance: float = 0.0
):
    return Row(domain, share, side, distance, outcome)


TRAINING = [
    row("fuel", True, 1.0),
    row("fuel", True, 1.0),
    row("fuel", False, 0.0),
    row("chess", False, 1.0),
    row("chess", False, 0.0),
]


def test_every_baseline_answers_every_row_in_a_fixed_order():
    found = predict_baselines(TRAINING, [row(), row("chess"), row("unknown")])
    assert tuple(found) == BASELINES == ("always_half", "base_rate", "persistence", "domain_side", "logistic")
    assert all(p.shape == (3,) and p.dtype == np.float64 for p in found.values())
    assert all(((p > 0) & (p < 1)).all() for p in found.values())


def test_rates_by_hand():
    rows = [row("fuel", True), row("fuel", False), row("chess", True), row("chess", False), row("unknown", False)]
    found = predict_baselines(TRAINING, rows)
    assert found["always_half"].tolist() == [0.5] * 5
    # (Yes + 1) / (n + 2): fuel 2 of 3, chess 1 of 2, overall 3 of 5
    assert found["base_rate"].tolist() == pytest.approx([3 / 5, 3 / 5, 1 / 2, 1 / 2, 4 / 7])
    assert found["persistence"].tolist() == pytest.approx([0.8, 0.2, 0.8, 0.2, 0.2])
    # fuel on yes 2 of 2; fuel on no 0 of 1; chess on yes unseen, so side yes 2 of 2; chess on no 1 of 2; side no 1 of 3
    assert found["domain_side"].tolist() == pytest.approx([3 / 4, 1 / 3, 3 / 4, 1 / 2, 2 / 5])


def test_domain_side_falls_back_to_the_overall_rate_where_the_side_is_unknown():
    training = [row("fuel", True, 1.0), row("fuel", True, 1.0)]
    assert predict_baselines(training, [row("fuel", False)])["domain_side"].tolist() == [3 / 4]


def test_without_training_rows_fitted_baselines_say_half():
    found = predict_baselines([], [row(), row("chess", False)])
    for name in ("base_rate", "domain_side", "logistic"):
        assert found[name].tolist() == [0.5, 0.5]
    assert found["persistence"].tolist() == pytest.approx([PERSISTENCE, 1 - PERSISTENCE])


def test_logistic_of_one_class_is_its_smoothed_rate():
    training = [row("fuel", True, 1.0, distance=1.0), row("chess", False, 1.0)]
    assert predict_baselines(training, [row(), row("x")])["logistic"].tolist() == [3 / 4, 3 / 4]


def test_no_rows_give_no_forecasts():
    assert [p.shape for p in predict_baselines(TRAINING, []).values()] == [(0,)] * len(BASELINES)


def world(seed: int, n: int) -> list[Row]:
    """Domains in which distance means opposite things."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        domain, distance = str(rng.choice(["momentum", "reversal"])), float(rng.uniform(-3, 3))
        slope = 1.5 if domain == "momentum" else -1.5
        outcome = float(rng.random() < 1 / (1 + math.exp(-slope * distance)))
        rows.append(Row(domain, float(rng.integers(0, 8)) / 7, distance > 0, distance, outcome))
    return rows


def test_logistic_learns_that_distance_means_another_thing_in_each_domain():
    rows = world(1, 400)
    found = predict_baselines(world(0, 600), rows)
    y = [row.outcome for row in rows]
    briers = {name: brier_score_loss(y, p) for name, p in found.items()}
    assert briers["logistic"] < 0.16
    assert min(briers, key=lambda name: briers[name]) == "logistic"
    assert briers["domain_side"] < 0.2 < briers["base_rate"]


def test_outcomes_of_the_rows_to_be_forecast_are_never_read():
    rows = world(1, 50)
    flipped = [dataclasses.replace(row, outcome=1.0 - (row.outcome or 0.0)) for row in rows]
    unknown = [dataclasses.replace(row, outcome=None) for row in rows]
    expected = predict_baselines(world(0, 100), rows)
    for other in (flipped, unknown):
        for name, p in predict_baselines(world(0, 100), other).items():
            np.testing.assert_array_equal(p, expected[name])


def test_the_order_of_training_rows_does_not_matter():
    rows, training = world(1, 20), world(0, 100)
    expected = predict_baselines(training, rows)
    for name, p in predict_baselines(training[::-1], rows).items():
        np.testing.assert_allclose(p, expected[name], atol=1e-4)


def test_bad_input_is_refused():
    with pytest.raises(ScoreError, match="1 of 2 training rows have no outcome"):
        predict_baselines([row(outcome=1.0), row()], [row()])
    with pytest.raises(ScoreError, match=r"outcome 0\.49 is neither 0 nor 1"):
        row(outcome=0.49)
    with pytest.raises(ScoreError, match=r"yes_share 1\.2"):
        row(share=1.2)
    with pytest.raises(ScoreError, match="distance nan"):
        row(distance=math.nan)


def test_importing_the_scorer_loads_neither_sklearn_nor_torch_nor_pandas():
    code = (
        "import sys, futureworld.evaluation.baselines, futureworld.evaluation.table, futureworld.pages.plots;"
        "print([name for name in ('sklearn', 'torch', 'pandas', 'matplotlib', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
