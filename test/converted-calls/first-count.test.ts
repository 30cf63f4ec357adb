import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { streamedChat } from '../fixtures/chat-behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'

/** A gateway that waits for its token counts, and tells when its tokenizer, which loads slowly, is loaded. */
const copy = await patchedProgram([
  { file: 'src/call/prompt-count.ts', text: 'TIMEOUT_MS = 250', by: 'TIMEOUT_MS = 60_000' },
  {
    file: 'src/call/token-counter-worker.ts',
    text: 'const counts = ',
    by: `const { writeFileSync } = await import('node:fs')
      await new Promise((resolve) => setTimeout(resolve, 500))
      writeFileSync(process.env['DATA_DIR'] + '/loaded', '')
      const counts = `,
  },
])
afterAll(() => copy.discard())

async function started(): Promise<Fixture> {
  const fixture = await startFixture(
    (upstream) => ({
      models: priced(['m']),
      channels: [channel('m', upstream.baseUrl('m'))],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    }),
    { root: copy.root },
  )
  onTestFinished(() => fixture.close())
  return fixture
}

/** The prompt tokens at the beginning of a stream whose upstream reports none. */
async function promptTokens(fixture: Fixture): Promise<number> {
  const { frames = [] } = streamedChat({ text: 'hello' })
  const silent = frames.filter((frame) => !frame.includes('"usage"'))
  fixture.upstream.script('m', { kind: 'stream', frames: silent, ending: 'no done' })
  const messages = [{ role: 'user', content: 'apple '.repeat(500).trim() }]
  const request = askStream('m', { max_tokens: 10, messages })
  const answer = await fixture.chat('ann', request, { path: '/v1/messages' })
  return Number(/"message_start".*?"input_tokens":(\d+)/.exec(answer.text)?.[1])
}

test('the first converted stream after a start counts the prompt tokens like later streams', async () => {
  const fixture = await started()
  const first = await promptTokens(fixture)
  // One token for each word, in any tokenizer, and a few around the message.
  expect(first).toBeGreaterThanOrEqual(500)
  expect(first).toBeLessThan(520)
  expect(await promptTokens(fixture)).toBe(first)
})

test('a starting gateway reports that it is ready only once the tokenizer is loaded', async () => {
  const fixture = await started()
  expect(existsSync(join(fixture.gateway.dataDir, 'loaded'))).toBe(true)
})
