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


class PytestLines:
    """The same for modules whose tests pytest runs."""

    def pytest_runtest_logreport(self, report):
        if report.skipped or (report.when != "call" and not report.failed):
            return
        _, client, name = report.nodeid.split("::")
        faults = [report.longreprtext] if report.failed else []
        line = {"client": client, "name": name, "seconds": round(report.duration, 2), "faults": faults}
        print(json.dumps(line), flush=True)


OPTIONS = ["-p", "no:cacheprovider", "-p", "no:terminal", "--disable-socket", "--allow-hosts=127.0.0.1"]
# Clients share connections, which belong to one event loop.
ONE_LOOP = ["asyncio_mode=auto", "asyncio_default_test_loop_scope=session", "asyncio_default_fixture_loop_scope=session"]

loader = unittest.TestLoader()
result = Lines()
succeeded = True
for module in sys.argv[1:]:
    if module.endswith("_standard"):
        import pytest

        settings = [part for option in ONE_LOOP for part in ("-o", option)]
        succeeded &= pytest.main([*OPTIONS, *settings, f"{module}.py"], plugins=[PytestLines()]) == 0
    else:
        loader.loadTestsFromModule(importlib.import_module(module)).run(result)
sys.exit(0 if succeeded and result.wasSuccessful() else 1)
