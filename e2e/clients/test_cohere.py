"""Both versions of the official Cohere client, for ranking documents."""

import unittest

import cohere

from gateway import KEY, RERANK, URL

DOCUMENTS = ["one", "two", "three"]


def clients(key=KEY):
    return cohere.Client(api_key=key, base_url=URL), cohere.ClientV2(api_key=key, base_url=URL)


class CohereClient(unittest.TestCase):
    def test_ranks_documents(self):
        for own in clients():
            with self.subTest(client=type(own).__name__):
                answer = own.rerank(model=RERANK, query="q", documents=DOCUMENTS, top_n=2)
                ranked = [(result.index, result.relevance_score) for result in answer.results]
                self.assertEqual(ranked, [(1, 0.9), (2, 0.5)])

    def test_gets_documents_with_their_text(self):
        asked = {"model": RERANK, "query": "q", "documents": [{"text": text} for text in DOCUMENTS], "top_n": 1}
        answer = cohere.Client(api_key=KEY, base_url=URL).rerank(**asked, return_documents=True)
        self.assertEqual([result.document.text for result in answer.results], ["two"])

    def test_gets_texts_as_documents_of_the_second_version(self):
        more = {"additional_body_parameters": {"return_documents": True}}
        asked = {"model": RERANK, "query": "q", "documents": DOCUMENTS, "top_n": 1, "request_options": more}
        answer = cohere.ClientV2(api_key=KEY, base_url=URL).rerank(**asked)
        self.assertEqual([result.document["text"] for result in answer.results], ["two"])

    def test_raises_for_a_key_that_is_unknown(self):
        for own in clients("sk-nobody"):
            with self.subTest(client=type(own).__name__), self.assertRaises(cohere.UnauthorizedError):
                own.rerank(model=RERANK, query="q", documents=DOCUMENTS)

    def test_raises_for_a_request_that_is_refused(self):
        for own in clients():
            with self.subTest(client=type(own).__name__), self.assertRaises(cohere.BadRequestError):
                own.rerank(model="", query="q", documents=DOCUMENTS)


if __name__ == "__main__":
    unittest.main()
