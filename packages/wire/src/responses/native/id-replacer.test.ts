import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { chopped } from '../../../../../test/generators/chunks.ts'
import { IdReplacer } from './id-replacer.ts'

const FROM = 'resp_abab'
const TO = 'resp_new'
/** Has the same length as `FROM`. */
const EQUAL = 'resp_cdcd'

const renaming = (to = TO, isOnly = false): IdReplacer => {
  const ids = new IdReplacer()
  ids.add(FROM, to)
  if (!isOnly) ids.add('resp_ab', 'resp_earlier')
  return ids
}

describe('ids in a response', () => {
  test.each([
    ['{"id":"resp_abab"}', '{"id":"resp_new"}'],
    ['{"id": "resp_abab","response_id":"resp_abab"}', '{"id": "resp_new","response_id":"resp_new"}'],
    [
      '{"previous_response_id":"resp_ab","id":"resp_abab"}',
      '{"previous_response_id":"resp_earlier","id":"resp_new"}',
    ],
    ['{"text":"it is resp_abab, \\"resp_abab\\""}', '{"text":"it is resp_abab, \\"resp_abab\\""}'],
    ['{"id":"resp_ababab"}', '{"id":"resp_ababab"}'],
    ['{"text":"\\"resp_abab"}', '{"text":"\\"resp_abab"}'],
  ])(
    'the ids of responses in %s are replaced by the ids that clients know, and equal words in texts are not',
    (given, expected) => {
      expect(renaming().whole(Buffer.from(given)).toString()).toBe(expected)
    },
  )

  test.each([
    ['of equal length', 'fedcba9876543210'.repeat(3), true],
    ['of equal length, beside a second', 'fedcba9876543210'.repeat(3), false],
    ['of another length', 'new', true],
  ])('long ids, %s, are distinguished from those with the same end', (_, random, isOnly) => {
    // With and without digits, and with a digit inside and outside of the range in which a search may begin.
    const letters = 'abcdefgh'.repeat(5)
    for (const tail of [
      '0123456789abcdef'.repeat(3),
      `${letters}abcdefgh`,
      `${letters}1abcdefg`,
      `${letters}abcdefg1`,
    ]) {
      const [from, to] = [`resp_${tail}`, `resp_${random}`]
      const ids = new IdReplacer()
      ids.add(from, to)
      if (!isOnly) ids.add(`resp_${tail}0`, 'resp_second')
      const text = (id: string): string =>
        `{"ids":["item_${tail}","${id}","esp_${tail}","resp_1${tail}","${tail}","${id}"],"a":"\\"${from}"}`
      expect(ids.whole(Buffer.from(text(from))).toString()).toBe(text(to))
      expect(ids.whole(Buffer.from(`${tail}"`)).toString()).toBe(`${tail}"`)
    }
  })

  test('ids of responses are replaced in a stream wherever its bytes are divided', () => {
    const parts = fc.constantFrom('"', '\\"', 'resp_', 'ab', FROM, `"${FROM}"`, '\n', '"resp_ab"', 'é', ',')
    fc.assert(
      fc.property(
        fc.array(parts, { maxLength: 20 }),
        fc.integer({ min: 1, max: 30 }),
        fc.constantFrom(TO, EQUAL),
        fc.boolean(),
        (text, size, to, isOnly) => {
          const whole = text.join('')
          const ids = renaming(to, isOnly)
          const pieces = chopped(Buffer.from(whole), size).map((chunk) => ids.push(Buffer.from(chunk)))
          const known = renaming(TO, isOnly).whole(Buffer.from(whole)).toString()
          const expected = known.replaceAll(`"${TO}"`, `"${to}"`)
          expect(Buffer.concat([...pieces, ids.rest()]).toString()).toBe(expected)
        },
      ),
    )
  })

  test('ids of responses are replaced without a copy of the bytes if the new id has the same length', () => {
    const bytes = Buffer.from(`{"id":"${FROM}","text":"x"}\n`)
    const renamed = renaming(EQUAL).push(bytes)
    expect(renamed.buffer).toBe(bytes.buffer)
    expect(renamed.byteOffset).toBe(bytes.byteOffset)
    expect(renamed.toString()).toBe(`{"id":"${EQUAL}","text":"x"}\n`)
  })

  test('ids of responses are replaced in the message of an error', () => {
    const text = renaming().inProse(Buffer.from("Response 'resp_abab' not found, nor resp_ab2.")).toString()
    expect(text).toBe("Response 'resp_new' not found, nor resp_ab2.")
  })
})
