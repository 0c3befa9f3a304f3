"""Page views of many users, records of about 130 bytes in lines of JSON, and the visits that they make up.

    {"ts": "2026-03-01T09:26:53.589Z", "user": "user-0421", "page": "/shop/17", "seconds": 12.5, "agent": "Firefox"}

A user looks at some pages, one behind the other within two minutes, and comes back after 35 to 70 minutes; a visit has
about eight views.
Views come in the order of their times, which go on from file to file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from heapq import heapify, heapreplace
from pathlib import Path
from random import Random

from anabranch.bench.workloads.photons import Rows, Spark
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source

USERS = 10_000
_BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
_HOUR = 3_600_000
_AGENTS = ("Firefox", "Chrome", "Safari", "Edge")
_SCHEMA = "ts timestamp, user string, page string, seconds double, agent string"
VISITS = """\
<visits>
{ for $w in stream("views")/views/view |ts gap PT30M by user|
  return <visit user="{ $w[1]/user }" from="{ window-start($w) }" to="{ window-end($w) }"
                views="{ count($w) }">{ sum($w/seconds) }</visit> }
</visits>
"""
_SPARK_VISITS = """
    select session_window.start as start, session_window.end as end, user, count(*) as n, sum(seconds) as seconds
    from views group by session_window(ts, '30 minutes'), user"""


def _times(random: Random, users: int) -> Iterator[tuple[int, int]]:
    """Milliseconds and users, in the order of time, without end."""
    following = [(random.randrange(_HOUR), user) for user in range(users)]
    heapify(following)
    while True:
        time, user = following[0]
        yield time, user
        pause = random.randint(1_000, 120_000) if random.random() < 7 / 8 else random.randint(35 * 60_000, 70 * 60_000)
        heapreplace(following, (time + pause, user))


def write_views(folder: Path, files: int, items: int, users: int = USERS, seed: int = 1) -> None:
    """Write `files` files of `items` views each."""
    random = Random(seed)
    times = _times(random, users)
    folder.mkdir(parents=True)
    for number in range(files):
        with (folder / f"views-{number:05}").open("w") as file:
            for _ in range(items):
                time, user = next(times)
                moment = _BEGIN + timedelta(milliseconds=time)
                record = {
                    "ts": f"{moment:%Y-%m-%dT%H:%M:%S}.{time % 1_000:03}Z",
                    "user": f"user-{user:04}",
                    "page": f"/shop/{random.randrange(1_000)}",
                    "seconds": random.randrange(10, 1_200) / 10,
                    "agent": random.choice(_AGENTS),
                }
                file.write(json.dumps(record) + "\n")


def views(folder: Path) -> Source:
    """The stream of such files, with its declared time."""
    return Source("views", folder, root="views", item="view", format="json", time=ItemPath.parse("ts"))


def spark_visits(spark: Spark, folder: Path) -> Rows:
    """The visits of users in plain Spark: one file to a trigger."""
    rows = spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder))
    rows.withWatermark("ts", "0 seconds").createOrReplaceTempView("views")
    return spark.sql(_SPARK_VISITS)
