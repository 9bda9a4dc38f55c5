"""`irtjax demo`: small here, and once as a user runs it."""

import dataclasses

import pytest

from irtjax.data import demo
from irtjax.fit.result import FitResult


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(
        demo,
        "DEMO_BENCHMARKS",
        tuple(dataclasses.replace(b, n_items=b.n_items // 20) for b in demo.DEMO_BENCHMARKS),
    )


def check(outcome):
    assert (outcome.code, outcome.err) == (0, "")
    for text in ("the true parameters", "reasoning, falls with it", "Abilities found", "1PL"):
        assert text in outcome.out
    falling = [line for line in outcome.out.splitlines() if "falls with it" in line]
    assert len(falling) == 1
    assert falling[0].startswith("dangerous-knowledge-withheld")
    for benchmark in demo.DEMO_BENCHMARKS:
        line = next(line for line in outcome.out.splitlines() if line.startswith(benchmark.name))
        measures = "reasoning" if abs(benchmark.reasoning) > abs(benchmark.safety) else "safety"
        assert line.split()[1].strip(",") == measures
    found = [line.split() for line in outcome.out.splitlines() if line.startswith("dim ")]
    return {words[2]: float(words[3]) for words in found if words[2] in demo.DEMO_ABILITIES}


def test_a_small_demo(irtjax, small, tmp_path):
    outcome = irtjax("demo")
    recovered = check(outcome)
    assert set(recovered) == set(demo.DEMO_ABILITIES)
    assert min(recovered.values()) > 0.98
    fit = FitResult.load(tmp_path / "irtjax-demo")
    assert fit.report["heldout"]["cells"] == "holdout 0.1"
    # Again and again: without --out each demo gets a folder of its own.
    assert irtjax("demo").code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["irtjax-demo", "irtjax-demo-2"]
    assert irtjax("demo", "--out", "irtjax-demo").code == 2
    assert irtjax("demo", "--out", "irtjax-demo", "--force").code == 0


@pytest.mark.slow
def test_the_demo(irtjax):
    assert min(check(irtjax("demo", "--out", "d")).values()) > 0.999
