import { z } from 'zod'
import { type FieldType, mismatch } from '../domain/records/field-types.ts'
import type { Edits, Field, Fields, NamesWith, Values, ValueOf } from '../domain/records/record.ts'

/** Bound in JSON Schema, which counts characters alone. */
export const BYTES_KEYWORD = 'x-max-bytes'

/** Schema that takes and returns a value. */
type Schema<V> = z.ZodType<V, V>

type Maybe<V> = z.ZodOptional<z.ZodNullable<Schema<V>>>

type IsRequired = { readonly isRequired: true }

/** Fields that can be set over HTTP, of a new object; null in an optional field is absence. */
export type CreateShape<F extends Fields> = {
  [Name in NamesWith<F, 'edit'>]: F[Name] extends IsRequired
    ? Schema<ValueOf<F[Name]>>
    : Maybe<ValueOf<F[Name]>>
}

/** Fields of a change, all optional. */
export type ChangeShape<F extends Fields> = { [Name in NamesWith<F, 'edit'>]: Maybe<ValueOf<F[Name]>> }

type EditedBy<F extends Fields, R> = {
  [Name in keyof F]: F[Name] extends { readonly edit: R } ? Name : never
}[keyof F]

/** Reader of an answer; administrators see more fields. */
type Reader = 'holder' | 'admin'

type ShownName<F extends Fields, R extends Reader> = Exclude<
  keyof F & keyof Values<F>,
  {
    [Name in keyof F]: F[Name] extends { readonly shown: false | Exclude<'admin', R> } ? Name : never
  }[keyof F]
>

/** Fields of an object in answers. */
export type AnswerShape<F extends Fields, R extends Reader> = {
  [Name in ShownName<F, R>]: Schema<ValueOf<F[Name]>>
}

const BASES = { boolean: z.boolean, integer: z.int, string: z.string } as const

/** Schema of a value that a client sends; without one of the type, it says what is expected. */
export function valueSchema<V>(type: FieldType<V>): Schema<V> {
  const { choices, min, max, length, bytes, rules } = type
  return baseOf(type, { error: `expected ${type.expected}` })
    .superRefine((value, ctx) => {
      const expected = mismatch(type, value)
      if (expected !== undefined) ctx.addIssue({ code: 'custom', message: `expected ${expected}` })
    })
    .meta({
      ...(choices && { enum: [...choices] }),
      ...(min !== undefined && { minimum: min }),
      ...(max !== undefined && { maximum: max }),
      ...(length !== undefined && { maxLength: length }),
      ...(bytes !== undefined && { [BYTES_KEYWORD]: bytes }),
      ...(rules.length > 0 && { description: rules.map(({ expected }) => expected).join('; ') }),
    }) as unknown as Schema<V>
}

/** The fields of a new object. */
export function createShape<const F extends Fields>(fields: F): CreateShape<F> {
  return shapeOf(fields, isEditable, ({ type, isRequired }) =>
    isRequired ? valueSchema(type) : valueSchema(type).nullish(),
  ) as CreateShape<F>
}

/** The fields of a change. */
export function changeShape<const F extends Fields>(fields: F): ChangeShape<F> {
  return shapeOf(fields, isEditable, ({ type }) => valueSchema(type).nullish()) as ChangeShape<F>
}

/** The fields that can be set over HTTP: all of them, or those that a role sets. */
export function editable<const F extends Fields, R extends NonNullable<Field['edit']>>(
  fields: F,
  by?: R,
): Pick<F, EditedBy<F, R>> {
  const kept = Object.entries(fields).filter(([, { edit }]) => edit !== undefined && edit === (by ?? edit))
  return Object.fromEntries(kept) as Pick<F, EditedBy<F, R>>
}

/** The fields of an object in answers. */
export function answerShape<const F extends Fields, R extends Reader = 'holder'>(
  fields: F,
  reader?: R,
): AnswerShape<F, R> {
  return shapeOf(fields, isShownTo(reader), ({ type }) => {
    const plain = baseOf(type)
    return type.isNullable ? plain.nullable() : plain
  }) as AnswerShape<F, R>
}

/** An object in answers. */
export function answerOf<const F extends Fields, R extends Reader = 'holder'>(
  fields: F,
  object: Values<F>,
  reader?: R,
): Pick<Values<F>, ShownName<F, R>> {
  const isShown = isShownTo(reader)
  const shown = Object.entries(object).filter(([name]) => fields[name] && isShown(fields[name]))
  return Object.fromEntries(shown) as Pick<Values<F>, ShownName<F, R>>
}

/** The given fields as they are stored; null is absence, except where it is a value. */
export function storedFields<const F extends Fields>(
  fields: F,
  given: { readonly [Name in NamesWith<F, 'edit'>]?: unknown },
): Edits<F> {
  const stored: Record<string, unknown> = {}
  for (const [name, { type, edit }] of Object.entries(fields)) {
    const value = (given as Readonly<Record<string, unknown>>)[name]
    if (!edit || value === undefined || (value === null && !type.isNullable)) continue
    stored[name] = type.normal ? type.normal(value) : value
  }
  return stored as Edits<F>
}

function baseOf({ json }: FieldType, params?: { readonly error: string }): z.ZodType {
  return json === 'any' ? z.unknown() : BASES[json](params)
}

function shapeOf(
  fields: Fields,
  keeps: (field: Field) => boolean,
  schema: (field: Field) => z.ZodType,
): Record<string, z.ZodType> {
  const kept = Object.entries(fields).filter(([, field]) => keeps(field))
  return Object.fromEntries(kept.map(([name, field]) => [name, schema(field)]))
}

const isEditable = ({ edit }: Field): boolean => edit !== undefined

function isShownTo(reader: Reader = 'holder'): (field: Field) => boolean {
  return ({ shown, secret }) => !secret && shown !== false && (shown !== 'admin' || reader === 'admin')
}
