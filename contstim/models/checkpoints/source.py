"""Where the library reads a checkpoint from, and what it may run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contstim.models.checkpoints.code import code_error, refuse_code
from contstim.models.checkpoints.folders import check_folder
from contstim.models.checkpoints.foreign import foreign_errors, silence
from contstim.models.checkpoints.sizes import check_counts


@dataclass(frozen=True)
class Source:
    """Where a checkpoint is read from.

    Attributes:
        location: a folder or a name on the hub.
        local: whether only what lies on this machine is read.
        trust_remote_code: whether the checkpoint may run code of its own.
    """

    location: str
    local: bool
    trust_remote_code: bool

    @property
    def options(self) -> dict[str, Any]:
        """What every `from_pretrained` is given; left unsaid, it would ask on the terminal."""
        return {"local_files_only": self.local, "trust_remote_code": self.trust_remote_code}

    def load(self, auto: Any, **settings: Any) -> Any:
        """What an auto class of `transformers` makes of the checkpoint.

        Raises:
            ModelError: it would run code that is not allowed.
        """
        try:
            return auto.from_pretrained(self.location, **settings, **self.options)
        except ValueError as error:
            if self.trust_remote_code or "trust_remote_code" not in str(error):
                raise
            raise code_error(self.location, *self._configurations()) from error

    def check(self) -> None:
        """Refuse what must not be built or run, before anything is.

        Raises:
            ModelError: the configuration is not an object, asks for more than can be built, or for
                code that is not allowed.
        """
        config, tokenizer = self._configurations()
        check_counts(self.location, config)
        if not self.trust_remote_code:
            refuse_code(self.location, config, tokenizer)

    def _configurations(self) -> tuple[Any, Any]:
        """The content of `config.json` and of `tokenizer_config.json`."""
        from transformers import PreTrainedConfig
        from transformers.models.auto.tokenization_auto import get_tokenizer_config

        config, _ = PreTrainedConfig.get_config_dict(self.location, local_files_only=self.local)
        return config, get_tokenizer_config(self.location, local_files_only=self.local)


def check_source(location: str, *, trust_remote_code: bool = False) -> None:
    """Refuse a folder without a readable configuration; names on the hub are not looked up.

    Raises:
        ModelError: see above, and `Source.check`.
    """
    check_folder(location)
    if Path(location).is_dir():
        with foreign_errors(location), silence():
            Source(location, local=True, trust_remote_code=trust_remote_code).check()
