"""The command line: ``python -m decoder check``, ``onefile`` and ``audit``."""

from __future__ import annotations

from importlib import import_module
from typing import ClassVar

import click


class LazyGroup(click.Group):
    """Imports a command's module when the command is asked for, so that ``--help`` needs no torch."""

    lazy: ClassVar = {  # command name: "module:attribute"
        "ablate": "decoder.ablate:command",
        "assets": "decoder.site_assets:command",
        "audit": "decoder.audit:command",
        "models": "decoder.families:models_command",
        "parity": "decoder.parity:command",
    }

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self.lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.lazy:
            module, attribute = self.lazy[cmd_name].split(":")
            return getattr(import_module(module), attribute)
        return super().get_command(ctx, cmd_name)


@click.group(cls=LazyGroup)
def main() -> None:
    """A small decoder with every design choice as a named option."""


@main.command()
def check() -> None:
    """Run the self-check; print the default design's parameters."""
    from decoder.check import self_check

    raise SystemExit(self_check())


@main.command()
@click.argument("path", type=click.Path(dir_okay=False, writable=True), default="architecture.py")
def onefile(path: str) -> None:
    """Write the decoder to PATH as one file that needs torch alone."""
    from decoder.onefile import one_file

    with click.open_file(path, "w", encoding="utf-8") as file:
        file.write(one_file())


if __name__ == "__main__":
    main(prog_name="python -m decoder")
