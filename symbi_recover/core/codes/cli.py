"""Codes about the command line, the output and the program itself."""

from symbi_recover.core.findings import Code, refused

CODES: dict[str, Code] = {
    "usage": refused(
        "The command line was not understood.",
        "A missing, unknown, repeated or malformed argument. Nothing was examined.",
        "See the command's `--help`.",
    ),
    "key_form": refused(
        "A public key is not in a form that is read.",
        "64 hexadecimal digits, PEM, an OpenSSH `ssh-ed25519` line, or `@FILE` holding one of these are read.",
        "Give the key as 64 hexadecimal digits, PEM, an OpenSSH line, or `@FILE`.",
    ),
    "run_id_form": refused(
        "A run id is not in a form that is read.",
        "`audit inspect` reads the runtime's forms: hyphenated, plain hexadecimal, braced, or after `urn:uuid:`. Commands that the runtime does not have take only the hyphenated form in lower case, that of file names.",
        "Copy the run id from the incident, the claim or the file name.",
    ),
    "output_failed": refused(
        "The result could not be written.",
        "Standard output is closed, or its device is full. The evidence was examined, but nobody was told.",
        "Free space, or direct the output elsewhere, and run the command again.",
    ),
    "system_failed": refused(
        "The system failed in an unexpected place.",
        "A device is faulty, or a limit of the system was reached. No verdict was given.",
        "Put right what the system names, then run the same command again.",
    ),
    "unknown_code": refused(
        "No finding or failure has this code.",
        "Codes are printed with each finding and failure.",
        "Run `symbi-recover explain` without a code to list them all.",
    ),
    "unknown_schema": refused(
        "No schema has this name.",
        "Schemas are named as in `schema list`.",
        "Run `symbi-recover schema list`.",
    ),
    "unknown_runbook": refused(
        "No runbook has this name.",
        "Runbooks are named as in `runbook list`.",
        "Run `symbi-recover runbook list`.",
    ),
    "schema_mismatch": refused(
        "A document does not satisfy the schema.",
        "A schema describes form alone; it checks no signature.",
        "Look at the places that are listed.",
    ),
    "defect": refused(
        "This program has a defect.",
        "Something happened that it was not written for. Nothing was concluded about the evidence.",
        "Report the command and the lines that were printed.",
    ),
    "guard": refused(
        "A command that only reads tried to change something and was stopped.",
        "A defect of this program; the guard refused before anything happened.",
        "Report the command and the lines that were printed.",
    ),
    "no_runtime": refused(
        "The word is not one of this toolkit's, and no other `symbi` was found on PATH.",
        "`symbi audit`, `symbi invocation` and `symbi lease` are answered here; every other word belongs to the runtime.",
        "Install the runtime, or put it on PATH.",
    ),
}
