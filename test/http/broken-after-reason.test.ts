import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { streamedChat } from '../equipment/chat-behaviour.ts'
import { databaseOf } from '../equipment/database.ts'
import { type Fixture, retryWhileOverloaded } from '../equipment/fixture.ts'
import { streamedGemini } from '../equipment/gemini-behaviour.ts'
import { streamedMessage } from '../equipment/messages-behaviour.ts'
import { streamedResponse } from '../equipment/responses-behaviour.ts'
import { DIALECTS, type Dialect } from '../fidelity/facts.ts'
import { streamFacts } from '../fidelity/read-facts.ts'
import { QUESTIONS, startRoads } from '../fidelity/roads.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await startRoads()
})
afterAll(() => fixture?.close())

/** Frames of a stream of each provider, up to the one that states the reason and the usage. */
const FRAMES: Readonly<Record<Dialect, readonly string[]>> = {
  chat: (streamedChat({ text: 'Hello.' }).frames ?? []).slice(0, -1),
  messages: (streamedMessage([{ text: 'Hello.' }]).frames ?? []).slice(0, -1),
  responses: streamedResponse({ text: 'Hello.' }).frames ?? [],
  gemini: streamedGemini({ text: 'Hello.' }).frames ?? [],
}
/** Quota units of that usage: ten tokens of prompt and five of output. */
const CHARGE = 10 + 5 * 4

const ROADS = DIALECTS.flatMap((provider) =>
  DIALECTS.flatMap((client) => (['reset', 'close'] as const).map((ending) => ({ provider, client, ending }))),
)

/** The answer of a stream that breaks off behind these frames, and the row of its call. */
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

  test('after the reason was stated is a complete answer, and charged as such', async () => {
    const { facts, row } = await answered(client, provider, FRAMES[provider], ending)
    expect(facts).toMatchObject({ text: 'Hello.', finish: 'stop', errors: 0 })
    expect(row).toMatchObject({ reason: 'complete', quota: CHARGE })
  })

  test('before is none', async () => {
    const isEnd = provider === 'chat' ? -2 : -1
    const { facts, row, text } = await answered(client, provider, FRAMES[provider].slice(0, isEnd), ending)
    expect(facts.errors, text).toBe(1)
    expect(row?.reason).toBe('cut')
  })
})

test('a chat stream whose usage is lost with its connection is complete, and counted', async () => {
  for (const client of DIALECTS) {
    const { facts, row } = await answered(client, 'chat', FRAMES.chat.slice(0, -1), 'reset')
    expect(facts).toMatchObject({ text: 'Hello.', finish: 'stop', errors: 0 })
    expect(row?.reason).toBe('estimated')
  }
})
