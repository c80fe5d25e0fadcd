"""A contestant: a program that answers lines on its standard input, each with one line of JSON:

    hello                                      its name, threads, recipes, compiler, flags; see also below
    load SLOT RECIPE CASE-FILE TABLE-FILE      bytes it owns beyond values and gradients; bytes of a step, or 0
    check SLOT STEPS SAMPLE-FILE               takes STEPS steps, then returns the numbers of the elements in the file
    sets SLOT COUNT                            from now on, steps rotate over COUNT copies of the problem
    time SLOT SAMPLES STEPS                    warmup steps, then SAMPLES samples of STEPS steps: seconds per step for
                                               each sample, and seconds until the call of a step returned
    count SLOT                                 launches and synchronisations of a step, if it can count them
    room                                       free bytes of its memory
    unload SLOT                                {}
    quit                                       ends the program

An answer with the member `error` says what went wrong. The answer to `hello` may also have `device`, which describes
the GPU; `counts`, if it can count, which spoils the times of later steps; `once`, if it must be restarted for each
case; and `most_tensors`.
"""

import json
import select
import subprocess


class Refused(Exception):
    pass


class Late(Refused):
    pass


class Contestant:
    def __init__(self, name, command, environment, patience):
        self.id, self.command, self.environment, self.patience = name, command, environment, patience
        self.start()

    def start(self):
        """Starts the process without waiting until it is ready."""
        self.greeted = False
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=self.environment)

    def restart(self):
        self.end()
        self.start()

    def greet(self):
        if not self.greeted:
            self.greeted = True
            self.about = self.ask("hello")

    def ask(self, *words):
        self.greet()
        try:
            print(*words, file=self.process.stdin, flush=True)
            if not select.select([self.process.stdout], [], [], self.patience)[0]:
                self.process.kill()
                raise Late(f"{self.id} has not answered '{words[0]}' in {self.patience:g} s")
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise Refused(f"{self.id} has ended with code {self.process.wait()}")
        try:
            answer = json.loads(line)
        except ValueError:
            self.process.kill()  # further output would be taken for the next answer
            raise Refused(f"{self.id} answers '{words[0]}' with {line.strip()[:200]!r}") from None
        if "error" in answer:
            raise Refused(answer["error"])
        return answer

    def has(self, recipe):
        return recipe in self.about["recipes"]

    def on_device(self):
        return "device" in self.about

    def lives(self):
        return self.process.poll() is None

    def end(self):
        if self.lives():
            try:
                self.process.stdin.close()
                self.process.wait(20)
            except (BrokenPipeError, subprocess.TimeoutExpired):
                self.process.kill()
        self.process.wait()
        self.process.stdout.close()
