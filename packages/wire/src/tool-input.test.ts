import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { inputObject, inputOrEmpty, StreamedInputs } from './tool-input.ts'

describe('the text of a tool input', () => {
  test.each(['', ' \n', 'null', ' null\t', '""', ' ""'])(
    'an empty tool input becomes an empty object: %j',
    (input) => {
      expect(inputOrEmpty(input)).toBe('{}')
      expect(inputObject(input)).toBe('{}')
    },
  )

  test.each(['{ }', '{"2":1,"1":9007199254740993}', ' {"a":1}\n'])(
    'a tool input that is an object is unchanged: %j',
    (input) => {
      expect(inputOrEmpty(input)).toBe(input)
      expect(inputObject(input)).toBe(input.trim())
    },
  )

  test.each(['nul', 'nulls', '[]', '7', '" "', '{', '{} {}', 'null null'])(
    'a tool input that is not an object is left unchanged: %j',
    (input) => {
      expect(inputOrEmpty(input)).toBe(input)
      expect(inputObject(input)).toBeUndefined()
    },
  )
})

describe('a tool input that arrives in pieces', () => {
  const told = (pieces: readonly string[]): string[] => {
    const inputs = new StreamedInputs()
    inputs.begin(3)
    return [...pieces.map((piece) => inputs.add(3, piece)), inputs.end(3)]
  }

  test('a streamed tool input is forwarded in pieces, from the first that cannot be white space or null', () => {
    expect(told(['{"a"', ':1}'])).toEqual(['{"a"', ':1}', ''])
    expect(told([' ', '\n', '{', '}'])).toEqual(['', '', ' \n{', '}', ''])
    expect(told(['n', 'u', 'mber'])).toEqual(['', '', 'number', ''])
    expect(told(['"', '', '"', 'x'])).toEqual(['', '', '', '""x', ''])
  })

  test('the held-back beginning of a streamed tool input is forwarded at the end of the input, if not before', () => {
    expect(told(['nu', 'l'])).toEqual(['', '', 'nul'])
    expect(told(['"'])).toEqual(['', '"'])
  })

  test.each([[['nu', 'll']], [[' ', 'null', ' ']], [['""']], [['', ' ']], [[]]])(
    'a streamed tool input without content is recognized as empty: %j',
    (pieces) => {
      expect(told(pieces).join('')).toBe('')
    },
  )

  test('a streamed tool input keeps its text, however it is divided and whatever else arrives', () => {
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

  test('a streamed tool input of white space is forwarded once it exceeds a limit', () => {
    const inputs = new StreamedInputs()
    inputs.begin(0)
    const spaces = ' '.repeat(20)
    expect(inputs.add(0, spaces)).toBe(spaces)
  })
})
