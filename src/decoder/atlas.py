"""The atlas: every released model and system of the book in one table, each figure from the formulas.

A row is a plain record (``records``), the same for the page, the CSV and the JSON file. ``table`` writes it as HTML
that sorts and filters where scripts run and reads where they do not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import Any

from decoder.audit import active_hidden, ratios
from decoder.budget import kv_cache, parameters
from decoder.config import Config
from decoder.families import RELEASED, SYSTEMS, Published, Row

UNVERIFIED = "from memory, not checked at a source"
NOT_PUBLISHED = "not published"


@dataclass(frozen=True)
class Column:
    """One column: its name in the files, its heading, what it means, and the record's value for a Config."""

    name: str
    title: str
    meaning: str
    value: Callable[[Config], Any]
    fields: tuple[str, ...] = ()  # of the Config that it states, for the mark of unverified values
    digits: int | None = None  # shown after the point; None: as it is


def _feed_forward(config: Config) -> str:
    name = {"silu": "SiLU", "gelu": "GELU", "gelu_tanh": "GELU (tanh)", "relu": "ReLU", "relu2": "squared ReLU"}
    gate = {"silu": "SwiGLU", "gelu": "GEGLU", "gelu_tanh": "GEGLU (tanh)", "relu": "ReGLU"}
    return gate[config.activation] if config.gated else name[config.activation]


def _norm(config: Config) -> str:
    kind = "RMSNorm" if config.norm == "rms" else "LayerNorm"
    return f"{kind}, no weights" if config.norm_scale == "none" else kind


def _placement(config: Config) -> str:
    if config.block == "parallel":
        return f"pre, parallel, {config.parallel_norms} a block"
    return {"pre": "pre", "post": "post", "both": "before and after", "output": "after each part"}[
        config.norm_placement
    ]


def _positions(config: Config) -> str:
    if config.positions != "rotary":
        return {"alibi": "ALiBi"}.get(config.positions, config.positions)
    rotated, of = config.rotary_width, config.latent.rope_width if config.latent else config.head_width
    part = f", {rotated} of {of}" if rotated != of else ""
    still = f", not in {len(config.no_rope_layers)} layers" if config.no_rope_layers else ""
    return f"rotary, base {config.rope_base:,.0f}{part}{still}"


def _windows(config: Config) -> str:
    if config.window is None:
        return "none"
    return f"{config.window:,} in {len(config.windowed_layers)} of {config.layers}"


def _experts(config: Config) -> str:
    if config.experts is None:
        return "none"
    shared = f" and {config.experts.shared} shared" if config.experts.shared else ""
    return f"{config.experts.per_token} of {config.experts.count}{shared}"


COLUMNS = (
    Column("parameters", "Parameters", "every trained value once", lambda c: parameters(c).total),
    Column("active", "Active", "without experts that a token does not visit", lambda c: parameters(c).active),
    Column("width", "d", "width", lambda c: c.width, ("width",)),
    Column("layers", "L", "layers", lambda c: c.layers, ("layers",)),
    Column("aspect", "d / L", "width / layers", lambda c: ratios(c)["aspect"], ("width", "layers"), 1),
    Column("hidden", "m", "hidden width that one token meets", active_hidden, ("hidden",)),
    Column("ffn_ratio", "m / d", "active hidden / width", lambda c: ratios(c)["ffn"], ("hidden", "width"), 2),
    Column("heads", "H", "query heads", lambda c: c.heads, ("heads",)),
    Column("kv_heads", "K", "key/value heads", lambda c: c.kv_heads, ("kv_heads",)),
    Column("kv_share", "K / H", "key/value heads / heads", lambda c: c.kv_heads / c.heads, ("kv_heads", "heads"), 3),
    Column("head_width", "h", "head width", lambda c: c.head_width, ("head_width",)),
    Column("cache_bytes_per_token", "Cache, bytes a token", "BF16, all layers", lambda c: kv_cache(c).bytes_per_token),
    Column("context", "Context", "tokens", lambda c: c.context, ("context",)),
    Column("vocab", "V", "vocabulary: rows of the table", lambda c: c.vocab, ("vocab",)),
    Column("tied", "Tied", "input and output share one table", lambda c: c.tied, ("tied",)),
    Column("norm", "Norm", "kind of norm", _norm, ("norm", "norm_bias")),
    Column("placement", "Placement", "where norms sit", _placement, ("norm_placement", "block")),
    Column("qk_norm", "QK-norm", "norms on queries and keys", lambda c: c.qk_norm, ("qk_norm",)),
    Column("feed_forward", "Feed-forward", "activation and gate", _feed_forward, ("activation", "gated")),
    Column("positions", "Positions", "how order enters", _positions, ("rope_base", "rope_scaling", "positions")),
    Column("window", "Window", "keys seen, and in how many layers", _windows, ("window",)),
    Column("experts", "Experts", "visited of all", _experts, ("experts",)),
)


def anchor(row: Row) -> str:
    """The id of a row: its name in lower case, whatever is no letter or digit a hyphen."""
    kind = "" if row in RELEASED else "system-"
    return kind + re.sub(r"[^a-z0-9]+", "-", row.name.lower()).strip("-")


@cache
def records() -> list[dict[str, Any]]:
    """A record for each model and system: identity, figures, sources. Figures are None where no shape is known."""
    return [_record(row) for row in RELEASED + SYSTEMS]


def _record(row: Row) -> dict[str, Any]:
    figures = {column.name: column.value(row.config) if row.config else None for column in COLUMNS}
    return {
        "id": anchor(row),
        "name": row.name,
        "year": row.year,
        "kind": "model" if row in RELEASED else "system",
        **figures,
        "published": [_published(count) for count in row.published],
        "unverified": list(row.unverified),
        "source": row.source,
        "note": row.note,
    }


def _published(published: Published) -> str:
    number = published.count if isinstance(published.count, str) else f"{published.count:,}"
    return f"{number} ({published.source}){': ' + published.why if published.why else ''}"


# --- HTML

_CONTROLS = """\
<form class="atlas-controls" role="search" aria-label="Filter the atlas">
<label>Search <input type="search" name="q" placeholder="name, choice or note" autocomplete="off"></label>
<label>Norm <select name="norm"><option value="">any</option>{norm}</select></label>
<label>Positions <select name="positions"><option value="">any</option>{positions}</select></label>
<label>Heads <select name="share"><option value="">any</option><option value="mha">K = H</option>\
<option value="gqa">1 &lt; K &lt; H</option><option value="mqa">K = 1</option>\
<option value="mla">latent</option></select></label>
<label>Experts <select name="experts"><option value="">any</option><option value="yes">yes</option>\
<option value="no">no</option></select></label>
<output class="atlas-count" aria-live="polite">{rows} rows</output>
</form>"""


def table() -> str:
    """The whole atlas as HTML: the filter's controls, then the table, a row for each record."""
    rows = RELEASED + SYSTEMS
    heads = "".join(
        f'<th scope="col"{_kind(column)} data-name="{column.name}" title="{escape(column.meaning)}">'
        f"{escape(column.title)}</th>"
        for column in COLUMNS
    )
    norms = sorted({_norm(row.config) for row in rows if row.config})
    positions = sorted({_positions(row.config).split(",")[0] for row in rows if row.config})
    controls = _CONTROLS.format(norm=_options(norms), positions=_options(positions), rows=len(rows))
    body = "\n".join(_row(row) for row in rows)
    return (
        f'<div class="atlas" data-widget="atlas">{controls}\n'
        '<div class="atlas-scroll" role="region" aria-label="Atlas of models" tabindex="0">'
        '<table class="atlas-table">\n'
        f'<thead><tr><th scope="col" data-name="name">Model or system</th><th scope="col" data-name="year">Year</th>'
        f'{heads}<th scope="col" data-name="note">Source and notes</th></tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div></div>"
    )


def _kind(column: Column) -> str:
    """Numbers stand below the end of their heading, which is as wide as the longest, so that no row widens it."""
    values = [column.value(row.config) for row in RELEASED + SYSTEMS if row.config]
    if isinstance(values[0], bool | str):
        return ""
    longest = max(len(_shown(column, value)) for value in values)
    return f' class="number" style="min-width: calc({longest}ch + 1rem)"'


def _options(names: list[str]) -> str:
    return "".join(f"<option>{escape(name)}</option>" for name in names)


def _row(row: Row) -> str:
    name = f'<th scope="row"><a href="#{anchor(row)}">{_name(row)}</a></th><td>{row.year}</td>'
    share = _share(row.config)
    start = f'<tr id="{anchor(row)}" data-share="{share}">{name}'
    if row.config is None:
        missing = f'<td class="atlas-missing" colspan="{len(COLUMNS)}">{_absence(row)}</td>'
        return f"{start}{missing}{_notes(row)}</tr>"
    cells = "".join(_data(column, row, row.config) for column in COLUMNS)
    return f"{start}{cells}{_notes(row)}</tr>"


def _name(row: Row) -> str:
    """A model's own name goes to the next line as a whole where there is no room for it beside its owner."""
    owner, slash, own = row.name.partition("/")
    return f"{escape(owner)}/<wbr><span>{escape(own)}</span>" if slash and " " not in owner else escape(row.name)


def _share(config: Config | None) -> str:
    if config is None:
        return ""
    if config.latent:
        return "mla"
    return "mha" if config.kv_heads == config.heads else "mqa" if config.kv_heads == 1 else "gqa"


def _absence(row: Row) -> str:
    return NOT_PUBLISHED if "not published" in row.note else "no decoder of one known shape"


def _data(column: Column, row: Row, config: Config) -> str:
    value = column.value(config)
    mark = ""
    if doubtful := [name for name in column.fields if name in row.unverified]:
        reason = escape(f"{', '.join(doubtful)}: {UNVERIFIED}")
        mark = f'<abbr class="atlas-unverified" title="{reason}">?</abbr>'
    if isinstance(value, bool):
        return f"<td>{'yes' if value else 'no'}{mark}</td>"
    if isinstance(value, str):
        return f"<td>{escape(value)}{mark}</td>"
    return f'<td class="number" data-value="{value!r}">{_shown(column, value)}{mark}</td>'


def _shown(column: Column, number: float) -> str:
    return f"{number:,}" if column.digits is None else f"{number:,.{column.digits}f}"


def _notes(row: Row) -> str:
    """The cell of sources and notes: one line of it, the whole while it has the focus."""
    parts = [row.note] if row.note else []
    parts += [f"published: {_published(count)}" for count in row.published]
    if row.source:
        parts.append(f"values: {row.source}")
    if row.unverified:
        parts.append(f"{UNVERIFIED}: {', '.join(row.unverified)}")
    return f'<td class="note" tabindex="0">{escape("; ".join(parts))}</td>'
