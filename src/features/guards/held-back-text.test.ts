import fc from 'fast-check'
import { expect, test } from 'vitest'
import { lawRuns } from '../../../test/runner/tier.ts'
import { HeldBackText, type HeldText } from './held-back-text.ts'

const SPOT = { key: '0/content', place: 'output', isSigned: false, isJson: false, frame: String } as const
const CODE = /code-[0-9]{1,60}-x/g

function held(given: string): HeldText {
  const spot = { place: 'output', isSigned: false, isJson: false } as const
  return { spot, given, next: undefined }
}

/** What a service lets pass of a text in windows, as events get it. */
function passed(pieces: readonly string[], window: number, judge: (text: string) => string): string[] {
  const channel = new HeldBackText(SPOT)
  const all = pieces.map(held)
  for (const piece of all) {
    channel.add(piece)
    if (channel.isDue(window)) channel.decide(judge(channel.undecided), window)
  }
  channel.isEnded = true
  if (!channel.isDecided) channel.decide(judge(channel.undecided), window)
  expect(channel.isDecided).toBe(true)
  expect(channel.decidedText).toBe(all.map(({ next }) => next).join(''))
  return all.map(({ next }) => next ?? 'undecided')
}

/** Text with matches and their beginnings, in pieces. */
const pieces = fc
  .array(
    fc.oneof(
      fc.constantFrom('ab', 'code-', '1', '-x ', '👍', ' '),
      { weight: 2, arbitrary: fc.integer({ min: 0, max: 999 }).map((n) => `code-${n}-x`) },
      { weight: 2, arbitrary: fc.string({ minLength: 1, maxLength: 30 }) },
      fc.constant(`code-${'9'.repeat(60)}-x`),
    ),
    { minLength: 50, maxLength: 300, size: 'max' },
  )
  .chain((texts) => fc.tuple(fc.constant(texts.join('')), fc.integer({ min: 1, max: 25 })))
  .map(([text, size]) => text.match(new RegExp(`.{1,${size}}`, 'gsu')) ?? [])
const window = fc.integer({ min: 400, max: 900 })

test("a stream that a guard's service does not change is sent unchanged, event by event", () => {
  fc.assert(
    fc.property(pieces, window, (given, most) => {
      expect(passed(given, most, (text) => text)).toEqual(given)
    }),
    { numRuns: lawRuns(500) },
  )
})

test.each(['<code>', '', '*', 'code', 'x'])(
  'a guard replaces matches in a stream by "%s", however the text is divided into events and windows',
  (instead) => {
    fc.assert(
      fc.property(pieces, window, (given, most) => {
        const result = passed(given, most, (text) => text.replace(CODE, instead)).join('')
        expect(result).toBe(given.join('').replace(CODE, instead))
      }),
      { numRuns: lawRuns(500) },
    )
  },
)
