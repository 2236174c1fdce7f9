"""`key init`, `show`, `import`, `export-public`: the operator's own signing key."""

import click

from symbi_recover.cli.env import Environment, operator_home
from symbi_recover.cli.options import (
    StrictCommand,
    WritingCommand,
    display_options,
    format_option,
    pass_environment,
)
from symbi_recover.core.acts import OperatorKey
from symbi_recover.core.exits import Exit
from symbi_recover.read.evidence.locate import readable
from symbi_recover.render.safe import safe
from symbi_recover.wire import canonical
from symbi_recover.write import keys


def _deliver(environment: Environment, chosen: str, key: bytes, path: str, created: bool | None) -> Exit:
    if chosen == "json":
        shown = OperatorKey(
            public_key=key.hex(),
            fingerprint=keys.fingerprint(key),
            path=readable(path),
            created=created,
        )
        return environment.deliver(Exit.OK, canonical.pretty(shown))
    lines = [
        f"public key   {key.hex()}",
        f"fingerprint  {keys.fingerprint(key)}",
        f"private key  {safe(path)}",
    ]
    if created is not None:
        lines.append(
            "Verdict: " + ("the key was put there." if created else "the key was there already; kept.")
        )
    return environment.deliver(Exit.OK, lines)


@click.command(
    cls=WritingCommand,
    help="Make the operator's signing key, and the folder for it. A key that is there is kept.\n\n"
    "Keep a copy of the public key elsewhere: with it anybody can verify the ledger.",
    epilog="Exit codes: 0 made, or there already; 1 refused or failed; 3 a file could not be examined; 64 usage.",
    examples="symbi-recover key init",
)
@format_option("text", "json")
@display_options
@pass_environment
def init_command(environment: Environment, chosen_format: str | None) -> Exit:
    """Run `key init`."""
    chosen = environment.format(chosen_format)
    state = keys.install(operator_home())
    return _deliver(environment, chosen, state.public_key, state.path, state.created)


@click.command(
    cls=StrictCommand,
    help="Show the operator's public key. The private key is never printed.",
    epilog="Exit codes: 0 shown; 1 refused or failed; 3 a file could not be examined; 64 usage.",
    examples="symbi-recover key show",
)
@format_option("text", "json")
@display_options
@pass_environment
def show_command(environment: Environment, chosen_format: str | None) -> Exit:
    """Run `key show`."""
    chosen = environment.format(chosen_format)
    home = operator_home()
    signer = keys.load(home)
    return _deliver(environment, chosen, signer.public_key, f"{home}/{keys.KEY_NAME}", None)


@click.command(
    cls=WritingCommand,
    help="Take an Ed25519 private key in PEM (PKCS 8) or OpenSSH form as the operator's key. "
    "Another key that is there is never replaced.",
    epilog="Exit codes: 0 taken, or there already; 1 refused or failed; 3 a file could not be examined; 64 usage.",
    examples="symbi-recover key import ./id_ed25519 --passphrase-file ./passphrase",
)
@click.argument("file", metavar="FILE")
@click.option(
    "--passphrase-file",
    metavar="FILE",
    help="A private file (mode 0600) with the passphrase of the key, at most 4,096 bytes; one line end at its end "
    "is not part of it.",
)
@format_option("text", "json")
@display_options
@pass_environment
def import_command(
    environment: Environment, file: str, passphrase_file: str | None, chosen_format: str | None
) -> Exit:
    """Run `key import`."""
    chosen = environment.format(chosen_format)
    passphrase = None if passphrase_file is None else keys.read_passphrase(passphrase_file)
    state = keys.install(operator_home(), keys.read_private(file, passphrase))
    return _deliver(environment, chosen, state.public_key, state.path, state.created)


@click.command(
    cls=StrictCommand,
    help="Print the operator's public key, to be kept or handed over: PEM, OpenSSH or hexadecimal.",
    epilog="Exit codes: 0 printed; 1 refused or failed; 3 a file could not be examined; 64 usage.",
    examples="symbi-recover key export-public --form openssh",
)
@click.option(
    "--form",
    type=click.Choice(["hex", "pem", "openssh"]),
    default="hex",
    help="How to write it. [default: hex]",
)
@display_options
@pass_environment
def export_public_command(environment: Environment, form: str) -> Exit:
    """Run `key export-public`."""
    signer = keys.load(operator_home())
    return environment.deliver(Exit.OK, keys.public_text(signer.public_key, form).splitlines())
