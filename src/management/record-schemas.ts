import { z } from 'zod'
import { type FieldType, mismatch, type Stored } from '../domain/records/field-types.ts'
import type { Edits, Field, Fields, JsonOf, NamesWith } from '../domain/records/record.ts'

/** Schema whose input and output have the same type. */
type Schema<V> = z.ZodType<V, V>

/** Fields that can be set over HTTP; null in an optional field counts as absent. */
type EditShape<F extends Fields, Required> = {
  [Name in NamesWith<F, 'edit'>]: F[Name] extends Required
    ? Schema<JsonOf<F[Name]>>
    : z.ZodOptional<z.ZodNullable<Schema<JsonOf<F[Name]>>>>
}

/** Schema of the JSON type of a value, whose entries have theirs of `entryOf`. */
export function baseOf(
  { json, items = { json: 'any' } }: Pick<FieldType, 'json'> & { readonly items?: Pick<FieldType, 'json'> },
  params?: { readonly error: string },
  entryOf: (type: never) => z.ZodType = baseOf,
): z.ZodType {
  if (json === 'any') return z.unknown()
  if (json === 'array') return z.array(entryOf(items as never), params)
  if (json === 'object') return z.record(z.string(), entryOf(items as never), params)
  return { boolean: z.boolean, integer: z.int, string: z.string }[json](params)
}

/** Schema of a value that a client sends; without one of the type, it says what is expected. */
export function valueSchema<V, C extends Stored, J>(type: FieldType<V, C, J>): Schema<J> {
  return baseOf(type, { error: `expected ${type.expected}` }, valueSchema)
    .superRefine((value, ctx) => {
      const expected = mismatch(type, value)
      if (expected !== undefined) ctx.addIssue({ code: 'custom', message: `expected ${expected}` })
    })
    .meta({
      ...type.bounds,
      ...(type.rules.length > 0 && { description: type.rules.map(({ expected }) => expected).join('; ') }),
    }) as unknown as Schema<J>
}

/** The fields of a new object. */
export const createShape = <const F extends Fields>(fields: F) =>
  shapeOf(fields, true) as EditShape<F, { readonly isRequired: true }>

/** The fields of a change, all optional. */
export const changeShape = <const F extends Fields>(fields: F) =>
  shapeOf(fields, false) as EditShape<F, never>

/** The fields that can be set over HTTP: all of them, or those that a role may set. */
export function editable<const F extends Fields, R extends NonNullable<Field['edit']>>(
  fields: F,
  by?: R,
): Pick<F, NamesWith<F, 'edit', R>> {
  const kept = Object.entries(fields).filter(([, { edit }]) => edit !== undefined && edit === (by ?? edit))
  return Object.fromEntries(kept) as Pick<F, NamesWith<F, 'edit', R>>
}

function shapeOf(fields: Fields, isNew: boolean): Readonly<Record<string, z.ZodType>> {
  const shape = Object.entries<Field>(editable(fields)).map(([name, { type, isRequired }]) => {
    const schema = valueSchema(type)
    return [name, isNew && isRequired ? schema : schema.nullish()]
  })
  return Object.fromEntries(shape)
}

/** The given fields in their stored form; null counts as absent, except where it is a value. */
export function storedFields<const F extends Fields>(
  fields: F,
  given: { readonly [Name in NamesWith<F, 'edit'>]?: unknown },
): Edits<F> {
  const stored: Record<string, unknown> = {}
  for (const [name, { type, edit }] of Object.entries(fields)) {
    const value = (given as Readonly<Record<string, unknown>>)[name]
    if (!edit || value === undefined || (value === null && !type.isNullable)) continue
    stored[name] = type.fromJson(value)
  }
  return stored as Edits<F>
}
