import { expect, test } from 'vitest'
import { z } from 'zod'
import { growthOf, LINEAR_GROWTH } from '../../test/fixtures/pace.ts'
import { textsFilter } from '../management/input-fields.ts'
import { queryOf } from './json-api.ts'

test('the first value of a repeated parameter counts, or all of them where several are accepted', () => {
  const schema = z.object({ group: textsFilter(), page: z.string() })
  expect(queryOf('/api/x?page=1&group=a&page=2&group=b&constructor=c&constructor=d', schema)).toEqual({
    page: '1',
    group: ['a', 'b'],
    constructor: 'c',
  })
})

test.each([
  ['that differ', (index: number) => `a${index}=b`],
  ['with one name', () => 'a=b'],
])(
  'a query is read in time proportional to the number of its parameters: parameters %s',
  async (_, parameter) => {
    const url = (count: number): string =>
      `/api/x?${Array.from({ length: count }, (__, i) => parameter(i)).join('&')}`
    expect(await growthOf(1_000, url, (text) => queryOf(text))).toBeLessThan(LINEAR_GROWTH)
  },
)
