import { describe, expect, test } from 'vitest'
import { growthOf, LINEAR_GROWTH } from '../../../../test/fixtures/pace.ts'
import { MAX_SIGNED_CHARACTERS, sealSignature } from '../signature-envelope.ts'
import { readThoughts, SignedDetails } from './reasoning-details.ts'

type Deltas = readonly (readonly object[])[]

/** The elements that are kept of these deltas; undefined if none are. */
function keptOf(deltas: Deltas): unknown {
  const details = new SignedDetails()
  for (const delta of deltas) details.add(delta)
  return details.part?.value
}

const text = (fields: object): object => ({ type: 'reasoning.text', ...fields })
const SIGNED = [text({ signature: 's' })]

describe('reasoning details of an upstream', () => {
  test.each<[string, (size: number) => Deltas]>([
    ['elements without a type in one chunk', (size) => [Array.from({ length: size }, () => ({}))]],
    ['encrypted elements in one chunk', (size) => [Array.from({ length: size }, () => ({ data: 'd' }))]],
    [
      'an element with another index in each delta',
      (size) => Array.from({ length: size }, (_, index) => [text({ index, text: 'a' })]),
    ],
    [
      'a signed element with the same index in each delta',
      (size) => Array.from({ length: size }, () => [text({ index: 0, signature: 's' })]),
    ],
    [
      'another member of the same element in each delta',
      (size) => Array.from({ length: size }, (_, at) => [text({ [`m${at}`]: 1 })]),
    ],
  ])('are read in a time in proportion to their number: %s', async (_, deltas) => {
    const growth = await growthOf(1_000, (size) => [...deltas(size), SIGNED], keptOf)
    expect(keptOf([...deltas(8_000), SIGNED])).toBeDefined()
    expect(growth).toBeLessThan(LINEAR_GROWTH)
  })

  test.each<[string, Deltas]>([
    ['a long text', [[text({ text: 'x'.repeat(MAX_SIGNED_CHARACTERS) })], SIGNED]],
    ['many texts', [...Array.from({ length: 1_100 }, () => [text({ text: 'x'.repeat(2_000) })]), SIGNED]],
    ['many small elements', [Array.from({ length: 20_000 }, () => ({})), SIGNED]],
    ['a long name of a member', [[{ ['x'.repeat(MAX_SIGNED_CHARACTERS)]: 1, data: 'd' }]]],
    ['a deep list', [[{ data: JSON.parse('['.repeat(50_000) + ']'.repeat(50_000)) as unknown }]]],
  ])('are not kept if they are longer than what is stored: %s', (_, deltas) => {
    expect(keptOf(deltas)).toBeUndefined()
    expect(keptOf([...deltas, SIGNED])).toBeUndefined()
  })

  test('are not read any more once they are too long', () => {
    const details = new SignedDetails()
    details.add([{ data: 'x'.repeat(MAX_SIGNED_CHARACTERS) }])
    details.add([
      {
        get data() {
          throw new Error('read')
        },
      },
    ])
    expect(details.part).toBeUndefined()
  })

  test('are different elements with the same index if the earlier one is already signed', () => {
    const elements = [text({ index: 0, text: 'a', signature: 's' }), text({ index: 0, text: 'b' })]
    expect(keptOf(elements.map((element) => [element]))).toEqual({ reasoning_details: elements })
  })

  test('are kept as a whole if their text came in many pieces', () => {
    const pieces = Array.from({ length: 100_000 }, () => [
      text({ index: 0, format: 'anthropic', text: 'ab' }),
    ])
    expect(keptOf([...pieces, [text({ index: 0, signature: 's' })]])).toEqual({
      reasoning_details: [
        text({ index: 0, format: 'anthropic', text: 'ab'.repeat(100_000), signature: 's' }),
      ],
    })
  })
})

/** The element of `reasoning_details` with a signed thought at a place. */
const detailAt = (from: number, length: number, calls = 0): object => ({
  data: sealSignature({ protocol: 'responses', value: 's' }, 'chat', { from, length, calls }),
})

test('a thought of a client that begins within an earlier one is left out, because forged ranges may copy the text often', () => {
  const forged = [detailAt(0, 6), detailAt(0, 6), detailAt(3, 3), detailAt(-6, 6), detailAt(-6, -1)]
  const { first } = readThoughts('abcdefghi', [...forged, detailAt(6, 2)])
  expect(first.map((part) => part.kind === 'thinking' && part.text)).toEqual(['abcdef', 'gh', 'i'])
})

test('signed thoughts of a client are put before their calls in a time in proportion to their number', async () => {
  const details = (size: number): object[] =>
    Array.from({ length: size }, (_, calls) => detailAt(0, 0, calls))
  const parts = (given: readonly object[]): number => {
    const thoughts = readThoughts('', given)
    return given.reduce((sum, _, call) => sum + thoughts.before(call).length, thoughts.first.length)
  }
  expect(parts(details(100))).toBe(100)
  expect(await growthOf(2_000, details, parts)).toBeLessThan(LINEAR_GROWTH)
})
