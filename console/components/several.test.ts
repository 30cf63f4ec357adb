import { expect, test } from 'vitest'
import { keyFilters, keyText, textOf, valuesIn } from './several.ts'

test.each([[['one', 'two']], [['a,b', '50%', '%2C']], [[]]])(
  'a list of values in the address is read back unchanged: %j',
  (values) => {
    expect(valuesIn(textOf(values))).toEqual(values)
  },
)

test('a filter of the console by keys accepts their ids and their names', () => {
  expect(keyFilters(`${keyText(12)},notebook`)).toEqual({ token_id: ['12'], token_name: ['notebook'] })
})
