import { describe, expect, expectTypeOf, test } from 'vitest'
import { duration } from './duration.ts'
import {
  type FieldType,
  flag,
  list,
  listText,
  mapping,
  describeMismatch,
  name,
  nullable,
  oneOf,
  text,
  integerWithin,
} from './field-types.ts'
import { fieldsWith, type NewValues, declareRecord, type Values } from './record.ts'

const PET = declareRecord(
  'pets',
  {
    id: { type: integerWithin(), key: 'primary key' },
    name: { type: name(5), edit: 'holder', isRequired: true },
    kind: { type: oneOf(['cat', 'dog'], 'cat or dog'), column: 'kind_name', default: 'cat' },
    is_old: { type: flag, default: false, admission: 'recall' },
    chip: { type: nullable(text(3)), default: null, admission: 'heed' },
    pin: { type: listText(9), secret: true },
  },
  { weight: { type: integerWithin(), default: 0, admission: 'heed' } },
)

describe('a record', () => {
  test('a record definition converts a database row to values and back, and omits secret and partial columns', () => {
    const row = { id: 1, name: 'Ada', kind_name: 'dog', is_old: 1, chip: null } as const
    const values = { id: 1, name: 'Ada', kind: 'dog', is_old: true, chip: null } as const
    expect(PET.fromRow(row)).toEqual(values)
    expect(PET.toRow(values)).toEqual(row)
  })

  test('a record definition writes only the given columns in an update, and adds the defaults in a new row', () => {
    expect(PET.toRow({ is_old: false })).toEqual({ is_old: 0 })
    expect(PET.newRow({ name: 'Ada' })).toEqual({ name: 'Ada', kind_name: 'cat', is_old: 0, chip: null })
  })

  test('a record definition lists its columns in declaration order, and can list the fields with a given property', () => {
    const names = ['id', 'name', 'kind_name', 'is_old', 'chip', 'pin', 'weight']
    expect(PET.columns.map((column) => column.name)).toEqual(names)
    expect(Object.keys(fieldsWith(PET.fields, 'admission'))).toEqual(['is_old', 'chip'])
    expect(Object.keys(fieldsWith(PET.fields, 'admission', 'recall'))).toEqual(['is_old'])
  })

  test("the TypeScript types of a record's values follow from its definition", () => {
    type Pet = Values<typeof PET.fields>
    expectTypeOf<Pet>().toEqualTypeOf<{
      readonly id: number
      readonly name: string
      readonly kind: 'cat' | 'dog'
      readonly is_old: boolean
      readonly chip: string | null
    }>()
    expectTypeOf<{ readonly name: string }>().toExtend<NewValues<typeof PET.fields>>()
  })
})

describe('a type of fields', () => {
  test.each([
    [integerWithin('a count', { minimum: 0, maximum: 3 }), 4, 'a count'],
    [integerWithin('a count', { minimum: 0, maximum: 3 }), -1, 'a count'],
    [integerWithin('a count', { minimum: 0, maximum: 3 }), 1.5, 'a count'],
    [integerWithin('a count', { minimum: 0, maximum: 3 }), 3, undefined],
    [flag, 1, 'true or false'],
    [oneOf(['cat', 'dog'], 'cat or dog'), 'cow', 'cat or dog'],
    [name(3), 'Ada', undefined],
    [name(3), ' Ada', 'a text of 1 to 3 characters without spaces around it'],
    [name(3), 'Anna', 'a text of 1 to 3 characters without spaces around it'],
    [text(3), 'äöü', undefined],
    [text(3), 'four', 'a text of at most 3 characters'],
    [text(3), 'a\0', 'a text of at most 3 characters'],
    [listText(3), 'äö', 'at most 3 bytes'],
    [listText(3), '\ud800', 'a text without NUL and lone surrogates'],
    [list(text(3), 'pets', 1), ['cat', 'dog'], undefined],
    [list(text(3), 'pets', 1), [], 'pets'],
    [list(text(3), 'pets'), 'cat', 'pets'],
    [list(text(3), 'pets'), ['horse'], 'pets'],
    [list(text(3), 'pets'), ['cat', 'cat'], 'each entry once'],
    [mapping(integerWithin(), 'ages'), { cat: 3 }, undefined],
    [mapping(integerWithin(), 'ages'), { cat: 'three' }, 'ages'],
    [mapping(integerWithin(), 'ages'), [3], 'ages'],
    [mapping(integerWithin(), 'ages'), null, 'ages'],
    [duration, '5s', undefined],
    [duration, '5', 'a duration such as 500ms, 5s, 20m or 1h'],
    [duration, 5, 'a duration such as 500ms, 5s, 20m or 1h'],
    [duration, '0s', 'a duration from 1ms to 596h'],
    [duration, '597h', 'a duration from 1ms to 596h'],
  ] as const)('a type of fields accepts a value, or reports what it expects: %#', (type, value, expected) => {
    expect(describeMismatch(type as never, value)).toBe(expected)
  })

  test.each([
    [flag, true, true, 1],
    [text(3), 'cat', 'cat', 'cat'],
    [listText(9), ' cat\n', 'cat', 'cat'],
    [list(text(3), 'pets'), ['cat'], ['cat'], '["cat"]'],
    [mapping(integerWithin(), 'ages'), { cat: 3 }, new Map([['cat', 3]]), '{"cat":3}'],
    [duration, '60s', 60_000, 60_000],
    [nullable(duration), null, null, null],
  ])(
    'a type of fields converts a value from JSON, to its column and back: %#',
    (given, json, value, column) => {
      const type = given as FieldType
      expect(type.fromJson(json)).toEqual(value)
      expect(type.encode(value)).toEqual(column)
      expect(type.decode(column)).toEqual(value)
      expect(type.fromJson(type.toJson(value))).toEqual(value)
    },
  )
})
