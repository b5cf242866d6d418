"""What was entered in a form: its words, its numbers, its key, and its fields checked."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError
from starlette.datastructures import FormData

from surepick.core.tables import is_numeral, numeral
from surepick.errors import ParameterError
from surepick.web.api import MOST_VALUES, B, mistakes
from surepick.web.security import Keys

OUT_OF_DATE = "this form was out of date, so nothing was recorded; please look it over and send it again"


def text(form: FormData, name: str) -> str:
    """What was entered in a field; nothing if it is missing or a file."""
    value = form.get(name, "")
    return value if isinstance(value, str) else ""


def number(entered: str) -> object:
    """What was entered, as a number where it is one: with a decimal comma, too."""
    word = entered.strip()
    if not word:
        return None
    value = numeral(word) if is_numeral(word) else word
    return int(value) if isinstance(value, float) and value.is_integer() else value


def numbers(entered: str) -> list[float]:
    """The numbers that were entered, with decimal points or decimal commas."""
    words = entered.replace(";", " ").split()
    if not words:
        said = f"enter a number, or up to {MOST_VALUES} with spaces between them"
        raise ParameterError(said, field="value")
    try:
        return [numeral(word) for word in words]
    except ParameterError as error:
        raise ParameterError(str(error), field="value") from None


def with_point(entered: str) -> str:
    """The same number with a decimal point; keypads of some countries have only a comma."""
    return entered.replace(",", ".") if "," in entered and is_numeral(entered) else entered


def checked(model: type[B], given: Mapping[str, object]) -> B:
    """What was entered, as this model; the first mistake is a `ParameterError` with its field."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        field, said = next(iter(mistakes(model, error).items()))
        raise ParameterError(said, field=field) from None


def check_key(keys: Keys, form: FormData) -> None:
    """Refuse a form that no page of this server has sent since it started."""
    if not keys.is_form_key(text(form, "form_key")):
        raise ParameterError(OUT_OF_DATE, field="form")
