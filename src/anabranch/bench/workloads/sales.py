"""Sales of many shops, records of about 90 bytes in lines of JSON, and a query for the sales of each shop by minute.

    {"t": 12.345, "shop": "shop-0421", "amount": 17.25, "till": 3, "clerk": "c-17", "article": "a-90210"}

Times rise by less than a millisecond from sale to sale, and go on from file to file; shops are drawn evenly, so nearly
all of them sell something in every minute.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from anabranch.bench.workloads.photons import Rows, Spark
from anabranch.stream.path import Path as ItemPath
from anabranch.stream.reading.source import Source

SHOPS = 10_000
_SCHEMA = "t double, shop string, amount double, till int, clerk string, article string"
BY_SHOP = """\
<sales>
{ for $w in stream("sales")/sales/sale |t diff 60|
  for $s in $w
  group by $shop := $s/shop
  return <shop name="{ $shop }" n="{ count($s) }">{ sum($s/amount) }</shop> }
</sales>
"""
_SPARK_BY_SHOP = """
    select window.start as start, shop, sum(amount) as amount, count(*) as n from sales
    group by window(time, '60 seconds'), shop"""


def write_sales(folder: Path, files: int, items: int, shops: int = SHOPS, seed: int = 1) -> None:
    """Write `files` files of `items` sales each; there are about ten to a shop and minute."""
    random = Random(seed)
    milliseconds = 60_000 / (10 * shops)
    folder.mkdir(parents=True)
    for number in range(files):
        with (folder / f"sales-{number:05}").open("w") as file:
            for item in range(number * items, (number + 1) * items):
                record = {
                    "t": round(item * milliseconds) / 1_000,
                    "shop": f"shop-{random.randrange(shops):04}",
                    "amount": random.randrange(100, 10_000) / 100,
                    "till": random.randrange(8),
                    "clerk": f"c-{random.randrange(100)}",
                    "article": f"a-{random.randrange(100_000)}",
                }
                file.write(json.dumps(record) + "\n")


def sales(folder: Path) -> Source:
    """The stream of such files, with its declared time."""
    return Source("sales", folder, root="sales", item="sale", format="json", time=ItemPath.parse("t"))


def spark_by_shop(spark: Spark, folder: Path) -> Rows:
    """The sales of each shop in a minute, in plain Spark: one file to a trigger."""
    rows = spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder))
    rows = rows.selectExpr("*", "timestamp_seconds(t) as time")
    rows.withWatermark("time", "0 seconds").createOrReplaceTempView("sales")
    return spark.sql(_SPARK_BY_SHOP)
