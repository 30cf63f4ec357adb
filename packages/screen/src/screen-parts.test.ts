import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compileRule } from './rule.ts'
import { TextScreen } from './screen.ts'
import { PartsScreening } from './screen-parts.ts'

const CODE = compileRule('code', { regex: 'code-[0-9]+-x' })
const SPOKEN = compileRule('spoken', { regex: 'four two' })
const redacting = new TextScreen([
  { rule: CODE, do: 'redact', with: '#' },
  { rule: SPOKEN, do: 'redact', with: '#' },
])

function screenParts(screen: TextScreen, given: readonly string[], step = Infinity) {
  const screening = new PartsScreening(screen, given)
  const { length } = screening.text
  let end = 0
  do {
    end = Math.min(length, end + step)
    screening.readTo(end)
  } while (end < length)
  const { parts, counts, blockedBy } = screening
  return { parts, counts, blockedBy }
}

test.each([
  [['say code-1-x now'], ['say # now'], [1, 0]],
  [
    ['say code-', '1-x now'],
    ['say code-', '1-x now'],
    [0, 0],
  ],
  [
    ['it is four', 'two, and', 'four two'],
    ['it is #', ', and', '#'],
    [0, 2],
  ],
  [
    [' say four', ' two', ' out'],
    [' say #', '', ' out'],
    [0, 1],
  ],
  [
    ['four', '', 'two'],
    ['#', '', ''],
    [0, 1],
  ],
  [[], [], [0, 0]],
  [
    ['', ''],
    ['', ''],
    [0, 0],
  ],
])('a match that spans several parts of a text is redacted: %j becomes %j', (parts, expected, counts) => {
  for (const step of [1, 3, Infinity])
    expect(screenParts(redacting, parts, step)).toEqual({ parts: expected, counts, blockedBy: undefined })
})

test('a guard finds a blocked match even if it spans several parts of a text', () => {
  const blocking = new TextScreen([{ rule: SPOKEN, do: 'block' }])
  expect(screenParts(blocking, ['one', 'four', 'two']).blockedBy).toBe(0)
  expect(screenParts(blocking, ['one', 'four']).blockedBy).toBeUndefined()
})

test('a text redacted in parts equals the same text redacted as a whole, and parts without a match are unchanged', () => {
  const part = fc.stringMatching(/^[ a-df-z]{0,8}$/)
  fc.assert(
    fc.property(fc.array(part, { maxLength: 8 }), (parts) => {
      expect(screenParts(redacting, parts).parts).toEqual(parts)
    }),
  )
  const spaced = fc.constantFrom(' ', 'four ', 'two ', 'code-', '1-x ', 'a ').map((text) => ` ${text}`)
  fc.assert(
    fc.property(fc.array(spaced, { maxLength: 8 }), (parts) => {
      const { parts: screened } = screenParts(redacting, parts)
      expect(screened.join('')).toBe(redacting.apply(parts.join('')).text)
    }),
  )
})
