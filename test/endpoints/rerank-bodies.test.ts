import { readFileSync } from 'node:fs'
import process from 'node:process'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FullResponse, Body } from '../fixtures/client.ts'
import { priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { jinaAnswer, type RankedResult } from '../fixtures/rerank-behaviour.ts'
import { askRerank, ranked, rerank, rerankChannel } from '../fixtures/rerank-fixture.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { MEASURED_TURNS, mostTurnCpuMs } from '../fixtures/turn-cpu.ts'
import { byTier } from '../runner/tier.ts'

/**
 * Maximum CPU milliseconds of a turn of the event loop, for which others wait, while a large request is
 * processed; on a slow machine, twenty times the time to read that body.
 */
const MOST_TURN_MS = 250

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture(
    (upstream) => ({
      models: priced(['m', 'second']),
      channels: [
        rerankChannel('m', upstream.baseUrl('m')),
        rerankChannel('second', upstream.baseUrl('second').replace(/v1$/, 'v2')),
      ],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    }),
    { env: MEASURED_TURNS },
  )
})
afterAll(() => fixture?.close())

/** The number of documents in a large request: 30 MB at night. */
const MANY = byTier(100, 300)
const KILOBYTES_100 = 'apple pie '.repeat(10_000)
const documents = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${index} ${KILOBYTES_100}`.slice(0, 100_000))
const results = (count: number): RankedResult[] =>
  Array.from({ length: count }, (_, index) => ({ index, relevance_score: index / count }))

/** Makes a rerank call, and checks that others could be answered meanwhile. */
async function whileOthersAreAnswered(body: Body): Promise<FullResponse> {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const before = process.threadCpuUsage()
  JSON.parse(text)
  const spent = process.threadCpuUsage(before)
  const parseMs = (spent.user + spent.system) / 1000
  const answers: FullResponse[] = []
  const turnMs = await mostTurnCpuMs(fixture.gateway, async () => {
    answers.push(await rerank(fixture, 'ann', body))
  })
  expect(turnMs).toBeLessThan(Math.max(MOST_TURN_MS, 20 * parseMs))
  return answers[0] as FullResponse
}

describe(`${MANY} documents of 100 KB`, () => {
  test('large documents of a rerank call are ranked and returned in limited memory, while other calls are answered', async () => {
    const sent = documents(MANY)
    fixture.upstream.script('m', jinaAnswer(results(MANY), 7_500_000))
    const body = JSON.stringify(askRerank('m', { documents: sent, return_documents: true, top_n: MANY - 1 }))
    const peak = peakMemory(fixture.gateway.pid)
    const answer = ranked(await whileOthersAreAnswered(body))
    expect(answer.results).toHaveLength(MANY - 1)
    expect(answer.results[0]).toEqual({
      index: MANY - 1,
      relevance_score: (MANY - 1) / MANY,
      document: sent[MANY - 1],
    })
    expect(fixture.upstream.only('m').text).toBe(body)
    expect(peakMemory(fixture.gateway.pid) - peak).toBeLessThan(600 << 20)
  })

  test('the tokens of large rerank documents are counted locally if the upstream reports none, while other calls are answered', async () => {
    fixture.upstream.script('m', { kind: 'whole', body: JSON.stringify({ results: results(MANY) }) })
    const answer = await whileOthersAreAnswered(askRerank('m', { documents: documents(MANY) }))
    // Two words of ten bytes, one token each, and the number at the beginning of each document.
    const { prompt_tokens: tokens } = ranked(answer).usage
    expect(tokens).toBeGreaterThan(18_333 * MANY)
    expect(tokens).toBeLessThan(21_667 * MANY)
  })

  test('large rerank documents in objects are sent as texts where the upstream requires texts, while other calls are answered', async () => {
    const sent = documents(MANY).map((text) => ({ text }))
    fixture.upstream.script('second', jinaAnswer(results(MANY), 7_500_000))
    const answer = await whileOthersAreAnswered(
      askRerank('second', { documents: sent, return_documents: true }),
    )
    expect(ranked(answer).results[0]?.document).toEqual(sent[MANY - 1])
    expect(JSON.parse(fixture.upstream.only('second').text).documents).toEqual(documents(MANY))
  })
})

test('a rerank call with a thousand documents of 100 KB is a 413 request_too_large', async () => {
  fixture.upstream.forget('m')
  const answer = await rerank(fixture, 'ann', askRerank('m', { documents: documents(1000) }))
  expect(answer.status).toBe(413)
  expect(answer.json().error).toMatchObject({ type: 'request_too_large', code: 'request_too_large' })
  expect(answer.json().error.message).toMatch(/\(request id: [^()\s]+\)$/)
  expect(fixture.upstream.received('m')).toHaveLength(0)
})

test('a rerank call with ten thousand short documents is answered with their ranking', async () => {
  const many = Array.from({ length: 10_000 }, (_, index) => `document ${index}`)
  fixture.upstream.script('m', jinaAnswer(results(10_000), 50_000))
  const answer = await rerank(fixture, 'ann', askRerank('m', { documents: many, top_n: 3 }))
  expect(ranked(answer).results.map(({ index }) => index)).toEqual([9999, 9998, 9997])
})

/** Peak memory of a process so far, in bytes. */
function peakMemory(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024
}
