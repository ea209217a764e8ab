"""Groups of commands that are made from platforms, when they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typer.core import TyperGroup

from contstim.cli.commands import command_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from contstim.experiments.platforms.platform import Platform


class PlatformGroup(TyperGroup):
    """A command for each platform; none is imported before it is named or listed."""

    @staticmethod
    def command_for(platform: Platform) -> Callable[..., None] | None:
        """The function of the platform's command; None where it has none in this group."""
        raise NotImplementedError

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the platforms that have a command here."""
        from contstim.experiments.platforms.registry import platforms

        del ctx
        return [platform.name for platform in platforms() if self.command_for(platform)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a platform; None where there is none."""
        from contstim.experiments.platforms.registry import platform_named

        del ctx
        platform = platform_named(cmd_name)
        function = platform and self.command_for(platform)
        if not function:
            return None
        return command_of(function, cmd_name)
