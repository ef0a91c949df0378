"""Reads, compiles and runs files with a schedule whose attributes were changed at random.

    damaged_schedules.py LIBRARY good.xml SEED

Prints how many ran and how many were refused with an exception; anything else ends the process.
"""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path

import numpy as np
import openvino as ov

library, source, seed = sys.argv[1:]
text = Path(source).read_text()
random.seed(int(seed))
core = ov.Core()
core.add_extension(library)
layer = re.search(r'type="Schedule".*?/>', text, re.DOTALL)
assert layer
values = [(*match.span(1), match[1]) for match in re.finditer(r'\w+="([^"]*)"', layer[0])][1:]
NUMBERS = (
    "-1",
    "0",
    "1",
    "2",
    "-2",
    "64",
    "2147483648",
    "-9223372036854775808",
    "99999999999999999999",
    "x",
    "",
)
ran = refused = 0
for number in range(60):
    body = layer[0]
    for start, end, value in sorted(random.sample(values, random.randint(1, 4)), reverse=True):
        parts = value.split(",")
        place = random.randrange(len(parts))
        change = random.randrange(4)
        if change == 0:
            parts[place] = random.choice(NUMBERS)
        elif change == 1:
            parts.insert(place, random.choice(NUMBERS))
        elif change == 2:
            del parts[place]
        else:
            parts[place] = parts[place][: len(parts[place]) // 2] + random.choice(
                ("%", "%41", ";", "=", "\x7f")
            )
        body = body[:start] + ",".join(parts) + body[end:]
    file = Path(source).with_name(f"damaged_{number}.xml")
    file.write_text(text.replace(layer[0], body))
    weights = Path(source).with_suffix(".bin")
    try:
        model = core.read_model(file, weights)
        compiled = core.compile_model(model, "CPU")
        compiled([np.ones([4, 8], np.float32)])
        ran += 1
    except RuntimeError:
        refused += 1
print(ran, refused)
