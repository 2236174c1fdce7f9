"""Codes about the command line, the output and the program itself."""

from symbi_recover.core.findings import Code, Severity

CODES: dict[str, Code] = {
    "usage": Code(
        severity=Severity.REFUSED,
        meaning="The command line was not understood.",
        why="A missing, unknown, repeated or malformed argument. Nothing was examined.",
        next="See the command's `--help`.",
    ),
    "key_form": Code(
        severity=Severity.REFUSED,
        meaning="A public key is not in a form that is read.",
        why="64 hexadecimal digits, PEM, an OpenSSH `ssh-ed25519` line, or `@FILE` holding one of these are read.",
        next="Give the key in one of these forms.",
    ),
    "run_id_form": Code(
        severity=Severity.REFUSED,
        meaning="A run id is not in a form that is read.",
        why="`audit inspect` reads the runtime's forms: hyphenated, plain hexadecimal, braced, or after `urn:uuid:`. Commands that the runtime does not have take only the hyphenated form in lower case, that of file names.",
        next="Copy the run id from the incident, the claim or the file name.",
    ),
    "output_failed": Code(
        severity=Severity.REFUSED,
        meaning="The result could not be written.",
        why="Standard output is closed, or its device is full. The evidence was examined, but nobody was told.",
        next="Free space, or direct the output elsewhere, and run the command again.",
    ),
    "system_failed": Code(
        severity=Severity.REFUSED,
        meaning="The system failed in an unexpected place.",
        why="A device is faulty, or a limit of the system was reached. No verdict was given.",
        next="Put right what the system names, then run the same command again.",
    ),
    "unknown_code": Code(
        severity=Severity.REFUSED,
        meaning="No finding or failure has this code.",
        why="Codes are printed with each finding and failure.",
        next="Run `symbi-recover explain` without a code to list them all.",
    ),
    "unknown_schema": Code(
        severity=Severity.REFUSED,
        meaning="No schema has this name.",
        why="Schemas are named as in `schema list`.",
        next="Run `symbi-recover schema list`.",
    ),
    "unknown_runbook": Code(
        severity=Severity.REFUSED,
        meaning="No runbook has this name.",
        why="Runbooks are named as in `runbook list`.",
        next="Run `symbi-recover runbook list`.",
    ),
    "schema_mismatch": Code(
        severity=Severity.REFUSED,
        meaning="A document does not satisfy the schema.",
        why="A schema describes form alone; it checks no signature.",
        next="Look at the places that are listed.",
    ),
    "defect": Code(
        severity=Severity.REFUSED,
        meaning="This program has a defect.",
        why="Something happened that it was not written for. Nothing was concluded about the evidence.",
        next="Report the command and the lines that were printed.",
    ),
    "guard": Code(
        severity=Severity.REFUSED,
        meaning="A command that only reads tried to change something and was stopped.",
        why="A defect of this program; the guard refused before anything happened.",
        next="Report the command and the lines that were printed.",
    ),
    "no_runtime": Code(
        severity=Severity.REFUSED,
        meaning="The word is not one of this toolkit's, and no other `symbi` was found on PATH.",
        why="`symbi audit`, `symbi invocation` and `symbi lease` are answered here; every other word belongs to the runtime.",
        next="Install the runtime, or put it on PATH.",
    ),
}
