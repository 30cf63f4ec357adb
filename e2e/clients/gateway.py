"""The address of the gateway under test, and what the tests of all clients share."""

import functools
import json
import os
import urllib.request
import uuid

URL = os.environ["SLUICE_URL"]
KEY = os.environ["SLUICE_KEY"]
LIMITED_KEY = os.environ["SLUICE_LIMITED_KEY"]
# Keys with two requests and 1,000 tokens an hour, by the client that uses them up.
RATED_KEYS = {key.removeprefix("sk-"): key for key in os.environ["SLUICE_RATED_KEYS"].split()}
UPSTREAM = os.environ["UPSTREAM_CONTROL"]
ALL = "SLUICE_ALL" in os.environ

CHAT, MESSAGES, RESPONSES, RERANK = "chat-model", "messages-model", "responses-model", "rerank-model"
# A model of each dialect behind the gateway: some need a conversion, whichever dialect the client speaks.
MODELS = (CHAT, MESSAGES, RESPONSES)
# A model behind a channel of each protocol, which a simulated provider answers. The names make the suites run their checks
# of thoughts; the first one always thinks.
SIMULATED = [f"gpt-5-claude-4-on-{kind}" for kind in ("reasoning-chat", "chat", "messages", "responses", "gemini", "converse")]

GREETING = "Hello there."
AFTER_TOOL = "It is sunny in Bern."
TOOL_INPUT = {"city": "Bern"}
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
CITY_SCHEMA = {
    "title": "Weather",
    "description": "The weather of a city.",
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}


def on_each_model(test):
    """Runs a test on a model of each protocol."""

    @functools.wraps(test)
    def run(self):
        for model in MODELS:
            with self.subTest(model=model):
                test(self, model)

    return run


def word():
    """A word that distinguishes one test's requests from those of the others."""
    return uuid.uuid4().hex


def requests_with(mark):
    """Requests with this word that reached the upstream; `completed`: whether the response was sent completely."""
    with urllib.request.urlopen(f"{UPSTREAM}/requests?word={mark}", timeout=30) as answer:
        return json.load(answer)


def ended_with(mark):
    """The same requests, once each of them has ended."""
    with urllib.request.urlopen(f"{UPSTREAM}/ended?word={mark}", timeout=30) as answer:
        return json.load(answer)
