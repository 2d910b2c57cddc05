from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any, Optional, Union, final

_Texts = Union[str, Sequence[str]]
_Path = Union[str, PathLike[str]]
_Paths = Union[_Path, Sequence[_Path]]

__all__ = ["Diff", "HbbpError", "Recording", "Report", "Stream", "Table", "__version__", "diff", "open", "read_report"]
__version__: str

class HbbpError(Exception):
    """A file that cannot be read or analysed. The text is the sentence that `hbbp` prints."""

@final
class Table:
    """Rows in columns of numbers and texts, with Arrow's PyCapsule interface."""

    @property
    def columns(self) -> list[str]: ...
    @property
    def instructions(self) -> Optional[float]:
        """Executed instructions in all, in the unit of the recording; None where rows are not of instructions."""
    @property
    def quality(self) -> Optional[str]:
        """How right the largest rows are, in a sentence; None where it is not known."""
    @property
    def notes(self) -> list[str]:
        """What there is to say of the rows; it was said as warnings."""
    def to_dicts(self) -> list[dict[str, Any]]: ...
    def to_polars(self) -> Any: ...
    def to_pandas(self) -> Any: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[dict[str, Any]]: ...
    def __arrow_c_schema__(self) -> Any: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...

@final
class Stream:
    """Rows that are read from a recording while they are taken, with Arrow's PyCapsule interface."""

    @property
    def columns(self) -> list[str]: ...
    def to_polars(self) -> Any: ...
    def to_pandas(self) -> Any: ...
    def __arrow_c_schema__(self) -> Any: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...

@final
class Recording:
    """A recording, an archive of one, profiles of OpenTelemetry, a file of `hbbp merge`, or exact counts of `hbbp truth`."""

    def mix(
        self,
        rows: Optional[_Texts] = None,
        columns: Optional[_Texts] = None,
        *,
        filter: Optional[_Texts] = None,
        per: Optional[_Texts] = None,
        values: Optional[_Texts] = None,
        sort: str = "executions",
        taxonomies: Optional[_Paths] = None,
    ) -> Table:
        """The instruction mix: executed instructions by any keys."""
    def functions(self, *, filter: Optional[_Texts] = None, taxonomies: Optional[_Paths] = None) -> Table:
        """The functions that ran, those first that executed most."""
    def blocks(self, *, filter: Optional[_Texts] = None, taxonomies: Optional[_Paths] = None) -> Table:
        """The blocks that ran, by module and address."""
    def samples(self) -> Stream:
        """The samples as they were recorded."""
    def branches(self) -> Stream:
        """The branches of all stacks."""
    @property
    def head(self) -> dict[str, Any]:
        """What counts are made from and how good they are."""
    @property
    def source(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def quality(self) -> Optional[str]: ...
    @property
    def weaker(self) -> list[str]: ...
    @property
    def machine(self) -> Optional[dict[str, Any]]: ...
    @property
    def path(self) -> Any: ...

@final
class Report:
    """A report that was printed with `--format json`."""

    @property
    def schema(self) -> str: ...
    @property
    def tables(self) -> list[str]: ...
    @property
    def facts(self) -> dict[str, Any]: ...
    def table(self, name: str) -> Table: ...

@final
class Diff:
    """How two recordings differ, as `hbbp diff --format json` says it."""

    @property
    def notes(self) -> list[str]: ...
    @property
    def tables(self) -> list[str]: ...
    @property
    def overlap(self) -> dict[str, Optional[float]]: ...
    @property
    def work(self) -> dict[str, Any]: ...
    @property
    def sides(self) -> list[dict[str, Any]]: ...
    def table(self, name: str) -> Table: ...

def diff(
    before: Recording,
    after: Recording,
    *,
    rows: Optional[_Texts] = None,
    filter: Optional[_Texts] = None,
    taxonomies: Optional[_Paths] = None,
) -> Diff:
    """Compares two recordings, merged files or exact counts."""

def open(
    path: _Path,
    *,
    binaries: Optional[_Paths] = None,
    symfs: Optional[_Path] = None,
    model: Optional[_Path] = None,
    core: Optional[str] = None,
    threads: Optional[int] = None,
) -> Recording:
    """Opens a file."""

def read_report(path: _Path) -> Report:
    """Reads what a command printed with `--format json`."""
