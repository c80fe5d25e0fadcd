# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""The types of examples/c_api/descent_c.h for ctypes."""
import ctypes as c


def load(path):
    lib = c.CDLL(path)
    lib.descent_message.restype = c.c_char_p
    return lib


class Parameter(c.Structure):
    _fields_ = [("name", c.c_char_p), ("value", c.c_void_p), ("gradient", c.c_void_p), ("rows", c.c_int64),
                ("columns", c.c_int64), ("group", c.c_int)]


class Setting(c.Structure):
    _fields_ = [("name", c.c_char_p), ("value", c.c_double)]


class Options(c.Structure):
    _fields_ = [("type", c.c_int), ("clip_norm", c.c_double), ("loss_scale", c.c_double), ("on_cuda", c.c_int),
                ("stream", c.c_void_p)]


Rate = c.CFUNCTYPE(c.c_double, c.c_int64, c.c_void_p)
Write = c.CFUNCTYPE(c.c_int, c.c_char_p, c.c_void_p, c.c_size_t, c.c_void_p)
Read = c.CFUNCTYPE(c.c_int, c.c_char_p, c.c_void_p, c.c_size_t, c.c_void_p)
