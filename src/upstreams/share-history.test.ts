import { expect, test } from 'vitest'
import { ShareHistory } from './share-history.ts'

const NOW = Date.parse('2026-11-25T12:00:00Z')
const MINUTE = 60_000

test('the history of an upstream key has the smallest remaining percentage of its provider limit in each minute of an hour', () => {
  const history = new ShareHistory()
  history.note('a', NOW, 0.29)
  history.note('a', NOW + 1_000, 0.5)
  history.note('a', NOW + 3 * MINUTE, 1)
  const shown = (nowMs: number) => history.of('a', nowMs)
  expect(shown(NOW + 3 * MINUTE)).toHaveLength(60)
  expect(shown(NOW + 3 * MINUTE).slice(-5)).toEqual([null, 29, null, null, 100])
  expect(shown(NOW + 59 * MINUTE)[0]).toBe(29)
  expect(shown(NOW + 60 * MINUTE).filter((one) => one !== null)).toEqual([100])
  history.note('a', NOW + 62 * MINUTE, 0)
  expect(shown(NOW + 62 * MINUTE)).toEqual([100, ...Array.from({ length: 58 }, () => null), 0])
  expect(history.of('b', NOW)).toEqual(Array.from({ length: 60 }, () => null))
})

test('the history of remaining provider limits forgets the oldest of more than 10,000 upstream keys', () => {
  const history = new ShareHistory()
  for (let index = 0; index <= 10_000; index += 1) history.note(`key ${index}`, NOW, 1)
  expect(history.of('key 0', NOW).at(-1)).toBeNull()
  expect(history.of('key 1', NOW).at(-1)).toBe(100)
})
