"""The tools in a real Chromium, against Python on the same inputs."""

import csv
import dataclasses
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import Browser, Page, expect

from decoder import atlas, budget
from decoder.audit import audit, ratios
from decoder.config import Config, Experts, LatentAttention, RopeScaling
from decoder.config_json import ConfigError, read_config
from decoder.families import RELEASED, SYSTEMS, _data
from decoder.model_types import OTHER_NAMES
from decoder.positions import apply_rotary, rotary_frequencies, rotary_tables
from decoder.site_assets import PARTS, chosen

pytestmark = pytest.mark.browser

CALCULATOR, ATLAS, AUDIT = "tools/calculator/", "tools/atlas/", "tools/audit/"
POSITIONS = "decisions/positions/"
FILES = [(row["name"], row["config"]) for row in _data()["models"]]

# Python's JSON in, text out: whole numbers stay whole on the way.
IMPORT = """
  const load = (name) => import(new URL(`assets/${name}`, base).href);
  const { parse, stringify } = await load("tools/python.js");
  const plain = (value) => value instanceof Map
    ? Object.fromEntries([...value].map(([key, each]) => [key, plain(each)]))
    : Array.isArray(value) ? value.map(plain) : value;
"""


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_context(viewport={"width": 1280, "height": 900}) as context:
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        page.on("pageerror", lambda error: pytest.fail(str(error), pytrace=False))
        yield page


def evaluate(page: Page, address: str, body: str, given: Any) -> Any:
    """What ``body``, the inside of an async function of ``base`` and ``given`` (JSON text), returns."""
    page.goto(address + CALCULATOR)
    return page.evaluate(f"async ([base, given]) => {{ {IMPORT} {body} }}", [address, json.dumps(given)])


# --- The calculator against Python

COUNT = """
  const { makeConfig, ValueError, fieldOf } = await load("tools/config.js");
  const { figures } = await load("tools/figures.js");
  return plain(parse(given, "cases")).map(([stated, setting]) => {
    try {
      const shown = figures(makeConfig(stated), setting).flatMap(([, , rows]) => rows);
      return stringify(Object.fromEntries(shown.map(([name, , , value]) => [name, value])));
    } catch (error) {
      if (!(error instanceof ValueError)) throw error;
      return stringify({ error: error.message, field: fieldOf(error.message) });
    }
  });
"""
SETTINGS = [
    {"tokens": 2048, "batch": 1, "dtype": "bf16", "cache_dtype": "bf16", "pairs": "causal", "layout": "16-byte",
     "zero": "0", "devices": 1, "scores": "not kept"},
    {"tokens": 777, "batch": 3, "dtype": "int4", "cache_dtype": "fp8", "pairs": "halved", "layout": "12-byte",
     "zero": "1", "devices": 7, "scores": "kept"},
    {"tokens": 131072, "batch": 64, "dtype": "fp32", "cache_dtype": "int4", "pairs": "all", "layout": "16-byte",
     "zero": "3", "devices": 1000, "scores": "kept"},
]  # fmt: skip


def figures(config: Config, setting: dict[str, Any]) -> dict[str, Any]:
    tokens, batch, dtype = setting["tokens"], setting["batch"], setting["dtype"]
    cache = budget.kv_cache(config, tokens, batch, setting["cache_dtype"])
    work = budget.flops(config, tokens, batch, setting["pairs"])
    training = budget.training_memory(config, setting["layout"], int(setting["zero"]), setting["devices"])
    kept = budget.activations(config, tokens, batch, dtype, setting["scores"] == "kept")
    step = budget.intensity(config, tokens, batch, "decode", dtype, setting["cache_dtype"])
    counted = budget.parameters(config)
    return {
        **{name: getattr(counted, name) for name in counted.formulas},
        "weight_bytes": budget.weights(config, dtype).bytes,
        "cache_bytes_per_token": cache.bytes_per_token,
        "cache_bytes": cache.bytes,
        "cache_needed_bytes": cache.needed_bytes,
        "forward_per_token_weights": work.forward_per_token_weights,
        "attention_per_token_per_key": work.attention_per_token_per_key,
        "forward": work.forward,
        "training": work.training,
        "decode_flops": step.flops,
        "decode_bytes": step.bytes,
        "intensity": float(step),
        **{
            f"training_{part}": getattr(training, part)
            for part in ("weights", "gradients", "moments", "master", "total")
        },
        "block_activations": kept.block,
        "activations": kept.total,
        "logits": kept.logits,
        **ratios(config),
    }


def test_released_models_cost_the_same(page: Page, address: str) -> None:
    rows = [row for row in RELEASED + SYSTEMS if row.config is not None]
    cases = [(row, setting) for row in rows for setting in SETTINGS]
    shown = evaluate(page, address, COUNT, [(chosen(row.config), setting) for row, setting in cases])
    for (row, setting), text in zip(cases, shown, strict=True):
        assert json.loads(text) == figures(row.config, setting), row.name
    assert len(rows) > 63


def random_stated(dice: random.Random) -> dict[str, Any]:
    """Fields of a Config drawn at random, sizes large or small; most draws are refused."""
    pick = dice.choice
    size = lambda: pick([1, 2, 3, 7, 12, 64, 96, 127, 1000, 4096, 30_001, 999_983])
    heads, layers = pick([1, 2, 3, 6, 8, 12, 30, 128]), pick([1, 2, 3, 5, 48])
    stated = {
        "vocab": size(), "context": size(), "layers": layers, "hidden": size(), "heads": heads,
        "width": pick([heads * size(), size()]), "kv_heads": pick([1, heads, pick([1, 2, 3, 4])]),
        "head_width": pick([None, None, 2, 10, 64, 256, 513]), "norm": pick(["rms", "layer", "layer"]),
        "norm_scale": pick(["weight", "one_plus_weight", "none"]), "norm_bias": dice.random() < 0.3,
        "norm_placement": pick(["pre", "pre", "post", "both", "output"]), "final_norm": pick([True, False]),
        "embedding_norm": pick([True, False]), "qk_norm": pick(["none", "head", "full", "per_head_weights"]),
        "positions": pick(["rotary", "learned", "sinusoidal", "alibi", "none"]),
        "rotary_width": pick([None, None, None, 2, 3, 32]), "rope_base": pick([10_000.0, 500_000, 1.5]),
        "position_rows": pick([None, None, None, 5, 4098]), "attention_bias": pick(["", "qkv", "qkvo", "o", "vq"]),
        "window": pick([None, None, 1, 5, 512]), "sinks": pick([True, False]), "gated": pick([True, False]),
        "windowed_layers": pick([None, None, None, [0], [0, 2], [1, 0]]), "hidden_bias": pick([True, False]),
        "activation": pick(["silu", "gelu", "relu2"]), "block": pick(["serial", "serial", "parallel"]),
        "parallel_norms": pick([1, 1, 2, 3]), "tied": pick([True, False]), "head_bias": pick([True, False]),
        "embedding_width": pick([None, None, 5, 512]), "no_rope_layers": pick([[], [], [0], [2]]),
    }  # fmt: skip
    if dice.random() < 0.3:
        stated["latent"] = {"kv_rank": size(), "rope_width": pick([2, 64, 7]), "nope_width": size(),
                            "value_width": size(), "query_rank": pick([None, 1536])}  # fmt: skip
    if dice.random() < 0.4:
        stated["experts"] = {
            "count": pick([1, 8, 60, 256]), "per_token": pick([1, 2, 8]), "hidden": size(), "shared": pick([0, 0, 2]),
            "shared_gate": pick([True, False]), "bias": pick([True, False]), "router_bias": pick([True, False]),
            "dense_layers": pick([[], [0], [0, 1]]), "groups": pick([1, 1, 4]),
        }  # fmt: skip
    if dice.random() < 0.2:
        stated["rope_scaling"] = {
            "kind": pick(["linear", "ntk", "yarn", "llama3", "longrope"]), "factor": pick([2, 0.5, -1]),
            "high_frequency": pick([4.0, 1.0]),
        }  # fmt: skip
    return stated


def config_of(stated: dict[str, Any]) -> Config:
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in stated.items()}
    for name, part in PARTS.items():
        if given.get(name) is not None:
            fields = {field: tuple(v) if isinstance(v, list) else v for field, v in given[name].items()}
            given[name] = part(**fields)
    return Config(**given)


def test_random_designs_cost_the_same_or_are_refused_in_the_same_words(page: Page, address: str) -> None:
    dice = random.Random(20)
    cases = [(random_stated(dice), dice.choice(SETTINGS)) for _ in range(10_000)]
    shown = evaluate(page, address, COUNT, cases)
    counted = refused = largest = 0
    for (stated, setting), text in zip(cases, shown, strict=True):
        found = json.loads(text)
        try:
            expected = figures(config_of(stated), setting)
        except ValueError as error:
            refused += 1
            assert found["error"] == str(error)
            assert found["field"] in str(error)
        else:
            counted += 1
            largest = max(largest, expected["training"])
            assert found == expected, stated
    assert counted >= 1000 and refused >= 500 and largest > 2**53


@pytest.mark.parametrize(
    "stated",
    [
        {"layers": "x'y"}, {"layers": 2.5}, {"layers": True}, {"heads": 7}, {"kv_heads": 5}, {"norm": "batch"},
        {"norm_eps": 0}, {"norm_eps": "small"}, {"rope_base": -1e-20}, {"tied": 1}, {"attention_bias": "kq"},
        {"windowed_layers": [0]}, {"window": 4, "windowed_layers": [12]}, {"no_rope_layers": [1, 1]},
        {"norm_bias": True}, {"block": "parallel", "norm_placement": "post"}, {"parallel_norms": 4},
        {"experts": {"count": 4, "per_token": 5, "hidden": 8}}, {"experts": {"count": 4, "per_token": 1}},
        {"latent": {"kv_rank": 0, "rope_width": 2, "nope_width": 2, "value_width": 2}},
        {"rope_scaling": {"kind": "llama3", "high_frequency": 1e-7, "low_frequency": 1e22}},
        {"rope_scaling": {"kind": "longrope", "short_factors": [1.0], "long_factors": [1.0]}},
    ],
    ids=str,
)  # fmt: skip
def test_a_refusal_reads_as_in_python(page: Page, address: str, stated: dict[str, Any]) -> None:
    required = {"experts": Experts, "latent": LatentAttention, "rope_scaling": RopeScaling}
    for name, part in required.items():  # Python asks for these by a TypeError of its own, the form leaves them empty
        if name in stated:
            absent = [field.name for field in dataclasses.fields(part) if field.default is dataclasses.MISSING]
            stated = stated | {name: dict.fromkeys(absent) | stated[name]}
    with pytest.raises(ValueError) as refused:
        config_of(stated)
    [text] = evaluate(page, address, COUNT, [(stated, SETTINGS[0])])
    assert json.loads(text)["error"] == str(refused.value)


# --- The calculator as a person meets it


def shown(page: Page, name: str, column: int = 0) -> str:
    return page.locator(f'.tool-results tr[data-name="{name}"] td').nth(column).inner_text().split("\n")[0]


def test_every_field_has_a_control_with_a_name(page: Page, address: str) -> None:
    page.goto(address + CALCULATOR)
    fields = {field.name for field in dataclasses.fields(Config)}
    fields |= {f"{name}.{field.name}" for name, part in PARTS.items() for field in dataclasses.fields(part)}
    expect(page.get_by_label("Layers L")).to_be_visible()
    named = page.locator("[data-side=a]").evaluate_all("all => all.map(one => [one.dataset.field, one.labels.length])")
    assert sorted(named) == sorted([name, 1] for name in fields)


def test_figures_move_as_one_types(page: Page, address: str) -> None:
    page.goto(address + CALCULATOR)
    assert shown(page, "total") == f"{budget.parameters(Config()).total:,}"
    page.get_by_label("Key/value heads K").fill("12")
    page.get_by_label("Tokens of a sequence T").fill("1,000")
    page.get_by_label("Cache stored as").select_option("int8")
    changed = Config(kv_heads=12)
    assert shown(page, "total") == f"{budget.parameters(changed).total:,}"
    assert shown(page, "cache_bytes") == f"{budget.kv_cache(changed, 1000, 1, 'int8').bytes:,}"
    expect(page.locator(".tool-summary")).to_contain_text(f"{budget.parameters(changed).total:,} parameters")


def test_an_error_stands_beside_its_field(page: Page, address: str) -> None:
    page.goto(address + CALCULATOR)
    before = shown(page, "total")
    field = page.get_by_label("Key/value heads K")
    for typed, problem in [("5", "heads must be divisible by kv_heads, got 12 and 5"), ("x", "kv_heads must be")]:
        field.fill(typed)
        wrong = page.locator("[data-field][aria-invalid]")
        expect(wrong).to_have_count(1)
        error = page.locator(f"#{wrong.get_attribute('aria-describedby')}")
        expect(error).to_contain_text(problem)
        expect(page.locator(".tool-summary")).to_contain_text(problem)
    assert shown(page, "total") == before
    field.fill("6")
    expect(page.locator("[data-field][aria-invalid]")).to_have_count(0)
    page.get_by_label("Tokens of a sequence T").fill("0")
    expect(page.locator("#calculator-setting-tokens-error")).to_have_text("tokens must be a whole number from 1, got 0")


def test_a_link_brings_everything_back(page: Page, address: str) -> None:
    page.goto(address + CALCULATOR)
    page.get_by_label("Design", exact=True).select_option("mistralai/Mixtral-8x7B-v0.1")
    page.get_by_label("Compare two").check()
    page.get_by_label("Design B").select_option("deepseek-ai/DeepSeek-V3")
    page.get_by_label("Layers L, B").fill("30")
    page.get_by_label("Sequences at once B").fill("4")
    link, figures = page.url, page.locator(".tool-results").inner_text()
    assert "a=mistralai" in link and "b.layers=30" in link and "batch=4" in link and "b.width" not in link
    page.goto("about:blank")
    page.goto(link)
    assert page.locator(".tool-results").inner_text() == figures
    assert page.url == link
    page.get_by_role("button", name="Copy link").click()
    assert page.evaluate("navigator.clipboard.readText()") == link


def test_what_a_bad_link_holds_is_shown_or_passed_over(page: Page, address: str) -> None:
    page.goto(f"{address}{CALCULATOR}#a=nobody&a.heads=7&a.nothing=1&zero=9&__proto__=1&a.__proto__=2")
    expect(page.locator("#calculator-a-width-error")).to_have_text(
        "width must be divisible by heads when head_width is not given, got 768 and 7"
    )
    page.get_by_role("button", name="Start again").click()
    assert shown(page, "total") == f"{budget.parameters(Config()).total:,}"


def test_two_designs_side_by_side(page: Page, address: str) -> None:
    page.goto(address + CALCULATOR)
    page.get_by_label("Compare two").check()
    page.get_by_label("Design B").select_option("gpt2")
    ours = budget.parameters(Config()).total
    theirs = budget.parameters(RELEASED[0].config).total
    assert [shown(page, "total", i) for i in range(3)] == [f"{ours:,}", f"{theirs:,}", f"+{theirs - ours:,}"]
    assert f"× {theirs / ours:.3f}" in page.locator('tr[data-name="total"]').inner_text()
    page.get_by_label("Compare two").uncheck()
    expect(page.get_by_label("Design B")).to_have_count(0)


def test_by_keyboard_alone(page: Page, address: str) -> None:
    page.goto(address + CALCULATOR)
    page.locator("#calculator-preset-a").focus()

    def tab_to(label: str) -> None:
        for _ in range(80):
            page.keyboard.press("Tab")
            active = "document.activeElement.labels?.[0]?.textContent ?? document.activeElement.textContent"
            if page.evaluate(active).startswith(label):
                return
        pytest.fail(f"the Tab key does not reach {label}", pytrace=False)

    tab_to("Layers L")
    page.keyboard.press("Control+A")
    page.keyboard.type("13")
    tab_to("Tied")
    page.keyboard.press("Space")
    assert shown(page, "total") == f"{budget.parameters(Config(layers=13, tied=False)).total:,}"
    tab_to("Mixture of experts")
    page.keyboard.press("Enter")
    tab_to("With mixture of experts")
    page.keyboard.press("Space")
    with_experts = Config(layers=13, tied=False, experts=Experts(8, 2, 2048))
    assert shown(page, "total") == f"{budget.parameters(with_experts).total:,}"
    tab_to("Copy Python")
    page.keyboard.press("Enter")
    expect(page.locator("form > .tool-status")).to_have_text("Python copied.")


def test_by_touch_on_a_phone(browser: Browser, address: str) -> None:
    with browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True) as context:
        page = context.new_page()
        page.goto(address + CALCULATOR)
        page.get_by_label("Compare two").tap()
        page.get_by_label("Tied, B").tap()
        untied = budget.parameters(Config(tied=False)).total
        assert shown(page, "total", 1) == f"{untied:,}"
        assert page.evaluate("document.documentElement.scrollWidth") == 390


COPIES = """
  const { makeConfig, pythonCall } = await load("tools/config.js");
  const { textsOf, statedBy } = await load("tools/fields.js");
  const { configJson } = await load("tools/export_json.js");
  return plain(parse(given, "cases")).map((stated) => {
    const typed = statedBy(textsOf(stated));
    const file = configJson(makeConfig(typed));
    return [pythonCall(typed), file && [file.model_type, file.text]];
  });
"""


def test_copies_mean_the_same_design(page: Page, address: str) -> None:
    rows = [row for row in RELEASED + SYSTEMS if row.config is not None]
    copies = evaluate(page, address, COPIES, [chosen(row.config) for row in rows])
    as_files = set()
    for row, (python, file) in zip(rows, copies, strict=True):
        names: dict[str, Any] = {}
        exec(python, names)
        assert names["config"] == row.config, row.name
        if file:
            model_type, text = file
            read = read_config(json.loads(text)).config
            assert json.loads(text)["model_type"] == model_type
            assert approximately(dataclasses.replace(read, rope_pairing=row.config.rope_pairing), row.config), row.name
            as_files.add(row.name)
    assert {row.name for row in rows} - as_files == {
        "openai/gpt-oss-20b", "openai/gpt-oss-120b", "GPT-1", "DeepSeek-V2", "Grok(-1)",
    } & {row.name for row in rows}  # fmt: skip


def approximately(one: Config, other: Config) -> bool:
    """Equal, but for the last digits of a square root."""
    a, b = dataclasses.asdict(one), dataclasses.asdict(other)
    same = lambda x, y: x == pytest.approx(y, rel=1e-12) if isinstance(x, float) and isinstance(y, float) else x == y
    return all(same(a[name], b[name]) for name in a)


# --- The audit

REPORT = """
  const { audit } = await load("tools/audit.js");
  return parse(given, "cases").map(([text, context, batch, cacheDtype]) => {
    try {
      return stringify(audit(text, { name: "config", context: context ?? undefined, batch, cacheDtype }).report, 2);
    } catch (error) {
      return `${error.constructor.name}: ${error.message}`;
    }
  });
"""
WRONG = [None, 0, -1, True, "x", 1.5, [1], {"a": 1}, 3, 1e300, 10**9]


def reports(page: Page, address: str, cases: list[tuple[Any, int | None, int, str]]) -> None:
    texts = evaluate(page, address, REPORT, [(json.dumps(data), *rest) for data, *rest in cases])
    for (data, context, batch, dtype), text in zip(cases, texts, strict=True):
        try:
            expected = json.dumps(audit(data, context, batch, dtype).to_json(), indent=2)
        except ConfigError as error:
            expected = f"ConfigError: {error}"
        assert text == expected, data


def test_the_report_is_that_of_the_command_line(page: Page, address: str) -> None:
    reports(page, address, [(data, None, 1, "bf16") for _, data in FILES])
    reports(page, address, [(data, 5000, 3, "int4") for _, data in FILES])


def test_files_without_a_key_or_with_a_wrong_one_read_alike(page: Page, address: str) -> None:
    cases = []
    for _, data in FILES:
        for key in data:
            cases.append(({name: value for name, value in data.items() if name != key}, None, 1, "bf16"))
            cases += [({**data, key: wrong}, None, 1, "bf16") for wrong in WRONG]
    reports(page, address, cases)
    assert len(cases) > 8000


def test_sizes_under_other_names_read_alike(page: Page, address: str) -> None:
    cases = []
    for data in {data["model_type"]: data for _, data in FILES}.values():
        for name, field in OTHER_NAMES.items():
            stated = {key: value for key, value in data.items() if OTHER_NAMES.get(key) != field}
            cases.append(({**stated, name: 8}, None, 1, "bf16"))
    reports(page, address, cases)
    assert sum("has no effect" in " ".join(noted(data)) for data, *_ in cases) > 100


def noted(data: dict[str, Any]) -> tuple[str, ...]:
    try:
        return audit(data).warnings
    except ConfigError:
        return ()


def test_other_shapes_of_a_file(page: Page, address: str) -> None:
    llama = next(data for name, data in FILES if "Llama-2-7b" in name)
    scaled = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024, "truncate": 0}
    data = [
        {"text_config": llama, "model_type": "llava", "tie_word_embeddings": True}, {"text_config": [1]},
        {**llama, "model_type": "unheard-of"}, {**llama, "model_type": "unheard-of", "num_experts": 8},
        {**llama, "rope_scaling": scaled}, {**llama, "rope_scaling": {**scaled, "mscale": -1}},
        {**llama, "rope_scaling": {"type": "linear"}}, {**llama, "rope_scaling": {"rope_type": "warp"}},
        {**llama, "rope_theta": 1e16}, {**llama, "rope_theta": 1e-7}, [], 3, None, {}, {"é": "\u2028"},
    ]  # fmt: skip
    reports(page, address, [(each, None, 1, "bf16") for each in data])


BROKEN = [
    "", "{", "[1, 2", '{"a": 1,}', '{"a": NaN}', '{"a": -Infinity}', "{'a': 1}", '{"a" 1}', '{"a": 1 "b": 2}', "nul",
    '{"a": "x', '{"a": "\\x"}', '{"a": "\\u12g4"}', '{"a": "\n"}', '{"a": 01}', "[1,]", "{} {}", '{"a": 1, "a": 2}',
    '{"a": 1, "a": 1.0}', "\ufeff{}", '{\n  "é": -\n}', '{"vocab_size": 1e400}', '{"a": ' + "9" * 5000 + "}",
    "[" * 5000, " " * 1_000_001, '{"model_type": "llama", "hidden_size": 12345678901234567890}',
]  # fmt: skip


def test_what_is_not_json_is_refused_in_the_same_words(page: Page, address: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    body = REPORT.replace('name: "config"', f"name: {json.dumps(str(path))}")
    texts = evaluate(page, address, body, [(text, None, 1, "bf16") for text in BROKEN])
    for broken, text in zip(BROKEN, texts, strict=True):
        path.write_text(broken, "utf-8")
        with pytest.raises(ConfigError) as refused:
            audit(path)
        assert text == f"ConfigError: {refused.value}", broken[:40]


def test_an_audit_sends_nothing(page: Page, address: str, tmp_path: Path) -> None:
    page.goto(address + AUDIT, wait_until="networkidle")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    _, data = FILES[0]
    file = tmp_path / "gpt2.json"
    file.write_text(json.dumps(data))
    page.get_by_label("or a file").set_input_files(file)
    total = f"{budget.parameters(RELEASED[0].config).total:,}"
    expect(page.locator(".tool-status")).to_contain_text(f"Read: {total} parameters")
    expect(page.locator(".audit-report")).to_contain_text(total)
    page.get_by_label("Tokens").fill("none")
    expect(page.locator("#audit-error")).to_have_text("context must be a whole number from 1, got none")
    page.get_by_label("Tokens").fill("100")
    expect(page.locator("#audit-error")).to_be_empty()
    page.get_by_label("config.json, pasted").fill("[]")
    expect(page.locator("#audit-error")).to_have_text("config.json: must hold one JSON object, got a list")
    expect(page.locator(".audit-report")).to_be_empty()
    assert asked == []


def test_an_audited_design_goes_to_the_calculator(page: Page, address: str) -> None:
    page.goto(address + AUDIT)
    for name, data in FILES[::9]:
        page.get_by_label("config.json, pasted").fill(json.dumps(data))
        link = page.get_by_role("link", name="Change this design in the calculator")
        expect(page.locator(".tool-status")).to_contain_text("Read:")
        other = page.context.new_page()
        other.goto(link.get_attribute("href"))
        total = budget.parameters(read_config(data).config).total
        assert shown(other, "total") == f"{total:,}", name
        other.close()
        page.get_by_label("config.json, pasted").fill("")
        expect(link).to_have_count(0)


# --- The atlas


def names(page: Page) -> list[str]:
    return page.locator(".atlas-table tbody tr:not([hidden]) th").all_inner_texts()


def test_every_row_is_there_without_javascript(browser: Browser, address: str) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(address + ATLAS)
        assert names(page) == [row.name for row in RELEASED + SYSTEMS]
        expect(page.locator(".atlas-controls")).to_be_hidden()
        expect(page.locator("#system-gpt-4")).to_contain_text("not published")
        expect(page.locator("#facebook-opt-350m abbr").first).to_have_attribute(
            "title", "width: from memory, not checked at a source"
        )


def test_sorting(page: Page, address: str) -> None:
    page.goto(address + ATLAS)
    known = [record for record in atlas.records() if record["parameters"] is not None]
    head = page.get_by_role("columnheader", name="Parameters")
    head.get_by_role("button").click()
    falling = sorted(known, key=lambda record: -record["parameters"])
    assert names(page)[: len(known)] == [record["name"] for record in falling]
    expect(head).to_have_attribute("aria-sort", "descending")
    head.get_by_role("button").press("Enter")
    expect(head).to_have_attribute("aria-sort", "ascending")
    rising = [record["name"] for record in sorted(known, key=lambda record: record["parameters"])]
    assert names(page)[: len(known)] == rising
    page.reload()
    expect(head).to_have_attribute("aria-sort", "ascending")
    assert names(page)[: len(known)] == rising


def test_filtering(page: Page, address: str) -> None:
    page.goto(address + ATLAS)
    rows = RELEASED + SYSTEMS
    page.locator("select[name=share]").select_option("mla")
    assert names(page) == [row.name for row in rows if row.config and row.config.latent]
    page.locator("select[name=share]").select_option("mqa")
    page.locator("select[name=positions]").select_option("rotary")
    found = [row.name for row in rows if row.config and row.config.kv_heads == 1 and row.config.positions == "rotary"]
    assert names(page) == found
    expect(page.locator(".atlas-count")).to_have_text(f"{len(found)} of {len(rows)} rows")
    page.locator("input[name=q]").fill("gemma")
    assert names(page) == [name for name in found if "gemma" in name.lower()]
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    expect(page.locator("input[name=q]")).to_have_value("gemma")
    assert names(page) == [name for name in found if "gemma" in name.lower()]


def test_a_row_can_be_linked(page: Page, address: str) -> None:
    page.goto(f"{address}{ATLAS}#qwen-qwen3-8b")
    expect(page.locator("#qwen-qwen3-8b")).to_be_in_viewport()


def test_downloads_hold_the_same_records(site: Path) -> None:
    records = json.loads((site / "assets/generated/atlas.json").read_text("utf-8"))
    assert records == atlas.records()
    with (site / "assets/generated/atlas.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == [record["id"] for record in records]
    assert [row["parameters"] for row in rows] == [str(record["parameters"] or "") for record in records]


# --- The rotation explorer

ROTATE = """
  const { rotation } = await load("tools/rotation.js");
  return JSON.parse(given).map((state) => rotation(state));
"""


def test_rotations_are_those_of_the_decoder(page: Page, address: str) -> None:
    dice = random.Random(3)
    states = []
    for _ in range(200):
        width = dice.choice([2, 6, 64, 128])
        base = dice.choice([100.0, 10_000.0, 500_000.0])
        pair = dice.randrange(width // 2)
        states.append(
            {"m": dice.randrange(3000), "n": dice.randrange(3000), "pair": pair, "base": base, "width": width}
        )
    for state, found in zip(states, evaluate(page, address, ROTATE, states), strict=True):
        frequencies = rotary_frequencies(state["width"], state["base"])
        vectors = torch.tensor([1.0, 0.0], dtype=torch.float64).repeat(state["width"] // 2)
        turned = [
            apply_rotary(vectors.view(1, 1, 1, -1), *rotary_tables(torch.tensor([state[name]]), frequencies)).flatten()
            for name in ("m", "n")
        ]
        scores = (turned[0] * turned[1]).unflatten(0, (-1, 2)).sum(-1)
        assert found["frequency"] == pytest.approx(frequencies[state["pair"]].item(), rel=1e-12)
        assert found["score"] == pytest.approx(scores[state["pair"]].item(), abs=1e-9)
        assert found["head"] == pytest.approx(scores.mean().item(), abs=1e-9)


def test_only_the_offset_counts(page: Page, address: str) -> None:
    page.goto(address + POSITIONS)
    explorer = page.locator("#rotation-explorer")
    score = explorer.locator("dd").nth(5)
    before, angle = score.inner_text(), explorer.locator("dd").first.inner_text()
    explorer.get_by_role("button", name="Move both on by 100").click()
    assert score.inner_text() == before
    assert explorer.locator("dd").first.inner_text() != angle
    explorer.get_by_label("Offset m − n").fill("9")
    assert score.inner_text() != before
    expect(explorer.get_by_label("Query position m", exact=True)).to_have_value("112")
    link, later = page.url, score.inner_text()
    assert link.endswith("#rotation-explorer&m=112&n=103")
    page.goto("about:blank")
    page.goto(link)
    assert score.inner_text() == later


def test_the_explorer_says_what_is_wrong(page: Page, address: str) -> None:
    page.goto(address + POSITIONS)
    explorer = page.locator("#rotation-explorer")
    explorer.get_by_label("Rotated width").fill("63")
    expect(explorer.get_by_role("alert")).to_have_text("width must be even, from 2 to 1024, got 63")
    explorer.get_by_label("Rotated width").fill("8")
    expect(explorer.get_by_role("alert")).to_be_empty()
    explorer.get_by_label("Pair", exact=True).fill("4")
    expect(explorer.get_by_role("alert")).to_have_text("pair must be from 0 to 3, got 4")


def test_the_explorer_by_keyboard(page: Page, address: str) -> None:
    page.goto(address + POSITIONS)
    slider = page.get_by_label("Query position m, slider")
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_label("Query position m", exact=True)).to_have_value("8")
    expect(page.locator("#rotation-explorer .tool-summary")).to_contain_text("Offset 5")
