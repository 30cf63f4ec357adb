import { expect, test } from 'vitest'
import { keyFilters, keyIdAsUrlValue, valuesToUrlText, valuesOfUrlText } from './url-values.ts'

test.each([[['one', 'two']], [['a,b', '50%', '%2C']], [[]]])(
  "a list of filter values is unchanged after it is written into the page's address and read back: %j",
  (values) => {
    expect(valuesOfUrlText(valuesToUrlText(values))).toEqual(values)
  },
)

test('a filter of the console by keys accepts their ids and their names', () => {
  expect(keyFilters(`${keyIdAsUrlValue(12)},notebook`)).toEqual({
    token_id: ['12'],
    token_name: ['notebook'],
  })
})
