"""``python -m claims``: check, fix, list, prove. Exit 0 clean, 1 findings, 2 could not run."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import click

from claims.check import check
from claims.finding import show_all
from claims.fix import apply, plan
from claims.gate import Gate, GateError
from claims.inputs.trace import Trace, record, trace
from claims.project import Project, ProjectError, find
from claims.prove import prove
from claims.report import Report, summary
from claims.session import Runner
from claims.site import paper
from claims.site.finish import FinishError, finish
from claims.site.offline import OfflineError, install
from claims.source import Place


class Door(click.Group):
    """Turns what keeps the checker from running at all into one line and exit code 2."""

    def invoke(self, context: click.Context) -> object:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            return super().invoke(context)
        except ProjectError as error:
            click.echo(f"claims: {error}", err=True)
        except OSError as error:
            if error.errno == errno.EPIPE:  # whoever read this has enough, which click knows to take quietly
                raise
            click.echo(f"claims: {error}", err=True)
        except KeyboardInterrupt:
            click.echo("claims: interrupted", err=True)
        sys.exit(2)


@click.group(cls=Door, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Check that every number in the book is what its code or its source gives."""


def _project(paths: tuple[str, ...]) -> Project:
    """The project of the working directory, or of the first path where that lies elsewhere."""
    try:
        return find()
    except ProjectError:
        if not paths:
            raise
        first = Path(paths[0]).absolute()
        return find(first if first.is_dir() else first.parent)


def _relative(project: Project) -> Callable[[str], str]:
    return lambda path: os.path.relpath(project.root / path)


def _at(project: Project, place: Place) -> str:
    return f"{_relative(project)(place.path)}:{place.line}:{place.column}"


def _print(report: Report, project: Project) -> None:
    for shown in show_all(report.findings, project.root, _relative(project)):
        click.echo(shown)
    click.echo(summary(report))


@main.command("check")
@click.argument("paths", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.option("--cold", is_flag=True, help="Run every page, whatever the cache holds.")
def check_command(paths: tuple[str, ...], as_json: bool, cold: bool) -> None:
    """Check PATHS (pages or folders), or all pages."""
    project = _project(paths)
    report = check(project, paths, cold=cold or None)
    if as_json:
        click.echo(json.dumps(report.to_json(_relative(project)), indent=2, ensure_ascii=False))
    else:
        _print(report, project)
    sys.exit(1 if report.findings else 0)


@main.command("list")
@click.argument("paths", nargs=-1)
def list_command(paths: tuple[str, ...]) -> None:
    """Show every claim with its value."""
    project = _project(paths)
    report = check(project, paths)
    for page in report.pages:
        for claim, evaluation in zip(page.page.claims, page.evaluations, strict=True):
            place = _at(project, page.page.place(claim.start, claim.end))
            value = evaluation.value.brief if evaluation.value else "no value"
            click.echo(f"{place}: {claim.literal} = {claim.expression} = {value}")
    click.echo(summary(report))
    sys.exit(1 if report.findings else 0)


@main.command("fix")
@click.argument("paths", nargs=-1)
def fix_command(paths: tuple[str, ...]) -> None:
    """Rewrite drifted literals to what their expressions give, then check again."""
    project = _project(paths)
    repairs, refusals = plan(check(project, paths))
    try:
        apply(project.root, repairs)
    except OSError as error:
        raise ProjectError(f"{error.filename}: {error.strerror}; nothing of this file was changed") from None
    for repair in repairs:
        click.echo(f"{_at(project, repair.place)}: {repair.old} is now {repair.new}")
        click.echo(f"   read again  {repair.sentence}")
    for refusal in refusals:
        click.echo(f"{_at(project, refusal.place)}: not changed: {refusal.reason}")
    click.echo(f"{len(repairs)} changed, {len(refusals)} not changed")
    report = check(project, paths)
    _print(report, project)
    sys.exit(1 if report.findings else 0)


@main.command("prove")
@click.argument("paths", nargs=-1)
@click.option("--inputs", "with_inputs", is_flag=True, help="Also raise every input; each computed number must move.")
@click.option("--cold", is_flag=True, help="Raise the inputs of every page, whatever is recorded of it.")
def prove_command(paths: tuple[str, ...], with_inputs: bool, cold: bool) -> None:
    """Change every literal in several ways; each change must be found."""
    project = _project(paths)
    with Runner(project.root, project.preload, project.time_limit) as runner:
        report = check(project, paths, runner=runner)
        if report.findings:
            _print(report, project)
            sys.exit(1)
        proof = prove(report)
        for survivor in proof.survivors:
            click.echo(f"{_at(project, survivor.place)}: survivor: {survivor.old} may become {survivor.new}")
        click.echo(f"{proof.mutants:,} changes of {proof.claims:,} literals, {len(proof.survivors):,} unnoticed")
        found = trace(report, runner, cold) if with_inputs else Trace()
    if with_inputs:
        record(report, found)
    for shown in show_all(found.findings, project.root, _relative(project)):
        click.echo(shown)
    if with_inputs:
        pages = f"{len(found.answers):,} page{'' if len(found.answers) == 1 else 's'}, {found.recorded:,} as recorded"
        click.echo(
            f"{found.numbers:,} computed numbers under {found.inputs:,} inputs raised on {pages}; {_findings(found)}"
        )
    sys.exit(1 if proof.survivors or found.findings else 0)


def _findings(found: Trace) -> str:
    return f"{len(found.findings):,} finding{'' if len(found.findings) == 1 else 's'}"


@main.command()
@click.argument("site", type=click.Path(path_type=Path, exists=True, file_okay=False))
def offline(site: Path) -> None:
    """Make a built SITE (with use_directory_urls: false) work from its folder, search included, without a server."""
    try:
        pages = install(site)
    except OfflineError as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"{site}: {pages} pages work as files; open {site / 'index.html'}")


@main.command()
@click.argument("site", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def pdf(site: Path, file: Path) -> None:
    """Print a built SITE as one PDF, FILE, with the Chromium of this machine."""
    try:
        pages = paper.install(site, file)
    except paper.PaperError as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"{file}: {pages} pages")


@main.command("finish")
@click.argument("site", type=click.Path(path_type=Path, exists=True, file_okay=False))
def finish_command(site: Path) -> None:
    """Add to a SITE that was built without MkDocs' plugins its math font, its pages as Markdown, and its policy."""
    gate = Gate(_project(()))
    try:
        pages = finish(site, gate)
    except (FinishError, GateError) as error:
        raise click.ClickException(str(error)) from None
    finally:
        gate.close()
    click.echo(f"{site}: {pages} pages finished")


if __name__ == "__main__":
    main(prog_name="python -m claims")
