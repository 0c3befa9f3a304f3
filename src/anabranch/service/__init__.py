"""The service of a run: programs and people ask a site at work over HTTP (docs/service.md)."""
