import { afterEach, describe, expect, test } from 'vitest'
import { requestMemory, usedUp } from '../../../test/samples/request-memory.ts'
import type { RequestedBodyForm } from './answer-bodies.ts'
import { AnswerConversions, type AnswerToRead } from './answer-conversions.ts'

const MIB = 1_048_576
const OWNER = { client: 1, key: 7 }
const EVENTS: RequestedBodyForm = { form: 'events', includeUsage: true }
const WHOLE: RequestedBodyForm = { form: 'whole', includeUsage: true }

const opened: AnswerConversions[] = []
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close()
})

function conversions(memory = requestMemory(), timeoutMs?: number): AnswerConversions {
  const threads = { failed() {}, started() {} }
  const made = new AnswerConversions({ memory, threads, ...(timeoutMs !== undefined && { timeoutMs }) })
  opened.push(made)
  return made
}

/** A chat completion, in pieces. */
function answer(content: string, reason = 'stop', form: AnswerToRead['form'] = 'whole'): AnswerToRead {
  const text = JSON.stringify({
    id: 'c1',
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: reason }],
    usage: { prompt_tokens: 3, completion_tokens: 2 },
  })
  const bytes = Buffer.from(text)
  const keeping = { endpoint: 'chat', forms: 'chat', hasUsageOption: true } as const
  const pieces = [bytes.subarray(0, 10), bytes.subarray(10)]
  return { keeping, form, includeUsage: true, usage: undefined, pieces }
}

describe('an answer that is read', () => {
  test.each([
    ['small', 100],
    ['large', 2 * MIB],
  ])(
    'if it is %s: what may be kept is known, and its stream becomes the same whole answer',
    async (_, size) => {
      const made = conversions()
      const whole = answer('ö'.repeat(size))
      expect(await made.mayBeKept(whole, OWNER)).toBe(true)
      expect(await made.mayBeKept(answer('ö'.repeat(size), 'length'), OWNER)).toBe(false)
      const events = await made.bodyFor(whole, EVENTS, OWNER)
      expect(String(events).endsWith('data: [DONE]\n\n')).toBe(true)
      const again = await made.bodyFor(
        { ...whole, form: 'events', pieces: events ? [events] : [] },
        WHOLE,
        OWNER,
      )
      expect(JSON.parse(String(again))).toEqual(JSON.parse(String(Buffer.concat(whole.pieces))))
    },
  )

  test("a cached answer counts against its client's memory while it is converted, and other conversions wait in turn", async () => {
    const memory = requestMemory()
    const made = conversions(memory)
    const all = [1, 2, 3].map((client) => made.bodyFor(answer('x'.repeat(MIB)), EVENTS, { client, key: 1 }))
    await new Promise((resolve) => setImmediate(resolve))
    expect([1, 2, 3].map((client) => memory.usedBy(client) >= 2 * MIB)).toEqual([true, false, false])
    for (const body of await Promise.all(all)) expect(body?.length).toBeGreaterThan(MIB)
    expect(memory.held).toBe(0)
  })

  test("when a client's memory is used up, a small answer is not cached, and a large one may be, as its conversion can wait", async () => {
    const memory = requestMemory()
    const made = conversions(memory)
    const release = usedUp(memory, OWNER.client)
    expect(await made.mayBeKept(answer('x'), OWNER)).toBe(false)
    expect(await made.mayBeKept(answer('x'.repeat(MIB)), OWNER)).toBe(true)
    release()
    expect([await made.mayBeKept(answer('x'), OWNER), memory.held]).toEqual([true, 0])
  })

  test('a large cached answer is converted in another thread, while the main thread does other work', async () => {
    const made = conversions()
    // The thread is there when the conversion begins.
    await made.mayBeKept(answer('x'.repeat(MIB)), OWNER)
    const end = { isHere: false }
    const converting = made.bodyFor(answer('x'.repeat(10_000_000)), EVENTS, OWNER).finally(() => {
      end.isHere = true
    })
    let turns = 0
    for (; !end.isHere; turns += 1) await new Promise((resolve) => setImmediate(resolve))
    expect((await converting)?.length).toBeGreaterThan(10_000_000)
    expect(turns).toBeGreaterThan(100)
  })

  test('the conversion of a cached answer is abandoned if it takes too long or too much memory, and the next one runs', async () => {
    const hasty = conversions(requestMemory(), 1)
    // It takes a second, so that a main thread that was not run for a moment sees the limit first.
    const events = Array.from(
      { length: 200_000 },
      (_, index) =>
        `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":${index},"id":"${index}"}]}}]}\n\n`,
    )
    const slow = { ...answer(''), form: 'events' as const, pieces: [Buffer.from(events.join(''))] }
    for (let round = 0; round < 2; round += 1) expect(await hasty.bodyFor(slow, WHOLE, OWNER)).toBeUndefined()
    const patient = conversions()
    for (const many of ['[]', '{}', '{"a":0}', '[[0]]', '{"a":[{"b":{}}]}']) {
      const hostile = `{"choices":[${`${many},`.repeat((30 * MIB) / (many.length + 1))}${many}]}`
      const given = { ...answer(''), pieces: [Buffer.from(hostile)] }
      expect(await patient.bodyFor(given, EVENTS, OWNER)).toBeUndefined()
    }
    expect(await patient.mayBeKept(answer('x'.repeat(MIB)), OWNER)).toBe(true)
  })

  test('the conversion of a cached answer is abandoned when the gateway ends', async () => {
    const made = conversions()
    const reading = made.bodyFor(answer('x'.repeat(10_000_000)), EVENTS, OWNER)
    await new Promise((resolve) => setImmediate(resolve))
    await made.close()
    expect(await reading).toBeUndefined()
    expect(await made.mayBeKept(answer('x'.repeat(MIB)), OWNER)).toBe(false)
  })
})
