"""Effects in plain words: what each is, and what an unknown outcome means."""

from symbi_recover.core import report as r
from symbi_recover.core.values import PublicationIntent, ReasonWithFields
from symbi_recover.core.words import counted
from symbi_recover.render.safe import safe

_TEXT = 200


def effect_name(effect: r.Effect) -> str:
    """What the effect is, in one safe phrase."""
    d = effect.details
    match d:
        case r.ToolDispatchDetails():
            return f"tool call {safe(d.tool_name, _TEXT)}"
        case PublicationIntent():
            return f"publication of {safe(d.path, _TEXT)} ({counted(d.bytes, 'byte')})"
        case r.NetworkRequestDetails():
            return f"network request {safe(d.method, 20)} {safe(d.url, _TEXT)}"
        case r.DelegationDetails():
            return f"delegation to {safe(d.target, _TEXT)}"
        case r.InferenceDetails():
            return f"question to model {safe(d.model, 80)} at {safe(d.endpoint, _TEXT)}"
        case r.DirectInferenceDetails():
            return f"{safe(d.operation, 40)} with model {safe(d.model, 80)} of {safe(d.provider, 80)}"
        case r.SharedInferenceDetails():
            return f"question to model {safe(d.model, 80)} of {safe(d.provider, 80)}, on the shared budget"
        case r.ResponseDeliveryDetails():
            return "delivery of a response"


_KINDS = {
    r.ToolDispatchIdentity: ("tool call", "The tool may have run in full, in part, or not at all."),
    r.FilePublicationIdentity: (
        "file publication",
        "The file may or may not be in place; `invocation file-inspect` tells.",
    ),
    r.NetworkRequestIdentity: (
        "network request",
        "The request may have been received and acted upon; ask the other side.",
    ),
    r.DelegationIdentity: (
        "delegation",
        "The other agent may have run and had effects of its own; its journal is named below.",
    ),
    r.InferenceIdentity: ("question to a model", "The answer is not recorded; tokens may have been spent."),
    r.DirectInferenceIdentity: (
        "direct question to a model",
        "The answer is not recorded; tokens may have been spent.",
    ),
    r.SharedInferenceIdentity: (
        "question on a shared budget",
        "The reservation is not settled; tokens may have been spent.",
    ),
    r.ResponseDeliveryIdentity: (
        "response delivery",
        "The receiver may or may not have the response; ask the receiver.",
    ),
}


def kind_name(effect: r.Effect) -> str:
    """The kind of the effect, in words."""
    return _KINDS[type(effect.identity)][0]


def unknown_meaning(effect: r.Effect) -> str:
    """What it means that nobody signed the outcome."""
    if effect.finish_sequence is not None:
        return f"It came back, but not as confirmed. {_KINDS[type(effect.identity)][1]}"
    return _KINDS[type(effect.identity)][1]


def references(effect: r.Effect) -> list[tuple[str, str]]:
    """Identifiers an operator can search for, as (name, safe value)."""
    rows: list[tuple[str, str]] = []
    for part in (effect.identity, effect.details):
        for name in part.__struct_fields__:
            value = getattr(part, name)
            if name == "audit" and value is not None:
                rows.append(("its journal", safe(value.path, _TEXT)))
            elif isinstance(value, str) or name in ("dispatch_id", "publication_id", "reservation_id"):
                rows.append((name, safe(value, _TEXT)))
    return list(dict.fromkeys(rows))


def reason(value: str | ReasonWithFields | None) -> str:
    """A terminal reason as a safe phrase."""
    if value is None or isinstance(value, str):
        return value or "none recorded"
    fields = value.value
    return f"{value.tag}: {safe(getattr(fields, 'reason', None) or getattr(fields, 'message', ''), _TEXT)}"
