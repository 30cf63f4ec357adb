import { once } from 'node:events'
import { type ClientRequest, request } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contentFrame, DONE_FRAME, finishFrame } from '../fixtures/behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, type Fixture, startFixture } from '../fixtures/fixture.ts'

const MIB = 2 ** 20
const REPEATS = 400
/** What values may add to an answer, and what it has beside them. */
const MAX_ANSWER = 8 * MIB + 65_536

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { retries: 0 },
    rate_limits: {},
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    guards: [{ name: 'swap', do: 'replace', match: { secrets: true } }],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

const LONG = `sk-${'Ab1'.repeat(400_000)}`
const asked = (secret: string, stream = false) =>
  ask('m', { stream, messages: [{ role: 'user', content: `Repeat ${secret} often.` }] })

/** Sends a secret to a model that names it many times. Returns the answer, and the token of the secret. */
async function repeated(secret: string, stream: boolean) {
  let placeholder = ''
  fixture.upstream.decide('m', ({ text }) => {
    placeholder = /\[\[SECRET_[0-9a-f]{8}\]\]/.exec(text)?.[0] ?? ''
    const content = `${placeholder} `.repeat(REPEATS)
    const frames = [contentFrame(content), finishFrame(), DONE_FRAME]
    return stream ? { kind: 'stream', frames } : { kind: 'whole', content }
  })
  const { status, text } = await fixture.chat('ann', asked(secret, stream))
  expect([status, placeholder]).toEqual([200, expect.stringContaining('SECRET')])
  return { text, placeholder }
}

test.each([
  ['whole answer', false],
  ['stream', true],
])(
  'values that a guard puts back into a %s add at most 8 MiB to it; further tokens stay',
  async (_form, stream) => {
    const { text, placeholder } = await repeated(LONG, stream)
    expect(text.length).toBeLessThan(MAX_ANSWER)
    expect([text.includes(LONG), text.includes(placeholder)]).toEqual([true, true])
  },
)

test.each([
  ['whole answer', false],
  ['stream', true],
])('a value of usual length is put back into a %s wherever its token is', async (_form, stream) => {
  const secret = `sk-${'Ab1'.repeat(400)}`
  const { text, placeholder } = await repeated(secret, stream)
  expect([text.split(secret).length - 1, text.includes(placeholder)]).toEqual([REPEATS, false])
})

test('values that a guard puts back into answers count as memory of their user until the answers are read', async () => {
  await repeated(LONG, false)
  const unread: ClientRequest[] = []
  try {
    for (let index = 0; index < 14; index += 1) {
      const headers = { authorization: 'Bearer sk-ann', 'content-type': 'application/json' }
      const path = `${fixture.gateway.url}/v1/chat/completions`
      const sent = request(path, { method: 'POST', agent: false, headers })
      sent.on('error', () => {})
      sent.end(JSON.stringify(asked(LONG)))
      unread.push(sent)
      await once(sent, 'response')
    }
    expect((await repeated(LONG, false)).text.includes(LONG)).toBe(false)
  } finally {
    for (const one of unread) one.destroy()
  }
  await expect.poll(async () => (await repeated(LONG, false)).text.includes(LONG)).toBe(true)
})
