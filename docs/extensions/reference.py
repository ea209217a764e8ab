"""Directives of the reference: commands, and public names of the package."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import descriptions
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sphinx.application import Sphinx


class Commands(SphinxDirective):
    """One section per command; the name of a group means all its commands."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Describe the commands in the content, one per line."""
        all_commands = descriptions.commands()
        wanted = [line.strip() for line in self.content if line.strip()]
        sections: list[nodes.Node] = []
        for name in wanted:
            chosen = [
                command
                for full, command in all_commands.items()
                if f"{full} ".startswith(f"contstim {name} ")
            ]
            if not chosen:
                raise self.error(f"No command is named 'contstim {name}'.")
            sections += [self._section(command) for command in chosen]
        return sections

    def _section(self, command: descriptions.Command) -> nodes.section:
        section = nodes.section(ids=[command.anchor])
        section += nodes.title("", "", nodes.literal(text=command.name))
        section += self.parse_text_to_nodes(command.text)
        for example in command.examples:
            section += nodes.literal_block(example, example, language="sh", classes=["example"])
        options = nodes.definition_list(classes=["options"])
        for option in command.options:
            item = nodes.definition_list_item()
            anchor = f"{command.anchor}-{option.name.strip('-').lower()}"
            item += nodes.term("", "", nodes.literal(text=option.form), ids=[anchor])
            item += nodes.definition("", nodes.paragraph("", "", *_with_code(option.text)))
            options += item
        section += options
        return section


class CommandTable(SphinxDirective):
    """Every command with its summary, in the order of `contstim --help`."""

    def run(self) -> list[nodes.Node]:
        """Link each command to its section in the folder of pages on commands."""
        pages = pages_of_commands(self.env)
        rows = []
        for name, command in descriptions.commands().items():
            if name not in pages:
                raise self.error(f"No page in reference/commands/ describes '{name}'.")
            target = self.env.app.builder.get_relative_uri(self.env.docname, pages[name])
            link = nodes.reference("", "", nodes.literal(text=name))
            link["refuri"] = f"{target}#{command.anchor}"
            rows.append(([link], _with_code(command.summary)))
        return [_table(("command", "summary"), rows)]


class PublicNames(SphinxDirective):
    """A table of public names with summaries, then the full description of each."""

    has_content = True
    option_spec = {"module": str, "summaries": lambda _: True}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        """Describe the names in the content, or all that the module exports."""
        module = self.options.get("module", "contstim")
        exported = descriptions.public_names(module)
        wanted = " ".join(self.content).split() or list(exported)
        if unknown := [name for name in wanted if name not in exported]:
            raise self.error(f"{module} does not export {', '.join(unknown)}.")
        only_summaries = "summaries" in self.options
        rows = []
        for name in wanted:
            code: nodes.Node = nodes.literal(text=name)
            if not only_summaries:
                prefix = "module-" if exported[name].kind == "automodule" else ""
                anchor = f"#{prefix}{exported[name].module}.{name}"
                code = nodes.reference("", "", code, refuri=anchor)
            rows.append(([code], _with_code(exported[name].summary)))
        table = _table(("name", "summary"), rows)
        if only_summaries:
            return [table]
        lines = ["```{eval-rst}"]
        for name in wanted:
            lines.append(f".. {exported[name].kind}:: {exported[name].module}.{name}")
            if exported[name].kind in ("autoclass", "automodule"):
                lines.append("   :members:")
            if exported[name].kind == "autodata":
                lines.append("   :no-value:")
            lines.append("")
        return [table, *self.parse_text_to_nodes("\n".join([*lines, "```"]))]


def pages_of_commands(env: Any) -> dict[str, str]:
    """Return the page that describes each command, by command name."""
    pages: dict[str, str] = {}
    for page in sorted(env.found_docs):
        if not page.startswith("reference/commands/"):
            continue
        text = (env.srcdir / f"{page}.md").read_text(encoding="utf-8")
        for block in re.findall(r"```\{commands\}\n(.*?)```", text, re.DOTALL):
            for line in block.split("\n"):
                for name in descriptions.commands():
                    if line.strip() and f"{name} ".startswith(f"contstim {line.strip()} "):
                        pages[name] = page
    return pages


def _with_code(text: str) -> list[nodes.Node]:
    """Return the text with options and text in backticks as code."""
    parts = re.split(r"`([^`]+)`|(?<![\w-])(--[a-z][\w-]*)", text)
    # `re.split` returns the text and the two groups in turn
    return [
        nodes.literal(text=part) if index % 3 else nodes.Text(part)
        for index, part in enumerate(parts)
        if part
    ]


def _table(heads: Sequence[str], rows: Iterable[Sequence[Sequence[nodes.Node]]]) -> nodes.table:
    table, group = nodes.table(), nodes.tgroup(cols=len(heads))
    table += group
    group += [nodes.colspec(colwidth=1) for _ in heads]
    head, body = nodes.thead(), nodes.tbody()
    group += [head, body]

    def row(cells: Iterable[Sequence[nodes.Node]]) -> nodes.row:
        return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", *cell)) for cell in cells))

    head += row([[nodes.Text(text)] for text in heads])
    for cells in rows:
        body += row(cells)
    return table


def point_outside(app: Sphinx, page: str, source: list[str]) -> None:
    """Turn links to files outside docs/ into downloads, and links to folders into text."""
    folder = (app.srcdir / page).parent

    def pointed(link: re.Match[str]) -> str:
        text, target = link.groups()
        aim = (folder / target).resolve()
        if aim.is_relative_to(app.srcdir.resolve()) or not aim.exists():
            return link[0]
        return text if aim.is_dir() else f"[{text}](path:{target})"

    source[0] = re.sub(r"\[([^\]\n]+)\]\((\.\./[^)#\s]+)(?:#[^)\s]*)?\)", pointed, source[0])


def setup(app: Sphinx) -> dict[str, object]:
    """Register the directives."""
    app.add_directive("commands", Commands)
    app.add_directive("command-table", CommandTable)
    app.add_directive("public-names", PublicNames)
    app.connect("source-read", point_outside)
    return {"parallel_read_safe": True}
