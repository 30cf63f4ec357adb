import { z } from 'zod'
import { type FieldType, mismatch } from '../domain/records/field-types.ts'
import type { Edits, Field, Fields, NamesWith, ValueOf } from '../domain/records/record.ts'

/** Schema that takes and returns a value. */
type Schema<V> = z.ZodType<V, V>

/** Fields that can be set over HTTP; null in an optional field is absence. */
type EditShape<F extends Fields, Required> = {
  [Name in NamesWith<F, 'edit'>]: F[Name] extends Required
    ? Schema<ValueOf<F[Name]>>
    : z.ZodOptional<z.ZodNullable<Schema<ValueOf<F[Name]>>>>
}

/** Schema of the JSON type of a value. */
export function baseOf({ json }: Pick<FieldType, 'json'>, params?: { readonly error: string }): z.ZodType {
  return json === 'any' ? z.unknown() : { boolean: z.boolean, integer: z.int, string: z.string }[json](params)
}

/** Schema of a value that a client sends; without one of the type, it says what is expected. */
export function valueSchema<V>(type: FieldType<V>): Schema<V> {
  return baseOf(type, { error: `expected ${type.expected}` })
    .superRefine((value, ctx) => {
      const expected = mismatch(type, value)
      if (expected !== undefined) ctx.addIssue({ code: 'custom', message: `expected ${expected}` })
    })
    .meta({
      ...type.bounds,
      ...(type.rules.length > 0 && { description: type.rules.map(({ expected }) => expected).join('; ') }),
    }) as unknown as Schema<V>
}

/** The fields of a new object. */
export function createShape<const F extends Fields>(fields: F): EditShape<F, { readonly isRequired: true }> {
  return shapeOf(fields, true) as EditShape<F, { readonly isRequired: true }>
}

/** The fields of a change, all optional. */
export function changeShape<const F extends Fields>(fields: F): EditShape<F, never> {
  return shapeOf(fields, false) as EditShape<F, never>
}

/** The fields that can be set over HTTP: all of them, or those that a role sets. */
export function editable<const F extends Fields, R extends NonNullable<Field['edit']>>(
  fields: F,
  by?: R,
): Pick<F, NamesWith<F, 'edit', R>> {
  const kept = Object.entries(fields).filter(([, { edit }]) => edit !== undefined && edit === (by ?? edit))
  return Object.fromEntries(kept) as Pick<F, NamesWith<F, 'edit', R>>
}

function shapeOf(fields: Fields, isNew: boolean): Readonly<Record<string, z.ZodType>> {
  const editable = Object.entries(fields).filter(([, { edit }]) => edit)
  return Object.fromEntries(
    editable.map(([name, { type, isRequired }]) => {
      const schema = valueSchema(type)
      return [name, isNew && isRequired ? schema : schema.nullish()]
    }),
  )
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
    stored[name] = type.normal(value)
  }
  return stored as Edits<F>
}
