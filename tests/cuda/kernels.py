# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""Reads what nvcc writes about the kernels of a unit: machine code, PTX, and the report of ptxas."""
import re
import struct
import subprocess


def machine_code(cubin):
    """The code of each kernel, by mangled name; for an object file, the code of each function with its own section."""
    image = open(cubin, "rb").read()
    (table,) = struct.unpack_from("<Q", image, 0x28)
    size, count, strings = struct.unpack_from("<HHH", image, 0x3A)
    if count == 0:  # more sections than fit into 16 bits
        count, strings = struct.unpack_from("<QI", image, table + 32)
    sections = [struct.unpack_from("<IIQQQQ", image, table + i * size) for i in range(count)]
    names = image[sections[strings][4]:][:sections[strings][5]]
    named = ((names[s[0]:names.index(b"\0", s[0])].decode(), image[s[4]:s[4] + s[5]]) for s in sections)
    return {name.removeprefix(".text."): code for name, code in named if name.startswith(".text.")}


def ptx_code(ptx):
    return {m[1]: m[2] for m in re.finditer(r"\.entry\s+(\w+)(.*?^\})", open(ptx).read(), re.M | re.S)}


def ptxas_texts(log):
    return {m[1]: m[2] for m in
            re.finditer(r"Compiling entry function '(\w+)'(.*?)(?=Compiling|\Z)", open(log).read(), re.S)}


def resources(text):
    """Bytes of stack, of spill stores and of spill loads, and the number of registers."""
    stack = r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
    used = re.search(r"Used (\d+) registers", text)[1]
    return [int(n) for n in (*re.search(stack, text).groups(), used)]


def demangled(names):
    names = list(names)
    return dict(zip(names, subprocess.check_output(["c++filt"], input="\n".join(names), text=True).splitlines()))


def readable(name):
    """The name as in source code: without namespaces, and with the library's names for CUDA's types."""
    name = re.sub(r"^void |descent::(detail::)?", "", name)
    return name.replace("__nv_bfloat16", "bfloat16").replace("__half", "half").replace("> >", ">>").replace("> >", ">>")
