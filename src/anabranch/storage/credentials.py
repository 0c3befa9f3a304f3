"""Endpoint, region and credentials of S3, where the AWS tools have them.

The environment comes first: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION` or
`AWS_DEFAULT_REGION`, `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL`.
What it lacks is looked up in `~/.aws/config` and `~/.aws/credentials`, or where `AWS_CONFIG_FILE` and
`AWS_SHARED_CREDENTIALS_FILE` say, for the profile `AWS_PROFILE`.
Keys that stand there are used as they stand; a profile that would have to log in or take a role first is refused.
Without any keys the client asks the machine it is on, as a role in a cloud answers.

Nothing of this leaves the process, and no message names a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from configparser import ConfigParser, Error
from pathlib import Path

from anabranch.errors import UsageError

_KEYS = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
}
_UNKNOWN = ("role_arn", "sso_session", "sso_start_url", "credential_process", "source_profile")
"""What makes keys in a profile, and is not done here."""


def s3_settings(environment: Mapping[str, str]) -> tuple[dict[str, str], bool]:
    """The settings of the client that the environment does not give it by itself, and whether plain HTTP is meant."""
    found: dict[str, str] = {}
    profile = _profile(environment)
    if "AWS_ACCESS_KEY_ID" not in environment:
        found |= {ours: profile[theirs] for theirs, ours in _KEYS.items() if theirs in profile}
        if "access_key_id" not in found and any(each in profile for each in _UNKNOWN):
            name = environment.get("AWS_PROFILE", "default")
            raise UsageError(
                f"the profile '{name}' of the AWS tools has no keys of its own",
                hint="put those of 'aws configure export-credentials' into the environment",
            )
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or profile.get("region")
    endpoint = (
        environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL") or profile.get("endpoint_url")
    )
    found |= {name: value for name, value in (("region", region), ("endpoint", endpoint)) if value}
    return found, (endpoint or "").startswith("http://")


def _profile(environment: Mapping[str, str]) -> dict[str, str]:
    """What the files of the AWS tools say of the profile in use."""
    name = environment.get("AWS_PROFILE", "default")
    home = Path(environment.get("HOME") or "~").expanduser() / ".aws"
    config = environment.get("AWS_CONFIG_FILE") or home / "config"
    secret = environment.get("AWS_SHARED_CREDENTIALS_FILE") or home / "credentials"
    found: dict[str, str] = {}
    for file, section in ((config, name if name == "default" else f"profile {name}"), (secret, name)):
        parser = ConfigParser(interpolation=None)
        try:
            parser.read(file, encoding="utf-8")
        except (Error, UnicodeDecodeError):
            raise UsageError(f"'{file}' cannot be read as a file of the AWS tools") from None
        if parser.has_section(section):
            found |= parser[section]
    if "AWS_PROFILE" in environment and not found and "AWS_ACCESS_KEY_ID" not in environment:
        raise UsageError(f"there is no profile '{name}' of the AWS tools", hint="see ~/.aws, or AWS_PROFILE")
    return found
