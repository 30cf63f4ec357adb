import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { NO_USAGE, type Usage } from '@sluice/wire/usage'
import type { PairedProtocol } from '../samples/paired-protocol.ts'
import type { Reply } from '@sluice/wire/reply'
import { answers, chatFrames, chatReply, messagesFrames, messagesReply } from '../generators/answers.ts'
import { choppedAtRandom, chopped } from '../generators/chunks.ts'
import { randomFrom } from '../fixtures/random.ts'
import { GRAMMARS } from './grammar.ts'
import { CODECS, convertReply, convertStream, MINTED, OTHER, PROTOCOLS } from './convert.ts'
import { comparable } from './comparable-reply.ts'
import { lawRuns } from '../runner/tier.ts'
import { foldReply } from './fold-reply.ts'

const FRAMES = { chat: chatFrames, messages: messagesFrames } as const
const REPLIES = { chat: chatReply, messages: messagesReply } as const

/** The content of a stream, in the shared form. */
function folded(protocol: PairedProtocol, bytes: Buffer): Reply | undefined {
  const decoder = CODECS[protocol].streamDecoder()
  return foldReply([...decoder.push(bytes), ...decoder.end()])
}

describe.each(PROTOCOLS)('a %s answer', (from) => {
  const to = OTHER[from]

  test('a reply has the same content whether its stream is converted event by event or read first and then encoded', () => {
    fc.assert(
      fc.property(answers(), (answer) => {
        const bytes = Buffer.from(FRAMES[from](answer).join(''))
        const before = folded(from, bytes)
        if (!before) throw new Error('the stream is incomplete')
        const after = folded(to, Buffer.from(convertStream(from, [bytes]).writes.join('')))
        const converted = CODECS[to].decodeReply(CODECS[to].encodeReply(before, MINTED))
        // A whole chat answer cannot express the order of its parts.
        const how = to === 'chat' ? 'in sum' : 'in order'
        expect(comparable(after, how)).toEqual(comparable(converted, how))
      }),
      { numRuns: lawRuns(500) },
    )
  })

  test('a converted reply has the same content whether it is streamed or sent whole', () => {
    fc.assert(
      fc.property(answers(), (answer) => {
        const whole = CODECS[to].decodeReply(convertReply(from, Buffer.from(REPLIES[from](answer))))
        const bytes = Buffer.from(FRAMES[from](answer).join(''))
        const stream = folded(to, Buffer.from(convertStream(from, [bytes]).writes.join('')))
        expect(comparable(stream, 'in sum')).toEqual(comparable(whole, 'in sum'))
      }),
      { numRuns: lawRuns(500) },
    )
  })

  test('a converted stream follows the rules of its dialect: one start, one end, content parts numbered without gaps', () => {
    fc.assert(
      fc.property(answers(), fc.boolean(), (answer, includeUsage) => {
        const bytes = Buffer.from(FRAMES[from](answer).join(''))
        const { writes, complete } = convertStream(from, [bytes], { includeUsage })
        expect(complete).toBe(true)
        GRAMMARS[to](writes.join(''), true)
      }),
      { numRuns: lawRuns(300) },
    )
  })

  test('a converted stream is the same however the network divides it, with at most one write per received chunk, and one at its end', () => {
    fc.assert(
      fc.property(answers(), fc.integer(), fc.integer({ min: 1, max: 60 }), (answer, seed, most) => {
        const bytes = Buffer.from(FRAMES[from](answer).join(''))
        const whole = convertStream(from, [bytes]).writes.join('')
        for (const chunks of [choppedAtRandom(bytes, most, randomFrom(seed)), chopped(bytes, 1)]) {
          const { writes } = convertStream(from, chunks)
          expect(writes.join('')).toBe(whole)
          expect(writes.length).toBeLessThanOrEqual(chunks.length + 1)
        }
      }),
      { numRuns: lawRuns(200) },
    )
  })

  test('a converted stream that is cut before its stop reason never looks finished', () => {
    fc.assert(
      fc.property(
        answers(),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (answer, share) => {
          const frames = FRAMES[from]({ ...answer, quirks: { ...answer.quirks, noise: false } })
          const isFinish = (frame: string): boolean => /"finish_reason":"|"stop_reason":"/.test(frame)
          const last = frames.findIndex(isFinish)
          const upTo = Buffer.from(frames.slice(0, last + 1).join(''))
          // Up to the line end that completes the last frame.
          const size = Math.floor(share * (upTo.length - 4))
          const { writes, complete } = convertStream(from, [upTo.subarray(0, size)])
          expect(complete).toBe(false)
          GRAMMARS[to](writes.join(''), false)
        },
      ),
      { numRuns: lawRuns(300) },
    )
  })

  test('a converted reply keeps the exact text of tool arguments: order of members, numbers of any size', () => {
    fc.assert(
      fc.property(answers(), (answer) => {
        const given = answer.segments.flatMap((segment) =>
          segment.kind === 'tool' ? [segment.pieces.join('')] : [],
        )
        const bytes = Buffer.from(FRAMES[from](answer).join(''))
        const stream = folded(to, Buffer.from(convertStream(from, [bytes]).writes.join('')))
        const whole = CODECS[to].decodeReply(convertReply(from, Buffer.from(REPLIES[from](answer))))
        for (const reply of [stream, whole])
          expect(reply?.parts.flatMap((part) => (part.kind === 'tool-call' ? [part.input] : []))).toEqual(
            given,
          )
      }),
      { numRuns: lawRuns(300) },
    )
  })
})

describe('usage', () => {
  const counts = fc.nat(100_000_000)
  const usages: fc.Arbitrary<Usage> = fc
    .record({ input: counts, cacheRead: counts, cacheWrite5m: counts, cacheWrite1h: counts, output: counts })
    .chain((usage) => fc.nat(usage.output).map((reasoning) => ({ ...NO_USAGE, ...usage, reasoning })))
  const reply = (usage: Usage): Reply => ({
    id: 'msg_1',
    model: 'm',
    parts: [{ kind: 'text', text: 'x' }],
    stop: { reason: 'end' },
    usage,
  })
  const written = (protocol: PairedProtocol, usage: Usage): Record<string, number> =>
    JSON.parse(CODECS[protocol].encodeReply(reply(usage), MINTED).toString()).usage

  test.each(PROTOCOLS)('usage is unchanged after encoding to %s and back', (protocol) => {
    fc.assert(
      fc.property(usages, (usage) => {
        expect(
          CODECS[protocol].decodeReply(CODECS[protocol].encodeReply(reply(usage), MINTED)).usage,
        ).toEqual(usage)
      }),
      { numRuns: lawRuns(500) },
    )
  })

  test('total_tokens of chat usage is prompt_tokens plus completion_tokens, and prompt_tokens include cached tokens', () => {
    fc.assert(
      fc.property(usages, (usage) => {
        const {
          prompt_tokens: prompt,
          completion_tokens: completion,
          total_tokens: total,
        } = written('chat', usage)
        expect(total).toBe((prompt ?? 0) + (completion ?? 0))
        expect(prompt).toBe(usage.input + usage.cacheRead + usage.cacheWrite5m + usage.cacheWrite1h)
        expect(completion).toBe(usage.output)
      }),
      { numRuns: lawRuns(500) },
    )
  })

  test('input_tokens of messages usage exclude cached tokens, and cache writes of 5 minutes and 1 hour are added up', () => {
    fc.assert(
      fc.property(usages, (usage) => {
        const out = written('messages', usage)
        expect(out['input_tokens']).toBe(usage.input)
        expect(out['cache_read_input_tokens']).toBe(usage.cacheRead)
        expect(out['cache_creation_input_tokens']).toBe(usage.cacheWrite5m + usage.cacheWrite1h)
        expect(out['output_tokens']).toBe(usage.output)
      }),
      { numRuns: lawRuns(500) },
    )
  })

  test('usage that is converted to another dialect has no token lost or counted twice', () => {
    fc.assert(
      fc.property(usages, (usage) => {
        for (const from of PROTOCOLS) {
          const there = convertReply(from, CODECS[from].encodeReply(reply(usage), MINTED))
          expect(CODECS[OTHER[from]].decodeReply(there).usage).toEqual(usage)
        }
      }),
      { numRuns: lawRuns(500) },
    )
  })
})
