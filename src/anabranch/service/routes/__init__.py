"""What the service answers, one file for each subject; `ROUTERS` is all of it but the page."""

from anabranch.service.routes import (
    answers,
    displays,
    evolution,
    health,
    letters,
    metrics,
    network,
    now,
    queries,
    sharing,
    site,
    state,
    streams,
    subscriptions,
)

ROUTERS = (
    health.router,
    site.router,
    streams.router,
    subscriptions.router,
    answers.router,
    displays.router,
    letters.router,
    now.router,
    state.router,
    sharing.router,
    metrics.router,
    queries.router,
    evolution.router,
    network.router,
)
"""In the order in which the OpenAPI document lists them."""
