"""A real S3 server for tests that are marked `s3`: versitygw on a folder, by `scripts/s3.sh`."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from anabranch.storage import Location

SCRIPT = Path(__file__).parent.parent / "scripts" / "s3.sh"
BUCKET = "anabranch"


@dataclass(frozen=True, slots=True)
class S3Server:
    """A running server and its folder."""

    endpoint: str
    data: Path

    @staticmethod
    def start(data: Path) -> S3Server:
        """Start a server on an empty folder, with one bucket."""
        (data / BUCKET).mkdir(parents=True)
        found = subprocess.run([SCRIPT, "start", data], check=True, capture_output=True, text=True).stdout.strip()
        return S3Server(found, data)

    def stop(self) -> None:
        subprocess.run([SCRIPT, "stop", self.data], check=True)

    @property
    def environment(self) -> dict[str, str]:
        """What the AWS tools would need."""
        return {
            "AWS_ENDPOINT_URL": f"http://{self.endpoint}",
            "AWS_ACCESS_KEY_ID": "anabranch",
            "AWS_SECRET_ACCESS_KEY": "anabranch-secret",
            "AWS_REGION": "us-east-1",
        }

    def folder(self, name: str) -> Location:
        """A folder in its bucket."""
        return Location.of(f"s3://{BUCKET}/{name}")
