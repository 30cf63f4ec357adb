"""Runs the tests of the modules that are named, and prints one line of JSON for each test that ended."""

import importlib
import json
import sys
import time
import unittest


class Lines(unittest.TestResult):
    def startTest(self, test):
        super().startTest(test)
        self._started = time.monotonic()
        self._faults = []

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self._faults.append(f"{subtest._subDescription()}: {self._exc_info_to_string(err, test)}")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._faults.append(self._exc_info_to_string(err, test))

    def addError(self, test, err):
        super().addError(test, err)
        self._faults.append(self._exc_info_to_string(err, test))

    def stopTest(self, test):
        seconds = time.monotonic() - self._started
        name = test.id().split(".")[-1].removeprefix("test_").replace("_", " ")
        line = {"client": type(test).__name__, "name": name, "seconds": round(seconds, 2), "faults": self._faults}
        print(json.dumps(line), flush=True)
        super().stopTest(test)


loader = unittest.TestLoader()
result = Lines()
for module in sys.argv[1:]:
    loader.loadTestsFromModule(importlib.import_module(module)).run(result)
sys.exit(0 if result.wasSuccessful() else 1)
