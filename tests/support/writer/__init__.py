"""A small writer of evidence in the runtime's exact form, for tests.

It is the other side of the contract and uses nothing of the product. Import from the modules:

| module | gives |
|---|---|
| `text` | JSON text, digests, times, clock, fixed identities, signatures |
| `journal` | `JournalWriter`: honest records, forged payloads, raw lines, tails |
| `events`, `effects`, `inference` | event values with realistic defaults |
| `project`, `claim` | project folders, claims, snapshots, reviews, resolution receipts |
| `publication` | live candidates with signed intents, publication receipts |
| `cron`, `cron_store` | jobs, occurrences and fingerprints; schedule databases |
| `lease` | lease records of every phase, state directories |

For example::

    project = make_project(tmp_path / "p")
    invocation = open_invocation(project)
    publication = prepare_publication(invocation, project.root / "out")
    invocation.write()
"""
