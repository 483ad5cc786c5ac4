"""Publishes, and is killed after some calls from when the release is begun to be written.

killed_publish.py OUTPUT CALLS SECONDS [--replace]

Patients, or the linked tables of a clinic if the policy is about these. It is killed SECONDS after
that call, so that it may happen inside a library. Where CALLS is 0, it prints how
many there are.
"""

import os
import signal
import sys
import threading
from types import FrameType

from shoal.linked.publish import publish_linked
from shoal.policy.policy import Policy
from shoal.tables.publish import publish_file
from shoal.tables.request import PublishRequest

made = 0


def main(output: str, calls: int, seconds: float, replace: bool) -> None:
    def counted(frame: FrameType, event: str, argument: object) -> None:
        global made
        made += 1
        if made == calls and seconds == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        if made == calls:
            sys.setprofile(None)
            threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()

    def progress(stage: str) -> None:
        if stage == "writing the release":
            sys.setprofile(counted)

    policy = Policy.load("policy.yaml").with_k(20 if replace else 10)
    if policy.model.is_linked:
        publish_linked("clinic", policy, output, replace=replace, progress=progress)
    else:
        request = PublishRequest(replace=replace, progress=progress)
        publish_file("patients.csv", policy, output, request)
    sys.setprofile(None)
    print(made)


main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), "--replace" in sys.argv)
