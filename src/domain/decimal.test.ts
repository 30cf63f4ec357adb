import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { toScaledInteger, type Decimal, decimalText, divide, multiply, parseDecimal } from './decimal.ts'

describe('a decimal', () => {
  test.each([
    ['0.1', 1n, 1],
    ['3', 3n, 0],
    ['-2.50', -250n, 2],
    ['1e-7', 1n, 7],
    ['1.5e3', 1500n, 0],
    [0.3, 3n, 1],
    [1e-7, 1n, 7],
  ])('the decimal %s is read as it is written', (source, digits, scale) => {
    expect(parseDecimal(source)).toEqual({ digits, scale })
  })

  test.each(['', 'x', '1.', '.5', '1,5', 'Infinity', 'NaN', '0x10', '1e9999'])(
    '"%s" is not a decimal',
    (source) => {
      expect(parseDecimal(source)).toBeUndefined()
    },
  )

  test('text of more than 2,000 digits is not a decimal', () => {
    const most = '9'.repeat(1_001)
    for (const text of [`${most}e999`, `0.${'0'.repeat(1_998)}1`])
      expect(parseDecimal(decimalText(parseDecimal(text)!))).toEqual(parseDecimal(text))
    for (const text of [`9${most}e999`, `9${most}e-999`, '9'.repeat(2_001)])
      expect(parseDecimal(text)).toBeUndefined()
  })

  test('decimals are multiplied exactly', () => {
    const whole = fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n })
    const scale = fc.integer({ min: 0, max: 12 })
    fc.assert(
      fc.property(whole, scale, whole, scale, (a, i, b, j) => {
        const product = multiply({ digits: a, scale: i }, { digits: b, scale: j })
        expect(toScaledInteger(product, 24)).toBe(a * b * 10n ** BigInt(24 - i - j))
      }),
    )
  })

  test('scaling a decimal to fewer places than it has throws an error', () => {
    expect(() => toScaledInteger({ digits: 15n, scale: 1 }, 0)).toThrow(RangeError)
  })

  test.each([
    [1n, 0, 3n, 4, '0.3333'],
    [2n, 0, 3n, 4, '0.6667'],
    [-2n, 0, 3n, 4, '-0.6667'],
    [5n, 1, 1n, 0, '1'],
    [-5n, 1, 1n, 0, '-1'],
    [49n, 2, 1n, 0, '0'],
    [1_250_000n, 0, 500_000n, 12, '2.5'],
    [1n, 0, 500_000n, 12, '0.000002'],
    [0n, 0, 7n, 12, '0'],
    [100n, 0, 1n, 2, '100'],
    [9_007_199_254_740_991n, 0, 500_000n, 12, '18014398509.481982'],
  ])('%d at scale %i divided by %d with %i places is %s', (digits, scale, divisor, places, text) => {
    expect(decimalText(divide({ digits, scale }, { digits: divisor, scale: 0 }, places))).toBe(text)
  })

  test('a decimal is unchanged after it is formatted and parsed', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }),
        fc.integer({ min: 0, max: 15 }),
        (digits, scale) => {
          const read = parseDecimal(decimalText({ digits, scale }))
          expect(read && toScaledInteger(read, 15)).toBe(toScaledInteger({ digits, scale }, 15))
        },
      ),
    )
  })
})

describe('a quotient', () => {
  test.each([
    ['15', '3', '5'],
    ['10', '4', '2.5'],
    ['1', '3', '0.333333'],
    ['2', '3', '0.666667'],
    ['0.3', '0.1', '3'],
    ['0.0000005', '1', '0.000001'],
    ['-1', '8', '-0.125'],
    ['0', '7', '0'],
  ])('the quotient %s / %s is %s', (a, b, expected) => {
    expect(decimalText(divide(decimal(a), decimal(b), 6))).toBe(expected)
  })
})

test.each([
  ['0.30', '0.3'],
  ['100', '100'],
  ['0', '0'],
  ['-0.05', '-0.05'],
  ['1e3', '1000'],
  ['12.000', '12'],
])('the decimal %s is written %s', (given, written) => {
  expect(decimalText(decimal(given))).toBe(written)
})

function decimal(text: string): Decimal {
  const read = parseDecimal(text)
  if (!read) throw new Error(`${text} is no decimal`)
  return read
}
