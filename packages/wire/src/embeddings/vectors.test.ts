import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { lawRuns } from '../../../../test/runner/tier.ts'
import { toBase64, toNumbers } from './vectors.ts'
import process from 'node:process'

const bits = fc.integer({ min: 0, max: 0xff_ff_ff_ff })
const integer = fc.integer({ min: -(2 ** 31), max: 2 ** 31 })
/** Numbers as in vectors, with many digits and with few, very small ones, and random bits. */
const float = fc.oneof(
  integer.map((value) => Math.fround(value / 2 ** 34)),
  fc
    .tuple(integer, fc.integer({ min: -37, max: -7 }))
    .map(([value, power]) => Math.fround(value * 10 ** power)),
  fc.integer({ min: -1000, max: 1000 }).map((value) => Math.fround(value / 1000)),
  bits.map(floatOf).filter(Number.isFinite),
)
const vector = fc.array(float, { minLength: 1, maxLength: 50 })

function floatOf(integer: number): number {
  return new DataView(new Uint32Array([integer]).buffer).getFloat32(0, true)
}

const quoted = (numbers: readonly number[]): Buffer =>
  Buffer.from(`"${Buffer.from(new Float32Array(numbers).buffer).toString('base64')}"`)

const numbersOf = (numbers: readonly number[]): string | undefined => toNumbers(quoted(numbers))?.toString()

/** Reads a list with the JavaScript engine; undefined if it is not a list of numbers. */
function reference(list: string): string | undefined {
  try {
    const numbers = JSON.parse(list) as unknown[]
    const isVector = numbers.every((one) => typeof one === 'number')
    return isVector ? quoted(numbers).toString() : undefined
  } catch {
    return undefined
  }
}

describe('a vector as numbers', () => {
  test('an embedding vector is unchanged after it was converted from base64 and back, to the last bit of single precision', () => {
    fc.assert(
      fc.property(vector, (numbers) => {
        const list = toNumbers(quoted(numbers)) ?? Buffer.alloc(0)
        expect((JSON.parse(list.toString()) as number[]).map(Math.fround)).toEqual(numbers)
        expect(toBase64(list)).toEqual(quoted(numbers))
      }),
      { numRuns: lawRuns(2_000) },
    )
  })

  test('a converted embedding vector has its numbers in the decimal notation of JavaScript', () => {
    fc.assert(
      fc.property(vector, (numbers) => {
        const texts = numbersOf(numbers)?.slice(1, -1).split(',') ?? []
        // JSON allows a sign for zero, which String() leaves out.
        expect(texts).toEqual(texts.map((text) => (text === '-0' ? text : String(Number(text)))))
      }),
    )
  })

  test.each([
    [0.1, '0.1'],
    [-0.0069292834, '-0.0069292835'],
    [1, '1'],
    [-1234567, '-1234567'],
    [12345678, '12345678'],
    [0.001, '0.001'],
    [0.0000012, '0.0000012'],
    [9.9999e-7, '9.9999e-7'],
    [9.9999997e-7, '0.000001'],
    [1e-8, '1e-8'],
    [-175187.625, '-175187.63'],
    [0.99999994, '0.99999994'],
    [1e-45, '1.40129846e-45'],
    [3.4028235e38, '3.40282347e+38'],
    [0, '0'],
    [-0, '-0'],
  ])('numbers of a vector have no more digits than single precision needs: %s', (value, text) => {
    expect(numbersOf([value])).toBe(`[${text}]`)
  })

  test.each([
    ['nothing', ''],
    ['half a number', 'AAA='],
    ['what is no number', Buffer.from([0, 0, 192, 127]).toString('base64')],
  ])('invalid base64 is not converted to numbers: %s', (_, text) => {
    expect(toNumbers(Buffer.from(`"${text}"`))).toBeUndefined()
  })
})

describe('a vector as base64', () => {
  const digits = fc.stringMatching(/^[0-9]{0,30}$/)
  const written = fc
    .tuple(fc.constantFrom('', '-'), digits, digits, fc.integer({ min: -60, max: 60 }), fc.integer())
    .map(([sign, whole, part, power, form]) => {
      const fraction = form % 3 === 0 ? '' : `.${part}0`
      return `${sign}${whole.replace(/^0+(?!$)/, '') || '0'}${fraction}${form % 2 === 0 ? '' : `e${power}`}`
    })

  test('an embedding vector in base64 has the numbers that JavaScript reads from the list', () => {
    fc.assert(
      fc.property(fc.array(written), fc.constantFrom(',', ' , ', ',\n'), (numbers, comma) => {
        const list = `[${numbers.join(comma)}]`
        expect(toBase64(Buffer.from(list))?.toString()).toBe(reference(list))
      }),
      { numRuns: lawRuns(2_000) },
    )
  })

  test('an embedding vector in base64 has the nearest numbers, also for decimals next to the middle between two', () => {
    fc.assert(
      fc.property(
        float,
        fc.integer({ min: 15, max: 40 }),
        fc.integer({ min: -2, max: 2 }),
        (value, count, by) => {
          const next = Math.fround(value + Math.abs(value) * 2 ** -23)
          const middle = ((value + next) / 2) * (1 + by * 2 ** -52)
          const list = `[${middle.toPrecision(count)}]`
          expect(toBase64(Buffer.from(list))?.toString()).toBe(reference(list))
        },
      ),
      { numRuns: lawRuns(2_000) },
    )
  })

  test.each([
    '[01]',
    '[1.]',
    '[.5]',
    '[+1]',
    '[-]',
    '[1e]',
    '[1e+]',
    '[1,]',
    '[,1]',
    '[1 2]',
    '[null]',
    '["1"]',
    '[NaN]',
    '[1x]',
    '[ ]',
    '[]',
    '[1e400,-1e400,1e-400]',
    '[1.636252878303620e-15,4.489398536927594e-24]',
    `[0.${'0'.repeat(400)}1,1${'0'.repeat(400)}]`,
  ])('only what JavaScript reads as a list of numbers is converted to base64: %s', (list) => {
    expect(toBase64(Buffer.from(list))?.toString()).toBe(reference(list))
  })

  test('an embedding vector of 300,000 numbers, which is longer than the buffer kept for conversions, is converted correctly', () => {
    const numbers = Array.from({ length: 300_000 }, (_, index) => Math.fround(Math.sin(index)))
    const list = toNumbers(quoted(numbers)) ?? Buffer.alloc(0)
    expect(JSON.parse(list.toString()).map(Math.fround)).toEqual(numbers)
    expect(toBase64(list)?.equals(quoted(numbers))).toBe(true)
    const short = Buffer.from(`[${'1,'.repeat(300_000)}1]`)
    expect(toBase64(short)?.toString()).toBe(reference(short.toString()))
  })
})

describe('garbage of a conversion of vectors', () => {
  const NUMBERS = Array.from({ length: 20_000 }, (_, index) => Math.fround(Math.sin(index) / 20))
  const QUOTED = Buffer.from(`"${Buffer.from(new Float32Array(NUMBERS).buffer).toString('base64')}"`)
  const LIST = Buffer.from(JSON.stringify(NUMBERS.map((value) => value + 1e-12)))

  test.each([
    ['to numbers', () => toNumbers(QUOTED)],
    ['to base64', () => toBase64(LIST)],
  ])(
    'a conversion %s leaves fewer bytes of garbage than a text or an element for each number',
    (_, convert) => {
      const allocated = Array.from({ length: 200 }, () => {
        const before = process.memoryUsage().heapUsed
        convert()
        return process.memoryUsage().heapUsed - before
      })
      const compiled = allocated.slice(-9).toSorted((a, b) => a - b)
      // Uses the median, because some samples include a garbage collection.
      expect(compiled[4]).toBeLessThan(40 * NUMBERS.length)
    },
  )
})
