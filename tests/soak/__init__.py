"""Streams, ledgers, fusions and runs past memory, killed, damaged and lied to at random.

    python -m soak --minutes 10 --seed 3           (with src and tests on PYTHONPATH; or: make soak)
    python -m soak --only kills --trials 500       one room, this number of trials
    python -m soak --only kills --seed 3 --first 17 --trials 1       one trial again

A trial draws all it does from its seed, its room and its number. What a kill meets depends on the
machine, too, so that a trial that failed may have to be repeated several times.

    kills      fusions whose parties are killed 1 to 6 times, from the start to the end
    peers      fusions in which one party sends malformed messages
    streams    streams that are killed, and whose checkpoint is damaged
    ledgers    ledgers whose appends are killed, and whose files are damaged
    memory     publications within a limit on memory that are killed
"""
