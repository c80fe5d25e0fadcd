# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: cross.py cross-program

Python's package safetensors reads what the library writes, and the reverse, bit for bit in every type. What the library
reads, the package reads too. Takes the Python that DESCENT_SAFETENSORS_PYTHON names, or this one; skipped if it has not
the packages safetensors, numpy and xxhash, which computes the hashes a second time."""
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

wanted = os.environ.pop("DESCENT_SAFETENSORS_PYTHON", None)
if wanted:
    os.execv(wanted, [wanted, *sys.argv])
try:
    import numpy
    import safetensors
    import safetensors.numpy
    import xxhash
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

program = sys.argv[1]
numpy_types = {"BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "F16": "float16",
               "U32": "uint32", "I32": "int32", "F32": "float32", "U64": "uint64", "I64": "int64", "F64": "float64"}
names = {**numpy_types, "BF16": "bfloat16"}  # as the package takes them; numpy has no bfloat16
reserved = {"descent", "xxh3_header", "xxh3"}


def run(*arguments):
    command = [program, *map(str, arguments)]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True).stdout


def listed(*files):
    return [json.loads(line) for line in run("list", *files).splitlines()]


def serialized(tensors, metadata):
    """A file of the package with tensors {name: (type, shape, bytes)}."""
    if hasattr(safetensors, "TensorSpec"):
        data = {name: numpy.frombuffer(x, numpy.uint8) for name, (_, _, x) in tensors.items()}
        every = {name: safetensors.TensorSpec(dtype=names[t], shape=shape, data_ptr=data[name].ctypes.data,
                                              data_len=len(x)) for name, (t, shape, x) in tensors.items()}
    else:
        every = {name: {"dtype": names[t], "shape": shape, "data": x} for name, (t, shape, x) in tensors.items()}
    return bytes(safetensors.serialize(every, metadata=metadata))


def deserialized(file):
    return {name: (t["dtype"], list(t["shape"]), bytes(t["data"])) for name, t in safetensors.deserialize(file)}


def header_of(file):
    return json.loads(file[8:8 + struct.unpack("<Q", file[:8])[0]])


def check_hashes(file):
    """The file begins with its hash and has the right ones. Its data begins at a multiple of 64."""
    begin = b'{"__metadata__":{"descent":"1","xxh3_header":"'
    assert file[8:].startswith(begin)
    header, n = header_of(file), 8 + struct.unpack("<Q", file[:8])[0]
    assert n % 64 == 0
    hashes = json.loads(header["__metadata__"]["xxh3"])
    assert set(hashes) == set(header) - {"__metadata__"}
    at = 8 + len(begin)
    assert xxhash.xxh3_64_hexdigest(file[:at] + b"0" * 16 + file[at + 16:n]) == header["__metadata__"]["xxh3_header"]
    for name, digits in hashes.items():
        first, end = header[name]["data_offsets"]
        assert xxhash.xxh3_64_hexdigest(file[n + first:n + end]) == digits, name


def numbers_of_cpp(folder):
    run("write", folder / "cpp")
    file = (folder / "cpp").read_bytes()
    tensors = deserialized(file)
    with safetensors.safe_open(folder / "cpp", framework="numpy") as opened:
        metadata = opened.metadata()
        arrays = {name: opened.get_tensor(name) for name, (t, _, _) in tensors.items() if t != "BF16"}
    assert metadata.pop("made_by") == 'cross.cpp, "quoted" \u00e9\n' and set(metadata) == reserved
    for t, name in names.items():
        assert tensors[name][0] == t, (tensors[name], t)
    for name in set(numpy_types.values()):
        x = arrays.pop(name)
        assert x.dtype == name
        if name == "bool":
            assert x.tolist() == [[False], [True]]
        elif name.startswith("float"):
            assert x.tolist() == [0, 0, 1, -1.5, 2.0 ** -8, 49152, float("inf")]
            assert numpy.signbit(x).tolist() == [False, True, False, True, False, False, False]
        else:
            assert x.tolist() == [0, 1, numpy.iinfo(name).min, numpy.iinfo(name).max]
    assert tensors["bfloat16"][2] == struct.pack("<7H", 0, 0x8000, 0x3F80, 0xBFC0, 0x3B80, 0x4740, 0x7F80)
    assert arrays.pop("step").shape == () and struct.unpack("<q", tensors["step"][2]) == (1000,)
    assert arrays.pop("empty").shape == (3, 0)
    assert not arrays and len(tensors) == 15
    check_hashes(file)


def files_of_python(folder, numbers):
    for case in range(40):
        tensors = {}
        for t in names if case < 20 else numbers.sample(list(names), numbers.randrange(5)):
            shape = [numbers.randrange(5) for _ in range(numbers.randrange(5))]
            size = int(numpy.prod(shape, dtype=int)) * (2 if t == "BF16" else numpy.dtype(numpy_types[t]).itemsize)
            x = bytes(numbers.randrange(2) if t == "BOOL" else numbers.randrange(256) for _ in range(size))
            tensors[numbers.choice(["", "layer.", 'a "b" \\ ', "\u00e9\u4e16\U0001F600"]) + t] = (t, shape, x)
        text = numbers.choice(["", '{"a": [1]}', "\u00e9\n\x00\x7f"])
        metadata = {"format": "np", "text": text} if case % 2 else None
        (folder / "python").write_bytes(serialized(tensors, metadata))
        run("copy", folder / "python", folder / "copied")
        copied = (folder / "copied").read_bytes()
        expected = {name: [t, shape, x.hex()] for name, (t, shape, x) in tensors.items()}
        for file, hashed in zip(listed(folder / "python", folder / "copied"), (False, True), strict=True):
            assert file["tensors"] == expected, (file["tensors"], expected)
            assert file["metadata"] == (metadata or {}) and (len(file["hash"]) == 16) == hashed
        assert deserialized(copied) == tensors
        theirs = header_of(copied)["__metadata__"]
        assert {k: v for k, v in theirs.items() if k not in reserved} == (metadata or {})
        check_hashes(copied)
    arrays = {name: numpy.arange(6).reshape(2, 3).astype(name) for name in numpy_types.values()}
    safetensors.numpy.save_file(arrays, folder / "numpy")
    run("copy", folder / "numpy", folder / "copied")
    copied = safetensors.numpy.load_file(folder / "copied")
    assert set(copied) == set(arrays)
    for name, x in arrays.items():
        assert copied[name].dtype == x.dtype and numpy.array_equal(copied[name], x)


def package_reads(file):
    try:
        safetensors.deserialize(file)
    except safetensors.SafetensorError:
        return False
    return True


def with_known_types(file):
    """The file with vectors of U8 in place of tensors whose type is none of `names`, and how many there are."""
    header, n = header_of(file), struct.unpack("<Q", file[:8])[0]
    unknown = [t for name, t in header.items() if name != "__metadata__" and t["dtype"] not in names]
    for t in unknown:
        t["dtype"], t["shape"] = "U8", [t["data_offsets"][1] - t["data_offsets"][0]]
    if not unknown:
        return file, 0
    changed = json.dumps(header).encode()
    return struct.pack("<Q", len(changed)) + changed + file[8 + n:], len(unknown)


def mutated_headers(folder, numbers):
    """Whatever the library accepts, the package accepts, except types that neither knows."""
    entry = b'{"dtype":"U8","shape":[2,1],"data_offsets":[0,2]}'
    seed = b'{"__metadata__":{"a":"b"},"x":' + entry + b',"y":{"dtype":"F16","shape":[],"data_offsets":[2,4]}}'
    words = [b'"', b",", b"0", b"1", b"[", b"]", b"{", b"}", b" ", b"\n", b"\\u0041", b"\\", b"\xff", b"\x00", b"-",
             b".5", b"e1", b',"z":' + entry, b"U16", b"I8", b"null", b"\xc3\xa9", b"\\ud83d\\ude00", b"\\ud83d"]
    files, read, unknown = [], 0, 0
    for case in range(2000):
        header = bytearray(seed)
        for _ in range(numbers.randrange(3)):
            at = numbers.randrange(len(header))
            header[at:at + numbers.randrange(3)] = numbers.choice(words)
        files.append(folder / f"m{case}")
        files[-1].write_bytes(struct.pack("<Q", len(header)) + header + b"1234")
    for path, ours in zip(files, listed(*files), strict=True):
        file = path.read_bytes()
        read += ours is not None
        if ours:
            known, of_file = with_known_types(file)
            unknown += of_file
            assert package_reads(known), file
            theirs = {name: [t, shape, x.hex()] for name, (t, shape, x) in deserialized(known).items()}
            for name, (t, shape, x) in ours["tensors"].items():
                assert theirs[name][2] == x if t == "unknown" else theirs[name] == [t, shape, x], file
            assert set(theirs) == set(ours["tensors"]), file
    assert 500 < read < 1900 and unknown > 0, (read, unknown)


with tempfile.TemporaryDirectory() as name:
    place = pathlib.Path(name)
    numbers_of_cpp(place)
    files_of_python(place, random.Random(1))
    mutated_headers(place, random.Random(2))
print("safetensors", safetensors.__version__)
