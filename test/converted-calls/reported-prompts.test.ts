import { afterAll, beforeAll, expect, test } from 'vitest'
import { streamedChat } from '../fixtures/chat-behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'
import { askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

/** A gateway whose token count is different each time, and that waits for the count. */
const copy = await patchedProgram([
  {
    file: 'src/call/token-counter-worker.ts',
    text: 'counts.tokensOf(piece)',
    by: 'counts.tokensOf(piece) + 1000 * (globalThis.times = (globalThis.times ?? 0) + 1)',
  },
  { file: 'src/call/prompt-count.ts', text: 'TIMEOUT_MS = 250', by: 'TIMEOUT_MS = 60_000' },
])
let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture(
    (upstream) => ({
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    }),
    { root: copy.root },
  )
})
afterAll(async () => {
  await fixture?.close()
  copy.discard()
})

test('message_start of a converted stream states the prompt tokens that the gateway counts and charges if none are reported', async () => {
  const { frames = [] } = streamedChat({ text: 'hello' })
  const silent = frames.filter((frame) => !frame.includes('"usage"'))
  fixture.upstream.script('m', { kind: 'stream', frames: silent, ending: 'no done' })
  const request = askStream('m', { max_tokens: 10 })
  const answer = await fixture.chat('ann', request, { path: '/v1/messages' })
  const told = Number(/"input_tokens":(\d+)/.exec(answer.text)?.[1])
  expect(told).toBeGreaterThan(1000)
  const row = databaseOf(fixture.gateway.dataDir).usageOf(String(answer.headers['x-request-id']))
  expect(row?.input_tokens).toBe(told)
})
