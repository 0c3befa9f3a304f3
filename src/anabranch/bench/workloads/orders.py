"""Orders that name a product, and the table of products: what queries look up for each item of a stream.

    <order><id>7</id><product>P04711</product><amount>3</amount></order>
    {"id": 7, "product": "P04711", "amount": 3}
    <product id="P04711"><name>old lamp 4711</name><price>12.50</price><group>g711</group></product>

Every order finds one product, and all products are asked for alike.
There are a thousand groups, so that of a thousand queries, each for the orders of one group, each answers one order in
a thousand.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

from anabranch.bench.workloads.photons import Rows, Spark
from anabranch.stream.reading.reader import Format
from anabranch.stream.reading.source import Source

GROUPS = 1_000
_THINGS = ("old lamp", "new gauge", "small valve", "broad meter", "plain pump")
_FORMS: dict[Format, tuple[str, str]] = {
    "lines": ("<order><id>{id}</id><product>{product}</product><amount>{amount}</amount></order>", "from_xml"),
    "json": ('{{"id": {id}, "product": "{product}", "amount": {amount}}}', "from_json"),
}
"""By format: an order as it is written, and the function of Spark that reads it."""
LOOKED_UP = """\
for $o in stream("orders")/orders/order, $p in doc("products")/products/product
where $p/@id = $o/product
return <sold>{ $o/id }{ $p/name }{ $p/price }{ $o/amount }</sold>
"""
_SPARK = "select o.id, p.name, p.price, o.amount from orders o join products p on p.id = o.product"


def group_queries() -> dict[str, str]:
    """One query for each group of products, which answers the orders of the group."""
    asked = (f'where $p/group = "g{number}" and' for number in range(GROUPS))
    return {f"q{number}": LOOKED_UP.replace("where", each) for number, each in enumerate(asked)}


def products(count: int) -> Iterator[tuple[str, str, str, str]]:
    """The id, name, price and group of `count` products."""
    for number in range(count):
        name = f"{_THINGS[number % len(_THINGS)]} {number}"
        yield f"P{number:05}", name, f"{number % 977}.{number % 90 + 10}", f"g{number % GROUPS}"


def write_products(spark: Spark, folder: Path, count: int) -> Path:
    """Write the table as a document, and as Parquet beside it; gives the path of the document."""
    folder.mkdir(parents=True)
    rows = list(products(count))
    text = "\n".join(
        f'<product id="{key}"><name>{name}</name><price>{price}</price><group>{group}</group></product>'
        for key, name, price, group in rows
    )
    path = folder / "products.xml"
    path.write_text(f"<products>\n{text}\n</products>\n")
    frame = spark.createDataFrame(rows, "id string, name string, price string, `group` string")
    frame.coalesce(1).write.parquet(str(folder / "products.parquet"))
    return path


def write_orders(folder: Path, form: Format, files: int, items: int, of: int) -> None:
    """Write `files` files of `items` orders each, of `of` products."""
    folder.mkdir(parents=True)
    lines = _lines(form, of)
    for number in range(files):
        (folder / f"orders-{number:05}").write_text("".join(islice(lines, items)))


def _lines(form: Format, of: int) -> Iterator[str]:
    random, number = Random(1), 0
    while True:
        product, amount = f"P{random.randrange(of):05}", random.randrange(1, 100)
        yield _FORMS[form][0].format(id=number, product=product, amount=amount) + "\n"
        number += 1


def orders_source(folder: Path, form: Format) -> Source:
    """The stream of such files."""
    return Source("orders", folder, root="orders", item="order", format=form)


def spark_join(spark: Spark, folder: Path, form: Format, table: Path) -> Rows:
    """The stream-static join of plain Spark; how it joins is Spark's choice."""
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder))
    read = f"{_FORMS[form][1]}(value, 'id long, product string, amount int') as o"
    lines.selectExpr(read).selectExpr("o.*").createOrReplaceTempView("orders")
    spark.read.parquet(str(table.with_suffix(".parquet"))).createOrReplaceTempView("products")
    return spark.sql(_SPARK)
