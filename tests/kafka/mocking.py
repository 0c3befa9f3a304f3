"""librdkafka's own mock of a cluster, which answers requests with the errors it is told.

It is made through the library that the client's wheel brings along, by ctypes, since the Python client cannot tell the
mock anything.
It keeps no marks and fences nobody, so it is for errors only; what counts is shown on a real broker.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka

REQUESTS = {
    "Produce": 0,
    "Fetch": 1,
    "ListOffsets": 2,
    "Metadata": 3,
    "OffsetFetch": 9,
    "FindCoordinator": 10,
    "InitProducerId": 22,
    "AddPartitionsToTxn": 24,
    "AddOffsetsToTxn": 25,
    "EndTxn": 26,
    "TxnOffsetCommit": 28,
}
"""The numbers of requests in Kafka's protocol."""
_PRODUCER = 0


class MockCluster:
    """A cluster of one broker; `bootstrap` is its address."""

    def __init__(self) -> None:
        folder = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
        self._library = library = ctypes.CDLL(str(next(folder.glob("librdkafka*.so*"))))
        for name in ("conf_new", "new", "mock_cluster_new"):
            getattr(library, f"rd_kafka_{name}").restype = ctypes.c_void_p
        library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
        error = ctypes.create_string_buffer(512)
        settings = ctypes.c_void_p(library.rd_kafka_conf_new())
        library.rd_kafka_conf_set(settings, b"log_level", b"0", error, 512)
        self._client = ctypes.c_void_p(library.rd_kafka_new(_PRODUCER, settings, error, 512))
        assert self._client.value is not None, error.value
        self._cluster = ctypes.c_void_p(library.rd_kafka_mock_cluster_new(self._client, 1))
        self.bootstrap = library.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()

    def answer(self, request: str, code: int, times: int = 1) -> None:
        """Let the next requests of a kind be answered with an error."""
        codes = (ctypes.c_int * times)(*([code] * times))
        self._library.rd_kafka_mock_push_request_errors_array(
            self._cluster, ctypes.c_int16(REQUESTS[request]), ctypes.c_size_t(times), codes
        )

    def calm(self, request: str) -> None:
        """Answer requests of a kind as they should be."""
        self._library.rd_kafka_mock_clear_request_errors(self._cluster, ctypes.c_int16(REQUESTS[request]))

    def close(self) -> None:
        self._library.rd_kafka_mock_cluster_destroy(self._cluster)
        self._library.rd_kafka_destroy(self._client)


@contextmanager
def mock_cluster() -> Iterator[MockCluster]:
    """A cluster for as long as it is needed."""
    found = MockCluster()
    try:
        yield found
    finally:
        found.close()
