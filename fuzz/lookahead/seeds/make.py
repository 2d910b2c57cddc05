#!/usr/bin/env python3
"""Makes the seeds of the `instructions` target from the lines of semantics.txt: per case 15 bytes of code and the seed of a state."""
import os

HERE = os.path.dirname(os.path.abspath(__file__))
cases = []
with open(os.path.join(HERE, "../../../collector/lookahead/tests/semantics.txt")) as lines:
    for line in lines:
        if line.strip() and not line.startswith("#"):
            code = bytes.fromhex(line.split(";")[1])
            case = code.ljust(15, b"\x90") + len(cases).to_bytes(8, "little")
            cases.append(case)
for index in range(0, len(cases), 16):
    with open(os.path.join(HERE, "instructions", f"{index // 16:02}"), "wb") as out:
        out.write(b"".join(cases[index : index + 16]))
