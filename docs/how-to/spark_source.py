"""Makes a file of each micro-batch that Spark reads, for `shoal stream --engine spark`.

Spark asks for a micro-batch again after a kill. Its file is there by then, or is made now: each
record lands once. What reads a topic of Kafka has these columns, too:

    session.readStream.format("kafka").option("kafka.bootstrap.servers", "localhost:9092")
    ...option("subscribe", "shop").load()
"""

import shutil
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, from_json

EVENTS, FOLDER = sys.argv[1:]
COLUMNS = ("customer", "at", "age", "income", "city", "channel", "category", "amount")
RECORD = ", ".join(f"{name} string" for name in COLUMNS)


def land(batch: DataFrame, number: int) -> None:
    """One file, with the records in the order of their partitions and offsets."""
    target = Path(FOLDER) / f"{number:012d}.parquet"
    if target.exists():
        return
    draft = Path(FOLDER) / f"_{target.stem}"  # a name that the stream passes over
    ordered = batch.repartition(1).sortWithinPartitions("partition", "offset")
    records = ordered.select(from_json(col("value").cast("string"), RECORD).alias("record"))
    records.select("record.*").write.mode("overwrite").parquet(str(draft))
    (part,) = draft.glob("part-*.parquet")
    part.rename(target)
    shutil.rmtree(draft)


session = SparkSession.builder.appName("landing").getOrCreate()
events = session.readStream.schema("partition int, offset long, value string")
arriving = events.option("maxFilesPerTrigger", 1).json(EVENTS)
query = arriving.writeStream.foreachBatch(land).option("checkpointLocation", "landing")
query.trigger(availableNow=True).start().awaitTermination()
