import { expect, test } from 'vitest'
import { separatorAfter } from './counted-separator.ts'
import { NumberedBytes } from './numbered-bytes.ts'

const HEAD = 'data: {"x":1,"sequence_number":0,"text":"'
const TAIL = '"}\n\n'

/** Whether the separators between the frames of these numbers are found, from the second frame on. */
function found(numbers: readonly number[]): boolean[] | undefined {
  const frames = numbers.map((number) => `${HEAD.replace(':0', `:${number}`)}word${TAIL}`)
  const bytes = Buffer.from(frames.join(''))
  const head = new NumberedBytes(Buffer.from(HEAD))
  const separator = separatorAfter(bytes, 0, { head, tail: Buffer.from(TAIL) })
  if (!separator) return undefined
  let at = frames[0]?.length ?? 0
  return frames.slice(1, -1).map((frame) => {
    const stands = separator.stands(bytes, at + frame.length - TAIL.length)
    at += frame.length
    separator.countUp()
    return stands
  })
}

test('the bytes between frames whose numbers count up are found from the second frame on', () => {
  expect(found([3, 4, 5, 6])).toEqual([true, true])
  expect(found([97, 98, 99])).toEqual([true])
})

test('other numbers are not those bytes', () => {
  expect(found([3, 4, 6, 6])).toEqual([false, true])
  expect(found([3, 3, 3])).toEqual([false])
})

test('a number that gets a further digit is not expected', () => {
  expect(found([8, 9, 10])).toBeUndefined()
  expect(found([9, 10, 11])).toBeUndefined()
})
