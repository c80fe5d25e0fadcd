# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: read_parts.py program     (the program is made of parts.cpp)

What several ranks have saved, and one file of it, read with the package safetensors alone; docs/checkpoints.md shows
read(). Exits with 77 without the package."""
import json
import pathlib
import subprocess
import sys
import tempfile

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

try:
    import numpy
    import safetensors
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

# snippet: read
types = {"BOOL": "?", "U8": "u1", "I8": "i1", "U16": "u2", "I16": "i2", "F16": "f2", "BF16": "u2",  # numpy has no BF16
         "U32": "u4", "I32": "i4", "F32": "f4", "U64": "u8", "I64": "i8", "F64": "f8"}


def read(path):
    """All tensors of a checkpoint, whether it is one file or one for each rank."""
    def tensors(file):
        for name, t in safetensors.deserialize(file.read_bytes()):
            yield name, numpy.frombuffer(t["data"], types[t["dtype"]]).reshape(t["shape"])

    def text(file, key, default):
        with safetensors.safe_open(file, "numpy") as opened:
            return json.loads((opened.metadata() or {}).get(key, default))

    path = pathlib.Path(path)
    whole, pieces = dict(tensors(path)), {}
    for part in text(path, "parts", "[]"):
        file = path.resolve().parent / part["file"]
        ranges = text(file, "ranges", "{}")
        for name, piece in tensors(file):
            pieces.setdefault(name, []).append((ranges[name]["begin"], piece, ranges[name]["shape"]))
    for name, of_ranks in pieces.items():
        of_ranks.sort(key=lambda piece: (piece[0], piece[1].size))
        whole[name] = numpy.concatenate([piece for _, piece, _ in of_ranks]).reshape(of_ranks[0][2])
    return whole
# end


with tempfile.TemporaryDirectory(prefix="read_parts.") as folder:
    subprocess.run([sys.argv[1], folder], check=True)
    names = sorted(file.name for file in pathlib.Path(folder).iterdir())
    assert len(names) == 5 and all("-of-3" in name for name in names[1:4]), names
    parts, one = read(folder + "/run"), read(folder + "/whole")
    assert parts.keys() == one.keys() and len(one) > 20, sorted(parts.keys() ^ one.keys())
    for name, tensor in one.items():
        assert parts[name].dtype == tensor.dtype and parts[name].shape == tensor.shape, name
        assert numpy.array_equal(parts[name].view("u1"), tensor.view("u1")), name
    assert one["step"].tolist() == [3] and one["note"].tobytes() == b"after three steps"
    assert one["w3.master"].shape == (1639, 5) and abs(one["w3.master"] - one["w3"].astype("f4")).max() < 0.01
    print(f"{len(one)} tensors")
