"""Describes the machine for the results: its processor, its memory, its GPU."""

import os
import platform
import re
import subprocess


def read(path):
    try:
        with open(path, encoding="utf-8") as text:
            return text.read()
    except OSError:
        return ""


def output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def machine():
    cpu = re.search(r"model name\s*:\s*(.*)", read("/proc/cpuinfo"))
    caches = {}
    folder = "/sys/devices/system/cpu/cpu0/cache"
    for index in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if index.startswith("index"):
            level, kind, size = (read(f"{folder}/{index}/{x}").strip() for x in ("level", "type", "size"))
            caches[f"L{level} {kind.lower()}"] = size
    system = re.search(r'PRETTY_NAME="(.*)"', read("/etc/os-release"))
    return {"cpu": cpu.group(1) if cpu else platform.processor(), "cores": len(os.sched_getaffinity(0)),
            "caches": caches, "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            "system": system.group(1) if system else platform.platform(), "kernel": platform.release(),
            "load_at_start": os.getloadavg()[0]}


def available_memory():
    found = re.search(r"MemAvailable:\s*(\d+)", read("/proc/meminfo"))
    return int(found.group(1)) * 1024 if found else 1 << 62


def gpu_as_found():
    """The current state of the GPU as the driver reports it; changes nothing."""
    asked = ("driver_version", "clocks.sm", "clocks.max.sm", "clocks.mem", "clocks.max.mem", "power.draw",
             "power.limit", "temperature.gpu", "clocks_event_reasons.active")
    said = output("nvidia-smi", "--query-gpu=" + ",".join(asked), "--format=csv,noheader").split(", ")
    return dict(zip(asked, said)) if len(said) == len(asked) else {}
