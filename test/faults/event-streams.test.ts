import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ourEvents, theirEvents, unmarked } from '../corpus/event-streams.ts'
import { randomFrom } from '../fixtures/random.ts'
import { choppedAtRandom } from '../generators/chunks.ts'
import { lawRuns } from '../runner/tier.ts'

const TOKENS = [
  '\n',
  '\n',
  '\r',
  '\r\n',
  'data',
  'data:',
  'data: ',
  'data:  ',
  'event:',
  'event: ',
  'id: ',
  'retry: ',
  ':',
  ': c',
  ' ',
  'a',
  'é😀',
  '\ufeff',
  '\0',
  'dat',
  'Data: ',
  '\u2028',
  'x: y',
]

test('any text is parsed to the same events as by eventsource-parser, however the network divides it', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...TOKENS), { maxLength: 40 }), fc.integer(), (tokens, seed) => {
      const bytes = unmarked(Buffer.from(tokens.join('')))
      expect(ourEvents(choppedAtRandom(bytes, 7, randomFrom(seed)))).toEqual(theirEvents(bytes))
    }),
    { numRuns: lawRuns(5000) },
  )
})
