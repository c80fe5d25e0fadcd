# SPDX-FileCopyrightText: 2026 the descent authors
# SPDX-License-Identifier: MIT
"""usage: lab.py project-root compiler arguments...

Builds the page of examples/lab, compares it with docs/learn/lab.html and tests it in Debian's chromium, without a
window and without a network:
1000 steps of every rule have the bits of lab_native.cpp, which the given compiler compiles; each control does what it
says; each lesson's answer is true; the panel of number formats stores 200 numbers as tables do. Runs also equal those
of ds::optimizer. Without clang for wasm32 everything is skipped. Without chromium, node runs the rules, and the exit
status is 77 unless something fails.

The terms of asgd, nadam, padam, schedule_free_* and yellowfin take powers, exponentials or logarithms from the C
library: glibc here, musl in the page. Both round the numbers that occur here alike; another C library may not."""
import base64
import bisect
import fractions
import json
import math
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

if sys.argv[1:] in (["-h"], ["--help"]):
    print(__doc__.strip())
    sys.exit()

root, compiler = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
problem = {"surface": 0, "condition": 10, "angle": 30, "noise": 0, "seed": 7, "size": 1, "x": -1.6, "y": 1.2,
           "steps": 1000, "batch": 16}
plain = {"schedule": 0, "schedule_steps": 100, "schedule_factor": 0.1, "clip": 0, "values": 0, "gradients": 0,
         "states": 0, "master": 0, "random": 0, "scale": 0, "scale_init": 65536, "scale_interval": 100}
# What every rule runs with.
variants = {
    "bowl": {},
    "Rosenbrock, clipped, cosine": {"surface": 1, "x": -1.2, "y": 1, "clip": 1, "schedule": 2, "schedule_steps": 900},
    "Beale, half, master, dynamic scale": {"surface": 2, "x": 0.5, "y": -1.5, "values": 1, "master": 1, "gradients": 1,
                                           "scale": 1, "schedule": 1, "clip": 5},
    "saddle, bfloat16 at random, bfloat16 state": {"surface": 3, "x": -1.5, "y": 0.01, "values": 2, "states": 2,
                                                   "random": 1, "schedule": 4, "schedule_steps": 250},
    "valleys, noise, half at random beside a master": {"surface": 4, "noise": 0.3, "values": 1, "master": 1,
                                                       "random": 1, "scale": 2, "schedule": 3},
    "network": {"surface": 5},
    "network, half, bfloat16 state, master, dynamic scale": {
        "surface": 5, "values": 1, "gradients": 1, "states": 2, "master": 1, "random": 1, "scale": 1, "clip": 1,
        "schedule": 3, "batch": 8},
}
failures = []


def check(holds, what):
    print(("ok      " if holds else "FAILED  ") + what, flush=True)
    if not holds:
        failures.append(what)


class Browser:
    """Chromium, driven through two pipes by the DevTools protocol."""

    def __init__(self, program, folder):
        to_browser, self.to = os.pipe()
        self.out, from_browser = os.pipe()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND", "--hide-scrollbars",
                 f"--user-data-dir={folder}", "--remote-debugging-pipe", "about:blank"]
        command = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        self.process = subprocess.Popen(["sh", "-c", command, "sh", program] + flags,
                                        pass_fds=(to_browser, from_browser), stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.count, self.session, self.said = b"", 0, None, []
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(one["targetId"] for one in targets if one["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")

    def call(self, method, **parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        while True:
            reply = self.receive()
            if reply.get("id") == self.count:
                if "error" in reply:
                    raise RuntimeError(f"{method}: {reply['error']}")
                return reply["result"]

    def receive(self):
        while b"\0" not in self.buffer:
            more = os.read(self.out, 1 << 20)
            if not more:
                raise RuntimeError("the browser has ended")
            self.buffer += more
        text, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(text)
        kind = message.get("method")
        if kind in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.said.append(json.dumps(message["params"])[:600])
        if kind == "Runtime.consoleAPICalled" and message["params"]["type"] in ("error", "warning", "assert"):
            self.said.append(json.dumps(message["params"])[:600])
        return message

    def run(self, script):
        """The value of an expression, which may be a promise."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"])[:800])
        return result["result"].get("value")

    def open(self, address):
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=address)
        for _ in range(6000):  # five minutes
            if self.run("document.readyState === 'complete' && typeof lab === 'object' && 'ready' in lab"):
                break
            time.sleep(0.05)
        self.run("lab.ready.then(() => true)")

    def reset(self, address):
        self.run(f"location.hash = {json.dumps(address)}; new Promise(r => setTimeout(r, 60))")

    def use(self, selector, value, event="input"):
        self.run(f"(e => {{ e.value = {json.dumps(str(value))}; e.dispatchEvent(new Event({json.dumps(event)}, "
                 f"{{bubbles: true}})); }})(document.querySelector({json.dumps(selector)}))")

    def last(self, name="value0", i=0):
        return self.run(f"model.at(model.runs[{i}], model.problem.steps, '{name}')")

    def key(self, key, code=None):
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if len(key) == 1 and kind == "keyDown" else {}
            if key == "End":  # without this number a slider does not know the key
                text["windowsVirtualKeyCode"] = 35
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=code or key, **text)

    def picture(self, path, width, height, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        time.sleep(0.3)
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def close(self):
        try:
            self.call("Browser.close")
        except (RuntimeError, OSError):
            pass
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()


# The digest of each record, and the last record. A NaN has many bits; all count as one.
digests = """
function digestsOf(records, width) {
  const words = new BigUint64Array(records.buffer.slice(records.byteOffset, records.byteOffset + records.byteLength));
  const lines = [], hex = x => x.toString(16).padStart(16, '0');
  const bits = i => Number.isNaN(records[i]) ? 0x7ff8000000000000n : words[i];
  for (let n = 0; n < records.length; n += width) {
    let low = 0x811c9dc5, high = 0x01000193;
    for (let i = n; i < n + width; ++i) {
      const b = bits(i), parts = [Number(b & 0xffffffffn), Number(b >> 32n)];
      for (const part of parts) {
        low = Math.imul(low ^ part, 0x01000193) >>> 0;
        high = Math.imul(high + part + (low >>> 15) | 0, 0x85ebca6b) >>> 0;
      }
    }
    lines.push((high.toString(16).padStart(8, '0')) + low.toString(16).padStart(8, '0'));
  }
  let last = '';
  for (let i = records.length - width; i < records.length; ++i) last += hex(bits(i));
  return lines.join(' ') + ' ' + last;
}
function runDigests(name, settings) {
  const records = digestsOf(engine.run(name, {}, settings), engine.width).split(' ');
  if (settings.surface !== 5) return records.join(' ');
  const layers = digestsOf(engine.layers(settings.steps), 32).split(' ').slice(0, -1);
  return records.map((one, n) => layers[n] ? `${one} ${layers[n]}` : one).join(' ');
}
"""
# The page's engine, without a page, for node.
node_script = """
const fs = require('fs'), html = fs.readFileSync(process.argv[2], 'utf8');
const textOf = id => html.split(`id="${id}">`)[1].split('</script>')[0];
globalThis.document = {getElementById: id => ({textContent: textOf(id)})};
const begin = html.indexOf('const fromHeaders'), end = html.indexOf('// SPDX', begin);
eval(html.slice(begin, end).replace(/^const (engine|fromHeaders)/gm, 'globalThis.$1'));
"""


def number(x):
    return "inf" if x == float("inf") else repr(float(x))


def native_program(folder, arguments=(), name="lab_native"):
    program = folder / name
    subprocess.run(compiler + ["-std=c++20", "-O2", "-ffp-contract=off", *arguments, "-I" + str(root / "examples/lab"),
                               str(root / "tests/learn/lab_native.cpp"), "-o", str(program)], check=True)
    return program


def compare(evaluate, native):
    """Compares all rules in all variants. evaluate(script) runs a script where the page's engine is."""
    said = json.loads(evaluate("JSON.stringify({settings: engine.settingNames, rules: engine.rules.map(r => r.name)})"))
    headers = {path.stem for path in (root / "include/descent/rules").glob("*.hpp")}
    left_out = {"muon", "shampoo", "soap", "kl_shampoo", "adafactor", "sm3", "larc", "layerwise"}
    check(set(said["rules"]) == headers - left_out, f"all {len(said['rules'])} rules of two single elements are there")
    total = 0
    for variant, changes in variants.items():
        settings = {**problem, **plain, **changes}
        line = [number(settings[name]) for name in said["settings"]]
        cases = "".join(f"{rule} {' '.join(line)}\n" for rule in said["rules"])
        expected = subprocess.run([native], input=cases, capture_output=True, text=True, check=True).stdout.splitlines()
        got = evaluate(f"{digests};JSON.stringify(engine.rules.map(r => runDigests(r.name, {json.dumps(settings)})))")
        different = []
        for rule, a, b in zip(said["rules"], expected, json.loads(got)):
            a, b = a.split(), b.split()
            total += len(a) - 2
            if a != b:
                step = next(i for i, (x, y) in enumerate(zip(a, b)) if x != y)
                different.append(f"{rule} from step {step} on\n    native {a[-1]}\n    page   {b[-1]}")
        check(not different and len(expected) == len(said["rules"]), f"{variant}: the bits of every rule and step"
              + "".join("\n  " + one for one in different))
    print(f"        {total} steps compared")


def check_page(browser, page):
    """What a reader does, and what must follow."""
    browser.open(page.as_uri())
    run, reset, use, last = browser.run, browser.reset, browser.use, browser.last
    check(run("model.runs.length === 3 && model.runs.every(r => r.records)"), "it starts with three runs")
    check(run("document.querySelectorAll('#paths .path').length === 3"), "each run has a path")

    start = "#r=adam,lr:0.05&step=5"
    reset(start)
    path = run("document.querySelector('#paths .path').getAttribute('d')")
    use("#fields input[type=text][data-name=lr]", "0.1", "change")
    check(path != run("document.querySelector('#paths .path').getAttribute('d')"), "lr changes the path")
    check(abs(run("model.at(model.runs[0], 1, 'value0')") + 1.5) < 1e-6, "lr 0.1: Adam's first step is 0.1")
    use("#fields input[type=range][data-name=beta1]", 2)
    check(run("model.run.fields.beta1") == 0.99, "the slider of beta1 is in 1 - beta1")
    before = run("model.step")
    run("document.getElementById('forward').click()")
    forward = run("document.getElementById('numbers').textContent")
    run("document.getElementById('forward').click(); document.getElementById('back').click()")
    check(run("model.step") == before + 1 and forward == run("document.getElementById('numbers').textContent"),
          "back undoes step")
    run("document.getElementById('reset').click()")
    check(run("model.step") == 0, "reset goes to the start")
    reset("#r=adam,lr:0.1")
    run("document.querySelector('#fields [data-name=bias_correction]').click()")
    longer = abs(run("model.at(model.runs[0], 1, 'value0')") + 1.5) > 0.1
    check(longer, "without bias correction the first step is longer")
    use("#fields input[type=text][data-name=beta1]", "1.5", "change")
    check("adam: beta1 must be in [0, 1), is 1.5" in run("document.getElementById('refusal').textContent"),
          "a refused field is named with the library's message")
    use("#fields input[type=text][data-name=beta1]", "0.9", "change")
    check(run("document.getElementById('refusal').hidden && model.runs[0].records !== null"), "and can be mended")

    reset("#s.condition=1&r=adam,lr:0.0004")
    moved = last()
    use("#storage select[data-name=values]", 1, "change")
    check(last() == run("model.at(model.runs[0], 0, 'value0')") and moved > -1.5, "half stalls")
    run("document.querySelector('#storage [data-name=random]').click()")
    check(abs(last() - moved) < 0.05, "rounding at random goes on")
    run("document.querySelector('#storage select[data-name=values]').focus()")
    use("#storage select[data-name=values]", 2, "change")
    check(run("document.activeElement.dataset.name") == "values", "focus stays where controls are drawn anew")
    reset("#r=sgd,lr:0.1,p.gradients:1,p.scale:1,p.scale_init:1048576")
    check(run("model.at(model.runs[0], 1, 'skipped')") == 1 and last() > -1.6, "a loss scale skips, then goes on")
    reset("#s.surface=1&s.x=-1.9&s.y=2.9&r=sgd,lr:0.002")
    check(run("!(Math.abs(model.at(model.runs[0], 20, 'value0')) < 10)"), "Rosenbrock from above diverges")
    use("#policies input[type=text][data-name=clip]", "1", "change")
    check(abs(last()) < 10, "clipping by norm prevents it")
    reset("#s.surface=5&s.steps=300&r=adam,lr:0.01;sgd,lr:0.001&step=300")
    check(run("model.at(model.runs[0], 300, 'accuracy') > 0.9 && model.at(model.runs[1], 300, 'accuracy') < 0.5 && "
              "document.querySelectorAll('#accuracies .path').length === 2 && "
              "document.getElementById('accuracy').getBoundingClientRect().height > 50 && "
              "!document.querySelector('.map-frame').offsetParent"),
          "the network learns with adam, and less with a small rate")
    check(run("model.layer(model.runs[0], 0, 0, 1) === 0 && model.layer(model.runs[0], 1, 2, 2) > 0 && "
              "document.querySelectorAll('#layers tbody tr').length === 8"), "its layers are in a table")
    first = last()
    use("#problem input[type=text][data-name=batch]", "8", "change")
    check(first != last(), "the batch changes the run")
    use("#problem select[data-name=surface]", 0, "change")
    check(run("document.querySelector('.map-frame').offsetParent !== null && "
              "document.getElementById('accuracy').getBoundingClientRect().height === 0 && "
              "!document.querySelector('#accuracies .path')"),
          "another surface brings the path back")
    reset("#s.noise=0.5&r=sgd,lr:0.2")
    first = last()
    use("#problem input[type=text][data-name=seed]", "2", "change")
    check(first != last(), "the seed changes the noise")
    use("#policies select[data-name=schedule]", 2, "change")
    check(run("model.at(model.runs[0], 100, 'lr')") < 0.021, "the cosine lowers lr")

    reset("#r=adam,lr:0.05")
    use("#rule", "lion", "change")
    check(run("model.run.name === 'lion' && /interpolat|sign/.test(document.getElementById('formula').textContent)"),
          "another rule shows its header")
    run("document.getElementById('copy').click(); document.getElementById('copy').click()")
    check(run("model.runs.length === 3 && model.selected === 2"), "copies of a run")
    run("document.getElementById('remove').click()")
    check(run("model.runs.length") == 2, "remove")
    use("#problem select[data-name=surface]", 3, "change")
    run("document.getElementById('map').focus()")
    x = run("model.problem.x")
    browser.key("ArrowRight")
    check(abs(run("model.problem.x") - x - 0.04) < 1e-9, "an arrow key moves the start")
    browser.key(".", "Period")
    check(run("model.step") == 1, "the period key steps")
    x, y = run("(b => [b.left + b.width / 4, b.top + b.height / 4])(map.getBoundingClientRect())".replace(
        "map.", "document.getElementById('map')."))
    for kind in ("mousePressed", "mouseReleased"):
        browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
    check(abs(run("model.problem.x") + 1) < 0.02 and abs(run("model.problem.y") - 1) < 0.02, "a click sets the start")
    use("#storage select[data-name=states]", 2, "change")
    use("#fields input[type=text][data-name=beta1]", "0.8", "change")
    run("lab.goTo(17)")
    state = run("new Promise(r => setTimeout(() => r(location.hash), 400))")
    everything = ("JSON.stringify([model.problem, model.runs.map(r => [r.name, r.fields, r.policies]), model.step, "
                  "[...model.runs[0].records.slice(-20)]])")
    numbers = run(everything)
    browser.open(page.as_uri() + state)
    check(numbers == run(everything), f"the address restores the state: {state}")
    for wrong in ("#r=nothing", "#r=adam,lr:x&s.surface=99&s.steps=-4&step=1e9", "#%", "#r=constructor"):
        reset(wrong)
        check(run("model.runs.length > 0 && model.step <= model.problem.steps"), f"an address that is wrong: {wrong}")


def check_controls(browser):
    """The controls of the problem, the schedule, the storage and the steps, one by one."""
    run, reset, use, last = browser.run, browser.reset, browser.use, browser.last

    def box(name, value, place="problem"):
        use(f"#{place} input[type=text][data-name={name}]", value, "change")

    def choose(name, value, place="storage"):
        use(f"#{place} select[data-name={name}]", value, "change")

    def at(step, name):
        return run(f"model.at(model.runs[0], {step}, '{name}')")

    def drawn():
        return run("['contours', 'paths', 'start'].map(name => document.getElementById(name).innerHTML)")

    reset("#r=sgd,lr:0.1&step=9")
    before, first = drawn(), last("value0")
    box("condition", "50")
    after = drawn()
    check(before[0] != after[0] and before[1] != after[1] and last("value0") < 2 * first < 0,
          "a larger condition slows x, and changes contours and path")
    use("#problem input[type=range][data-name=condition]", 2)
    check(run("model.problem.condition") == 100, "the slider of the condition is a power of ten")
    shown = "document.querySelector('#problem input[type=text][data-name={}]').value"
    box("condition", "0.5")
    check(run("model.problem.condition") == 1 and run(shown.format("condition")) == "1", "which is 1 or more")
    box("condition", "100"), box("angle", "45")
    turned = last("value0"), last("value1")
    check(after[0] != drawn()[0] and abs(turned[0]) > 0.01 and abs(abs(turned[0]) - abs(turned[1])) < 1e-6,
          "the angle turns the bowl: the slow direction is a diagonal")
    box("x", "-0.5"), box("y", "1.75")
    check(at(0, "value0") == -0.5 and at(0, "value1") == 1.75 and after[2] != drawn()[2], "the boxes set the start")
    box("x", "11")
    check(run("model.problem.x") == -0.5 and run(shown.format("x")) == "-0.5",
          "a start outside of [-10, 10] is not taken")
    why = "document.querySelector('#problem input[type=text][data-name={}]').parentNode.querySelector('.why').textContent"
    check(run(why.format("x")) == "11 is not between -10 and 10. It stays -0.5.", "the page says why")
    box("y", "up")
    check(run(why.format("y")) == "up is not a number. It stays 1.75.", "also of what is not a number")
    box("condition", "0.5")
    check(run(why.format("condition")) == "0.5 is not possible: at least 1. It is now 1.", "and of what it corrects")
    box("condition", "100")
    check(run(why.format("condition")) == "", "until the next number that it takes")
    first = at(0, "loss"), at(1, "value0")
    box("size", "4")
    check(math.isclose(at(0, "loss"), 4 * first[0], rel_tol=1e-6) and
          math.isclose(at(1, "value0") + 0.5, 4 * (first[1] + 0.5), rel_tol=1e-5),
          "the loss times 4: loss and step of SGD are four times as large")
    box("size", "1")
    first = at(5, "value0")
    box("noise", "0.5")
    check(first != at(5, "value0"), "noise moves the path")
    run("lab.goTo(200)")
    box("steps", "150")
    check(run("[model.step, document.getElementById('at').max, document.getElementById('at-text').textContent, "
              "model.runs[0].records.length / engine.width].join()") == "150,150,150 of 150,151", "fewer steps")
    address = run("new Promise(r => setTimeout(() => r(location.hash), 400))")
    wanted = "#s.condition=100&s.angle=45&s.noise=0.5&s.x=-0.5&s.y=1.75&s.steps=150&r=sgd,lr:0.1&step=150"
    check(set(address[1:].split("&")) == set(wanted[1:].split("&")), f"all of this is in the address: {address}")

    reset("#r=sgd,lr:0.1")
    exact = at(50, "value1")
    choose("gradients", 2)
    check(run("model.run.policies.gradients") == 2 and 0 < abs(at(50, "value1") - exact) < 0.01,
          "gradients in bfloat16 are rounded")
    reset("#s.condition=1&r=adam,lr:0.0004")
    exact = last()
    choose("values", 1)
    stalled = last()
    run("document.querySelector('#storage [data-name=master]').click()")
    check(abs(stalled - exact) > 0.1 and abs(last() - exact) < 0.001, "a master copy goes on where half stalls")
    check(not run("document.querySelector('#storage [data-name=scale_init]')"), "without a loss scale it has no fields")
    choose("values", 0), choose("gradients", 1), choose("scale", 1)
    box("scale_init", "1048576", "storage")
    check(at(0, "skipped") == 0 and at(1, "skipped") == 1, "a first scale of 2^20 skips")
    box("scale_init", "1024", "storage")
    check(at(1, "skipped") == 0 and at(50, "scale") == 1024, "one of 2^10 does not")
    box("scale_interval", "10", "storage")
    check(at(25, "scale") == 4096, "the scale doubles after each interval")
    choose("scale", 2)
    check(at(25, "scale") == 1024 and not run("document.querySelector('#storage [data-name=scale_interval]')"),
          "a static one stays, and has no interval")
    choose("gradients", 0), box("scale_init", "131072", "storage"), run("lab.goTo(9)")
    check(" 131072." in run("document.getElementById('inside-said').textContent"), "all digits of a scale are shown")
    reset("#r=sgd,lr:0.1")
    choose("schedule", 4, "policies")
    box("schedule_steps", "20", "policies"), box("schedule_factor", "0.5", "policies")
    check([round(at(step, "lr"), 6) for step in (20, 21, 40, 41)] == [0.1, 0.05, 0.05, 0.025],
          "steps down: every 20 steps by 0.5")
    choose("schedule", 1, "policies"), box("schedule_steps", "10", "policies")
    check(at(1, "lr") < 0.02 and math.isclose(at(11, "lr"), 0.1, rel_tol=1e-6) and
          not run("document.querySelector('#policies [data-name=schedule_factor]')"), "a warm-up of 10 has no factor")

    reset("#r=sgd,lr:0.2")
    use("#at", 40)
    check(run("model.step === 40 && document.getElementById('at-text').textContent === '40 of 300'"),
          "the slider goes to a step")
    run("document.getElementById('map').focus()")
    browser.key(",", "Comma")
    check(run("model.step") == 39, "the comma key goes back")
    browser.key("Home")
    check(run("model.step") == 0, "Home goes to the start")
    browser.key("End")
    check(run("model.step === model.problem.steps"), "End goes to the last step")
    browser.key("Home")
    said = "document.getElementById('play').textContent"
    browser.key(" ", "Space")
    check(run(said) == "Pause", "the space bar plays")
    browser.key(" ", "Space")
    check(run(said) == "Play", "and pauses")
    rate = ("new Promise(r => { lab.goTo(0); lab.play(); const start = performance.now(), look = () => model.step < 4 "
            "? requestAnimationFrame(look) : (lab.play(), r(model.step / (performance.now() - start))); look(); })")
    use("#speed", "1", "change")
    slow = run(rate)
    use("#speed", "12", "change")
    check(run(rate) > 2 * slow, "fast plays faster than slow")

    run("Object.defineProperty(navigator, 'clipboard', {configurable: true, value: "
        "{writeText: async text => { window.copied = text; if (window.refuse) throw Error(); }}})")
    link = ("new Promise(r => { document.getElementById('link').click(); "
            "setTimeout(() => r(document.getElementById('link-said').textContent), 50); })")
    run("lab.goTo(33)")
    check(run(link) == "Copied." and run("copied === location.href && location.hash === '#r=sgd,lr:0.2&step=33'"),
          "a link to this state is copied")
    run("lab.goTo(34)")
    check(run("document.getElementById('link-said').textContent") == "", "which is not said of the next state")
    run("window.refuse = true")
    check(run(link) == "It is in the address bar.", "or is in the address bar")
    sliders = run("[...document.querySelectorAll('input[type=range]')].map((one, i) => (one.dataset.place = i))")
    for place in sliders:
        slider = f"document.querySelector('input[data-place=\"{place}\"]')"
        run(f"document.getElementById('numbers-fold').open = true; {slider}.focus()")
        browser.key("End")
        check(run(f"{slider} && Math.abs({slider}.value - {slider}.max) < 1e-9"), f"End moves slider {place} to its end")


class Format:
    """What a format stores, from a table of its positive numbers; float and half from Python's struct."""

    def __init__(self, exponent, fraction, packed=None, finite=False):
        bias, one = 2 ** (exponent - 1) - 1, 2 ** fraction
        self.sign, self.packed = 2 ** (exponent + fraction), packed
        self.nan = 2 ** exponent * one - 1 if finite else (2 ** exponent - 1) * one + one // 2
        self.beyond = self.nan if finite else (2 ** exponent - 1) * one
        codes = range(self.beyond + 1) if fraction <= 10 else ()  # the last one is where infinity begins
        self.values = [(code % one + one * (code >= one)) * 2.0 ** (max(code // one, 1) - bias - fraction)
                       for code in codes]

    def code(self, x):
        if math.isnan(x):
            return self.nan
        sign, size = self.sign * (math.copysign(1, x) < 0), abs(x)
        if self.packed:
            try:
                return int.from_bytes(struct.pack(">" + self.packed, x), "big")
            except (OverflowError, struct.error):
                return sign + self.beyond
        at = bisect.bisect_left(self.values, size)
        if at >= len(self.values):
            return sign + self.beyond
        if self.values[at] != size:
            below, above = fractions.Fraction(size) - fractions.Fraction(self.values[at - 1]), \
                fractions.Fraction(self.values[at]) - fractions.Fraction(size)
            at -= below < above or (below == above and at % 2 == 1)
        return sign + at


class Fixed:
    """16 bits, 8 of them behind the point."""

    def code(self, x):
        if math.isnan(x):
            return None
        return 32767 if x >= 128 else 32768 if x <= -128 else min(round(fractions.Fraction(x) * 256), 32767) % 65536


def check_numbers(browser):
    """The panel of formats against tables, and what a reader does with it."""
    formats = {"float": Format(8, 23, "f"), "TF32": Format(8, 10), "bfloat16": Format(8, 7), "half": Format(5, 10, "e"),
               "fp8 e5m2": Format(5, 2), "fp8 e4m3": Format(4, 3, finite=True), "fixed point": Fixed()}
    draw = random.Random(1)
    some = [0.0, -0.0, math.inf, -math.inf, math.nan, 0.1, 1 / 3, 2049, 2051, 65504, 65519.99, 65520, 61440, 448, 464,
            465, 2.0 ** -24, 2.0 ** -25, 1.5 * 2 ** -25, 2.0 ** -149, 2.0 ** -150, 2.0 ** -133, 2.0 ** -9, 2.0 ** -10,
            3e38, 1e39, 127.998, 128, -128, -128.01, 1 / 512, 3 / 512, 2.0 ** -1074]
    for one in formats.values():  # ties and their neighbours
        for _ in range(8) if getattr(one, "values", None) else ():
            at = draw.randrange(len(one.values) - 1)
            middle = (one.values[at] + one.values[at + 1]) / 2
            some += [middle, math.nextafter(middle, 0)]
    while len(some) < 200:
        some.append(draw.choice((1, -1)) * draw.uniform(1, 2) * 2.0 ** draw.randint(-30, 20))
    literals = [repr(x).replace("inf", "Infinity").replace("nan", "NaN") for x in some]
    got = json.loads(browser.run(f"JSON.stringify([{', '.join(literals)}].map(x => numbers.list.map(f => "
                                 "{ const c = numbers.encode(f, x), y = numbers.decode(f, c); return [c, String(y), "
                                 "String(numbers.neighbour(f, c, 1))]; })))"))
    check(browser.run("numbers.list.map(f => f.name).join()") == ",".join(formats), "the panel has seven formats")
    for place, (name, one) in enumerate(formats.items()):
        wrong = [x for x, row in zip(some, got) if row[place][0] != one.code(x)]
        check(not wrong, f"{name} stores {len(some)} numbers as the table does {wrong[:4] or ''}")
        for x, row in zip(some, got) if getattr(one, "values", None) else ():
            code, value, above = row[place]
            if code < one.beyond - 1 and (float(value) != one.values[code] or float(above) != one.values[code + 1]):
                check(False, f"{name}: the value of {x} is {value}, the next one {above}")
    run = browser.run
    run("document.getElementById('numbers-fold').open = true")
    bit = "numbers.list[3].buttons"
    run("(e => { e.value = '1/3'; e.dispatchEvent(new Event('input')); })(document.getElementById('number'))")
    text = f"{bit}.map(b => b.textContent).reverse().join('')"
    check(run(text) == "0011010101010101", "1/3 in half, bit by bit")
    run(f"{bit}[15].click()")
    check(run("numbers.x") == -0.333251953125, "a click on the sign flips it")
    run(f"numbers.set(1); {bit}[0].focus()")
    browser.key("ArrowLeft")
    check(run(f"document.activeElement === {bit}[1]"), "the arrow keys go from bit to bit")
    browser.key(" ", "Space")
    check(run("numbers.x") == 1 + 2 / 1024, "the space bar flips one")
    run(f"numbers.set(Infinity); {bit}[3].click()")
    check(run(f"Number.isNaN(numbers.x) && {text} === '0111110000001000'"), "a NaN keeps the bits that were set")


def check_lessons(browser):
    run = browser.run
    answer = ("document.querySelector('#question input').click();"
              "document.querySelector('#question [type=submit]').click()")
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
    for name in run("lessons.map(x => x.id)"):
        run(f"lab.openLesson('{name}')")
        hidden = run("model.hidden && !document.querySelector('#paths .path, #curves .path, #numbers td')")
        refused = run("model.runs.map(r => r.refusal).join('')")
        holds = run(f"lessons.find(x => x.id === '{name}').holds()")
        check(hidden and holds and not refused, f"lesson {name}: hidden at first, and its answer is true {refused}")
        run(answer)
        shown = run("!model.hidden && document.querySelectorAll('#paths .path').length === model.runs.length && "
                    "/^(Yes|No)\\. /.test(document.querySelector('.reply').textContent)")
        check(shown and run("model.step === model.problem.steps"), f"lesson {name}: then shown, without motion")
    browser.call("Emulation.setEmulatedMedia", features=[])
    run("lab.openLesson('rate');" + answer)
    plays = ("new Promise(r => { const first = model.step; let looks = 0; const look = () => "
             "model.step > first || ++looks > 3000 ? r(model.step > first) : setTimeout(look, 20); look(); })")
    check(run(plays), "with motion, the run plays")
    nameless = run("[...document.querySelectorAll('button, input, select')].filter(e => !e.textContent.trim() && "
                   "!e.ariaLabel && !e.labels?.length).length")
    check(nameless == 0, "every control has a name")


def check_places(browser):
    """Where question, picture and sliders are."""
    boxes = ("(names => names.map(name => { const b = document.querySelector(name).getBoundingClientRect(); "
             "return [b.left, b.top, b.right, b.bottom]; }))(['#question', '.map-frame', '.scrub', '#fields input'])")
    for width in (1280, 360):
        browser.call("Emulation.setDeviceMetricsOverride", width=width, height=740, deviceScaleFactor=1, mobile=False)
        browser.run("lab.openLesson('momentum')")
        question, picture, scrub, slider = browser.run(boxes)
        if width == 1280:
            check(question[0] >= picture[2] and abs(question[1] - picture[1]) < 80, "the question is beside the picture")
        else:
            check(question[3] <= picture[1] <= question[3] + 80, "on a phone it is right above the picture")
            check(0 < slider[1] - scrub[3] < 420, "on a phone the sliders follow the picture")
            browser.reset("#s.surface=5&s.steps=20&r=sgd,lr:0.1")
            below = browser.run("['#accuracy', '#fields input'].map(x => document.querySelector(x).getBoundingClientRect().top)")
            check(0 < below[1] - below[0] < 600, "and those of a network its curves")
    browser.call("Emulation.clearDeviceMetricsOverride")


def check_links(browser):
    """The course's links to states of the lab."""
    run, names, chapters = browser.run, set(), set()
    for page in sorted((root / "docs/learn").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        for state in re.findall(r"lab\.html(#[^)]+)\)", text):
            chapters.add(page.stem)
            run(f"location.hash = '#none'; location.hash = {json.dumps(state)}; new Promise(r => setTimeout(r, 60))")
            if lesson := re.match("#lesson=(.+)", state):
                names.add(lesson[1])
                check(run("model.hidden && model.lesson") == lesson[1], f"{page.stem}: a lesson opens: {state}")
            elif number := re.match("#number=(.+)", state):
                check(run("document.getElementById('number').value && numbers.x") == float(number[1]),
                      f"{page.stem}: a number opens: {state}")
            else:
                wanted = run("new Promise(r => setTimeout(() => r(location.hash), 400))")
                check(set(wanted[1:].split("&")) == set(state[1:].split("&")) and
                      run("model.runs.every(one => one.records)"), f"{page.stem}: a state opens: {state} {wanted}")
        said = page.stem in ("README", "course", "exercises", "teacher") or re.search(r"^Lab: ", text, re.M)
        check(bool(said), f"{page.stem} says what to do in the lab, or why there is nothing")
    check(names == set(run("lessons.map(x => x.id)")), f"each lesson belongs to a chapter {names}")
    check(len(chapters) > 10, "most chapters have a state of the lab")


def check_layout(browser):
    for width in (1280, 768, 360):
        browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        for name in ("", "#lesson=saddle", "#r=lamb&s.steps=20&step=7",
                     "#s.surface=5&step=300&r=ademamix",
                     "#r=rmsprop,lr:0.1,p.values:1,p.scale:1,p.schedule:4;schedule_free_adamw,beta2:0.9"):
            browser.run(f"location.hash = '{name}'; new Promise(r => setTimeout(r, 80))")
            wide = browser.run("document.documentElement.scrollWidth")
            check(wide <= width, f"nothing is wider than {width} pixels, at '{name}'" + f" ({wide})" * (wide > width))


def main():
    skipped = []
    sys.path.insert(0, str(root / "examples/lab"))
    import build

    clang = build.compiler()
    if not clang:
        print("skipped: there is no clang++-14 for wasm32-wasi")
        sys.exit(77)
    text = build.page(root, clang)
    stored = root / "docs/learn/lab.html"
    same = stored.exists() and stored.read_text(encoding="utf-8") == text
    check(same, "docs/learn/lab.html is the page that this tree gives; `ninja -C build lab` writes it")
    check(len(text) < 700_000, f"the page has {len(text) / 1000:.0f} kB, less than 700")
    check(not re.search(r"(src|href)=[\"']?(https?:)?//|@import|fetch\(|XMLHttpRequest", text), "it loads nothing")

    chromium, node = shutil.which("chromium"), shutil.which("node")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        page = folder / "lab.html"
        page.write_text(text, encoding="utf-8")
        native = native_program(folder)
        if chromium:
            browser = Browser(chromium, folder / "profile")
            try:
                browser.open(page.as_uri())
                compare(browser.run, native)
                check_page(browser, page)
                check_controls(browser)
                check_lessons(browser)
                check_numbers(browser)
                check_layout(browser)
                check_places(browser)
                check_links(browser)
                said = "".join("\n  " + one for one in browser.said)
                check(not said, "no error and no warning in the console" + said)
            finally:
                browser.close()
        elif node:
            skipped.append("the page itself: there is no chromium")

            def evaluate(script):
                write = f"engine.start().then(() => process.stdout.write(eval({json.dumps(script)})))"
                whole = node_script + write
                return subprocess.run([node, "-", page], input=whole, capture_output=True, text=True, check=True).stdout
            compare(evaluate, native)
        else:
            skipped.append("everything that runs the page: there is neither chromium nor node")
        library = native_program(folder, ["-O1", "-DLAB_LIBRARY"], "lab_library")
        done = subprocess.run([library], capture_output=True, text=True, check=False)
        check(done.returncode == 0, "runs equal those of descent::optimizer\n" + done.stdout.strip())
    for one in skipped:
        print("skipped " + one)
    if failures:
        sys.exit(f"{len(failures)} failed")
    if not chromium:
        sys.exit(77)


if __name__ == "__main__":
    main()
