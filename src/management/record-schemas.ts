import { z } from 'zod'
import { type FieldType, mismatch } from '../domain/records/field-types.ts'
import type { Edits, Field, Fields, NamesWith, Values, ValueOf } from '../domain/records/record.ts'

/** Bound in JSON Schema, which counts characters alone. */
export const BYTES_KEYWORD = 'x-max-bytes'

type Maybe<V> = z.ZodOptional<z.ZodNullable<z.ZodType<V>>>

type IsRequired = { readonly isRequired: true }

/** Fields that can be set over HTTP, of a new object; null in an optional field is absence. */
export type CreateShape<F extends Fields> = {
  [Name in NamesWith<F, 'edit'>]: F[Name] extends IsRequired
    ? z.ZodType<ValueOf<F[Name]>>
    : Maybe<ValueOf<F[Name]>>
}

/** Fields of a change, all optional. */
export type ChangeShape<F extends Fields> = { [Name in NamesWith<F, 'edit'>]: Maybe<ValueOf<F[Name]>> }

type ShownName<F extends Fields> = Exclude<
  keyof F & keyof Values<F>,
  { [Name in keyof F]: F[Name] extends { readonly shown: false } ? Name : never }[keyof F]
>

/** Fields of an object in answers. */
export type AnswerShape<F extends Fields> = { [Name in ShownName<F>]: z.ZodType<ValueOf<F[Name]>> }

const BASES = { boolean: z.boolean, integer: z.int, string: z.string } as const

/** Schema of a value that a client sends; without one of the type, it says what is expected. */
export function valueSchema<V>(type: FieldType<V>): z.ZodType<V> {
  const { choices, min, max, length, bytes } = type
  return BASES[type.json]({ error: `expected ${type.expected}` })
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
    }) as unknown as z.ZodType<V>
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

/** The fields of an object in answers. */
export function answerShape<const F extends Fields>(fields: F): AnswerShape<F> {
  return shapeOf(fields, isShown, ({ type }) => {
    const plain = BASES[type.json]()
    return type.isNullable ? plain.nullable() : plain
  }) as AnswerShape<F>
}

/** An object in answers. */
export function answerOf<const F extends Fields>(
  fields: F,
  object: Values<F>,
): Pick<Values<F>, ShownName<F>> {
  const shown = Object.entries(object).filter(([name]) => fields[name] && isShown(fields[name]))
  return Object.fromEntries(shown) as Pick<Values<F>, ShownName<F>>
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

function shapeOf(
  fields: Fields,
  keeps: (field: Field) => boolean,
  schema: (field: Field) => z.ZodType,
): Record<string, z.ZodType> {
  const kept = Object.entries(fields).filter(([, field]) => keeps(field))
  return Object.fromEntries(kept.map(([name, field]) => [name, schema(field)]))
}

const isEditable = ({ edit }: Field): boolean => edit !== undefined

const isShown = ({ shown, secret }: Field): boolean => shown !== false && !secret
