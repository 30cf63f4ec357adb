import { z } from 'zod'
import { type FieldType, mismatch, type Stored } from '../domain/records/field-types.ts'
import {
  type Edits,
  type Field,
  type Fields,
  fieldsWith,
  type JsonOf,
  type NamesWith,
} from '../domain/records/record.ts'

/** Schema whose input and output have the same type. */
type Schema<V> = z.ZodType<V, V>

/** Schema of the JSON type of a value, whose entries have theirs of `entryOf`. */
export function baseOf(
  { json, items }: Pick<FieldType, 'json' | 'items'>,
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
      ...(type.rules[0] && { description: type.rules.map(({ expected }) => expected).join('; ') }),
    }) as unknown as Schema<J>
}

/** Fields of a body that can be set; null in an optional one counts as absent. */
export function bodyShape<const F extends Fields, const For extends 'new' | 'change'>(fields: F, usage: For) {
  const shape = Object.entries<Field>(fieldsWith(fields, 'edit')).map(([name, { type, isRequired }]) => {
    const schema = valueSchema(type)
    return [name, usage === 'new' && isRequired ? schema : schema.nullish()]
  })
  return Object.fromEntries(shape) as {
    [Name in NamesWith<F, 'edit'>]: readonly [F[Name], For] extends readonly [{ isRequired: true }, 'new']
      ? Schema<JsonOf<F[Name]>>
      : z.ZodOptional<z.ZodNullable<Schema<JsonOf<F[Name]>>>>
  }
}

/** The given fields in their stored form; null counts as absent, except where it is a value. */
export function storedFields<const F extends Fields>(
  fields: F,
  given: { readonly [Name in NamesWith<F, 'edit'>]?: unknown },
): Edits<F> {
  const stored: Record<string, unknown> = {}
  for (const [name, { type }] of Object.entries<Field>(fieldsWith(fields, 'edit'))) {
    const value = (given as Readonly<Record<string, unknown>>)[name]
    if (value !== undefined && (value !== null || type.isNullable)) stored[name] = type.fromJson(value)
  }
  return stored as Edits<F>
}
