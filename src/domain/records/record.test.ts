import { describe, expect, expectTypeOf, test } from 'vitest'
import { durationType } from './duration.ts'
import {
  type FieldType,
  flagType,
  listType,
  listTextType,
  mappingType,
  describeMismatch,
  nameType,
  nullableType,
  oneOfType,
  textType,
  integerType,
} from './field-types.ts'
import { fieldsWith, type NewValues, declareRecord, type Values } from './record.ts'

const PET = declareRecord(
  'pets',
  {
    id: { type: integerType(), key: 'primary key' },
    name: { type: nameType(5), edit: 'holder', isRequired: true },
    kind: { type: oneOfType(['cat', 'dog'], 'cat or dog'), column: 'kind_name', default: 'cat' },
    is_old: { type: flagType, default: false, admission: 'recall' },
    chip: { type: nullableType(textType(3)), default: null, admission: 'heed' },
    pin: { type: listTextType(9), secret: true },
  },
  { weight: { type: integerType(), default: 0, admission: 'heed' } },
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
    [integerType('a count', { minimum: 0, maximum: 3 }), 4, 'a count'],
    [integerType('a count', { minimum: 0, maximum: 3 }), -1, 'a count'],
    [integerType('a count', { minimum: 0, maximum: 3 }), 1.5, 'a count'],
    [integerType('a count', { minimum: 0, maximum: 3 }), 3, undefined],
    [flagType, 1, 'true or false'],
    [oneOfType(['cat', 'dog'], 'cat or dog'), 'cow', 'cat or dog'],
    [nameType(3), 'Ada', undefined],
    [nameType(3), ' Ada', 'a text of 1 to 3 characters without spaces around it'],
    [nameType(3), 'Anna', 'a text of 1 to 3 characters without spaces around it'],
    [textType(3), 'äöü', undefined],
    [textType(3), 'four', 'a text of at most 3 characters'],
    [textType(3), 'a\0', 'a text of at most 3 characters'],
    [listTextType(3), 'äö', 'at most 3 bytes'],
    [listTextType(3), '\ud800', 'a text without NUL and lone surrogates'],
    [listType(textType(3), 'pets', 1), ['cat', 'dog'], undefined],
    [listType(textType(3), 'pets', 1), [], 'pets'],
    [listType(textType(3), 'pets'), 'cat', 'pets'],
    [listType(textType(3), 'pets'), ['horse'], 'pets'],
    [listType(textType(3), 'pets'), ['cat', 'cat'], 'each entry once'],
    [mappingType(integerType(), 'ages'), { cat: 3 }, undefined],
    [mappingType(integerType(), 'ages'), { cat: 'three' }, 'ages'],
    [mappingType(integerType(), 'ages'), [3], 'ages'],
    [mappingType(integerType(), 'ages'), null, 'ages'],
    [durationType, '5s', undefined],
    [durationType, '5', 'a duration such as 500ms, 5s, 20m or 1h'],
    [durationType, 5, 'a duration such as 500ms, 5s, 20m or 1h'],
    [durationType, '0s', 'a duration from 1ms to 596h'],
    [durationType, '597h', 'a duration from 1ms to 596h'],
  ] as const)('a type of fields accepts a value, or reports what it expects: %#', (type, value, expected) => {
    expect(describeMismatch(type as never, value)).toBe(expected)
  })

  test.each([
    [flagType, true, true, 1],
    [textType(3), 'cat', 'cat', 'cat'],
    [listTextType(9), ' cat\n', 'cat', 'cat'],
    [listType(textType(3), 'pets'), ['cat'], ['cat'], '["cat"]'],
    [mappingType(integerType(), 'ages'), { cat: 3 }, new Map([['cat', 3]]), '{"cat":3}'],
    [durationType, '60s', 60_000, 60_000],
    [nullableType(durationType), null, null, null],
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
