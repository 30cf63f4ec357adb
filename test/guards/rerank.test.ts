import { afterAll, beforeAll, expect, test } from 'vitest'
import type { FullResponse } from '../fixtures/client.ts'
import { priced } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { type GuardServices, startGuardServices } from '../fixtures/guard-services.ts'
import { OUTPUT_USERS, outputGuards } from '../fixtures/output-guards.ts'
import { askRerank, rerank, rerankChannel } from '../fixtures/rerank-fixture.ts'

let fixture: Fixture
let services: GuardServices
beforeAll(async () => {
  services = await startGuardServices()
  fixture = await startFixture((upstream) => ({
    models: priced(['ranker']),
    channels: [rerankChannel('ranker', upstream.baseUrl('ranker'))],
    guards: [
      ...outputGuards(services.url),
      { name: 'swap', do: 'replace', where: ['input'], match: { pii: ['email'] }, tokens: ['token-kim'] },
    ],
    users: OUTPUT_USERS,
  }))
})
afterAll(async () => {
  await fixture?.close()
  await services?.stop()
})

/** The texts that providers return: documents, and members that no API describes. */
function answerWith(text: string): object {
  return {
    id: 'rank-1',
    results: [
      { index: 0, relevance_score: 0.5, document: { text, x_title: text } },
      { index: 1, relevance_score: 0.25, document: text, x_note: [{ deep: text }] },
    ],
    meta: { warnings: [text] },
    x_note: text,
  }
}

async function ask(key: string, text: string): Promise<FullResponse> {
  fixture.upstream.script('ranker', { kind: 'whole', body: JSON.stringify(answerWith(text)) })
  return rerank(fixture, key, askRerank('ranker', { return_documents: true }))
}

test.each([
  ['a guard of texts', 'ann', '[REDACTED]'],
  ["a guard's service", 'eve', '<code>'],
])('%s redacts documents and unknown members of a ranking', async (_, key, instead) => {
  for (const words of [1, 2000]) {
    const answer = await ask(key, `${'a '.repeat(words)}code-1-x`)
    expect(answer.status).toBe(200)
    expect(answer.text.split(instead)).toHaveLength(6)
    expect(answer.text).not.toContain('code-1-x')
    expect(JSON.parse(answer.text)).toMatchObject({ id: 'rank-1', results: [{ index: 0 }, { index: 1 }] })
  }
})

test('documents that the gateway takes from the request are redacted like those that a provider returns', async () => {
  const results = [{ index: 0, relevance_score: 0.5 }]
  fixture.upstream.script('ranker', { kind: 'whole', body: JSON.stringify({ results }) })
  const documents = ['it is code-1-x', 'other']
  const answer = await rerank(fixture, 'ann', askRerank('ranker', { return_documents: true, documents }))
  expect(answer.text).toContain('it is [REDACTED]')
})

test('a ranking that a guard blocks has no results, and nothing of the text', async () => {
  const answer = await ask('ben', 'it is code-1-x')
  expect(JSON.parse(answer.text)).toMatchObject({ id: 'rank-1', results: [], usage: {} })
  expect(answer.text).not.toContain('code-1-x')
})

test('a ranking without a match passes byte for byte as without guards', async () => {
  const { text } = await ask('kim', 'it is fine')
  expect((await ask('ben', 'it is fine')).text).toBe(text)
})

test('a value that a guard has replaced in the request is put back in the documents of a ranking', async () => {
  fixture.upstream.decide('ranker', ({ text }) => {
    const { documents } = JSON.parse(text) as { documents: string[] }
    expect(text).not.toContain('ann@example.com')
    const results = documents.map((document, index) => ({ index, relevance_score: 0.5, document }))
    return { kind: 'whole', body: JSON.stringify({ results }) }
  })
  const documents = ['mail ann@example.com', 'other']
  const answer = await rerank(fixture, 'kim', askRerank('ranker', { return_documents: true, documents }))
  expect(answer.text).toContain('mail ann@example.com')
})
