import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { chopped } from '../../../test/generators/chunks.ts'
import { RenamedIds } from './renamed-ids.ts'

const FROM = 'resp_abab'
const TO = 'resp_new'

const renaming = (): RenamedIds => {
  const ids = new RenamedIds()
  ids.add(FROM, TO)
  ids.add('resp_ab', 'resp_earlier')
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
  ])('%s become those that clients know', (given, expected) => {
    expect(renaming().whole(Buffer.from(given)).toString()).toBe(expected)
  })

  test('are replaced wherever the bytes are cut', () => {
    const parts = fc.constantFrom('"', '\\"', 'resp_', 'ab', FROM, `"${FROM}"`, '\n', '"resp_ab"', 'é', ',')
    fc.assert(
      fc.property(fc.array(parts, { maxLength: 20 }), fc.integer({ min: 1, max: 30 }), (text, size) => {
        const bytes = Buffer.from(text.join(''))
        const ids = renaming()
        const pieces = chopped(bytes, size).map((chunk) => ids.push(chunk))
        expect(Buffer.concat([...pieces, ids.rest()]).toString()).toBe(renaming().whole(bytes).toString())
      }),
    )
  })

  test('are replaced in the words of an error', () => {
    const text = renaming().inProse(Buffer.from("Response 'resp_abab' not found, nor resp_ab2.")).toString()
    expect(text).toBe("Response 'resp_new' not found, nor resp_ab2.")
  })
})
