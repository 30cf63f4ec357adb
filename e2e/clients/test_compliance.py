"""llm-comply: answers of the simulated providers and of conversions, checked against the published schemas."""

import pathlib
import unittest

import llm_comply
from llm_comply.config import ComplianceConfig
from llm_comply.http import make_request
from llm_comply.result import TestStatus
from llm_comply.runner import TestRunner
from llm_comply.schema import SpecLoader
from llm_comply.tests.anthropic import ANTHROPIC_TESTS
from llm_comply.tests.google_genai import GOOGLE_GENAI_TESTS
from llm_comply.tests.open_responses import OPEN_RESPONSES_TESTS
from llm_comply.tests.openai_chat import OPENAI_CHAT_TESTS

from gateway import KEY, SIMULATED, URL

SPECS = pathlib.Path(llm_comply.__file__).parent / "specs"

# The suite knows the events of visible thoughts as `response.reasoning_summary.delta` and `.done`. The schema that it
# checks against, `ResponseReasoningSummaryDeltaStreamingEvent`, allows `response.reasoning_summary_text.delta` alone.
CONTRADICTING = {
    "unknown SSE event type: response.reasoning_summary_text.delta",
    "unknown SSE event type: response.reasoning_summary_text.done",
}


class Compliance(unittest.TestCase):
    def check(self, tests, base_url, spec=None):
        """Runs all checks of a suite on a model of each protocol. None may fail, and none may be skipped."""
        schemas = SpecLoader(str(SPECS / spec) if spec else None)
        for model in SIMULATED:
            config = ComplianceConfig(base_url=base_url, api_key=KEY, model=model)
            for result in TestRunner(config, tests, schemas).run_all().results:
                with self.subTest(model=model, check=result.id):
                    self.assertIn(result.status, (TestStatus.PASSED, TestStatus.FAILED), result.errors)
                    self.assertEqual([error for error in result.errors if error not in CONTRADICTING], [])

    def test_responses_pass_the_suite_of_open_responses(self):
        self.check(OPEN_RESPONSES_TESTS, f"{URL}/v1", "openresponses.json")

    def test_chat_completions_pass_the_suite_of_openai(self):
        self.check(OPENAI_CHAT_TESTS, f"{URL}/v1", "openai_chat.json")

    def test_messages_pass_the_suite_of_anthropic(self):
        self.check(ANTHROPIC_TESTS, f"{URL}/v1", "anthropic.json")

    def test_gemini_answers_pass_the_suite_of_google(self):
        self.check(GOOGLE_GENAI_TESTS, URL)

    def test_events_of_messages_follow_the_schemas_of_anthropic(self):
        """The suite checks whole messages alone."""
        schemas = SpecLoader(str(SPECS / "anthropic.json"))
        for model in SIMULATED:
            config = ComplianceConfig(base_url=f"{URL}/v1", api_key=KEY, model=model)
            for check in (one for one in ANTHROPIC_TESTS if not one.streaming and one.expected_statuses == [200]):
                with self.subTest(model=model, check=check.id):
                    _, _, events = make_request(config, check.endpoint, check.build_request(config), streaming=True)
                    self.assertEqual(events[-1]["type"], "message_stop")
                    for event in events:
                        if event["type"] != "ping":
                            self.assertEqual(schemas.validate(event["data"], "MessageStreamEvent"), [])
