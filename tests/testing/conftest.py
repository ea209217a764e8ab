"""The served study of the tests of collecting, for participants to take part in."""

from tests.experiments.collection.conftest import serve as serve
