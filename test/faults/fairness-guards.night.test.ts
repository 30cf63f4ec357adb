import { afterAll, beforeAll, expect, test } from 'vitest'
import { streamedContent } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

/** An expression with many possible states at each position of a text of these letters. */
const EXPRESSION = String.raw`[\w.-]+\.[\w.-]{2,60}\.internal`
const LENGTH = 400_000
/** Calls of another user while the guard checks a text, about a third of those that are answered. */
const MIN_CALLS = 10

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    rate_limits: {},
    models: priced(['large', 'm', 'long', 'refused']),
    channels: ['large', 'm', 'long', 'refused'].map((name) => channel(name, upstream.baseUrl(name))),
    guards: [
      { name: 'hosts', do: 'block', match: { regex: EXPRESSION } },
      { name: 'codes', do: 'redact', where: ['output'], match: { regex: 'code-[0-9]+-x' }, with: '#' },
    ],
    users: [ROOT, user(2, 'ann', [token('ann')]), user(3, 'bob', [token('bob')])],
  }))
  fixture.upstream.script('large', { kind: 'whole', content: 'yes' })
  // A model that answers at once, so that all the time of its calls is the gateway's.
  fixture.upstream.script('m', { kind: 'whole', content: 'yes' })
})
afterAll(() => fixture?.close())

let seed = 1
function hostileText(): string {
  const letters = Array.from({ length: LENGTH }, () => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
    return 'ab.'[seed % 3]
  })
  return letters.join('')
}

/** The calls that another user makes one after the other, and that are answered before this is over. */
async function callsDuring(others: Promise<unknown>): Promise<number> {
  let isOver = false
  void others.finally(() => (isOver = true))
  for (let calls = 0; ; calls++) {
    expect((await fixture.chat('bob', ask('m'))).status).toBe(200)
    if (isOver) return calls
  }
}

test('a long answer is checked in turns as a short one is: whole and streamed', async () => {
  const content = `${hostileText().slice(0, 100_000)} code-4711-x `
  fixture.upstream.script('long', { kind: 'whole', content: content.repeat(3) })
  const whole = await fixture.chat('ann', ask('long'))
  expect(whole.json().choices[0]?.message.content === content.replace('code-4711-x', '#').repeat(3)).toBe(
    true,
  )
  fixture.upstream.script('long', { kind: 'stream', events: 3, word: content })
  const { text } = await fixture.chat('ann', askStream('long'))
  expect(streamedContent(text) === content.replace('code-4711-x', '#').repeat(3)).toBe(true)
  fixture.upstream.script('refused', { kind: 'whole', content: `${content} db.prod.internal` })
  const blocked = await fixture.chat('ann', ask('refused'))
  expect(blocked.text).not.toContain('4711-x')
  expect(blocked.json().choices[0]?.finish_reason).toBe('content_filter')
})

// Checked in one piece, a text would delay the first of these calls until its end.
test.each([1, 8])(
  'while a guard takes long for %i texts, many calls of another user are answered',
  async (count) => {
    const bodies = Array.from({ length: count }, () =>
      JSON.stringify(ask('large', { messages: [{ role: 'user', content: hostileText() }] })),
    )
    const checked = Promise.all(
      bodies.map(async (body) => expect((await fixture.chat('ann', body)).status).toBe(200)),
    )
    expect(await callsDuring(checked)).toBeGreaterThan(MIN_CALLS * count)
    await checked
  },
)
