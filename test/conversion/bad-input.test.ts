import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { WireError } from '@sluice/wire/wire-error'
import { answers, chatFrames, messagesFrames } from '../generators/answers.ts'
import { choppedAtRandom } from '../generators/chunks.ts'
import { randomFrom } from '../fixtures/random.ts'
import { GRAMMARS } from './grammar.ts'
import { CODECS, convertReply, convertStream, OTHER, PROTOCOLS } from './convert.ts'
import { lawRuns } from '../runner/tier.ts'

const FRAMES = { chat: chatFrames, messages: messagesFrames } as const

/** Frames that no upstream should send. */
const INVALID_FRAMES = [
  'data: {"type":\n\n',
  'data: null\n\n',
  'data: []\n\n',
  'data: 7\n\n',
  'data:\n\n',
  'event: error\n\n',
  '\ufeff\n\n',
  'event: content_block_delta\ndata: {"type":"content_block_delta"}\n\n',
  'data: {"type":"content_block_start","index":-1,"content_block":null}\n\n',
  'data: {"type":"content_block_start","index":9007199254740993,"content_block":{"type":"text"}}\n\n',
  'data: {"type":"content_block_delta","index":"0","delta":{"type":"text_delta","text":7}}\n\n',
  'data: {"type":"message_start","message":null}\n\n',
  'data: {"type":"message_delta","delta":null,"usage":"much"}\n\n',
  'data: {"choices":null}\n\n',
  'data: {"choices":[null]}\n\n',
  'data: {"choices":[{"delta":null}]}\n\n',
  'data: {"choices":[{"delta":{"content":7,"tool_calls":[null,{"index":"x"},{"function":null}]}}]}\n\n',
  'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}}]}\n\n',
  'data: {"choices":[{"delta":{"tool_calls":{"__proto__":[]}}}],"usage":{"prompt_tokens":-1,"completion_tokens":1e99}}\n\n',
]

/** Frames of a response, some lost, some repeated, some reordered, with invalid frames between. */
const shuffledFrames = (from: 'chat' | 'messages'): fc.Arbitrary<string> =>
  fc
    .tuple(answers(), answers())
    .chain(([one, other]) => {
      const frames = [...FRAMES[from](one), ...FRAMES[from](other), ...INVALID_FRAMES]
      return fc.array(fc.constantFrom(...frames), { maxLength: 30 })
    })
    .map((frames) => frames.join(''))

describe.each(PROTOCOLS)('a %s upstream that sends invalid data', (from) => {
  test("upstream events in any order are converted to a valid stream of the client's protocol, or one that ends with an error", () => {
    fc.assert(
      fc.property(shuffledFrames(from), fc.boolean(), (text, startsWell) => {
        const bytes = Buffer.from((startsWell ? (FRAMES[from](STARTED)[0] ?? '') : '') + text)
        const { writes, complete } = convertStream(from, [bytes])
        GRAMMARS[OTHER[from]](writes.join(''), complete)
        expect(convertStream(from, choppedAtRandom(bytes, 20, randomFrom(1))).writes.join('')).toBe(
          writes.join(''),
        )
      }),
      { numRuns: lawRuns(1000) },
    )
  })

  test('arbitrary bytes of an upstream are converted to a response that ends with an error', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const { writes, complete } = convertStream(from, [Buffer.from(bytes)])
        expect(complete).toBe(false)
        GRAMMARS[OTHER[from]](writes.join(''), false)
      }),
      { numRuns: lawRuns(300) },
    )
  })

  test('any JSON as a whole response of an upstream is either converted or refused with an error', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 4 }), fc.json({ maxDepth: 3 }), (json, part) => {
        const candidates = [
          json,
          `{"choices":[{"message":${part}}]}`,
          `{"choices":[{"message":{"content":${part},"tool_calls":[${part}]}}],"usage":${part}}`,
          `{"content":[${part}],"usage":${part},"stop_reason":${part}}`,
          `{"content":[{"type":"tool_use","input":${part}},{"type":"text","text":${part}}]}`,
        ]
        for (const candidate of candidates) {
          try {
            JSON.parse(convertReply(from, Buffer.from(candidate)).toString())
          } catch (error) {
            expect(error).toBeInstanceOf(WireError)
          }
        }
      }),
      { numRuns: lawRuns(500) },
    )
  })

  test("a line of more than 32 MiB in an upstream's stream is refused as soon as the limit is exceeded", () => {
    const line = Buffer.from(`data: {"x":"${'x'.repeat(40_000_000)}"}\n\n`)
    const decoder = CODECS[from].streamDecoder()
    let taken = 0
    expect(() => {
      for (const chunk of choppedAtRandom(line, 131_072, randomFrom(2))) {
        decoder.push(chunk)
        taken += chunk.length
      }
    }).toThrow(WireError)
    expect(taken).toBeGreaterThan(33_554_432 - 131_072)
    expect(taken).toBeLessThanOrEqual(33_554_432)
  })
})

const STARTED = {
  segments: [],
  stop: 'end',
  usage: { input: 1, read: 0, written: 0, output: 1 },
  quirks: {
    lineEnd: '\n',
    noise: false,
    roleChunk: true,
    usageIn: 'nowhere',
    interleaves: false,
    hasDone: true,
  },
} as const
