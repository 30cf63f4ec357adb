import { expect, test } from 'vitest'
import { FailedAnswer } from './answer-error.ts'
import { converseCodec } from './converse/index.ts'
import { endReasonOf, REASONS_OF_PROVIDERS } from './end-reasons.ts'

const REASONS = [...new Set(REASONS_OF_PROVIDERS.flatMap(({ reasons }) => Object.values(reasons).flat()))]

test('a reason means the same at every provider', () => {
  const meanings = Map.groupBy(
    REASONS_OF_PROVIDERS.flatMap(({ reasons }) =>
      Object.entries(reasons).flatMap(([meaning, names]) =>
        names.map((name) => ({ name: name.toLowerCase(), meaning })),
      ),
    ),
    ({ name }) => name,
  )
  const different = [...meanings].filter(([, all]) => new Set(all.map(({ meaning }) => meaning)).size > 1)
  expect(different).toEqual([])
})

test('upper and lower case of a reason do not matter', () => {
  expect(endReasonOf('max_tokens')).toEqual(endReasonOf('MAX_TOKENS'))
  expect(endReasonOf('Sensitive')).toMatchObject({ class: 'filtered' })
  expect(endReasonOf('unheard_of')).toBeUndefined()
})

test.each(REASONS)(
  'an answer of Converse that ended with %s is read as the table says, whole and streamed',
  (reason) => {
    const output = { message: { role: 'assistant', content: [{ text: 'said' }] } }
    const usage = { inputTokens: 1, outputTokens: 2, totalTokens: 3 }
    const whole = Buffer.from(JSON.stringify({ output, stopReason: reason, usage }))
    const frame = (name: string, data: object): string => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
    const stream =
      frame('messageStart', { role: 'assistant' }) +
      frame('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'said' } }) +
      frame('messageStop', { stopReason: reason }) +
      frame('metadata', { usage })
    const last = converseCodec.streamDecoder().push(Buffer.from(stream)).at(-1)
    const end = endReasonOf(reason)
    if (end?.class === 'failed') {
      expect(() => converseCodec.decodeReply(whole)).toThrow(FailedAnswer)
      expect(last).toMatchObject({ kind: 'failure', culprit: end.culprit, code: reason })
    } else {
      expect(converseCodec.decodeReply(whole).stop).toEqual({ reason: end?.stop })
      expect(last).toMatchObject({ kind: 'end', stop: { reason: end?.stop } })
    }
  },
)
