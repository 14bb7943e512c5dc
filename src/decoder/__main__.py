"""The command line: ``python -m decoder COMMAND``; ``--help`` lists the commands."""

from __future__ import annotations

from importlib import import_module
from typing import ClassVar

import click


class LazyGroup(click.Group):
    """Imports a command's module when the command is asked for, so that ``--help`` needs no torch."""

    lazy: ClassVar[dict[str, tuple[str, str]]] = {  # command: ("module:attribute", its line in --help)
        "ablate": ("decoder.ablate.command:command", "Train the variants of a plan and compare them."),
        "assets": ("decoder.site_assets:command", "Write the generated files of the site's tools."),
        "audit": ("decoder.audit:command", "Count what a config.json describes, and say what is unusual."),
        "models": ("decoder.families:models_command", "Compare the counts of released models with what was published."),
        "parity": ("decoder.parity:command", "Compare loaded models with transformers, family by family."),
    }

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self.lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.lazy:
            module, attribute = self.lazy[cmd_name][0].split(":")
            return getattr(import_module(module), attribute)
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own = {name: command.get_short_help_str(80) for name, command in self.commands.items()}
        with formatter.section("Commands"):
            formatter.write_dl(sorted((own | {name: line for name, (_, line) in self.lazy.items()}).items()))


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
