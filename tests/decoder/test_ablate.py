"""The ablation harness: what it refuses, what it holds equal, what it computes, and that being killed costs nothing."""

from __future__ import annotations

import hashlib
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from click.testing import CliRunner

from decoder.__main__ import main
from decoder.ablate import run as ablate_run
from decoder.ablate.command import ablate
from decoder.ablate.data import Windows, read_text
from decoder.ablate.plan import Plan, PlanError
from decoder.ablate.result import Result, interval, read_results
from decoder.ablate.run import Process, joined, learning_rate_at
from decoder.ablate.toml import built_in_plans, find_plan, load_plan
from decoder.model import Decoder

ROOT = Path(__file__).parents[2]
TRAIN = b"the quick brown fox jumps over the lazy dog; " * 20
HELD_OUT = b"pack my box with five dozen liquor jugs, please. " * 4
PLAN = """
question = "Is it so?"
seeds = [3, 5]

[budget]
rule = "parameters"

[base]
vocab = 256
context = 16
layers = 2
width = 12
heads = 3
kv_heads = 1
head_width = 6
hidden = 20

[[variants]]
name = "pre"

[[variants]]
name = "output"
changes = { norm_placement = "output" }

[data]
train = ["train.txt"]
held_out = ["held_out.txt"]
sha256 = "SHA"

[training]
tokens = 640
batch = 4
sequence = 16
learning_rate = 1e-2
warmup_steps = 3
device = "cpu"

[measurement]
evaluations = 3
held_out_tokens = 96
untimed_steps = 2
checkpoint_steps = 3
""".replace("SHA", hashlib.sha256(TRAIN + HELD_OUT).hexdigest())


@pytest.fixture
def write(tmp_path: Path):
    """Write the small plan with some lines replaced, and its text, and return the plan's path."""
    (tmp_path / "train.txt").write_bytes(TRAIN)
    (tmp_path / "held_out.txt").write_bytes(HELD_OUT)

    def written(*edits: tuple[str, str]) -> Path:
        text = PLAN
        for old, new in edits:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        path = tmp_path / "plan.toml"
        path.write_text(text)
        return path

    return written


def result_of(plan: Plan, work: Path) -> dict:
    with joined(plan) as process:
        return ablate(plan, process, work / "result.json", work)


def losses(result: dict) -> dict[str, list]:
    return {variant["name"]: [run["curve"] for run in variant["runs"]] for variant in result["variants"]}


def command(path: Path, *options: str) -> list[str]:
    return [sys.executable, *options, "-m", "decoder", "ablate", str(path), "--results", str(path.parent / "results")]


ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}


@pytest.mark.parametrize("name", built_in_plans())
def test_a_built_in_plan_is_whole(name):
    plan = load_plan(find_plan(name))
    assert plan.comparisons
    assert name == "100m" or plan.training.device == "cpu"
    assert not read_text(plan).differs


def test_the_hardware_plan_is_about_the_100m_design():
    sizes = {variant.name: variant.parameters for variant in load_plan(find_plan("100m")).variants}
    assert (sizes["design"], sizes["K = 1"], sizes["K = 12"]) == (100_092_672, 96_553_728, 109_529_856)
    assert sizes["hidden 3,072"] == 128_404_224


@pytest.mark.parametrize("name", ["aspect", "ffn-ratio"])
def test_a_solved_variant_has_the_parameters_of_a_built_model(name):
    plan = load_plan(find_plan(name))
    for variant in plan.variants:
        with torch.device("meta"):
            built = sum(parameter.numel() for parameter in Decoder(variant.config).parameters())
        assert built == variant.parameters
        assert abs(built - plan.budget.total) <= 0.01 * plan.budget.total


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seeds = [3, 5]", "seeds = [3, 3]", "seeds must differ from each other, got [3, 3]"),
        ("seeds = [3, 5]", "seeds = [-1]", "seeds must be a list of whole numbers from 0, got [-1]"),
        ('question = "Is it so?"', "question = 1", "question must be a sentence, got 1"),
        ("tokens = 640", "tokens = 650", "training.tokens must be a multiple of batch x sequence = 64, got 650"),
        ("tokens = 640", "tokens = 640.0", "training.tokens must be a whole number, got 640.0"),
        ("batch = 4", "batch = 0", "training.batch must be at least 1, got 0"),
        ("learning_rate = 1e-2", "learning_rate = 0", "training.learning_rate must be finite and above 0, got 0.0"),
        ("learning_rate = 1e-2", 'learning_rate = "x"', "training.learning_rate must be a number, got 'x'"),
        ("learning_rate = 1e-2", "", "training.learning_rate must be given, got nothing"),
        ("warmup_steps = 3", "warmup_steps = 10", "training.warmup_steps must be from 0 to 9, got 10"),
        ("warmup_steps = 3", "z_weight = -1", "training.z_weight must be finite and from 0, got -1.0"),
        ("warmup_steps = 3", "final_fraction = 2", "training.final_fraction must be from 0 to 1, got 2.0"),
        (
            "warmup_steps = 3",
            'optimizer = "sgd"',
            "training.optimizer must be one of 'adamw', got 'sgd'",
        ),
        ("untimed_steps = 2", "untimed_steps = 10", "measurement.untimed_steps must be from 0 to 9, got 10"),
        (
            "held_out_tokens = 96",
            "held_out_tokens = 97",
            "measurement.held_out_tokens must be a multiple of training.sequence 16, got 97",
        ),
        ('rule = "parameters"', 'rule = "money"',
         "budget.rule must be one of 'parameters', 'flops', 'tokens', got 'money'"),
        ('rule = "parameters"', 'rule = "tokens"\nallow_unequal = true',
         "budget.reason must say why budgets may be unequal where budget.allow_unequal is true, got ''"),
        ("hidden = 20", "hidden = 20\nwith = 1", 
         "variants.pre: with must be a field of Config that is a number, a name or a list"),
        ("kv_heads = 1", "kv_heads = 2", "variants.pre: heads must be divisible by kv_heads, got 3 and 2"),
        ("vocab = 256", "vocab = 99", "variants.pre: vocab must be at least 256 for bytes, got 99"),
        ("context = 16", "context = 8", "variants.pre: context must be at least training.sequence 16, got 8"),
        ('name = "output"', 'name = "pre"', "variants[1].name must be a name of its own, got 'pre'"),
        ('name = "output"', 'name = "output"\nagainst = "x"',
         "variants.output.against must name another variant or be empty, got 'x'"),
        ('name = "output"', 'name = "output"\nseed_offset = -1',
         "variants.output.seed_offset must be a whole number from 0, got -1"),
        ('name = "output"', 'name = "output"\nsolve_ffn_ratio = 2',
         "budget.total must be given where a variant is solved, as variants.output is, got none"),
        ('name = "output"', 'name = "output"\ntraining = { batch = 8 }',
         "variants.output.training.batch must be one of learning_rate, schedule, warmup_steps, weight_decay, clip, "
         "z_weight"),
        ('held_out = ["held_out.txt"]', 'held_out = ["train.txt"]',
         "data.held_out must hold no file of data.train, got 'train.txt'"),
        ('train = ["train.txt"]', "train = []", "data.train must be a list of file names, got []"),
        ('train = ["train.txt"]', 'train = "train.txt"', "data.train must be a list, got 'train.txt'"),
        ("[budget]", "[bugdet]",
         "bugdet must be one of question, seeds, base, variants, data, training, measurement, budget"),
        (
            'changes = { norm_placement = "output" }',
            "changes = { hidden = 30 }",
            "variants.output: parameters must be within 1% of 'pre' (5,724), got 6,444 (+12.6%); "
            "say budget.allow_unequal = true and a budget.reason to run it all the same",
        ),
    ],
)  # fmt: skip
def test_a_broken_plan_gets_one_line(write, old, new, message):
    path = write((old, new))
    with pytest.raises(PlanError) as caught:
        load_plan(path)
    assert str(caught.value) == f"{path}: {message}"
    shown = CliRunner().invoke(main, ["ablate", str(path)])
    assert (shown.exit_code, shown.output) == (1, f"Error: {path}: {message}\n")


def test_what_is_no_toml_or_no_file_gets_one_line(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text("seeds = [1,\n")
    with pytest.raises(PlanError, match=r"plan\.toml: plan must be TOML, Invalid value \(at end of document\)"):
        load_plan(path)
    with pytest.raises(PlanError, match=r"^nowhere: plan must be a file or one of 100m, "):
        find_plan("nowhere")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (('train = ["train.txt"]', 'train = ["gone.txt"]'), "data.train must be readable, got "),
        (("held_out_tokens = 96", "held_out_tokens = 208"), "data.held_out must hold more than 208 bytes, got 196"),
        (('train = ["train.txt"]', 'package = "no-such-thing"\ntrain = ["a"]'),
         "data.package must be installed, got 'no-such-thing'"),
    ],
)  # fmt: skip
def test_text_that_is_not_there_is_refused(write, edit, message):
    with pytest.raises(PlanError) as caught:
        read_text(load_plan(write(edit)))
    assert message in str(caught.value)


def test_other_text_is_said_and_recorded(write, tmp_path, monkeypatch):
    path = write()
    (tmp_path / "train.txt").write_bytes(TRAIN + b"!")
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(main, ["ablate", str(path), "--results", "out"])
    other = hashlib.sha256(TRAIN + b"!" + HELD_OUT).hexdigest()
    note = f"{path}: data.sha256 is of other bytes than this machine has, which are {other}; going on with those"
    assert shown.output.splitlines()[0] == note
    data = json.loads((tmp_path / "out/plan.json").read_text())["data"]
    assert (data["sha256"], data["differs_from_plan"]) == (other, True)


def test_a_device_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    shown = CliRunner().invoke(main, ["ablate", "100m"])
    assert shown.exit_code == 1
    assert shown.output.endswith("training.device must be a device of this machine or 'auto', got 'cuda'\n")


def test_unequal_budgets_run_when_told_and_say_so(write, tmp_path):
    path = write(
        ('changes = { norm_placement = "output" }', "changes = { hidden = 30 }"),
        ('rule = "parameters"', 'rule = "parameters"\nallow_unequal = true\nreason = "it is the question"'),
    )
    (found,) = result_of(load_plan(path), tmp_path)["comparisons"]
    assert found["unequal"]["parameters"] == 720 / 5724
    assert "parameters differ by +12.58%" in found["not_controlled"]
    assert "hidden differs: 30 and 20" in found["not_controlled"]


def test_equal_parameters_may_hide_unequal_flops(write):
    untied = ('changes = { norm_placement = "output" }', "changes = { tied = false, hidden = 32 }")
    tied = ("hidden = 20", "hidden = 75")
    rule = ('rule = "parameters"', 'rule = "flops"')
    assert load_plan(write(untied, tied)).variants[0].parameters == 256 * 12 + 2 * (576 + 36 * 75 + 24) + 12
    with pytest.raises(PlanError, match=r"variants\.output: flops must be within 1% of 'pre'"):
        load_plan(write(untied, tied, rule))


def test_every_variant_of_a_seed_sees_the_same_batches(write, tmp_path, monkeypatch):
    seen: list[list[str]] = []

    class Watched(Decoder):
        def __init__(self, config):
            super().__init__(config)
            seen.append([])

        def forward(self, ids):
            if torch.is_grad_enabled():
                seen[-1].append(str(ids.tolist()))
            return super().forward(ids)

    monkeypatch.setattr(ablate_run, "Decoder", Watched)
    result_of(load_plan(write()), tmp_path)
    pre_3, pre_5, output_3, output_5 = seen
    assert pre_3 == output_3 and pre_5 == output_5
    assert len(set(pre_3 + pre_5)) == 20


def test_a_run_is_the_training_that_it_says(write, tmp_path):
    """The same run written out here with torch alone: losses, gradient norms by layer, held-out loss."""
    plan = load_plan(write())
    found = result_of(plan, tmp_path)["variants"][0]["runs"][0]
    text = torch.tensor(list(TRAIN))
    starts = torch.randint(len(TRAIN) - 16, (10, 4), generator=torch.Generator().manual_seed(3))
    torch.manual_seed(3)
    model = Decoder(plan.variants[0].config)
    groups = [[p for p in model.parameters() if (p.ndim > 1) is matrix] for matrix in (True, False)]
    optimizer = torch.optim.AdamW(
        [{"params": groups[0], "weight_decay": 0.1}, {"params": groups[1], "weight_decay": 0.0}], betas=(0.9, 0.95)
    )
    train = []
    for step, where in enumerate(starts.tolist(), 1):
        rows = torch.stack([text[start : start + 17] for start in where])
        rate = step / 3 if step <= 3 else 0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * (step - 3) / 7))
        for group in optimizer.param_groups:
            group["lr"] = 1e-2 * rate
        optimizer.zero_grad()
        loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        loss.backward()
        norms = [torch.cat([p.grad.flatten() for p in block.parameters()]).norm().item() for block in model.blocks]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        train.append(loss.item())
        if step in (1, 10):
            assert found["gradient_norms"]["first" if step == 1 else "last"] == pytest.approx(norms, rel=1e-5)
    held_out = torch.tensor(list(HELD_OUT))
    rows = torch.stack([held_out[int(start) : int(start) + 17] for start in torch.linspace(0, 195 - 16, 6).tolist()])
    with torch.no_grad():
        last = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten()).item()
    curve = found["curve"]
    assert curve["step"] == [0, 4, 7, 10]
    assert curve["train"] == [
        None,
        *(pytest.approx(sum(train[a:b]) / (b - a), rel=1e-5) for a, b in ((0, 4), (4, 7), (7, 10))),
    ]
    assert found["held_out"] == pytest.approx(last, rel=1e-5)


def test_the_schedule_ends_where_it_says(write):
    training = load_plan(write()).training
    assert [round(learning_rate_at(training, step), 6) for step in (1, 3, 10)] == [0.003333, 0.01, 0.001]
    linear = load_plan(write(("warmup_steps = 3", 'schedule = "linear"'))).training
    assert [round(learning_rate_at(linear, step), 6) for step in (5, 10)] == [0.0055, 0.001]
    constant = load_plan(write(("warmup_steps = 3", 'schedule = "constant"'))).training
    assert learning_rate_at(constant, 10) == 0.01


def test_the_same_plan_twice_gives_the_same_losses_bit_for_bit(write, tmp_path):
    plan = load_plan(write())
    first, second = (result_of(plan, tmp_path / name) for name in ("a", "b"))
    assert losses(first) == losses(second)
    assert first["plan_sha256"] == second["plan_sha256"] == plan.hash


def test_a_killed_call_loses_nothing(write, tmp_path):
    path = write(("tokens = 640", "tokens = 25_600"))
    child = subprocess.Popen(command(path), cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    work = tmp_path / ".cache/ablate"
    while not (list(work.rglob("1-3.pt")) or child.poll() is not None):
        time.sleep(0.002)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    assert list(work.rglob("0-3.json")) and list(work.rglob("1-3.pt"))
    subprocess.run(command(path), cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.DEVNULL, check=True)
    resumed = json.loads((tmp_path / "results/plan.json").read_text())
    assert resumed["last_call"]["runs_kept_from_earlier"] >= 2
    assert not list(work.rglob("*.*"))
    assert losses(resumed) == losses(result_of(load_plan(path), tmp_path / "undisturbed"))


def test_two_processes_of_torchrun_give_the_loss_of_one(write, tmp_path):
    path = write()
    alone = losses(result_of(load_plan(path), tmp_path / "alone"))
    launch = command(path, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    subprocess.run(launch, cwd=tmp_path, env=ENVIRONMENT, check=True, capture_output=True)
    together = json.loads((tmp_path / "results/plan.json").read_text())
    assert together["environment"]["processes"] == 2
    for name, curves in losses(together).items():
        for a, b in zip(alone[name], curves, strict=True):
            assert a["held_out"] == pytest.approx(b["held_out"], abs=1e-5)
            assert a["train"][1:] == pytest.approx(b["train"][1:], abs=1e-5)


def test_a_batch_that_processes_cannot_share_is_refused(write, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "3")
    plan = load_plan(write())
    with pytest.raises(PlanError, match=r"training\.batch must be a multiple of the 3 processes, got 4"), joined(plan):
        pass


def test_a_design_against_itself_differs_by_nothing(write, tmp_path):
    plan = load_plan(write(('changes = { norm_placement = "output" }', "")))
    (found,) = result_of(plan, tmp_path)["comparisons"]
    assert found["differences"] == [0, 0] and found["interval"] == [0, 0]
    other = load_plan(write(('changes = { norm_placement = "output" }', "seed_offset = 7")))
    (found,) = result_of(other, tmp_path)["comparisons"]
    assert all(found["differences"])
    assert "initial weights are drawn from different seeds" in found["not_controlled"]


def test_a_run_that_diverges_is_recorded_not_averaged(write, tmp_path):
    plan = load_plan(write(('changes = { norm_placement = "output" }', "training = { learning_rate = 1e30 }")))
    result = result_of(plan, tmp_path)
    run = result["variants"][1]["runs"][0]
    assert run["held_out"] is None and run["diverged_at"] > 1
    (found,) = result["comparisons"]
    assert (found["mean"], found["interval"], found["missing"]) == (None, None, 2)


def test_shuffled_labels_keep_frequencies_and_lose_order():
    plain, shuffled = Windows(TRAIN), Windows(TRAIN, shuffled_by=0)
    assert torch.equal(plain.labels.sort().values, shuffled.labels.sort().values)
    assert torch.equal(plain.ids, shuffled.ids)
    follows = (plain.labels == shuffled.labels).double().mean().item()
    by_chance = (torch.bincount(plain.labels.long()).double() / len(plain.labels)).square().sum().item()
    assert follows == pytest.approx(by_chance, abs=0.03)


def test_an_interval_is_students_t():
    low, high = interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (low + high) / 2 == pytest.approx(3)
    assert (high - low) / 2 == pytest.approx(2.776445 * math.sqrt(2.5 / 5), rel=1e-6)  # t table, 4 degrees, 0.975
    assert interval([1.0]) is None
    assert interval([2.0, 2.0]) == (2.0, 2.0)


def test_differences_are_paired_by_seed(write, tmp_path):
    result = result_of(load_plan(write()), tmp_path)
    pre, output = ([run["held_out"] for run in variant["runs"]] for variant in result["variants"])
    (found,) = result["comparisons"]
    assert found["differences"] == [output[0] - pre[0], output[1] - pre[1]]
    assert found["mean"] == sum(found["differences"]) / 2


def test_a_process_takes_its_own_rows():
    rows = torch.arange(8)[:, None]
    shares = [Process(rank, 2, torch.device("cpu")).share(rows) for rank in range(2)]
    assert torch.equal(torch.cat(shares), rows) and len(shares[0]) == 4


def test_the_command_lists_and_sizes_plans():
    listed = CliRunner().invoke(main, ["ablate"])
    assert [line.split()[0] for line in listed.output.splitlines()] == list(built_in_plans())
    sized = CliRunner().invoke(main, ["ablate", "plans/100m.toml", "--check"])
    assert "100,092,672 parameters" in sized.output


@pytest.mark.parametrize("path", sorted((ROOT / "docs/decoder/results").glob("*.json")), ids=lambda path: path.stem)
def test_a_published_result_is_of_the_plan_that_is_shipped(path):
    result = json.loads(path.read_text())
    plan = load_plan(find_plan(path.stem))
    assert result["plan_sha256"] == plan.hash
    assert result["data"]["sha256"] == plan.data.sha256
    assert [len(variant["runs"]) for variant in result["variants"]] == [len(plan.seeds)] * len(plan.variants)


@pytest.mark.parametrize("name", ["same", "shuffled"])
def test_no_difference_was_found_where_there_is_none(name):
    for found in json.loads((ROOT / f"docs/decoder/results/{name}.json").read_text())["comparisons"]:
        low, high = found["interval"]
        assert low <= 0 <= high


def test_a_written_result_is_read_again(write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(main, ["ablate", "smoke", "--results", "out"])
    assert shown.exit_code == 0, shown.output
    results = read_results("out")
    assert [name for name, result in results.items() if result] == ["smoke"]
    smoke = results["smoke"]
    assert isinstance(smoke, Result)
    assert smoke.comparison("post")["against"] == "pre"
    assert len(smoke.losses("pre")) == 3
