import { afterAll, beforeAll, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { completionText, errorBody } from '../fixtures/behaviour.ts'
import type { FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { contentOf } from '../fixtures/content.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { type PatchedCopy, patchedProgram } from '../fixtures/patched-copy.ts'
import { addedCode } from '../recipes/recipe.ts'

const NEXT = "    file: 'Media',\n    format"
const PATCH = {
  file: 'packages/wire/src/chat/shape.ts',
  text: NEXT,
  by: addedCode('recipes/add-a-member', 'ts') + NEXT,
}
const ANN = { id: 2, accessToken: 'the-access-token-of-ann' }
const CAPTION = 'Ann (ann.lee@example.com) and the dog in the garden'

let copy: PatchedCopy
let fixture: Fixture
beforeAll(async () => {
  copy = await patchedProgram([PATCH])
  fixture = await startFixture(
    (upstream) => ({
      rate_limits: { global: { requests: 0 } },
      content_log: { what: 'full', keep: '1h', readers: 100 },
      models: priced(['m', 'guarded']),
      channels: [channel('m', upstream.baseUrl('m'), { models: ['m', 'guarded'] })],
      guards: [{ name: 'mail', do: 'redact', models: ['guarded'], match: { pii: ['email'] } }],
      users: [
        ROOT,
        user(2, 'ann', [token('ann'), token('redacted', { content_log: { what: 'redacted' } })], {
          access_token: ANN.accessToken,
        }),
      ],
    }),
    { root: copy.root },
  )
  // Without a usage, the gateway counts the prompt itself.
  fixture.upstream.decide('m', () => ({ kind: 'whole', body: completionText('yes', null) }))
})
afterAll(async () => {
  await fixture?.close()
  copy?.discard()
})

const say = (key: string, model: string, ...content: object[]): Promise<FullResponse> =>
  fixture.chat(key, ask(model, { messages: [{ role: 'user', content }] }))
const captioned = { type: 'text', text: 'Look', caption: CAPTION }

const idOf = ({ headers, status, text }: FullResponse): string => {
  expect(status, text).toBe(200)
  return String(headers['x-request-id'])
}

test('a member that is added by the recipe is sent upstream as it came, and a misspelt one is refused', async () => {
  await say('ann', 'm', captioned)
  expect(fixture.upstream.received('m').at(-1)?.text).toContain(`"caption":"${CAPTION}"`)
  const { status, text } = await say('ann', 'm', { type: 'text', text: 'Look', Caption: CAPTION })
  expect([status, text]).toEqual([400, expect.stringContaining("Invalid name 'Caption'")])
})

test('a text that is added by the recipe counts as much as the same text in a part', async () => {
  const promptOf = async (...content: object[]): Promise<unknown> => {
    const id = idOf(await say('ann', 'm', ...content))
    const { data } = await manage<{ prompt_tokens: number }>(
      fixture.gateway.url,
      ANN,
      `GET /api/log/self/${id}`,
    )
    return data.prompt_tokens
  }
  const counted = await promptOf({ type: 'text', text: 'Look' }, { type: 'text', text: CAPTION })
  expect(counted).toBeGreaterThan(5)
  expect(await promptOf(captioned)).toBe(counted)
})

test('a guard changes a text that is added by the recipe', async () => {
  await say('ann', 'guarded', captioned)
  expect(fixture.upstream.received('m').at(-1)?.text).toContain('"caption":"Ann ([REDACTED]) and')
})

test('a text that is added by the recipe is logged, redacted, and shown as a part of its turn', async () => {
  const shown = async (key: string): Promise<unknown> => {
    const id = idOf(await say(key, 'm', captioned))
    return (await contentOf(fixture.gateway.url, ANN, id)).conversation?.[0]
  }
  const turn = (caption: string): object => ({
    role: 'user',
    parts: [
      { kind: 'text', text: 'Look' },
      { kind: 'text', text: caption },
    ],
  })
  expect(await shown('ann')).toEqual(turn(CAPTION))
  expect(await shown('redacted')).toEqual(turn(CAPTION.replace('ann.lee@example.com', '[REDACTED]')))
})

test('what a provider repeats of a text that is added by the recipe is not stored', async () => {
  fixture.upstream.script('m', { kind: 'status', status: 400, body: errorBody(`I do not like "${CAPTION}"`) })
  const { headers, status } = await say('ann', 'm', captioned)
  expect(status).toBe(400)
  const path = `GET /api/log/self/${String(headers['x-request-id'])}` as const
  // The row of a call that costs nothing is written after its answer.
  const told = async (): Promise<string | undefined> =>
    (await manage<{ error: { message: string } } | undefined>(fixture.gateway.url, ANN, path)).data?.error
      .message
  await expect.poll(told).toBe('I do not like "…"')
})
