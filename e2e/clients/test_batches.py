"""Files and batches with the official clients of OpenAI and Anthropic."""

import json
import time
import unittest

import anthropic
import openai

from gateway import GREETING, KEY, MESSAGES, URL, on_each_model

ENDED = ("completed", "expired", "cancelled")


def openai_client():
    return openai.OpenAI(api_key=KEY, base_url=f"{URL}/v1", max_retries=0)


def anthropic_client():
    return anthropic.Anthropic(api_key=KEY, base_url=URL, max_retries=0)


def line(custom_id, model, scenario="greet"):
    body = {"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": f"scenario: {scenario}"}]}
    return {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": body}


def uploaded(client, lines):
    content = "".join(f"{json.dumps(one)}\n" for one in lines).encode()
    return client.files.create(file=("lines.jsonl", content), purpose="batch")


def when(read, has_ended):
    """What is read, as soon as it has ended."""
    for _ in range(600):
        found = read()
        if has_ended(found):
            return found
        time.sleep(0.1)
    raise AssertionError("the batch does not end")


class Files(unittest.TestCase):
    def test_uploads_lists_reads_and_deletes_a_file(self):
        client = openai_client()
        file = uploaded(client, [line("a", MESSAGES)])
        self.assertEqual((file.purpose, file.filename), ("batch", "lines.jsonl"))
        self.assertIn(file.id, [one.id for one in client.files.list(purpose="batch")])
        self.assertEqual(client.files.retrieve(file.id).bytes, file.bytes)
        self.assertEqual(json.loads(client.files.content(file.id).text)["custom_id"], "a")
        self.assertTrue(client.files.delete(file.id).deleted)
        with self.assertRaises(openai.NotFoundError):
            client.files.retrieve(file.id)


class Batches(unittest.TestCase):
    @on_each_model
    def test_makes_a_batch_and_reads_its_results_and_errors(self, model):
        client = openai_client()
        file = uploaded(client, [line("good", model), line("bad", model, "status 400")])
        batch = client.batches.create(
            input_file_id=file.id,
            endpoint="/v1/chat/completions",
            completion_window="24h",
            metadata={"allow_local": "true"},
        )
        ended = when(lambda: client.batches.retrieve(batch.id), lambda one: one.status in ENDED)
        counts = ended.request_counts
        self.assertEqual((ended.status, counts.total, counts.completed, counts.failed), ("completed", 2, 1, 1))
        result = json.loads(client.files.content(ended.output_file_id).text)
        self.assertEqual(result["custom_id"], "good")
        answer = result["response"]["body"]
        self.assertEqual(answer["choices"][0]["message"]["content"], GREETING)
        error = json.loads(client.files.content(ended.error_file_id).text)
        self.assertEqual((error["custom_id"], error["response"]["status_code"]), ("bad", 400))
        self.assertIn(batch.id, [one.id for one in client.batches.list(limit=100)])
        with self.assertRaises(openai.BadRequestError):
            client.batches.cancel(batch.id)

    def test_a_wrong_line_is_refused_with_its_number(self):
        client = openai_client()
        file = uploaded(client, [line("a", MESSAGES), line("b", "unheard-of")])
        with self.assertRaises(openai.BadRequestError) as refused:
            client.batches.create(
                input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
            )
        self.assertEqual((refused.exception.code, refused.exception.body["line"]), ("invalid_batch", 2))

    @on_each_model
    def test_makes_a_message_batch_reads_its_results_and_deletes_it(self, model):
        batches = anthropic_client().messages.batches
        requests = [
            {"custom_id": custom_id, "params": line("", model, scenario)["body"]}
            for custom_id, scenario in (("good", "greet"), ("bad", "status 400"))
        ]
        made = batches.create(requests=requests)
        self.assertEqual(made.processing_status, "in_progress")
        ended = when(lambda: batches.retrieve(made.id), lambda one: one.processing_status == "ended")
        self.assertEqual((ended.request_counts.succeeded, ended.request_counts.errored), (1, 1))
        results = {one.custom_id: one.result for one in batches.results(made.id)}
        self.assertEqual(results["good"].message.content[0].text, GREETING)
        self.assertEqual(results["bad"].type, "errored")
        self.assertIn(made.id, [one.id for one in batches.list(limit=100)])
        self.assertEqual(batches.delete(made.id).type, "message_batch_deleted")
        with self.assertRaises(anthropic.NotFoundError):
            batches.retrieve(made.id)


if __name__ == "__main__":
    unittest.main()
