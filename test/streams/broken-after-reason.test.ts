import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { streamedChat } from '../fixtures/chat-behaviour.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, retryWhileOverloaded } from '../fixtures/fixture.ts'
import { streamedGemini } from '../fixtures/gemini-behaviour.ts'
import { streamedMessage } from '../fixtures/messages-behaviour.ts'
import { streamedResponse } from '../fixtures/responses-behaviour.ts'
import { DIALECTS, type Dialect } from '../fidelity/facts.ts'
import { streamFacts } from '../fidelity/read-facts.ts'
import { QUESTIONS, startRoads } from '../fidelity/roads.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startRoads()
})
afterAll(() => fixture?.close())

/** Stream frames of each provider, up to the frame with the finish reason and the usage. */
const FRAMES: Readonly<Record<Dialect, readonly string[]>> = {
  chat: (streamedChat({ text: 'Hello.' }).frames ?? []).slice(0, -1),
  messages: (streamedMessage([{ text: 'Hello.' }]).frames ?? []).slice(0, -1),
  responses: streamedResponse({ text: 'Hello.' }).frames ?? [],
  gemini: streamedGemini({ text: 'Hello.' }).frames ?? [],
}
/** The charge in quota units: ten tokens of prompt and five of output. */
const CHARGE = 10 + 5 * 4

const ROADS = DIALECTS.flatMap((provider) =>
  DIALECTS.flatMap((client) => (['reset', 'close'] as const).map((ending) => ({ provider, client, ending }))),
)

/** The response to a stream that breaks off after these frames, and the usage row of its call. */
async function answered(
  client: Dialect,
  provider: Dialect,
  frames: readonly string[],
  ending: 'reset' | 'close',
) {
  fixture.upstream.script(provider, { kind: 'stream', frames, ending })
  const { path, body } = QUESTIONS[client](provider, true)
  const answer = await retryWhileOverloaded(() => fixture.chat('ann', body, { path }))
  expect(answer.status, answer.text).toBe(200)
  const row = databaseOf(fixture.gateway.dataDir).usageOf(String(answer.headers['x-request-id']))
  return { facts: streamFacts(client, answer.text), text: answer.text, row }
}

describe.each(ROADS)('a connection of $provider that breaks ($ending), for a client of $client', (road) => {
  const { provider, client, ending } = road

  test('a stream that breaks off after its finish reason counts as complete, and is charged by its usage', async () => {
    const { facts, row } = await answered(client, provider, FRAMES[provider], ending)
    expect(facts).toMatchObject({ text: 'Hello.', finish: 'stop', errors: 0 })
    expect(row).toMatchObject({ reason: 'complete', quota: CHARGE })
  })

  test('a stream that breaks off before its finish reason ends with an error, and counts as cut off', async () => {
    const isEnd = provider === 'chat' ? -2 : -1
    const { facts, row, text } = await answered(client, provider, FRAMES[provider].slice(0, isEnd), ending)
    expect(facts.errors, text).toBe(1)
    expect(row?.reason).toBe('cut')
  })
})

test('a chat stream that breaks off between finish reason and usage counts as complete, and is charged by counted tokens', async () => {
  for (const client of DIALECTS) {
    const { facts, row } = await answered(client, 'chat', FRAMES.chat.slice(0, -1), 'reset')
    expect(facts).toMatchObject({ text: 'Hello.', finish: 'stop', errors: 0 })
    expect(row?.reason).toBe('estimated')
  }
})
