import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Reply, ReplyEvent, ReplyPart } from '@sluice/wire/reply'
import type { SearchPart } from '@sluice/wire/conversation'
import { names, texts } from '../generators/json.ts'
import { lawRuns } from '../runner/tier.ts'
import { ALL_CODECS, IDENTITY } from './convert-through.ts'
import { checkMessagesStream } from './grammar.ts'
import { checkResponsesStream } from './responses-grammar.ts'
import { foldReply } from './fold-reply.ts'

const GRAMMARS = { messages: checkMessagesStream, responses: checkResponsesStream } as const
const PAIRS = [
  { from: 'responses', to: 'messages' },
  { from: 'messages', to: 'responses' },
] as const

const searches = (protocol: 'messages' | 'responses'): fc.Arbitrary<SearchPart> =>
  fc
    .record({
      query: texts(),
      pages: fc.array(
        names().map((name) => ({ url: `https://${name}.test/`, title: '' })),
        { maxLength: 3 },
      ),
      isFailed: fc.boolean(),
    })
    .map(({ query, pages, isFailed }) => ({
      kind: 'search',
      protocol,
      query,
      pages: isFailed ? [] : pages,
      isFailed,
    }))

const replies = (protocol: 'messages' | 'responses'): fc.Arbitrary<Reply> =>
  fc
    .array(
      fc.oneof(
        searches(protocol),
        texts().map((text): ReplyPart => ({ kind: 'text', text })),
      ),
      { maxLength: 6 },
    )
    .map((parts) => ({ id: 'r', model: 'm', parts, stop: { reason: 'end' }, usage: undefined }))

/** The events of a reply, one part after the other, or all parts begun before the first ends. */
function eventsOf({ id, model, parts, stop, usage }: Reply, isInterleaved: boolean): ReplyEvent[] {
  const starts = parts.map((part, index): ReplyEvent[] =>
    part.kind === 'text'
      ? [
          { kind: 'part-start', index, part: { kind: 'text' } },
          { kind: 'text', index, text: part.text },
        ]
      : [{ kind: 'part-start', index, part: part as SearchPart }],
  )
  const ends = parts.map((_, index): ReplyEvent => ({ kind: 'part-end', index }))
  const said = isInterleaved
    ? [...starts.flat(), ...ends]
    : starts.flatMap((start, index) => [...start, ...ends.slice(index, index + 1)])
  return [{ kind: 'start', id, model, usage }, ...said, { kind: 'end', stop, usage }]
}

/** The searches of a reply, and all that was said between two of them. */
function told(reply: Reply | undefined): unknown[] {
  const all: unknown[] = ['']
  for (const part of reply?.parts ?? []) {
    if (part.kind === 'text') all.push(String(all.pop()) + part.text)
    else if (part.kind === 'search')
      all.push({ query: part.query, pages: part.pages.map(({ url }) => url), isFailed: part.isFailed }, '')
  }
  return all
}

describe.each(PAIRS)('web searches of $from as $to', ({ from, to }) => {
  test('converted web searches have the same content and positions, whole and as a valid stream', () => {
    fc.assert(
      fc.property(replies(from), fc.boolean(), (reply, isInterleaved) => {
        const whole = ALL_CODECS[to].decodeReply(ALL_CODECS[to].encodeReply(reply, IDENTITY))
        expect(told(whole)).toEqual(told(reply))
        const encoder = ALL_CODECS[to].streamEncoder(IDENTITY, { includeUsage: true })
        const text = encoder.push(eventsOf(reply, isInterleaved)) + encoder.finalFrames()
        GRAMMARS[to](text, true)
        const decoder = ALL_CODECS[to].streamDecoder()
        const streamed = foldReply([...decoder.push(Buffer.from(text)), ...decoder.end()])
        expect(told(streamed)).toEqual(told(reply))
      }),
      { numRuns: lawRuns(500) },
    )
  })
})
