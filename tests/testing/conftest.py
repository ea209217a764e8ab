"""Import the `serve` fixture of the tests of collection."""

from tests.experiments.collection.conftest import serve as serve
