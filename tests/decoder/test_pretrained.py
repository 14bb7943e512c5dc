"""Loading Hugging Face folders: equal to transformers, and refusing what cannot be trusted before memory is spent."""

import ast
import json
import re
import shutil
import struct
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import nn

import decoder
from decoder import parity
from decoder.__main__ import main
from decoder.checkpoint_files import CheckpointError, read_headers
from decoder.checkpoint_names import AWAITED, CHECKPOINTS
from decoder.config_json import FAMILIES, ConfigError
from decoder.model import Decoder
from decoder.pretrained import load

WHOLE = "model.safetensors"
INDEX = "model.safetensors.index.json"


def case(name: str) -> parity.Case:
    return next(case for case in parity.CASES if case.name == name)


@pytest.fixture(scope="session")
def saved_cases(tmp_path_factory):
    """Small models as transformers saves them, made once and copied for each test."""
    made = {}

    def folder(name: str) -> Path:
        if name not in made:
            made[name] = tmp_path_factory.mktemp("saved")
            parity.small_model(case(name)).save_pretrained(made[name])
        return made[name]

    return folder


@pytest.fixture
def folder(saved_cases, tmp_path):
    """A copy of one saved case, to be spoilt."""

    def copy(name: str) -> Path:
        return Path(shutil.copytree(saved_cases(name), tmp_path / "folder"))

    return copy


def change_tensors(folder: Path, change) -> None:
    tensors = load_file(folder / WHOLE)
    save_file(change(tensors) or tensors, folder / WHOLE)


def change_config(folder: Path, **keys) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **keys}))


def change_header(folder: Path, change) -> None:
    """Rewrite the header of a file and leave its data as they are."""
    data = (folder / WHOLE).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    (folder / WHOLE).write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])


def shard(folder: Path, parts: int = 3) -> dict[str, str]:
    """Divide the file among shards, and write and return the index."""
    tensors = load_file(folder / WHOLE)
    (folder / WHOLE).unlink()
    places = {name: f"model-{1 + i % parts:05}-of-{parts:05}.safetensors" for i, name in enumerate(sorted(tensors))}
    for file in set(places.values()):
        save_file({name: tensors[name] for name in tensors if places[name] == file}, folder / file)
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return places


def same(a: nn.Module, b: nn.Module) -> bool:
    ours, others = a.state_dict(), b.state_dict()
    return ours.keys() == others.keys() and all(torch.equal(ours[name], others[name]) for name in ours)


def refused(folder: Path, message: str) -> None:
    """``load`` refuses with exactly this line, in which F stands for the folder, before it allocates anything."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nn.Module, "to_empty", lambda *args, **kwargs: pytest.fail("memory was taken"))
        with pytest.raises(ValueError) as error:
            load(folder)
    assert isinstance(error.value, CheckpointError | ConfigError)
    assert str(error.value).replace(str(folder), "F") == message


# --- Equal to transformers.


@pytest.mark.parametrize("case", parity.CASES, ids=lambda case: case.name)
def test_logits_and_generated_tokens_are_those_of_transformers(case):
    result = parity.compare(case)
    assert result.difference <= 1e-9
    assert (result.equal, result.tokens) == (120, 120)  # 3 rows, 20 new tokens, cached and uncached


def test_every_family_that_loads_has_a_case():
    assert {case.model_type for case in parity.CASES} == CHECKPOINTS.keys()
    assert CHECKPOINTS.keys() | AWAITED.keys() == FAMILIES.keys()
    assert not CHECKPOINTS.keys() & AWAITED.keys()


def test_every_scaling_of_rotary_frequencies_has_a_case():
    kinds = {case.keys["rope_parameters"]["rope_type"] for case in parity.CASES if "rope_parameters" in case.keys}
    assert kinds == {"linear", "dynamic", "yarn", "llama3", "longrope"}


@pytest.mark.parametrize("name", ["GPT-2", "Gemma 2", "Command R+", "DeepSeek-V3"])
def test_every_parameter_of_the_peer_is_random(name):
    for tensor in parity.small_model(case(name)).state_dict().values():
        assert tensor.std() > 0.2


@pytest.mark.parametrize(
    ("name", "defect"),
    [
        ("GPT-J", {"rope_pairing": "half"}),
        ("Llama 2", {"rope_pairing": "adjacent"}),
        ("Llama 2", {"norm_eps": 1.1e-6}),
        ("Llama 3.2", {"rope_scaling": None}),
        ("GPT-2", {"activation": "gelu"}),
        ("Mistral", {"window": 8}),
        ("Gemma 2", {"attention_softcap": 49.9}),
        ("Gemma 3", {"rope_base_windowed": None}),
        ("SmolLM3", {"no_rope_layers": ()}),
    ],
    ids=str,
)
def test_parity_sees_a_wrong_choice(name, defect):
    theirs = parity.small_model(case(name))
    with parity.saved(theirs) as folder:
        ours = load(folder)
    wrong = Decoder(ours.config.replace(**defect)).double()
    wrong.load_state_dict(ours.state_dict())
    assert parity.measure(name, theirs, ours).holds
    assert not parity.measure(name, theirs, wrong).holds


@pytest.mark.parametrize(
    ("name", "defect"),
    [
        ("Mixtral", {"normalised": False}),
        ("Qwen3-MoE", {"scores": "sigmoid"}),
        ("DeepSeek-V2", {"groups": 1, "groups_per_token": 1}),
        ("DeepSeek-V3", {"routed_scale": 2.4}),
        ("DeepSeek-V3", {"group_best": 1}),
    ],
    ids=str,
)
def test_parity_sees_a_wrong_routing(name, defect):
    theirs = parity.small_model(case(name))
    with parity.saved(theirs) as folder:
        ours = load(folder)
    wrong = Decoder(ours.config.replace(experts=replace(ours.config.experts, **defect))).double()
    wrong.load_state_dict(ours.state_dict())
    assert not parity.measure(name, theirs, wrong).holds


def test_transformers_is_imported_by_the_comparison_alone():
    importers = set()
    for path in Path(decoder.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.split(".")[0] == "transformers" for name in names):
                importers.add(path.name)
    assert importers == {"parity.py"}


# --- The command.


def test_the_command_prints_a_row_for_each_case():
    run = CliRunner().invoke(main, ["parity", "--only", "olmo"])
    assert run.exit_code == 0, run.output
    lines = run.output.splitlines()
    assert re.split(r"\s{2,}", lines[0].strip()) == ["family", "max |Δ logits|", "tokens equal"]
    for line, name in zip(lines[1:5], ["OLMo", "OLMo 2", "OLMo 3", "OLMoE"], strict=True):
        assert re.fullmatch(rf"{name} +\d\.\de[+-]\d\d +120 of 120", line.strip())
    assert lines[5] == "4 of 4 agree with transformers: logits to 1e-09, every token equal."


def test_the_command_fails_where_a_case_differs(monkeypatch):
    monkeypatch.setattr(parity, "compare", lambda case: parity.Result(case.name, 2e-9, 120, 119))
    run = CliRunner().invoke(main, ["parity", "--only", "OLMo 2"])
    assert run.exit_code == 1
    assert "OLMo 2         2.0e-09  119 of 120  differs" in run.output
    assert "0 of 1 agree" in run.output


def test_the_command_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    run = CliRunner().invoke(main, ["parity"])
    assert (run.exit_code, run.output) == (
        1, "Error: parity needs transformers: python -m pip install transformers\n",
    )  # fmt: skip


def test_the_command_names_the_cases_it_knows():
    run = CliRunner().invoke(main, ["parity", "--only", "nothing"])
    assert run.exit_code == 2
    assert "no case's name holds 'nothing'; the cases are GPT-2, " in run.output


# --- What a folder may look like.


@pytest.mark.parametrize("name", ["GPT-2", "Falcon 40B", "Llama 3.2", "Phi-3", "Mixtral"])
def test_shards_load_as_one_file_does(folder, saved_cases, name):
    path = folder(name)
    assert len(set(shard(path).values())) == 3
    assert same(load(path), load(saved_cases(name)))


def test_weights_beside_the_index_are_not_read(folder, saved_cases):
    path = folder("Llama 2")
    shard(path)
    (path / "consolidated.safetensors").write_bytes(b"no weights")
    assert same(load(path), load(saved_cases("Llama 2")))


def test_a_tied_head_is_one_parameter(saved_cases):
    model = load(saved_cases("Llama 3.2"))
    assert model.head.weight is model.embedding.weight
    assert load(saved_cases("Llama 2")).head.weight is not load(saved_cases("Llama 2")).embedding.weight


def test_a_tied_head_may_be_stored_twice_if_it_is_equal(folder, saved_cases):
    path = folder("Llama 3.2")
    change_tensors(path, lambda t: t.update({"lm_head.weight": t["model.embed_tokens.weight"].clone()}))
    assert same(load(path), load(saved_cases("Llama 3.2")))
    change_tensors(path, lambda t: t.update({"lm_head.weight": 2 * t["model.embed_tokens.weight"]}))
    with pytest.raises(CheckpointError) as error:
        load(path)
    assert str(error.value) == (
        f"{path / WHOLE}: lm_head.weight: differs from the embedding, but tie_word_embeddings is true"
    )


@pytest.mark.parametrize(("name", "stem"), [("GPT-2", "transformer."), ("BLOOM", "transformer.")])
def test_names_without_their_stem_are_read(folder, saved_cases, name, stem):
    path = folder(name)
    change_tensors(path, lambda t: {key.removeprefix(stem): tensor for key, tensor in t.items()})
    assert same(load(path), load(saved_cases(name)))


@pytest.mark.parametrize(
    ("name", "buffer"),
    [
        ("GPT-2", "transformer.h.1.attn.bias"),
        ("GPT-NeoX, Pythia", "gpt_neox.layers.2.attention.masked_bias"),
        ("Llama 2", "model.layers.0.self_attn.rotary_emb.inv_freq"),
    ],
)
def test_constants_of_old_files_are_passed_over(folder, saved_cases, name, buffer):
    path = folder(name)
    change_tensors(path, lambda t: t.update({buffer: torch.ones(2, 2, dtype=torch.uint8)}))
    assert same(load(path), load(saved_cases(name)))


def test_the_dtype_is_that_of_the_files_or_the_one_asked_for(folder):
    path = folder("Llama 2")
    assert {p.dtype for p in load(path).parameters()} == {torch.float64}
    assert {p.dtype for p in load(path, torch.bfloat16).parameters()} == {torch.bfloat16}
    change_tensors(path, lambda t: {name: tensor.half() for name, tensor in t.items()})
    assert {p.dtype for p in load(path).parameters()} == {torch.float16}


def test_several_dtypes_need_one_to_be_asked_for(folder):
    path = folder("Llama 2")
    change_tensors(path, lambda t: t.update({"model.norm.weight": t["model.norm.weight"].float()}))
    refused(
        path,
        "F: model.norm.weight: dtype F32, but model.embed_tokens.weight has F64; give load a dtype to convert both",
    )
    assert {p.dtype for p in load(path, torch.float32).parameters()} == {torch.float32}
    with pytest.raises(CheckpointError, match=r"^dtype must be one of torch.float64, .*, got torch.int8$"):
        load(path, torch.int8)


def test_the_device_and_the_mode(saved_cases):
    model = load(saved_cases("Llama 2"), device="cpu")
    assert {p.device.type for p in model.parameters()} == {"cpu"}
    assert not model.training
    assert all(p.requires_grad for p in model.parameters())


def test_the_model_does_not_hold_on_to_the_file(folder):
    path = folder("Llama 2")
    model = load(path)
    before = model.final_norm.weight.clone()
    data = bytearray((path / WHOLE).read_bytes())
    data[-4000:] = bytes(4000)
    with (path / WHOLE).open("r+b") as file:
        file.write(data)
    assert torch.equal(model.final_norm.weight, before)


# --- What is refused: the config.


def test_a_folder_that_is_none(tmp_path):
    refused(tmp_path / "folder", "F: must be a folder with config.json and safetensors files")
    (tmp_path / "folder").mkdir()
    refused(tmp_path / "folder", "F/config.json: cannot be read: No such file or directory")


def test_a_family_that_is_not_built(folder):
    path = folder("Llama 2")
    (path / "config.json").write_text(json.dumps({"model_type": "gpt_oss"}))
    refused(
        path, "F/config.json: model_type: 'gpt_oss' has experts whose gate is clamped, which the Decoder does not build"
    )


@pytest.mark.parametrize(
    ("name", "keys", "message"),
    [
        (
            "Llama 2", {"num_hidden_layers": 10_000},
            "F/config.json: 10,000 layers need more than the 30 tensors of the folder",
        ),
        (
            "Mixtral", {"num_local_experts": 100_000_000},
            "F/config.json: 300,000,000 experts need more than the 69 tensors of the folder",
        ),
        (
            "Llama 2",
            {
                "hidden_size": 100_000_000, "num_attention_heads": 100_000_000, "num_key_value_heads": 100_000_000,
                "head_dim": 100_000_000,
            },
            "F/config.json: sizes that no tensor can have",
        ),
    ],
)  # fmt: skip
def test_sizes_that_would_fill_the_memory(folder, name, keys, message):
    path = folder(name)
    change_config(path, **keys)
    refused(path, message)


@pytest.mark.parametrize(
    ("name", "keys", "message"),
    [
        (
            "Llama 2", {"quantization_config": {"bits": 4}},
            "F/config.json: quantization_config: quantized weights are not read",
        ),
        (
            "GPT-2", {"scale_attn_by_inverse_layer_idx": True},
            "F/config.json: scale_attn_by_inverse_layer_idx is true, which a Config does not express",
        ),
        ("Llama 2", {"rope_parameters": {"rope_type": "spiral", "rope_theta": 1e4}},
         'F/config.json: rope_parameters.rope_type is "spiral", which a Config does not express'),
        (
            "OLMo", {"clip_qkv": 8},
            "F/config.json: clip_qkv is 8, which a Config does not express",
        ),
        ("Falcon 7B", {"alibi": True},
         "F/config.json: alibi is true: Falcon scales the bias together with the scores, a Config does not"),
    ],
)  # fmt: skip
def test_keys_that_would_be_computed_otherwise(folder, name, keys, message):
    path = folder(name)
    change_config(path, **keys)
    refused(path, message)


def test_a_family_without_a_table(folder):
    path = folder("Llama 2")
    change_config(path, model_type="persimmon")
    known = ", ".join(CHECKPOINTS)
    refused(path, f"F/config.json: model_type: 'persimmon' is not known; known are {known}")


# --- What is refused: the files.


def test_pickles_are_never_opened(folder):
    path = folder("Llama 2")
    (path / WHOLE).rename(path / "pytorch_model.bin")
    refused(path, "F/pytorch_model.bin: a pickle, which runs code when it is read; only safetensors files are loaded")
    (path / "pytorch_model.bin").unlink()
    refused(path, "F: holds no safetensors file")


def test_what_stands_where_a_file_should(folder):
    path = folder("Llama 2")
    (path / WHOLE).unlink()
    (path / WHOLE).mkdir()
    refused(path, "F/model.safetensors: cannot be read: Is a directory")
    (path / WHOLE).rmdir()
    (path / WHOLE).symlink_to(path / "gone")
    refused(path, "F/model.safetensors: cannot be read: No such file or directory")


def test_files_that_nothing_tells_apart(folder):
    path = folder("Llama 2")
    shutil.copy(path / WHOLE, path / "a.safetensors")
    load(path)
    (path / WHOLE).rename(path / "b.safetensors")
    refused(
        path, "F: holds 2 safetensors files (a.safetensors, b.safetensors, ...) and no model.safetensors.index.json"
    )
    (path / "a.safetensors").unlink()
    load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t: t.pop("model.layers.1.mlp.up_proj.weight") is None,
            "F: model.layers.1.mlp.up_proj.weight: missing; the config needs it",
        ),
        (
            lambda t: [t.pop(name) for name in list(t) if "k_proj" in name] and None,
            "F: model.layers.0.self_attn.k_proj.weight: missing; the config needs it (and 2 more)",
        ),
        (
            lambda t: t.update({"model.layers.1.self_attn.q_proj.bias": torch.ones(60)}),
            "F: model.layers.1.self_attn.q_proj.bias: not a tensor of this config",
        ),
        (
            lambda t: t.update({"model.layers.3.mlp.up_proj.weight": torch.ones(44, 24)}),
            "F: model.layers.3.mlp.up_proj.weight: not a tensor of this config",
        ),
        (
            lambda t: t.update({"model.norm.weight": torch.ones(25)}),
            "F/model.safetensors: model.norm.weight: shape (25,), the config needs (24,)",
        ),
        (
            lambda t: t.update({"model.layers.0.self_attn.q_proj.weight": torch.ones(24, 60)}),
            "F/model.safetensors: model.layers.0.self_attn.q_proj.weight: shape (24, 60), the config needs (60, 24)",
        ),
        (
            lambda t: t.update({"lm_head.weight": torch.ones(97, 24, dtype=torch.int8)}),
            "F/model.safetensors: lm_head.weight: dtype I8, must be one of F64, F32, BF16, F16",
        ),
        (
            lambda t: {"model.norm.weight": torch.ones(24)},
            "F/config.json: 3 layers need more than the 1 tensors of the folder",
        ),
    ],
)
def test_tensors_that_are_not_what_the_config_needs(folder, change, message):
    path = folder("Llama 2")
    change_tensors(path, change)
    refused(path, message)


def test_a_part_that_no_name_is_known_for(folder, monkeypatch):
    path = folder("Llama 2")
    table = CHECKPOINTS["llama"]
    monkeypatch.setitem(CHECKPOINTS, "llama", replace(table, once={"embed_tokens": "embedding"}))
    refused(path, "F: model.norm.weight: not a tensor of this config")
    change_tensors(path, lambda t: t.pop("model.norm.weight") is None)
    refused(path, "F: final_norm.weight: no tensor of the files is known to hold it")


def test_fused_and_transposed_tensors_are_checked_in_the_file_s_own_shape(folder):
    path = folder("GPT-2")
    change_tensors(path, lambda t: t.update({"transformer.h.0.attn.c_attn.weight": torch.ones(72, 24)}))
    refused(path, "F/model.safetensors: transformer.h.0.attn.c_attn.weight: shape (72, 24), the config needs (24, 72)")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda data: data[:-16],
            "F/model.safetensors: {last}: truncated: ends at byte {size} of the data, the file at {cut}",
        ),
        (lambda data: data + b"\0" * 7, "F/model.safetensors: 7 bytes after the last tensor"),
        (lambda data: data[:5], "F/model.safetensors: truncated: the file ends within its header"),
        (lambda data: data[:100], "F/model.safetensors: truncated: the file ends within its header"),
        (lambda data: b"", "F/model.safetensors: truncated: the file ends within its header"),
        (lambda data: data[:8] + b"[" + data[9:], "F/model.safetensors: header: not JSON"),
    ],
)  # fmt: skip
def test_files_that_are_cut_or_grown(folder, change, message):
    path = folder("Llama 2")
    data = (path / WHOLE).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__")
    last = max(header, key=lambda name: header[name]["data_offsets"][1])
    size = len(data) - 8 - length
    (path / WHOLE).write_bytes(change(data))
    refused(path, message.format(last=last, size=f"{size:,}", cut=f"{size - 16:,}"))


def test_a_header_that_would_fill_the_memory(tmp_path, folder, monkeypatch):
    path = folder("Llama 2")
    monkeypatch.setattr("decoder.checkpoint_files.LARGEST_HEADER", 100)
    length = int.from_bytes((path / WHOLE).read_bytes()[:8], "little")
    refused(path, f"F/model.safetensors: a header of {length:,} bytes; at most 100 are read")


NORM = "model.norm.weight"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda h: h[NORM].update(shape=[25]),
            f"F/model.safetensors: {NORM}: (25,) in F64 takes 200 bytes, got 192",
        ),
        (lambda h: h[NORM].update(dtype="F7"), f"F/model.safetensors: {NORM}: dtype 'F7' is not known"),
        (
            lambda h: h[NORM].update(shape=[-24]),
            f"F/model.safetensors: {NORM}: must state dtype, shape and data_offsets in its header",
        ),
        (
            lambda h: h[NORM].update(data_offsets=[0]),
            f"F/model.safetensors: {NORM}: must state dtype, shape and data_offsets in its header",
        ),
        (
            lambda h: h.update({NORM: 3}),
            f"F/model.safetensors: {NORM}: must state dtype, shape and data_offsets in its header",
        ),
        (
            lambda h: h["model.embed_tokens.weight"].update(data_offsets=h["lm_head.weight"]["data_offsets"]),
            "F/model.safetensors: model.embed_tokens.weight: starts at byte 0 of the data, must start at 18,624",
        ),
    ],
)
def test_headers_that_contradict_themselves(folder, change, message):
    path = folder("Llama 2")
    change_header(path, change)
    refused(path, message)


def test_a_name_stated_twice(folder):
    path = folder("Llama 2")
    text = b'{"a": 1, "a": 2}'
    (path / WHOLE).write_bytes(struct.pack("<Q", len(text)) + text)
    refused(path, "F/model.safetensors: header: a: stated twice")
    text = b'{"a\\n": 1}'
    (path / WHOLE).write_bytes(struct.pack("<Q", len(text)) + text)
    refused(path, r"F/model.safetensors: header: 'a\n': a name must be printable")
    (path / WHOLE).write_bytes(struct.pack("<Q", 2) + b"[]")
    refused(path, "F/model.safetensors: header: must hold one JSON object")


@pytest.mark.parametrize(
    "shard_name", ["../model.safetensors", "/etc/model.safetensors", "..\\model.safetensors", "model.bin", 3]
)
def test_an_index_that_points_elsewhere(folder, shard_name):
    path = folder("Llama 2")
    places = shard(path)
    (path.parent / WHOLE).write_bytes(b"")
    (path / INDEX).write_text(json.dumps({"weight_map": {**places, NORM: shard_name}}))
    refused(path, f"F/{INDEX}: {NORM}: must be in a safetensors file of this folder, got {shard_name!r}")


FIRST, SECOND = "model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors"


def test_an_index_that_disagrees_with_its_shards(folder):
    path = folder("Llama 2")
    places = shard(path)

    def index(weight_map, message):
        (path / INDEX).write_text(json.dumps({"weight_map": weight_map}))
        refused(path, message)

    name = next(name for name in places if places[name] == FIRST)
    others = {key: place for key, place in places.items() if key != name}
    index(others, f"F/{FIRST}: {name}: {INDEX} does not name it")
    index({**places, name: SECOND}, f"F/{FIRST}: {name}: {INDEX} places it in {SECOND}")
    index({**places, "more": SECOND}, f"F/{SECOND}: more: missing; {INDEX} places it here")
    index({**places, name: "gone.safetensors"}, f"F/{INDEX}: {name}: 'gone.safetensors' is not in the folder")
    index([], f"F/{INDEX}: weight_map must be an object that names a file for each tensor")
    (path / INDEX).write_text("{")
    refused(path, f"F/{INDEX}: not JSON")


def test_an_index_beside_a_whole_file(folder):
    path = folder("Llama 2")
    data = (path / WHOLE).read_bytes()
    shard(path)
    (path / WHOLE).write_bytes(data)
    refused(path, f"F: holds both {WHOLE} and {INDEX}; which one counts is not known")


def test_an_index_too_large(folder, monkeypatch):
    path = folder("Llama 2")
    shard(path)
    monkeypatch.setattr("decoder.checkpoint_files.LARGEST_INDEX", 10)
    size = (path / INDEX).stat().st_size
    refused(path, f"F/{INDEX}: {size:,} bytes; an index has at most 10")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_spoilt_header_ends_in_a_traceback(saved_cases, tmp_path, data):
    whole = bytearray((saved_cases("Llama 2") / WHOLE).read_bytes())
    length = int.from_bytes(whole[:8], "little")
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, 8 + length - 1))] = data.draw(st.integers(0, 255))
    (tmp_path / WHOLE).write_bytes(
        whole[: data.draw(st.integers(0, len(whole)))] if data.draw(st.booleans()) else whole
    )
    try:
        entries = read_headers(tmp_path)
    except CheckpointError as error:
        assert "\n" not in str(error)
    else:
        assert entries
