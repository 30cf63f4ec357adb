"""The official Anthropic client, with either credential, on a model of each protocol."""

import asyncio
import datetime
import unittest

import anthropic

from gateway import AFTER_TOOL, CHAT, GREETING, KEY, LIMITED_KEY, MESSAGES, SCHEMA, TOOL_INPUT, URL
from gateway import RATED_KEYS, ended_with, on_each_model, requests_with, word

TOOLS = [{"name": "get_weather", "description": "Weather", "input_schema": SCHEMA}]


def client(key=KEY, **options):
    return anthropic.Anthropic(api_key=key, base_url=URL, **{"max_retries": 0, **options})


def bearer(key=KEY):
    return anthropic.Anthropic(api_key=None, auth_token=key, base_url=URL, max_retries=0)


def ask(model, scenario, **fields):
    messages = [{"role": "user", "content": f"scenario: {scenario}"}]
    return {"model": model, "max_tokens": 100, "messages": messages, **fields}


def text_of(message):
    return "".join(block.text for block in message.content if block.type == "text")


class AnthropicClient(unittest.TestCase):
    def test_lists_models_and_reads_one_with_either_credential(self):
        for own in (client(), bearer()):
            names = [model.id for model in own.models.list()]
            self.assertIn(CHAT, names)
            self.assertIn(MESSAGES, names)
            found = own.models.retrieve(MESSAGES)
            self.assertEqual((found.id, found.type, found.display_name), (MESSAGES, "model", MESSAGES))

    @on_each_model
    def test_gets_a_whole_answer_and_its_request_id(self, model):
        for own in (client(), bearer()):
            answer = own.messages.create(**ask(model, "greet"))
            self.assertEqual(text_of(answer), GREETING)
            self.assertEqual(answer.stop_reason, "end_turn")
            self.assertEqual((answer.usage.input_tokens, answer.usage.output_tokens), (10, 5))
            self.assertTrue(answer._request_id)

    @on_each_model
    def test_gets_a_stream(self, model):
        with client().messages.stream(**ask(model, "greet")) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
            self.assertTrue(stream.request_id)
        self.assertEqual(text, GREETING)
        self.assertEqual(final.usage.output_tokens, 5)

    @on_each_model
    def test_gets_a_stream_asynchronously(self, model):
        async def read(model):
            async with anthropic.AsyncAnthropic(api_key=KEY, base_url=URL, max_retries=0) as own:
                async with own.messages.stream(**ask(model, "greet")) as stream:
                    return text_of(await stream.get_final_message())

        self.assertEqual(asyncio.run(read(model)), GREETING)

    @on_each_model
    def test_calls_a_tool_and_gives_its_result(self, model):
        first = client().messages.create(**ask(model, "tool", tools=TOOLS))
        self.assertEqual(first.stop_reason, "tool_use")
        call = next(block for block in first.content if block.type == "tool_use")
        self.assertEqual((call.name, call.input), ("get_weather", TOOL_INPUT))
        given = ask(model, "tool", tools=TOOLS)
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}
        given["messages"] += [
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": [result]},
        ]
        self.assertEqual(text_of(client().messages.create(**given)), AFTER_TOOL)

    @on_each_model
    def test_gets_a_tool_call_from_a_stream(self, model):
        with client().messages.stream(**ask(model, "tool", tools=TOOLS)) as stream:
            final = stream.get_final_message()
        call = next(block for block in final.content if block.type == "tool_use")
        self.assertEqual((call.name, call.input), ("get_weather", TOOL_INPUT))

    @on_each_model
    def test_counts_tokens(self, model):
        given = ask(model, "greet")
        del given["max_tokens"]
        self.assertGreater(client().messages.count_tokens(**given).input_tokens, 0)

    @on_each_model
    def test_raises_the_class_of_each_refusal(self, model):
        classes = {
            400: anthropic.BadRequestError,
            404: anthropic.NotFoundError,
            413: anthropic.RequestTooLargeError,
            422: anthropic.UnprocessableEntityError,
            429: anthropic.RateLimitError,
            500: anthropic.InternalServerError,
            529: anthropic.OverloadedError,
        }
        for status, expected in classes.items():
            with self.assertRaises(expected) as raised:
                client().messages.create(**ask(model, f"status {status}"))
            self.assertIn(f"asked for {status}", str(raised.exception))
            self.assertTrue(raised.exception.request_id)

    def test_raises_for_what_the_gateway_refuses_and_names_the_request(self):
        cases = [
            (anthropic.AuthenticationError, client("sk-nobody"), ask(MESSAGES, "greet")),
            (anthropic.PermissionDeniedError, client(LIMITED_KEY), ask(MESSAGES, "greet")),
            (anthropic.BadRequestError, client(), {**ask(MESSAGES, "greet"), "messages": []}),
        ]
        for expected, own, given in cases:
            with self.subTest(expected=expected), self.assertRaises(expected) as raised:
                own.messages.create(**given)
            self.assertTrue(raised.exception.request_id)
            self.assertEqual(raised.exception.body["type"], "error")
            self.assertEqual(raised.exception.body["error"]["type"], "gateway_error")

    def test_reads_what_is_left_of_its_limits_from_answers_and_refusals(self):
        def stated(headers):
            resets = [headers[f"anthropic-ratelimit-{of}-reset"] for of in ("requests", "tokens")]
            for text in resets:
                at = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
                left = at - datetime.datetime.now(datetime.timezone.utc)
                self.assertLess(abs(left - datetime.timedelta(hours=1)), datetime.timedelta(minutes=10))
            return [
                int(headers[f"anthropic-ratelimit-{of}-{what}"])
                for of in ("requests", "tokens")
                for what in ("limit", "remaining")
            ]

        own = client(RATED_KEYS["anthropic"])
        for left, tokens in ((1, 985), (0, 970)):
            raw = own.messages.with_raw_response.create(**ask(MESSAGES, "greet"))
            self.assertEqual(text_of(raw.parse()), GREETING)
            self.assertEqual(stated(raw.headers), [2, left, 1_000, tokens])
        with self.assertRaises(anthropic.RateLimitError) as raised:
            own.messages.create(**ask(MESSAGES, "greet"))
        refused = raised.exception.response.headers
        self.assertEqual(stated(refused), [2, 0, 1_000, 970])
        self.assertGreater(int(refused["retry-after"]), 3_000)

    def test_asks_once_for_a_model_that_nobody_serves(self):
        with client(max_retries=4) as own:
            sent = []
            own._client.event_hooks["request"].append(sent.append)
            with self.assertRaises(anthropic.APIStatusError):
                own.messages.create(**ask("nobody-serves-this", "greet"))
        self.assertEqual(len(sent), 1)

    @on_each_model
    def test_retries_what_may_pass(self, model):
        mark = word()
        answer = client(max_retries=2).messages.create(**ask(model, f"status 429 once {mark}"))
        self.assertEqual(text_of(answer), GREETING)
        self.assertEqual(len(requests_with(mark)), 2)

    @on_each_model
    def test_leaves_in_mid_stream_and_the_upstream_is_told(self, model):
        mark = word()
        with client().messages.stream(**ask(model, f"forever {mark}")) as stream:
            for count, _ in enumerate(stream):
                if count == 3:
                    break
        self.assertEqual([request["completed"] for request in ended_with(mark)], [False])


if __name__ == "__main__":
    unittest.main()
