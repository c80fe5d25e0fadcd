"""A contestant: a program that answers lines on its standard input, each with one line of JSON:

    hello                                      its name, threads, recipes, compiler, flags; see also below
    load SLOT RECIPE CASE-FILE TABLE-FILE      bytes it owns beside values and gradients, bytes of a step if it says
    check SLOT STEPS SAMPLE-FILE               so many steps, then numbers of the elements that the file lists
    sets SLOT COUNT                            from now on steps go round so many copies of the problem
    time SLOT SAMPLES STEPS                    steps that do not count, then samples of so many: seconds a step for
                                               each sample, and seconds until the call of a step returned
    count SLOT                                 launches and synchronisations of a step, if it counts at all
    room                                       free bytes of its memory
    unload SLOT                                {}
    quit                                       and ends

An answer with the member `error` says why not. To `hello` it may add `device`, what its GPU is; `counts`, that it can
count, which spoils times of later steps; `once`, that it is to be started anew for each case; `most_tensors`.
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
        """Does not wait until it is there."""
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
            self.process.kill()  # what it says next would be taken for the next answer
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
