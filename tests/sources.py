"""The only source of a translation, in the configs of tests."""


def in_source(fields):
    """Moves `input` and `encoder` of a model's fields to its only source."""
    reading = {name: fields[name] for name in ("input", "encoder") if name in fields}
    rest = {name: value for name, value in fields.items() if name not in reading}
    return {**rest, "sources": {"source": reading}} if reading else rest
