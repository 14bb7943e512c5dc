"""``python -m decoder audit``: exact figures, origins, warnings, exit codes, a terminal of 80 columns."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from decoder import families
from decoder.audit import ASPECTS, active_hidden, audit, command, ratios
from decoder.config import Config, Experts

COUNTS = json.loads((Path(__file__).parent / "data" / "released_counts.json").read_text())
FILES = {row["name"]: row["config"] for row in families._data()["models"]}


@pytest.fixture
def file(tmp_path):
    def write(data) -> str:
        path = tmp_path / "config.json"
        path.write_text(data if isinstance(data, str) else json.dumps(data))
        return str(path)

    return write


def run(*arguments):
    return CliRunner().invoke(command, arguments, env={"COLUMNS": "80"})


@pytest.mark.parametrize("expected", COUNTS, ids=[row["name"] for row in COUNTS])
def test_each_released_file_gives_the_measured_figures(expected, file):
    result = run(file(FILES[expected["name"]]), "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    parts = ("total", "embedding", "attention", "feed_forward", "router", "norms", "head", "other")
    assert {part: found["parameters"][part] for part in parts} == {part: expected[part] for part in parts}
    assert found["parameters"]["active"] == expected.get("active", expected["total"])
    assert found["kv_cache"]["bytes_per_token"] == expected["cache_bytes_per_token"]
    assert found["flops"]["forward_per_token_weights"] == expected["forward_per_token_weights"]
    assert found["flops"]["attention_per_token_per_key"] == expected["attention_per_token_per_key"]
    measured = expected["ratios"]
    assert found["ratios"]["aspect"] == pytest.approx(measured["aspect_d_over_L"], abs=1e-3)
    if "active" not in expected:
        assert found["ratios"]["ffn"] == pytest.approx(measured["d_ff_over_d"], abs=1e-3)


def test_the_json_object_is_the_documented_one(file):
    found = json.loads(run(file(FILES["google/gemma-3-4b-pt"]), "--json", "--context", "4096", "--batch", "2").output)
    assert set(found) == {"file", "model_type", "parameters", "kv_cache", "flops", "ratios", "values", "warnings"}
    assert set(found["parameters"]) == {
        "total", "embedding", "attention", "feed_forward", "router", "norms", "head", "other", "active",
        "active_without_embedding",
    }  # fmt: skip
    cache = found["kv_cache"]
    assert (cache["tokens"], cache["batch"], cache["dtype"]) == (4096, 2, "bf16")
    assert cache["needed_bytes"] == sum(cache["layers"]) < cache["bytes"] == cache["bytes_per_token"] * 4096 * 2
    assert cache["gibibytes"] == cache["bytes"] / 2**30
    assert (len(cache["layers"]), cache["layers"][5] // cache["layers"][0]) == (34, 4)
    assert set(found["flops"]) == {"forward_per_token_weights", "attention_per_token_per_key", "convention"}
    assert set(found["ratios"]) == {"ffn", "aspect", "attention_width"}
    assert found["values"]["width"] == {"value": 2560, "origin": "stated", "key": "hidden_size"}
    assert {value["origin"] for value in found["values"].values()} == {"stated", "class default", "derived"}
    assert len(found["warnings"]) == 2


@pytest.mark.parametrize("name", sorted(FILES))
def test_the_text_fits_80_columns(name, file):
    result = run(file(FILES[name]))
    assert result.exit_code == 0
    assert max(len(line.rstrip()) for line in result.output.splitlines()) <= 80
    total = next(row["total"] for row in COUNTS if row["name"] == name)
    assert f"{total:,}" in result.output


def test_the_cache_dtype_has_its_own_option(file):
    path = file(FILES["meta-llama/Meta-Llama-3-8B"])
    sizes = [
        json.loads(run(path, "--json", "--cache-dtype", kind).output)["kv_cache"] for kind in ("fp32", "fp8", "int4")
    ]
    assert [size["bytes_per_token"] for size in sizes] == [262_144, 65_536, 32_768]


def test_a_refusal_is_one_line_and_status_1(file):
    result = run(file({"model_type": "llama", "hidden_size": "many"}))
    assert result.exit_code == 1
    assert len(result.output.splitlines()) == 1
    assert result.output.startswith("Error: ")
    assert 'hidden_size: got "many"; must be a whole number' in result.output


@pytest.mark.parametrize(
    "options", [["--context", "0"], ["--batch", "-1"], ["--cache-dtype", "int3"], ["--contex", "5"], ["--batch", "two"]]
)
def test_wrong_usage_is_status_2(options, file):
    assert run(file(FILES["gpt2"]), *options).exit_code == 2


def test_no_file_is_wrong_usage_and_a_missing_one_is_refused(tmp_path):
    assert run().exit_code == 2
    missing = run(str(tmp_path / "absent.json"))
    assert missing.exit_code == 1
    assert "absent.json: cannot be read: No such file or directory" in missing.output


def test_the_command_line_knows_it(file):
    program = [sys.executable, "-m", "decoder", "audit", file(FILES["gpt2"]), "--json"]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["parameters"]["total"] == 124_439_808


def gemma(**changes):
    return {**FILES["google/gemma-2-2b"], **changes}


LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "max_position_embeddings": 8192,
    "tie_word_embeddings": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("data", "warning"),
    [
        ({**LLAMA, "intermediate_size": 2048}, "feed-forward ratio 0.50 is more than a factor 2 from the usual 8/3"),
        ({**FILES["gpt2"], "n_inner": 9216}, "feed-forward ratio 12.00 is more than a factor 2 from the usual 4 of a"),
        ({**LLAMA, "num_hidden_layers": 200}, "width / layers is 20.5; most released decoders lie between 32 and 256"),
        ({**LLAMA, "head_dim": 64}, "heads x head_width is 2,048, not the width 4,096"),
        (
            {**LLAMA, "num_attention_heads": 128},
            "head_width 32 is outside 64 to 256, where attention kernels are tuned",
        ),
        ({**LLAMA, "vocab_size": 50257}, "vocab 50,257 is no multiple of 64"),
        (
            {k: v for k, v in LLAMA.items() if k[0] != "t"},
            "tie_word_embeddings is absent: the class does not tie; that",
        ),
        ({k: v for k, v in gemma().items() if k != "head_dim"}, "head_dim is absent: the class takes 256, not width"),
        (gemma(), "13 of 26 layers see 4,096 keys: at 8,192 tokens 654,311,424 bytes are needed, 872,415,232 where"),
        (FILES["deepseek-ai/DeepSeek-V3"], "14,848 router correction values are stored with the weights but are not"),
        (
            {**FILES["allenai/OLMo-7B-hf"], "clip_qkv": 8.0},
            "cannot be loaded as it is: clip_qkv is 8.0, which a Config",
        ),
        ({**LLAMA, "model_type": "newcomer"}, 'model_type "newcomer" is not known: read by its keys alone'),
    ],
)
def test_warnings_give_their_reason(data, warning):
    assert [found for found in audit(data).warnings if found.startswith(warning)]


def test_a_plain_config_has_no_warning():
    assert audit(LLAMA).warnings == ()
    assert audit(LLAMA, context=9000).warnings == ("9,000 tokens are beyond the context of 8,192 that the file states",)


def test_the_ratio_takes_the_active_width():
    config = Config(width=64, heads=4, kv_heads=4, hidden=999, experts=Experts(8, 2, hidden=48, shared=1))
    assert (active_hidden(config), ratios(config)["ffn"]) == (3 * 48, 2.25)


def test_the_aspects_named_in_the_warning_hold_for_most_released_models():
    outside = [row.name for row in families.RELEASED if not ASPECTS[0] <= ratios(row.config)["aspect"] <= ASPECTS[1]]
    assert outside == ["HuggingFaceTB/SmolLM2-135M", "HuggingFaceTB/SmolLM2-360M"]
