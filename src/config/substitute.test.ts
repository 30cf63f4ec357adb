import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { substitute } from './substitute.ts'

const lookup = (name: string): string | undefined =>
  new Map([
    ['A', '1'],
    ['B_2', '${A}'],
  ]).get(name)

describe('variables in texts', () => {
  test.each([
    ['${A}', '1'],
    ['x${A}y${A}z', 'x1y1z'],
    ['$${A}', '${A}'],
    ['$${A}${A}', '${A}1'],
    ['$A and $$ and {A} and $ {A}', '$A and $$ and {A} and $ {A}'],
  ])('the text %s becomes %s', (text, expected) => {
    expect(substitute(text, lookup)).toEqual({ text: expected })
  })

  test("a variable's value is not substituted again", () => {
    expect(substitute('${B_2}', lookup)).toEqual({ text: '${A}' })
  })

  test('a text without ${ is never changed', () => {
    const without = fc
      .string({ unit: fc.constantFrom('$', '{', '}', 'A', '\\', '\n', 'é', '😀') })
      .filter((text) => !text.includes('${'))
    fc.assert(
      fc.property(without, (text) => {
        expect(substitute(text, lookup)).toEqual({ text })
      }),
    )
  })

  test('any text can be written with $${', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('{', '}', 'A', 'x') }), (text) => {
        const result = substitute(`$\${${text}`, () => undefined)
        expect(result).toEqual({ text: `\${${text}` })
      }),
    )
  })
})
