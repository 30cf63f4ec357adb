import { afterAll, beforeAll, expect, test } from 'vitest'
import { chunkFrame, streamedChat } from '../fixtures/chat-behaviour.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import type { Patch } from '../fixtures/patch.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'
import { askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

const STREAMS = 'src/call/streamed-response.ts'
const THROW = `throw new Error('unforeseen')`
/** A gateway that throws in the middle of streams of three models, each time after an await. */
const THROWS: Patch[] = [
  {
    file: STREAMS,
    text: '(waited, () => this.#continueAfter(reason))',
    by: `(waited, () => { if (this.call.plan.request.model === 'prompt') ${THROW}; this.#continueAfter(reason) })`,
  },
  {
    file: STREAMS,
    text: 'if (!isUsedUp ||',
    by: `if (this.call.plan.request.model === 'count') ${THROW}; $&`,
  },
  {
    file: STREAMS,
    text: 'if (isDurable) {',
    by: `if (this.call.plan.request.model === 'hold') ${THROW}; $&`,
  },
  // The await must be a real one.
  {
    file: STREAMS,
    text: 'else if (!this.#watch',
    by: `else if (this.call.plan.request.model === 'count') this.#checkHold(); $&`,
  },
  {
    file: 'src/call/delivery-gate.ts',
    text: 'return hold.isDurable ? undefined',
    by: `return hold.facts.model !== 'hold' ? undefined`,
  },
  { file: 'src/call/prompt-count.ts', text: 'return this.#isPending', by: 'return true' },
  // Memory for two incomplete events of any size; a third may exceed the limit.
  { file: 'src/limits/request-memory.ts', text: '= 64 * 1024', by: '= 0' },
  { file: 'src/limits/request-memory.ts', text: 'SHARED_BYTES = 192 * MIB', by: 'SHARED_BYTES = 2_500' },
  { file: 'src/limits/request-memory.ts', text: 'SHARED_BODIES = 4', by: 'SHARED_BODIES = 0' },
  { file: 'src/limits/request-memory.ts', text: 'RESERVE_BYTES = 64 * MIB', by: 'RESERVE_BYTES = 0' },
].map(({ by, text, ...rest }) => ({ ...rest, text, by: by.replace('$&', () => text) }))

const MODELS = ['prompt', 'count', 'hold']
const copy = await patchedProgram(THROWS)
let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture(
    (upstream) => ({
      models: priced([...MODELS, 'good']),
      channels: [...MODELS, 'good'].map((model) => channel(model, upstream.baseUrl(model))),
      users: [ROOT, user(2, 'ann', [token('ann')])],
    }),
    { root: copy.root },
  )
})
afterAll(async () => {
  await fixture?.close()
  copy.discard()
})

/** An event, and a part of the next one, whose memory is released. */
const PIECES = [`${chunkFrame({ content: 'a' })}data: ${'x'.repeat(1_000)}`]

test.each(MODELS)(
  'an exception after an await (%s) ends its call only, and the resources of the call are released',
  async (model) => {
    const path = '/v1/messages'
    const fields = { max_tokens: 10 }
    for (let calls = 0; calls < 3; calls++) {
      fixture.upstream.script(model, { kind: 'stream', frames: PIECES, ending: 'stall' })
      const answer = await (await fixture.live('ann', askStream(model, fields), { path })).end()
      expect(answer.status === 500 || answer.broken, answer.text).toBe(true)
      await fixture.upstream.only(model).ended
    }
    const { frames = [] } = streamedChat({ text: 'whole' })
    // An event is kept in memory until it is complete.
    const pieces = [`: ${'x'.repeat(900)}`, `\n\n${frames.join('')}`]
    fixture.upstream.script('good', { kind: 'stream', frames: pieces, paceMs: 20, ending: 'no done' })
    const good = await fixture.chat('ann', askStream('good', fields), { path })
    expect(good.status, good.text).toBe(200)
    expect(good.text).toContain('message_stop')
  },
)
