"""Files that people hand in: spreadsheets, TOML and JSON that describe a problem."""

from surepick.inputs.kinds import Kind as Kind
from surepick.inputs.kinds import measuring as measuring
from surepick.inputs.section import Section as Section
