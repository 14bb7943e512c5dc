"""Released models and the systems of the book: names, published counts, what is unknown."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from decoder import families
from decoder.budget import parameters
from decoder.config import Config
from decoder.families import RELEASED, SYSTEMS, comparisons, models_command


def test_every_name_gives_a_config():
    names = families.names()
    assert len(names) == len(set(names))
    assert len(names) == len(RELEASED) + sum(row.config is not None for row in SYSTEMS)
    assert all(isinstance(families.get(name), Config) for name in names)
    assert families.get("gpt2-xl").width == 1600
    assert families.get("Mistral-7B-v0.1") == families.get("mistralai/Mistral-7B-v0.1")


def test_rows_say_where_values_come_from_and_what_is_unverified():
    assert len(RELEASED) == 63
    assert all(row.source and row.reading and 2019 <= row.year <= 2026 for row in RELEASED)
    assert "window" in families.row("microsoft/Phi-3-mini-4k-instruct").unverified
    assert families.row("gpt2").unverified == ()
    known = {*Config.__dataclass_fields__, *families.row("gpt2").reading.values}
    assert {name for row in RELEASED + SYSTEMS for name in row.unverified} <= known


def test_systems_without_a_shape_say_why():
    assert len(SYSTEMS) == 45
    assert all(row.note for row in SYSTEMS)
    assert "not published" in families.row("GPT-4").note
    assert families.row("Gemini, Claude").config is None
    with pytest.raises(ValueError, match="GPT-4 has no Config: architecture not published"):
        families.get("GPT-4")


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("GPT-3", 175), ("PaLM 540B", 540), ("LLaMA (1)", 65), ("Nemotron-4 340B", 341), ("Cohere Command A", 111),
        ("DeepSeek-V2", 236), ("Qwen (1)", 8), ("Baichuan 2", 8),
    ],
)  # fmt: skip
def test_shapes_of_systems_give_the_published_size(name, billions):
    assert round(parameters(families.get(name)).total / 1e9) == billions


def test_deepseek_v2_visits_21_billion():
    assert round(parameters(families.get("DeepSeek-V2")).active / 1e9) == 21


def test_unknown_names_are_refused_with_those_that_resemble():
    with pytest.raises(
        ValueError, match=r"name must be a released model, got 'qwen3-1'; did you mean Qwen/Qwen3-1\.7B"
    ):
        families.get("qwen3-1")
    with pytest.raises(ValueError, match=r"got 'nothing'; families.names\(\) lists all"):
        families.get("nothing")


# Where a published count differs, its difference is a product of sizes, worked out here by hand.
EXPLAINED = {
    ("facebook/opt-125m", 125_237_760): 2 * 768,
    ("EleutherAI/pythia-12b", 11_586_549_760): 50_688 * 5120,
    ("tiiuae/falcon-7b", 7_217_189_760): -65_024 * 4544,
    ("meta-llama/Llama-3.2-1B", 1_498_482_688): -128_256 * 2048,
    ("meta-llama/Llama-3.2-3B", 3_606_752_256): -128_256 * 3072,
    ("google/gemma-3-4b-pt", 3_880_099_328): 64 * 2560,
    ("google/gemma-3-12b-pt", 11_765_788_416): 64 * 3840,
    ("google/gemma-3-27b-pt", 27_009_002_240): 64 * 5376,
    ("deepseek-ai/DeepSeek-V3", 671_026_419_200): -58 * 256,
}
UNEXPLAINED = {("Qwen/Qwen2-1.5B", 1_543_434_240): 280_064, ("Qwen/Qwen2-7B", 6_993_420_288): 622_196_224}


def test_every_difference_from_a_published_count_is_accounted_for():
    found = {(each.name, each.published.count): each.difference for each in comparisons() if each.difference}
    assert found == EXPLAINED | UNEXPLAINED
    for each in comparisons():
        if each.difference:
            unexplained = (each.name, each.published.count) in UNEXPLAINED
            assert each.published.why.endswith("unexplained") == unexplained


def test_the_table_of_all_models():
    result = CliRunner().invoke(models_command, env={"COLUMNS": "80"})
    assert result.exit_code == 0
    assert max(map(len, result.output.splitlines())) <= 80
    for row in RELEASED:
        assert row.name in result.output
        assert f"{parameters(row.config).total:,}" in result.output
    assert "63 models; 48 equal to a published count" in " ".join(result.output.split())
    assert "11 published counts differ, 9 for a known reason, 2 unexplained" in " ".join(result.output.split())
    assert "tied matrix counted twice" in result.output


def test_the_table_with_built_models():
    result = CliRunner().invoke(models_command, ["--build", "--only", "pythia"], env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    assert "7 models" in result.output
    assert "7 built on the meta device, 0 of them different from the formula" in " ".join(result.output.split())


def test_the_table_as_json():
    rows = json.loads(CliRunner().invoke(models_command, ["--json"]).output)
    assert {row["name"] for row in rows} == {row.name for row in RELEASED}
    gpt2 = next(row for row in rows if row["name"] == "gpt2")
    assert (gpt2["formula"], gpt2["published"], gpt2["difference"]) == (124_439_808, 124_439_808, 0)
    assert {row["built"] for row in rows} == {None}


def test_a_pattern_that_fits_no_model_is_wrong_usage():
    result = CliRunner().invoke(models_command, ["--only", "nothing"])
    assert result.exit_code == 2
    assert "no released model's name holds 'nothing'" in result.output


def test_the_command_line_knows_it():
    program = [sys.executable, "-m", "decoder", "models", "--only", "gpt2-xl"]
    assert "1,557,611,200" in subprocess.run(program, capture_output=True, text=True, check=True).stdout
