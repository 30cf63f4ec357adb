import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { streamedContent } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

/** An expression with many possible states at each position of a text of these letters. */
const EXPRESSION = String.raw`[\w.-]+\.[\w.-]{2,60}\.internal`
const LENGTH = 400_000
/** Attempts to measure, and milliseconds of the calls without others. */
const ROUNDS = 8
const ALONE_MS = 200

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

/** The median, in milliseconds, of the calls that another user makes one after the other until others are over. */
async function medianOfCalls(others: Promise<unknown>): Promise<number> {
  let isOver = false
  void others.finally(() => (isOver = true))
  const times: number[] = []
  for (;;) {
    const began = performance.now()
    expect((await fixture.chat('bob', ask('m'))).status).toBe(200)
    if (isOver && times.length > 0) break
    times.push(performance.now() - began)
  }
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] as number
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
  expect(blocked.text).not.toContain('4711')
  expect(blocked.json().choices[0]?.finish_reason).toBe('content_filter')
})

test.each([1, 8])(
  '%i texts on which a guard takes long delay the calls of another user to twice their median at most',
  async (count) => {
    const ratios: number[] = []
    // Other programs of the machine delay calls too, most of all those that meet a busy gateway.
    while (ratios.length < ROUNDS && !ratios.some((ratio) => ratio < 2)) {
      const alone = await medianOfCalls(sleep(ALONE_MS))
      const bodies = Array.from({ length: count }, () =>
        JSON.stringify(ask('large', { messages: [{ role: 'user', content: hostileText() }] })),
      )
      const meanwhile = await medianOfCalls(
        Promise.all(bodies.map(async (body) => expect((await fixture.chat('ann', body)).status).toBe(200))),
      )
      ratios.push(meanwhile / alone)
    }
    expect(Math.min(...ratios)).toBeLessThan(2)
  },
)
