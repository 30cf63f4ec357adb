import { expect, test } from 'vitest'
import { offsetOf, pageOfQuery } from './page.ts'

test.each([
  [{}, 1, 10],
  [{ p: '3', page_size: '20' }, 3, 20],
  [{ p: '0', page_size: '0' }, 1, 10],
  [{ p: '-1', page_size: '-5' }, 1, 10],
  [{ p: 'two', page_size: '1e1' }, 1, 10],
  [{ p: '1.5', page_size: '' }, 1, 10],
  [{ p: '9'.repeat(30), page_size: '9'.repeat(30) }, 1, 10],
  [{ page_size: '100' }, 1, 100],
  [{ page_size: '101' }, 1, 100],
  [{ ps: '7' }, 1, 7],
  [{ size: '8' }, 1, 8],
  [{ ps: '7', size: '8' }, 1, 7],
  [{ page_size: '6', ps: '7', size: '8' }, 1, 6],
  [{ page_size: 'x', ps: '7' }, 1, 7],
])('the page in a query is read: %j is page %i of %i items', (query, page, pageSize) => {
  expect(pageOfQuery(query)).toEqual({ page, pageSize })
})

test('the largest page number that can be requested gives a safe integer as offset', () => {
  expect(Number.isSafeInteger(offsetOf(pageOfQuery({ p: '9'.repeat(12), page_size: '100' })))).toBe(true)
})
