import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { inputObject, inputOrEmpty, StreamedInputs } from './tool-input.ts'

describe('the text of an input', () => {
  test.each(['', ' \n', 'null', ' null\t', '""', ' ""'])('%j is nothing, and so an empty object', (input) => {
    expect(inputOrEmpty(input)).toBe('{}')
    expect(inputObject(input)).toBe('{}')
  })

  test.each(['{ }', '{"2":1,"1":9007199254740993}', ' {"a":1}\n'])(
    '%j is an object, and stays so',
    (input) => {
      expect(inputOrEmpty(input)).toBe(input)
      expect(inputObject(input)).toBe(input.trim())
    },
  )

  test.each(['nul', 'nulls', '[]', '7', '" "', '{', '{} {}', 'null null'])('%j is no object', (input) => {
    expect(inputOrEmpty(input)).toBe(input)
    expect(inputObject(input)).toBeUndefined()
  })
})

describe('an input that comes in pieces', () => {
  const told = (pieces: readonly string[]): string[] => {
    const inputs = new StreamedInputs()
    inputs.begin(3)
    return [...pieces.map((piece) => inputs.add(3, piece)), inputs.end(3)]
  }

  test('is told piece by piece, from the first that cannot be nothing', () => {
    expect(told(['{"a"', ':1}'])).toEqual(['{"a"', ':1}', ''])
    expect(told([' ', '\n', '{', '}'])).toEqual(['', '', ' \n{', '}', ''])
    expect(told(['n', 'u', 'mber'])).toEqual(['', '', 'number', ''])
    expect(told(['"', '', '"', 'x'])).toEqual(['', '', '', '""x', ''])
  })

  test('is told at its end where it stopped in the middle of nothing', () => {
    expect(told(['nu', 'l'])).toEqual(['', '', 'nul'])
    expect(told(['"'])).toEqual(['', '"'])
  })

  test.each([[['nu', 'll']], [[' ', 'null', ' ']], [['""']], [['', ' ']], [[]]])(
    '%j is nothing',
    (pieces) => {
      expect(told(pieces).join('')).toBe('')
    },
  )

  test('keeps its text, however it is cut and whatever else comes beside it', () => {
    const texts = fc.oneof(
      fc.json(),
      fc.string({ unit: fc.constantFrom('n', 'u', 'l', ' ', '"', '{') }),
      fc.string(),
    )
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(2), texts)), (pieces) => {
        const inputs = new StreamedInputs()
        const given = ['', '', '']
        const out = ['', '', '']
        for (const part of [0, 1, 2]) inputs.begin(part)
        for (const [part, piece] of pieces) {
          given[part] += piece
          out[part] += inputs.add(part, piece)
        }
        for (const part of [0, 1, 2]) out[part] += inputs.end(part)
        expect(out).toEqual(given.map((text) => (inputOrEmpty(text) === text ? text : '')))
      }),
    )
  })

  test('is not held back for ever', () => {
    const inputs = new StreamedInputs()
    inputs.begin(0)
    const spaces = ' '.repeat(20)
    expect(inputs.add(0, spaces)).toBe(spaces)
  })
})
