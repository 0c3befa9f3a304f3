"""The Python client of a service (`anabranch serve`): a site at another address, used like an engine.

    site = anabranch.connect("http://127.0.0.1:8080")
    vela = site.subscribe(text, "vela")
    for answer in vela.answers(follow=True):
        ...

It speaks the protocol of docs/service.md with nothing but the standard library, so that it costs a program that only
reads answers neither Spark nor numpy.
The server is not trusted more than any input: every reply has a most size, a most time and a checked shape.
"""

from anabranch.client.refusals import RemoteError, RemoteUnavailable
from anabranch.client.site import RemoteSite, connect
from anabranch.client.subscription import RemoteAnswer, RemoteDisplay, RemoteSubscription

__all__ = [
    "RemoteAnswer",
    "RemoteDisplay",
    "RemoteError",
    "RemoteSite",
    "RemoteSubscription",
    "RemoteUnavailable",
    "connect",
]
